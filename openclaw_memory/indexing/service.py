"""Keeps the index of one memory up to date, one sync at a time, and recovers it where it is damaged."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from openclaw_memory import _forks
from openclaw_memory._weakref import bind_weakly
from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings.selection import CircuitBreakerEmbedder, EmbedderSelector
from openclaw_memory.errors import (
    ConfigError,
    CorruptIndexError,
    IndexLockedError,
    IndexReplacedError,
    OpenClawMemoryError,
    StoreError,
    SyncBusyError,
    WorkspaceError,
)
from openclaw_memory.indexing.background import Background, SearchPriority
from openclaw_memory.indexing.changes import UNREAD_SIZE, SyncParts, missing_vectors
from openclaw_memory.indexing.history import (
    LAST_ERROR,
    LAST_SYNC,
    record_of,
    record_of_error,
    sync_record,
    unread_in_words,
)
from openclaw_memory.indexing.odd_files import odd_files, unreadable_in_words
from openclaw_memory.indexing.staleness import Staleness
from openclaw_memory.types import Embedder, IndexMeta, Progress, Store, StoreInfo, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.workspace import Workspace

# A search that met a damaged index waits so long for a sync that is at work on it, and would recover it.
RECOVERY_SECONDS = 10.0
# An index that is deleted again and again while it is read is read again so often.
RETRIES = 20

QUICK = {"static", "hashing"}  # providers that embed a text again sooner than its vector is read
ERASE_SECONDS = 30.0  # so long after a removal a sync erases it, which writes the whole index again

WATCHING = "watching"  # the name under which a store keeps the state of the watcher at work
DELETED = "the index was deleted, and was built again"

_Result = TypeVar("_Result")


class Ended(Exception):  # noqa: N818 - nothing went wrong
    """A sync that was ended by its caller; the next one goes on from there."""


class IndexService:
    """Keeps the index of one memory up to date. Safe to use from several threads.

    `last` is the report of the latest sync here, `last_error` why the latest one failed, which a successful sync
    clears. `watcher` follows the files, once it was started. `priority` lets searches go before syncs. `store` is
    ready, or a function that makes it.
    """

    def __init__(
        self,
        workspace: Workspace,
        embedders: EmbedderSelector,
        config: MemoryConfig,
        store: Store | Callable[[], Store],
    ) -> None:
        self.last: SyncReport | None = None
        self.last_error: str | None = None
        self.watcher: Watcher | None = None
        self.priority = SearchPriority()
        self._workspace, self._embedders, self._config, self._made = workspace, embedders, config, store
        self._store: Store | None = None if callable(store) else store
        # Locks are taken in this order: the lock of the store, `_syncing` where it has none, `_making`.
        self._making = _forks.rlock()
        self._syncing = _forks.lock()
        self._sync_thread: int | None = None  # the thread in which a sync is at work here
        self._closed = False
        self._had_index = False
        self._may_have_failed = True  # whether the index may hold the note of an error
        self._complete = False  # whether the index was complete when it was last read
        self._recovered: str | None = None  # what was done to a damaged index, until a sync has reported it
        self._watcher_state = ""
        self._doubts: set[str] = set()  # files to be read again, and all that ever were
        self._doubted: set[str] = set()
        self._unread: str | None = None  # which files could not be unsealed; "" for none, None until the store is asked
        self._missing: Mapping[str, int] | None = None  # as the store says; None after a sync, until it is asked again
        self._staleness = Staleness(workspace, config, bind_weakly(self.store))
        self._has_unerased = False  # whether texts were removed that are not erased
        self._background = Background(self._sync_quietly, config.sync.interval_seconds)
        _forks.in_child(self)
        if config.sync.on_open:
            self._background.request()
        self._background.start()

    def after_fork(self) -> None:
        """Know of no sync and no watcher of the parent."""
        self._sync_thread = self.watcher = None
        self._has_unerased = False

    # --- the store -----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise StoreError where the memory is closed; the folder is then brought up to date, if it is a copy."""
        if self._closed:
            raise StoreError(f"the memory of {self._workspace.root} is closed; open it again")
        self._workspace.refresh()

    def store(self) -> Store:
        """Return the store, made at the first use.

        Raises:
            StoreError: The memory is closed.
            ConfigError: The function that makes the store returns something else.
        """
        with self._making:
            self.check_open()
            if self._store is None:
                store = self._made() if callable(self._made) else self._made
                if not isinstance(store, Store):
                    raise ConfigError(f"the function that makes the store returned {store!r}, which is not a Store")
                self._store = store
            return self._store

    @property
    def location(self) -> str | None:
        """Where the index is; known after closing too."""
        return (self._store or self.store()).describe(counts=False).location

    def describe(self) -> StoreInfo:
        """Return what the index is, without counts."""
        return self.store().describe(counts=False)

    def has_index(self) -> bool:
        """Return whether anything was ever indexed, without making a file."""
        return self.describe().exists

    def is_locked(self) -> bool:
        """Return whether a sync of this index is at work, in any thread or process."""
        return "sync" in self.describe().locked

    def make_place(self) -> None:
        """Make the place of the index, where its locks are kept too.

        Raises:
            WorkspaceError: The workspace has gone.
        """
        self._check_workspace()
        if not self.has_index():
            self.store().set_meta(WATCHING, "")
            self._name_workspace()

    def _name_workspace(self) -> None:
        """Write the path of the workspace next to its index, for `doctor --prune`."""
        from openclaw_memory.config.data_folder import WORKSPACE_PATH
        from openclaw_memory.workspace.safe_folder import SafeFolder

        root = os.path.realpath(self._workspace.root)
        with suppress(OpenClawMemoryError):  # there may be no home folder, or no room
            folder = SafeFolder.locate_data(Path(root))
            if self.location and Path(self.location).parent == folder.base:
                folder.replace(WORKSPACE_PATH, os.fsencode(root))

    def _check_workspace(self) -> None:
        if not (root := self._workspace.root).is_dir():
            raise WorkspaceError(f"workspace {root} has gone; bring it back, or open the memory elsewhere")

    def close(self) -> None:
        """Close the store, and end what runs in the background. Calling it twice is allowed."""
        self._erase()
        with self._making:
            self._closed = True
            watcher, self.watcher = self.watcher, None
            if self._store is not None:
                self._store.close()
        if watcher is not None:
            watcher.stop()
        self._background.stop()

    def reading(self, work: Callable[[Store, IndexMeta | None, bool], _Result]) -> tuple[_Result, str | None]:
        """Return the result of `work` for a snapshot of the index, and what was done to the index first.

        `work` is given the snapshot, its meta, and whether the index was known to be behind before it was taken: by
        the time that it is read, a sync may have ended, which the snapshot knows nothing of.

        A missing index is built first, unless searches build none, and a damaged one is recovered. An index that is
        deleted meanwhile, or is built again by a thread here, is read again.

        Raises:
            CorruptIndexError, IndexReplacedError: As `recovering`.
        """

        def read() -> tuple[_Result, str | None]:
            self._check_workspace()
            known = self._complete
            rebuilt = None if known else self.make_searchable()
            behind = self.is_behind()
            with self.priority.searching(), self.store().snapshot() as frozen:
                stored = frozen.meta()
                self._complete = stored is not None and stored.complete
                is_partial = stored is None or (not stored.complete and self.is_syncing)
                if not self._complete and (known or (is_partial and self.builds_before_search)):
                    raise IndexReplacedError("the index was deleted when it had just been built; search again")
                return work(frozen, stored, behind), rebuilt

        (result, rebuilt), recovered = self.recovering(read)
        return result, "; ".join(filter(None, dict.fromkeys((recovered, rebuilt)))) or None

    def recovering(self, work: Callable[[], _Result], *, alone: bool = False) -> tuple[_Result, str | None]:
        """Return the result of `work`, which reads the index, and what was done if a damaged index was recovered first.

        The lock of syncs is taken for a recovery, unless the caller is `alone` already.

        Raises:
            CorruptIndexError: The index is damaged and cannot be recovered now, as a sync that will do so is at work.
            IndexReplacedError: The index was deleted or replaced again and again.
        """
        words, damages = None, 0
        for _ in range(RETRIES):
            try:
                return work(), words
            except IndexReplacedError:
                continue
            except CorruptIndexError as damage:
                if (damages := damages + 1) > 2:
                    raise
                words = (self._recover if alone else self._recover_alone)(damage, damages == 2)
        return work(), words

    def _recover_alone(self, damage: CorruptIndexError, sure: bool) -> str:
        if self.is_syncing_here:  # a progress callback reads what its sync will recover
            raise damage
        try:
            with self.store().lock("sync", RECOVERY_SECONDS, self._notify(None)) as alone:
                if not alone:
                    raise damage
                return self._recover(damage, sure)
        except SyncBusyError as busy:
            raise damage from busy

    def _recover(self, damage: CorruptIndexError, sure: bool) -> str:
        """Recover the index if a deep check finds damage, or if such a check has missed it before (`sure`)."""
        store, words = self.store(), damage.found or str(damage)
        found = "; ".join(store.verify()) or (words if sure else "")
        if not found:
            return f"the index was read wrongly and is read again: {words}"
        # A search that finds the damage says so, and so does the sync that follows it.
        self._recovered = store.recover(found)
        return self._recovered

    @property
    def is_syncing(self) -> bool:
        """Whether a sync runs in any thread of this memory."""
        return self._sync_thread is not None

    @property
    def is_syncing_here(self) -> bool:
        """Whether a sync runs in this very thread, as seen from a progress callback."""
        return self._sync_thread == threading.get_ident()

    @property
    def builds_before_search(self) -> bool:
        """Whether `make_searchable` builds a missing index when it is called in this thread."""
        return self._config.sync.before_search and not self.is_syncing_here

    # --- syncing -------------------------------------------------------------------------------------------------

    def sync(
        self,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
        reason: str = "manual",
        prepare: Callable[[Store], None] | None = None,
        only_written: bool = False,
    ) -> SyncReport:
        """Sync, recovering a damaged index; see `Memory.sync`. `reason` says what asked for it, in the status.

        `prepare` is called with the store first, while no other process can change it. With `only_written` it is enough
        to index the files that were written here, where all of them are known; what was removed from the index is
        erased from its bytes a little later then.
        """
        if self.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not sync")
        self.check_open()
        self.make_place()
        end = None if wait is None else time.monotonic() + wait
        with self.store().lock("sync", wait, self._notify(progress)) as alone, self._alone_here(end):
            seen, started = self._staleness.seen, time.time()
            if force:
                self._staleness.invalidate()
            try:
                if only_written and (indexed := self._index_written(prepare)) is not None:
                    return indexed
                work = partial(self._one_sync, force, progress, alone, prepare)
                report, recovered = self.recovering(work, alone=True)
            except (Ended, KeyboardInterrupt, SystemExit):
                self._staleness.invalidate()
                raise
            except BaseException as error:
                self._staleness.invalidate()
                self._may_have_failed = True
                self.last_error = record_of_error(error, time.time())
                if not isinstance(error, IndexLockedError):  # it would be waited for once more
                    self._note(LAST_ERROR, self.last_error)
                raise
            if (words := recovered or self._recovered) is not None:
                report, self._recovered = replace(report, rebuilt=words), None
            self.last, self.last_error, self._had_index = report, None, True
            self._missing = {} if report.ok and not report.skipped else None  # what was skipped may lack vectors
            self._unread = None
            self._note(LAST_SYNC, record_of(report, reason, started), exists=True)
            self._forget_error()
            self._staleness.record_sync(report, seen)
            return report

    def make_searchable(self) -> str | None:
        """Sync where the index is missing, or its first build was cut short; wait for a sync under way here.

        Returns why that was necessary, if there was an index before.
        """
        stored = self.store().meta()
        if stored is not None and stored.complete:
            self._had_index = True
            return None
        if not self.builds_before_search:
            return None
        if stored is not None and self.is_locked():
            if self._sync_thread is None:
                return None  # another memory, or process, builds it: what there is answers
            with self._syncing:
                pass
        words = DELETED if self._had_index else None
        try:
            words = self.sync().rebuilt or words
        except WorkspaceError:
            if self.store().meta() is None:
                raise  # what a cut index holds is better than no answer: `stale` says how much that is worth
        return words

    def record_write(self, paths: Iterable[str] | None = None) -> None:
        """Note that files were changed here, which the index does not know yet: those at `paths`, if that is known."""
        self._staleness.record_write(paths)

    def sync_soon(self) -> None:
        """Note that a file was changed here, and begin a sync in the background, as a search does."""
        self.record_write()
        if self._config.sync.on_search and self.has_index():
            self._background.request()

    def doubt(self, paths: Iterable[str]) -> None:
        """Have files read again, whatever their stamps say, that do not hold what the index says; once for each."""
        fresh = set(paths) - self._doubted
        self._doubted |= fresh
        self._doubts |= fresh
        if fresh:
            self.sync_soon()

    def _forget_doubted(self, store: Store) -> None:
        """Forget the stamps of doubted files, so that this sync reads them and writes their rows again."""
        from openclaw_memory.store.schema import SCHEMA_VERSION

        known, doubts, meta = store.files(), self._doubts, store.meta()
        self._doubts = set()
        if meta is None or meta.schema_version != SCHEMA_VERSION:
            return  # every file is read again for the new tables
        store.replace_files(
            [(replace(known[path], hash="", size=UNREAD_SIZE), None) for path in sorted(doubts) if path in known]
        )

    def watch(self) -> Watcher:
        """Return the watcher of these files, which is started unless it runs."""
        from openclaw_memory.indexing.watcher import Watcher

        with self._making:
            self.check_open()
            if self.watcher is None or not self.watcher.is_running:
                self.watcher = Watcher(
                    self._workspace,
                    self._watched_sync,
                    self._config,
                    lock=partial(self.store().lock, "watch", 0),
                    known=self.store().files,
                ).start()
            return self.watcher

    def watcher_state(self) -> str | None:
        """Return what the watcher of these files does, here or in another process; None without a watcher."""
        if self.watcher is not None and self.watcher.is_running:
            return self.watcher.state
        if "watch" not in self.describe().locked:
            return None
        return f"in another process: {self.store().get_meta(WATCHING) or 'at work'}"

    @contextmanager
    def _alone_here(self, end: float | None) -> Iterator[None]:
        """Keep other threads out where the lock of the store cannot."""
        if not self._syncing.acquire(timeout=-1 if end is None else max(0.0, end - time.monotonic())):
            raise SyncBusyError(f"a sync of {self._workspace.root} is under way in another thread; try again")
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
        from openclaw_memory.indexing.plan import sync

        if prepare is not None:
            prepare(self.store())
        if self._doubts:
            self._forget_doubted(self.store())
        parts = self._parts_of_sync(force=force, progress=progress)
        report = sync(parts, force=force, alone=alone)
        if isinstance(parts.embedder, CircuitBreakerEmbedder) and report.embedded and report.ok:
            parts.embedder.record_success()
        self._has_unerased = False
        return report

    def _parts_of_sync(self, *, force: bool = False, progress: Callable[[Progress], None] | None = None) -> SyncParts:
        store = self.store()
        embedder, trouble = self._embedders.select_for_sync(store.meta(), force=force)
        return SyncParts(
            self._workspace,
            store,
            embedder,
            self._config,
            trouble=trouble,
            requested=self._embedders.requested,
            progress=progress,
            priority=self.priority,
            cache=self.locate_cache() if self._is_cached(embedder) else None,
        )

    def _is_cached(self, embedder: Embedder | None) -> bool:
        """Return whether vectors are cached: not those that are made sooner than read, nor those of sealed notes."""
        is_slow = embedder is not None and embedder.provider not in QUICK
        return is_slow and self._workspace.files.codec.key_id is None

    def locate_cache(self) -> EmbeddingCache | None:
        """Return the user's cache of embeddings; None without a home folder, or if it may hold nothing."""
        from openclaw_memory.config.data_folder import locate_workspace_data
        from openclaw_memory.store.embedding_cache import EmbeddingCache, locate_cache

        max_entries = self._config.embedding.max_entries
        with suppress(ConfigError):
            name = locate_workspace_data(self._workspace.root).name
            return EmbeddingCache(locate_cache(), name, max_entries) if max_entries else None
        return None

    def forget(self, paths: Iterable[str], wait: float) -> str | None:
        """Erase from the bytes of the index what files at these paths no longer say, and all vectors out of use.

        Returns why that could not be done, wholly or at all; None where nothing of it is left.
        """
        try:
            if not self.has_index():
                return None
            self._doubts |= {*paths}
            if self._doubts or self.is_behind():
                report = self.sync(wait=wait)
                if behind := [file.path for file in (*report.failed, *report.skipped) if file.path in {*paths}]:
                    return f"these could not be read, and are in the index as they were: {', '.join(behind)}"
            with self.store().lock("sync", wait) as alone:
                if not alone:
                    return "its folder knows no locks, so that nothing is erased there: delete the index"
                self.store().prune()
            if (cache := self.locate_cache()) is not None:
                cache.forget()
            if self.store().describe().unerased:
                return "a program reads an old state of it: the first sync after that has ended erases the rest"
        except (OpenClawMemoryError, OSError) as error:
            return f"{error}; sync again"
        return None

    def _index_written(self, prepare: Callable[[Store], None] | None) -> SyncReport | None:
        """Index what was written here; None where that takes a whole sync, or has not ended well."""
        from openclaw_memory.indexing.plan import at_paths

        pending = self._staleness.pending()
        known = [paths for paths in pending.values() if paths is not None]
        if self._doubts or self._staleness.is_mistrusted or len(known) < len(pending):
            return None
        with suppress(CorruptIndexError, IndexReplacedError):  # which a whole sync mends
            parts = self._parts_of_sync()
            if prepare is not None:
                prepare(parts.store)
            report = at_paths(parts, chain.from_iterable(known))
            if report is None or not report.ok or report.skipped:
                return None
            self._staleness.forget(pending)
            if report.changed or report.removed:
                self._has_unerased = True
                self._background.request(ERASE_SECONDS)
            return report
        return None

    def _erase(self) -> None:
        """Erase what is left of removed texts in the bytes of the index, as a sync does at its end."""
        if self._has_unerased:
            with suppress(OpenClawMemoryError, OSError), self.store().lock("sync", 0) as alone:
                if alone:
                    self.store().prune()
        self._has_unerased = False

    def _note(self, name: str, record: str, *, exists: bool = False) -> None:
        """Store a note for other processes, if the index exists (a sync has just seen it) and can be written."""
        with suppress(OpenClawMemoryError, OSError):
            if exists or self.has_index():
                self.store().set_meta(name, record)

    def _forget_error(self) -> None:
        """Empty the note of an earlier error: no status shows it any more, and it may name a file that is gone."""
        with suppress(OpenClawMemoryError, OSError):
            if self._may_have_failed and self.store().get_meta(LAST_ERROR):
                self.store().set_meta(LAST_ERROR, "")
            self._may_have_failed = False

    def _notify(self, progress: Callable[[Progress], None] | None) -> Callable[[str], None]:
        def notify(words: str) -> None:
            self.check_open()
            if progress is not None:
                progress(Progress(0, 0, words))

        return notify

    def _watched_sync(self) -> SyncReport:
        report = self.sync(progress=self._end_when_unwatched, reason="watcher")
        watcher = self.watcher
        if watcher is not None and watcher.state != self._watcher_state:
            self._watcher_state = watcher.state
            self._note(WATCHING, watcher.state, exists=True)
        return report

    # --- being behind --------------------------------------------------------------------------------------------

    def is_behind(self) -> bool:
        """Return whether the index is known to be behind, after a look at the files unless there was one just now."""
        if not self._config.sync.on_search:
            return self._staleness.is_behind()
        if (watcher := self._watcher_at_work) is not None:
            is_behind = watcher.is_behind  # before the other: what it syncs is no news afterwards
            return is_behind or self._staleness.is_behind()
        if self._staleness.look():
            self._background.request()
        return self._staleness.is_behind()

    def catch_up(self) -> None:
        """Begin a sync in the background where the index is behind, and a search may do that."""
        if self._config.sync.on_search and self._watcher_at_work is None and self._staleness.should_sync():
            self._background.request()

    @property
    def _watcher_at_work(self) -> Watcher | None:
        return self.watcher if self.watcher is not None and self.watcher.is_at_work else None

    def unread(self, store: Store, *, again: bool = False) -> str | None:
        """Return a sentence about the files that the latest sync could not read: sealed ones, and those without text.

        It is asked `again`, and after a sync here.
        """
        if self._unread is None or again:
            last = sync_record(store.get_meta(LAST_SYNC))
            sealed = unread_in_words({} if last is None else last.skipped)
            self._unread = "; ".join(filter(None, (sealed, unreadable_in_words(odd_files(store)))))
        return self._unread or None

    def missing_vectors(self, store: Store) -> Mapping[str, int]:
        """Return how many files lack vectors, by the reason; asked again while some do."""
        known = self._missing
        if known is None or known:
            self._missing = known = missing_vectors(store.files())
        return known

    def _sync_quietly(self) -> None:
        """Sync in the background; a failure is kept for the status and the next search."""
        try:
            self.sync(progress=self._end_when_closed, wait=0, reason="background")
        except SyncBusyError:
            self._staleness.ask_again()
        except Exception:  # noqa: BLE001 - whatever it is, it is kept in last_error
            return

    def _end_when_closed(self, _: Progress) -> None:
        self.check_open()

    def _end_when_unwatched(self, _: Progress) -> None:
        self.check_open()
        if self.watcher is not None and self.watcher.is_stopping:
            raise Ended
