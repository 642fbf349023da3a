"""Keeps the index of one memory: opens it, heals it, brings it up to date in turn, and knows when it is behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings._choice import Embedders
from openclaw_memory.errors import CorruptIndexError, OpenClawMemoryError, StoreError, SyncBusyError, WorkspaceError
from openclaw_memory.sync.background import Background
from openclaw_memory.sync.courtesy import Courtesy
from openclaw_memory.sync.records import LAST_ERROR, LAST_SYNC, record_of, record_of_error
from openclaw_memory.types import FileRecord, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.sync.watcher import Watcher
    from openclaw_memory.workspace import Workspace

# A look at the stamps of all files may take this share of the time. One that takes longer than LONG_LOOK_SECONDS is
# left to the sync in the background, which looks anyway.
LOOK_SHARE = 0.05
LONG_LOOK_SECONDS = 0.05
# What a background sync left as it was (a service is down, a file is unreadable) is not asked for again before.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Keeping:
    """What an index is kept with: the parts of a `Memory`. `make_store` is None where a store was handed in ready."""

    workspace: Workspace
    embedders: Embedders
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
        # Two locks, so that a search waits for a part that is being made, and never for a sync. The second one is
        # reentrant, because a progress callback may search in the thread that is syncing.
        self._making = threading.RLock()
        self._syncing = threading.RLock()
        self._in_sync = self._behind = self._closed = False
        self._written = self._covered = 0  # notes written here, and how many of them the last sync has seen
        self._lacking: Mapping[str, int] | None = None  # as the store says; None after a sync, until it is asked again
        self._looked, self._look_seconds = float("-inf"), 0.0
        self._differing: Mapping[str, object] = {}
        self._asked: tuple[object, float] = (None, float("-inf"))  # what the background was asked to mend, and when
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
            if self._store is not None and make is not None and not _is_current(self._store):
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
        return self._store is not None or path is None or path.exists()

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

    def heal(self, damage: CorruptIndexError) -> str:
        """Set a damaged index aside, so that the next sync builds a new one; returns what there is to say about it.

        Another process may have done so already, or the file is sound and only a reading of it was not: it is then
        opened again.

        Raises:
            CorruptIndexError: `damage` itself, where the index has no file that could be set aside, or a progress
                callback found it, whose sync will mend it.
        """
        with self._syncing:
            if self._in_sync:
                raise damage
            return self._heal(damage)

    def _heal(self, damage: CorruptIndexError) -> str:
        from openclaw_memory.sync.damage import set_aside, why_damaged
        from openclaw_memory.sync.turn import one_at_a_time

        path = self._keeping.index_path
        if path is None or self._keeping.make_store is None:
            raise damage
        with one_at_a_time(path, None, None), self._making:
            self._forget_store()
            found = why_damaged(path)
            if found is None:
                return f"the index was read wrongly and is read again: {damage}"
            return f"the index was damaged ({found}) and is kept as {set_aside(path)}"

    def _sweep(self) -> None:
        """Remove what builders that were killed have left beside the index; one that is alive has the turn."""
        from openclaw_memory.store.beside import leftovers, sweep
        from openclaw_memory.sync.turn import one_at_a_time

        path = self._keeping.index_path
        if path is None or not leftovers(path):
            return
        with suppress(SyncBusyError), one_at_a_time(path, 0) as alone:
            if alone:
                sweep(path)

    def _forget_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- syncing -------------------------------------------------------------------------------------------------

    def sync(
        self,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
        reason: str = "manual",
    ) -> SyncReport:
        """Sync, healing a damaged index; see `Memory.sync`. `reason` says what asked for it, in the status."""
        if not self._syncing.acquire(timeout=-1 if wait is None else wait):
            raise SyncBusyError(f"a sync of {self._keeping.workspace.root} is under way in another thread; try again")
        try:
            if self._in_sync:
                raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not sync")
            self.check_open()
            self._in_sync, written, started = True, self._written, time.time()
            self._behind = self._behind or force
            try:
                report = self._healed_sync(force, progress, wait)
                self._note(LAST_SYNC, record_of(report, reason, started))
            except SyncBusyError:
                raise
            except BaseException as error:
                self._behind = True
                self.last_error = record_of_error(error, time.time())
                self._note(LAST_ERROR, self.last_error)
                raise
            finally:
                self._in_sync = False
            self._behind, self._covered, self._lacking, self._differing = not report.ok, written, None, {}
            self.last, self.last_error = report, None
            if not report.ok:  # what this sync could not mend, the next search need not try again
                self._compare_stamps()
                self._asked = (self._wish(), time.monotonic())
            return report
        finally:
            self._syncing.release()

    def make_searchable(self) -> None:
        """Sync where there is no index, or one whose first build was cut short; wait for one under way here."""
        stored = self.store().meta()
        if stored is not None and stored.complete:
            return
        from openclaw_memory.sync import somebody_is_at_work

        with self._syncing:
            stored = self.store().meta()
            at_work = self._in_sync or (stored is not None and somebody_is_at_work(self._keeping.index_path))
            if at_work or (stored is not None and stored.complete):
                return
            try:
                self.sync()
            except WorkspaceError:
                if self.store().meta() is None:
                    raise  # what a cut index holds is better than no answer: `stale` says how much that is worth

    def wrote(self) -> None:
        """Note that a file was changed here, which the index does not know yet."""
        with self._making:
            self._written += 1

    def _note(self, name: str, record: str) -> None:
        """Tell other processes; where even that cannot be written, this one still knows."""
        with suppress(OpenClawMemoryError, OSError):
            self.store().note(name, record)

    def _healed_sync(self, force: bool, progress: Callable[[Progress], None] | None, wait: float | None) -> SyncReport:
        try:
            return self._one_sync(force, progress, wait)
        except CorruptIndexError as damage:
            words = self._heal(damage)
        report = self._one_sync(force, progress, wait)
        return replace(report, rebuilt=words)

    def _one_sync(self, force: bool, progress: Callable[[Progress], None] | None, wait: float | None) -> SyncReport:
        from openclaw_memory.sync import sync

        parts = self._keeping
        store = self.store()
        embedder, trouble = parts.embedders.for_sync(store.meta(), force=force)
        report = sync(
            parts.workspace,
            store,
            embedder,
            parts.config,
            trouble=trouble,
            requested=parts.embedders.requested,
            force=force,
            progress=progress,
            index_path=parts.index_path,
            wait=wait,
            give_way=self.courtesy.give_way,
        )
        if embedder is not None and report.embedded and report.ok:
            embedder.is_heard()
        return report

    def watch(self) -> Watcher:
        """The watcher of these files, started where none is at work."""
        from openclaw_memory.sync.watcher import Watcher

        parts = self._keeping
        with self._making:
            self.check_open()
            if self.watcher is None or self.watcher.state == "stopped":
                watcher = Watcher(
                    parts.workspace,
                    self._watched_sync,
                    parts.config,
                    index_path=parts.index_path,
                    known=self._known_files,
                )
                self.watcher = watcher.start()
            return self.watcher

    def _watched_sync(self) -> SyncReport:
        return self.sync(progress=self._end_when_closed, reason="watcher")

    def _known_files(self) -> Mapping[str, FileRecord]:
        return self.store().files()

    # --- being behind --------------------------------------------------------------------------------------------

    def look(self, *, mend: bool = True) -> bool:
        """Whether the index is known to be behind its files; with `mend` a sync then begins in the background.

        Stamps of files are compared as often as that costs a twentieth of the time; a watcher knows without a look.
        """
        if not self._keeping.config.sync.on_search:
            return self._is_behind()
        self._look_again()
        behind = self._is_behind()
        asked, at = self._asked
        if mend and behind and (self._wish() != asked or time.monotonic() - at > PATIENCE_SECONDS):
            self._asked = (self._wish(), time.monotonic())
            self._background.request()
        return behind

    def lacking(self, store: Store) -> Mapping[str, int]:
        """How many files lack vectors, by the reason; where some did, another process may have caught up meanwhile."""
        known = self._lacking
        if known is None or known:
            self._lacking = known = store.lacking()
        return known

    def _is_behind(self) -> bool:
        watcher = self.watcher
        return (
            self._behind
            or self._written != self._covered
            or bool(self._differing)
            or (watcher is not None and watcher.is_behind)
        )

    def _wish(self) -> object:
        """What a sync would have to mend, as far as it is known."""
        return self._written, dict(self._differing)

    def _look_again(self) -> None:
        if self.watcher is not None or time.monotonic() - self._looked < self._look_seconds / LOOK_SHARE:
            return
        if self._look_seconds > LONG_LOOK_SECONDS:
            self._looked = time.monotonic()
            self._background.request()
            return
        self._compare_stamps()

    def _compare_stamps(self) -> None:
        from openclaw_memory.sync.compare import compare, worth_a_sync

        started = time.monotonic()
        known = self.store().files()
        workspace = self._keeping.workspace
        difference = compare(workspace.scan().files, known)
        self._differing = worth_a_sync(difference, known, self._keeping.config.sessions, workspace)
        self._looked = time.monotonic()
        self._look_seconds = self._looked - started

    def _sync_quietly(self) -> None:
        """A sync that nobody waits for: what it cannot do is told by the status, and by the next search."""
        try:
            self.sync(progress=self._end_when_closed, wait=0, reason="background")
        except SyncBusyError:
            self._asked = (None, float("-inf"))  # who is at work may have looked before the files changed
        except (OpenClawMemoryError, OSError):
            return  # kept in last_error

    def _end_when_closed(self, _: Progress) -> None:
        self.check_open()


def _is_current(store: Store) -> bool:
    """Whether a store still is what lies at its place; one that lies nowhere always is."""
    is_current: Callable[[], bool] | None = getattr(store, "is_current", None)
    return is_current is None or is_current()
