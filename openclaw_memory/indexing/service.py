"""Keeps the index of one memory: opens it, heals it, and brings it up to date, in turn with all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings.selection import EmbedderSelector
from openclaw_memory.errors import (
    CorruptIndexError,
    IndexLockedError,
    OpenClawMemoryError,
    StoreError,
    SyncBusyError,
    WorkspaceError,
)
from openclaw_memory.indexing.background import Background, Courtesy
from openclaw_memory.indexing.history import LAST_ERROR, LAST_SYNC, record_of, record_of_error
from openclaw_memory.indexing.staleness import Lag
from openclaw_memory.store.location import is_current
from openclaw_memory.types import FileRecord, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.workspace import Workspace

# A search that met a damaged index waits so long for a sync that is at work on it, and would mend it.
HEAL_SECONDS = 10.0

WATCHING = "watching"  # the name under which a store keeps what the watcher at work last said of itself

_Result = TypeVar("_Result")


class Ended(Exception):  # noqa: N818 - nothing went wrong
    """A sync that was ended by whoever asked for it; the next one goes on from there."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """What an index is kept with: the parts of a `Memory`. `make_store` is None where a store was handed in ready."""

    workspace: Workspace
    embedders: EmbedderSelector
    config: MemoryConfig
    index_path: Path | None
    make_store: Callable[[], Store] | None


class Upkeep:
    """The index of one memory, kept true. Safe to use from several threads.

    `last` is the report of the latest sync here, `last_error` why the latest one ended without any: a sync that ends
    well clears it. `watcher` follows the files, where one was started. By `courtesy` searches go before syncs.
    """

    def __init__(self, keeping: Keeping, store: Store | None) -> None:
        self.last: SyncReport | None = None
        self.last_error: str | None = None
        self.watcher: Watcher | None = None
        self.courtesy = Courtesy()
        self._keeping = keeping
        self._store = store
        # Locks are taken in this order: the turn of all processes, `_syncing` where there is none to be had, `_making`.
        self._making = threading.RLock()
        self._syncing = threading.Lock()
        self._sync_thread: int | None = None  # the thread in which a sync is at work here
        self._closed = False
        self._healed: str | None = None  # what was set right, until a sync has told it
        self._told_watching = ""
        self._lacking: Mapping[str, int] | None = None  # as the store says; None after a sync, until it is asked again
        self._lag = Lag(keeping.workspace, keeping.config, self.store)
        self._background = Background(self._sync_quietly, keeping.config.sync.interval_seconds)
        if keeping.config.sync.on_open:
            self._background.request()
        self._background.start()

    # --- the store -----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise StoreError where the memory is closed."""
        if self._closed:
            raise StoreError(f"the memory of {self._keeping.workspace.root} is closed; open it again")

    def store(self) -> Store:
        """The store, opened at the first use, and again where another file has taken the place of the index.

        Raises:
            StoreError: the memory is closed, or the index cannot be opened.
            CorruptIndexError: the index is damaged.
            WorkspaceError: the workspace has gone, and the index with it.
        """
        make = self._keeping.make_store
        with self._making:
            self.check_open()
            if self._store is not None and make is not None and not is_current(self._store):
                self._forget_store()
            if self._store is None:
                assert make is not None, "either a store was handed in, or a function that makes one"
                if not (root := self._keeping.workspace.root).is_dir():  # a new index there would make the folder again
                    raise WorkspaceError(f"workspace {root} has gone; bring it back, or open the memory elsewhere")
                self._store = make()
                self._sweep()
            return self._store

    def is_store(self, store: Store) -> bool:
        """Whether this is the store in use: one that was replaced is closed under those who still read it."""
        return self._store is store

    def there_is_an_index(self) -> bool:
        """Whether anything was ever indexed, as far as can be told without making a file."""
        path = self._keeping.index_path
        return path is None or path.exists()

    def close(self) -> None:
        """Close the store, and end what runs in the background. Calling it twice is allowed."""
        with self._making:
            self._closed = True
            watcher, self.watcher = self.watcher, None
            if self._store is not None:
                self._store.close()
        if watcher is not None:
            watcher.stop()
        self._background.stop()

    def healing(self, work: Callable[[], _Result]) -> tuple[_Result, str | None]:
        """What `work` returns, which reads the index, and what there is to say where that had to be set right first.

        Raises:
            CorruptIndexError: the index is damaged and cannot be set aside now: it has no file of its own, or a sync
                that will mend it is at work.
        """
        return self._healing(work, self._heal_in_turn)

    def _healing(
        self, work: Callable[[], _Result], heal: Callable[[CorruptIndexError, bool], str]
    ) -> tuple[_Result, str | None]:
        words = None
        # What a fresh look finds sound is only opened again; where that does not help, the look has missed something.
        for sure in (False, True):
            try:
                return work(), words
            except CorruptIndexError as damage:
                words = heal(damage, sure)
        return work(), words

    def _heal_in_turn(self, damage: CorruptIndexError, sure: bool) -> str:
        from openclaw_memory.indexing.lock import one_at_a_time

        if self.is_syncing_here:  # a progress callback reads what its sync will mend
            raise damage
        try:
            with one_at_a_time(self._keeping.index_path, HEAL_SECONDS, self._told_to_wait(None)) as alone:
                if not alone:
                    raise damage
                return self._heal(damage, sure)
        except SyncBusyError as busy:
            raise damage from busy

    def _heal(self, damage: CorruptIndexError, sure: bool) -> str:
        """Set the index aside where it is damaged, by a fresh look or because it must be; open it again otherwise."""
        from openclaw_memory.indexing.recovery import set_aside, why_damaged

        path = self._keeping.index_path
        if path is None or self._keeping.make_store is None:
            raise damage
        with self._making:
            self._forget_store()
            found = why_damaged(path) or (damage.found or str(damage) if sure else None)
            if found is None:
                return f"the index was read wrongly and is read again: {damage.found or damage}"
            # A search that finds the damage says so, and so does the sync that follows it.
            self._healed = f"the index was damaged ({found}) and is kept as {set_aside(path)}"
            return self._healed

    def _sweep(self) -> None:
        """Remove what builders that were killed have left beside the index; one that is alive has the turn."""
        from openclaw_memory.indexing.lock import one_at_a_time
        from openclaw_memory.store.shadow import leftovers, sweep

        path = self._keeping.index_path
        with suppress(SyncBusyError, OSError):  # what cannot be looked for now is swept by the next sync
            if path is None or not leftovers(path):
                return
            with one_at_a_time(path, 0) as alone:
                if alone:
                    sweep(path)

    def _forget_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def is_syncing_here(self) -> bool:
        """Whether a sync is at work in this very thread: a progress callback asks."""
        return self._sync_thread == threading.get_ident()

    # --- syncing -------------------------------------------------------------------------------------------------

    def sync(
        self,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
        reason: str = "manual",
        prepare: Callable[[Store], None] | None = None,
    ) -> SyncReport:
        """Sync, healing a damaged index; see `Memory.sync`. `reason` says what asked for it, in the status.

        `prepare` is called with the store first, when no other process can change it.
        """
        from openclaw_memory.indexing.lock import one_at_a_time

        if self.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not sync")
        self.check_open()
        if not self.there_is_an_index():
            self.store()  # the lock lies beside the index, and its folder is made with it
        end = None if wait is None else time.monotonic() + wait
        turn = one_at_a_time(self._keeping.index_path, wait, self._told_to_wait(progress))
        with turn as alone, self._alone_here(end):
            written, started = self._lag.written, time.time()
            if force:
                self._lag.mistrust()
            try:
                work = partial(self._one_sync, force, progress, alone, prepare)
                report, healed = self._healing(work, self._heal)
            except (Ended, KeyboardInterrupt, SystemExit):
                self._lag.mistrust()
                raise
            except BaseException as error:
                self._lag.mistrust()
                self.last_error = record_of_error(error, time.time())
                if not isinstance(error, IndexLockedError):  # it would be waited for once more
                    self._note(LAST_ERROR, self.last_error)
                raise
            if (words := healed or self._healed) is not None:
                report, self._healed = replace(report, rebuilt=words), None
            self.last, self.last_error, self._lacking = report, None, None
            self._note(LAST_SYNC, record_of(report, reason, started))
            self._lag.synced(report, written)
            return report

    def make_searchable(self) -> None:
        """Sync where there is no index, or one whose first build was cut short; wait for one under way here."""
        from openclaw_memory.indexing.lock import somebody_is_at_work

        stored = self.store().meta()
        if not self._keeping.config.sync.before_search:
            return
        if (stored is not None and stored.complete) or self.is_syncing_here:
            return
        if stored is not None and somebody_is_at_work(self._keeping.index_path):
            if self._sync_thread is None:
                return  # another memory, or process, builds it: what there is answers
            with self._syncing:
                pass
        try:
            self.sync()
        except WorkspaceError:
            if self.store().meta() is None:
                raise  # what a cut index holds is better than no answer: `stale` says how much that is worth

    def wrote(self) -> None:
        """Note that a file was changed here, which the index does not know yet."""
        self._lag.wrote()

    def soon(self) -> None:
        """Note that a file was changed here, and begin a sync in the background, as a search would that notices it."""
        self.wrote()
        if self._keeping.config.sync.on_search and self.there_is_an_index():
            self._background.request()

    def watch(self) -> Watcher:
        """The watcher of these files, started where none runs."""
        from openclaw_memory.indexing.watcher import Watcher

        parts = self._keeping
        with self._making:
            self.check_open()
            if self.watcher is None or not self.watcher.is_running:
                self.watcher = Watcher(
                    parts.workspace,
                    self._watched_sync,
                    parts.config,
                    index_path=parts.index_path,
                    known=self._known_files,
                ).start()
            return self.watcher

    def told_of_watcher(self) -> str | None:
        """What the watcher of these files says of itself, here or in another process; None where there is none."""
        from openclaw_memory.indexing.watcher import is_watched

        if self.watcher is not None and self.watcher.is_running:
            return self.watcher.state
        if not self.there_is_an_index() or not is_watched(self._keeping.index_path):
            return None
        return f"in another process: {self.store().noted(WATCHING) or 'at work'}"

    @contextmanager
    def _alone_here(self, end: float | None) -> Iterator[None]:
        """Keep other threads out where the turn cannot: of a store without a file, or where no lock can be made."""
        if not self._syncing.acquire(timeout=-1 if end is None else max(0.0, end - time.monotonic())):
            raise SyncBusyError(f"a sync of {self._keeping.workspace.root} is under way in another thread; try again")
        self._sync_thread = threading.get_ident()
        try:
            yield
        finally:
            self._sync_thread = None
            self._syncing.release()

    def _one_sync(
        self,
        force: bool,
        progress: Callable[[Progress], None] | None,
        alone: bool,
        prepare: Callable[[Store], None] | None,
    ) -> SyncReport:
        from openclaw_memory.indexing.plan import all_passes, parts_of

        kept = self._keeping
        store = self.store()
        if prepare is not None:
            prepare(store)
        embedder, trouble = kept.embedders.for_sync(store.meta(), force=force)
        parts = parts_of(
            kept.workspace,
            store,
            embedder,
            kept.config,
            trouble=trouble,
            requested=kept.embedders.requested,
            progress=progress,
            index_path=kept.index_path,
            give_way=self.courtesy.give_way,
        )
        report = all_passes(parts, force=force, alone=alone)
        if embedder is not None and report.embedded and report.ok:
            embedder.record_success()
        return report

    def _note(self, name: str, record: str) -> None:
        """Tell other processes; where even that cannot be written, this one still knows."""
        with suppress(OpenClawMemoryError, OSError):
            self.store().note(name, record)

    def _told_to_wait(self, progress: Callable[[Progress], None] | None) -> Callable[[str], None]:
        def tell(words: str) -> None:
            self.check_open()
            if progress is not None:
                progress(Progress(0, 0, words))

        return tell

    def _watched_sync(self) -> SyncReport:
        report = self.sync(progress=self._end_when_unwatched, reason="watcher")
        watcher = self.watcher
        if watcher is not None and watcher.state != self._told_watching:
            self._told_watching = watcher.state
            self._note(WATCHING, watcher.state)
        return report

    def _known_files(self) -> Mapping[str, FileRecord]:
        return self.store().files()

    # --- being behind --------------------------------------------------------------------------------------------

    def look(self, *, mend: bool = True) -> bool:
        """Whether the index is known to be behind its files; with `mend` a sync then begins in the background."""
        watcher = self.watcher
        if not self._keeping.config.sync.on_search:
            return self._lag.is_behind()
        if watcher is not None and watcher.is_at_work:
            return self._lag.is_behind() or watcher.is_behind
        if self._lag.look() or (mend and self._lag.wants_sync()):
            self._background.request()
        return self._lag.is_behind()

    def lacking(self, store: Store) -> Mapping[str, int]:
        """How many files lack vectors, by the reason; where some did, another process may have caught up meanwhile."""
        known = self._lacking
        if known is None or known:
            self._lacking = known = store.lacking()
        return known

    def _sync_quietly(self) -> None:
        """A sync that nobody waits for: what it cannot do is told by the status, and by the next search."""
        try:
            self.sync(progress=self._end_when_closed, wait=0, reason="background")
        except SyncBusyError:
            self._lag.ask_again()
        except Exception:  # noqa: BLE001 - whatever it is, it is kept in last_error
            return

    def _end_when_closed(self, _: Progress) -> None:
        self.check_open()

    def _end_when_unwatched(self, _: Progress) -> None:
        self.check_open()
        if self.watcher is not None and self.watcher.is_stopping:
            raise Ended
