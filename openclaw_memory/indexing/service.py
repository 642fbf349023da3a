"""Keep the index of one memory up to date, one sync at a time, and build it again if it is damaged."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar
from weakref import proxy

import msgspec
from msgspec.structs import replace

from openclaw_memory._system import check_process
from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.embeddings.selection import INTERIM, QUICK, CircuitBreakerEmbedder, EmbedderSelector, get_preparing
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
from openclaw_memory.indexing.background import Background, Ended, SearchPriority
from openclaw_memory.indexing.changes import UNREAD_SIZE, SyncParts, count_missing_vectors
from openclaw_memory.indexing.staleness import LAST_ERROR, LAST_SYNC, Staleness, encode_sync, make_failure
from openclaw_memory.types import IndexMeta, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.types.results import SyncFailure
    from openclaw_memory.workspace import Workspace

# A search that meets a damaged index waits so long for a sync that is at work on it, and would build it again.
RECOVERY_SECONDS = 10.0
# A search whose index is damaged or replaced is tried again so often.
MAX_TRIES = 5
MAX_REPAIRS = 2  # of a damaged index, for one reader

EMBEDDED = "embedded"  # in the index: how far the vectors of a slow embedder are, or why there are none
# Its work in the background begins so long after a sync, and again after a failure.
EMBED_AFTER_SECONDS, EMBED_AGAIN_SECONDS = 1.0, 60.0
ERASE_SECONDS = 30.0  # so long after a removal a sync erases it, which writes the whole index again

DELETED = "the index was deleted, and was built again"

_Result = TypeVar("_Result")
ShowProgress: TypeAlias = Callable[[Progress], None]
Prepare: TypeAlias = Callable[[Store], None]


class IndexState(NamedTuple):
    """The index in the state of one reader; `notice` tells of a build or a repair just before."""

    store: Store
    meta: IndexMeta | None
    is_behind: bool
    notice: str | None


class IndexService:
    """Keeps the index of one memory up to date. Safe to use from several threads.

    Locks are taken in this order: the lock `sync` of the store, `_opening`, those of the parts.

    Attributes:
        workspace: The files.
        embedders: The embedders that the index may be built with.
        config: The settings.
        last_error: Why the latest sync here failed; a successful one clears it.
        watcher: Follows the files, once it was started.
        priority: Lets searches go before syncs.
    """

    def __init__(
        self,
        workspace: Workspace,
        embedders: EmbedderSelector,
        config: MemoryConfig,
        store: Store | Callable[[], Store],
    ) -> None:
        """Take the parts; `store` is ready, or a function that makes it at the first use."""
        self.workspace, self.embedders, self.config = workspace, embedders, config
        self.last_error: SyncFailure | None = None
        self.watcher: Watcher | None = None
        self.priority, self._make_store = SearchPriority(), store
        self._store: Store | None = None if callable(store) else store
        self._opening = threading.RLock()
        self._sync_thread: int | None = None  # the thread in which a sync is at work here
        self._pid, self._closed = os.getpid(), False
        self._had_index = self._is_complete = False  # as the index was when it was last read
        self._recovered: str | None = None  # why the index was built again, until a sync has reported it
        self._suspects: set[str] = set()  # files to be read again, and all that ever were
        self._suspected: set[str] = set()
        self._missing: Mapping[str, int] | None = None  # files without vectors; None after a sync
        service = proxy(self)  # so that it is freed once nobody uses it
        self._staleness = Staleness(workspace, config, lambda: service.store())  # noqa: PLW0108 - a method would keep it
        self._has_unerased = False  # whether texts were removed that are not erased
        self._background = Background(self._sync_quietly, config.sync.interval_seconds)
        self._embedding = Background(self._embed_quietly)
        if config.sync.on_open:
            self._background.request()

    # --- the store -----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise StoreError if the memory is closed, or was opened before a fork; refresh a folder that is a copy."""
        check_process(self._pid, f"the memory of {self.workspace.root}")
        if self._closed:
            raise StoreError(f"the memory of {self.workspace.root} is closed; open it again")
        self.workspace.refresh()

    def store(self) -> Store:
        """Return the store, made at the first use.

        Raises:
            StoreError: The memory is closed, or was opened before a fork.
            ConfigError: The function that makes the store returns something else.
        """
        self.check_open()
        with self._opening:
            if self._store is None:
                store = self._make_store() if callable(self._make_store) else self._make_store
                if not isinstance(store, Store):
                    raise ConfigError(f"the function that makes the store returned {store!r}, which is not a Store")
                self._store = store
            return self._store

    @property
    def location(self) -> str | None:
        """The place of the index; known after closing too."""
        return (self._store or self.store()).describe(counts=False).location

    def has_index(self) -> bool:
        """Return whether anything was ever indexed, without making a file."""
        return self.store().describe(counts=False).exists

    def close(self) -> None:
        """Close the store, and end the background work. Calling it twice is allowed."""
        if self._pid != os.getpid():  # the threads and the store are the parent's
            return
        if self._has_unerased:  # removed texts are erased, as a sync does at its end
            with suppress(OpenClawMemoryError, OSError), self.store().lock("sync", 0) as is_alone:
                if is_alone:
                    self.store().prune(keep_unused=self.embedders.is_interim(self.store().read_meta()))
        self._closed = True
        self._embedding.stop()  # while the store is open, which keeps the vectors under way
        with self._opening:
            watcher, self.watcher = self.watcher, None
            if self._store is not None:
                self._store.close()
        if watcher is not None:
            watcher.stop()
        self._background.stop()

    def _make_place(self) -> None:
        """Make the place of the index, where its locks are kept too, and name the workspace for `doctor --prune`."""
        self._check_workspace()
        if self.has_index():
            return
        self.store().set_meta(LAST_ERROR, "")
        from openclaw_memory.config.environment import WORKSPACE_PATH
        from openclaw_memory.workspace.safe_folder import SafeFolder

        root = os.path.realpath(self.workspace.root)
        with suppress(OpenClawMemoryError):  # there may be no home folder, or no room
            folder = SafeFolder.locate_data(Path(root))
            if self.location and Path(self.location).parent == folder.base:
                folder.replace(WORKSPACE_PATH, os.fsencode(root))

    def _check_workspace(self) -> None:
        if not (root := self.workspace.root).is_dir():
            raise WorkspaceError(f"workspace {root} has gone; bring it back, or open the memory elsewhere")

    # --- reading -------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[IndexState]:
        """Yield the index as it is now; a missing one is built first, unless searches build none.

        Raises:
            CorruptIndexError: The index is damaged; see `run_recovering`.
            IndexReplacedError: It was deleted or replaced meanwhile; try again.
        """
        self.check_open()
        self._check_workspace()
        was_complete = self._is_complete
        notice = None if was_complete else self.make_searchable()
        is_behind = self.is_behind()  # before: by the time it is read, a sync may have ended that the snapshot lacks
        with self.priority.search(), self.store().snapshot() as store:
            meta = store.read_meta()
            self._is_complete = meta is not None and meta.complete
            is_partial = meta is None or (not meta.complete and self._sync_thread is not None)
            if not self._is_complete and (was_complete or (is_partial and self._builds_before_search)):
                raise IndexReplacedError("the index was deleted when it had just been built; search again")
            yield IndexState(store, meta, is_behind, notice)

    def run_recovering(self, work: Callable[[], _Result], *, is_locked: bool = False) -> tuple[_Result, str | None]:
        """Return the result of `work`, which reads the index, and why the index was deleted first, if it was damaged.

        Args:
            work: It is called again if the index is damaged or replaced meanwhile.
            is_locked: Whether the caller has the lock `sync`, which is taken to delete an index.

        Raises:
            CorruptIndexError, IndexReplacedError: Another attempt would not help: the index is damaged and a sync that
                will replace it is at work, or it was replaced again and again.
        """
        notice = None
        for attempt in range(MAX_TRIES):
            try:
                return work(), notice
            except CorruptIndexError as error:
                if attempt >= MAX_REPAIRS:
                    raise
                notice = self._delete_if_damaged(error, is_certain=attempt > 0, is_locked=is_locked)
            except IndexReplacedError:
                pass
        return work(), notice

    def read(self, work: Callable[[Store], _Result]) -> _Result:
        """Return the result of `work` on the index as it is now, built first if missing and rebuilt if damaged."""

        def read() -> _Result:
            with self.snapshot() as state:
                self.sync_if_behind()
                return work(state.store)

        return self.run_recovering(read)[0]

    def _delete_if_damaged(self, error: CorruptIndexError, *, is_certain: bool, is_locked: bool) -> str:
        """Delete the index if it is damaged, and return a notice about it, or raise the error."""
        if is_locked:
            return self._delete_damaged(error, is_certain=is_certain)
        if self.is_syncing_here:  # a progress callback reads an index that its sync will build again
            raise error
        try:
            with self.store().lock("sync", RECOVERY_SECONDS, self._make_notify(None)) as is_alone:
                if not is_alone:
                    raise error
                return self._delete_damaged(error, is_certain=is_certain)
        except SyncBusyError as busy:
            raise error from busy

    def _delete_damaged(self, damage: CorruptIndexError, *, is_certain: bool) -> str:
        """Delete the index if a deep check finds damage, or has missed it before; another process may have done so."""
        store, fault = self.store(), damage.damage or str(damage)
        problems = "; ".join(store.verify()) or (fault if is_certain else "")
        if not problems:
            return f"the index was read wrongly and is read again: {fault}"
        # A search that meets the damage says so, and so does the sync that follows it.
        self._recovered = store.delete_damaged(problems)
        return self._recovered

    def make_searchable(self) -> str | None:
        """Sync if there is no whole index, and return the reason if there was one; request vectors that it lacks."""
        stored = self.store().read_meta()
        if stored is not None and stored.complete:
            self._had_index = True
            self._request_vectors()
            return None
        if not self._builds_before_search:
            return None
        if stored is not None and self._sync_thread is None and "sync" in self.store().describe(counts=False).locked:
            return None  # another memory, or process, builds it: the part that exists answers
        reason = DELETED if self._had_index else None
        try:
            return self.sync(reason="search").rebuilt or reason
        except WorkspaceError:
            if self.store().read_meta() is None:
                raise  # a partial index is better than no answer: `stale` says how much that is worth
        return reason

    @property
    def _builds_before_search(self) -> bool:
        """True if `make_searchable` builds a missing index when it is called in this thread."""
        return self.config.sync.before_search and not self.is_syncing_here

    # --- syncing -------------------------------------------------------------------------------------------------

    @property
    def is_syncing_here(self) -> bool:
        """True in the progress callback of a sync."""
        return self._sync_thread == threading.get_ident()

    def sync(
        self,
        force: bool = False,
        progress: ShowProgress | None = None,
        wait: float | None = None,
        reason: str = "write",
        prepare: Prepare = lambda _: None,
        only_written: bool = False,
    ) -> SyncReport:
        """Sync, building a damaged index again; see `Memory.sync`.

        `reason` is its cause, for the status: "manual" and "vectors" wait for the vectors of a slow embedder, a manual
        one no longer than `wait` for those that are under way.
        `prepare` is called with the store first, while no other process can change it. With `only_written` it is enough
        to index the files that were written here, if all of them are known; text that leaves the index is erased from
        its bytes a little later then.
        """
        if self.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not sync")
        self.check_open()
        self._make_place()
        waits = reason in {"manual", "vectors"}
        lock = partial(self.store().lock, wait=wait, notify=self._make_notify(progress))
        with ExitStack() as locks:
            if reason == "manual" and self.embedders.has_interim:
                try:
                    locks.enter_context(lock("vectors"))
                except SyncBusyError:  # another sync makes the vectors, and no text is embedded twice
                    waits = False
            is_alone = locks.enter_context(lock("sync"))
            begin, started = self._staleness.mark, time.time()
            self._sync_thread = threading.get_ident()
            if force:
                self._staleness.record_failure()
            try:
                if only_written and (written := self._sync_written(prepare)) is not None:
                    return written
                work = partial(self._sync_once, force, progress, is_alone, prepare, waits)
                report, recovered = self.run_recovering(work, is_locked=True)
            except BaseException as error:
                self._staleness.record_failure()
                if not isinstance(error, Ended | KeyboardInterrupt | SystemExit):
                    self._record_error(error)
                raise
            else:
                if (rebuilt := recovered or self._recovered) is not None:
                    report, self._recovered = replace(report, rebuilt=rebuilt), None
                self._record_report(report, reason, started)
                self._staleness.record_sync(report, begin)
                self._request_vectors(again=reason == "vectors")
                return report
            finally:
                self._sync_thread = None

    def _sync_once(
        self, force: bool, progress: ShowProgress | None, is_alone: bool, prepare: Prepare, waits: bool
    ) -> SyncReport:
        from openclaw_memory.indexing.sync import sync

        prepare(self.store())
        if self._suspects:
            self._forget_suspects(self.store())
        parts = self._gather_parts(progress, force=force, waits=waits)
        report = sync(parts, force=force, is_alone=is_alone)
        if isinstance(parts.embedder, CircuitBreakerEmbedder) and report.embedded and report.ok:
            parts.embedder.record_success()
        self._has_unerased = False
        return report

    def _gather_parts(self, progress: ShowProgress | None = None, *, force: bool = False, waits: bool) -> SyncParts:
        embedder, trouble = self.embedders.select_for_sync(self.store().read_meta(), force=force, waits=waits)
        is_quick = embedder is None or embedder.provider in QUICK
        return SyncParts(
            self.workspace,
            self.store(),
            embedder,
            self.config,
            trouble=trouble,
            requested=self.embedders.requested,
            progress=progress,
            priority=self.priority,
            # Not for vectors that are made sooner than read, nor for those of sealed notes.
            cache=None if is_quick or self.workspace.files.codec.key_id is not None else self.make_cache(),
            is_interim=self.embedders.has_interim and embedder is not None and embedder.provider == INTERIM,
        )

    def make_cache(self) -> EmbeddingCache | None:
        """Return the user's cache of embeddings; None without a home folder, or if it may hold nothing."""
        from openclaw_memory.config.environment import locate_workspace_data
        from openclaw_memory.store.embedding_cache import EmbeddingCache, locate_cache

        max_entries = self.config.embedding.max_entries
        with suppress(ConfigError):
            name = locate_workspace_data(self.workspace.root).name
            return EmbeddingCache(locate_cache(), name, max_entries) if max_entries else None
        return None

    def _sync_written(self, prepare: Prepare) -> SyncReport | None:
        """Index the files that were written here; None if that takes a whole sync, or has not ended well."""
        from openclaw_memory.indexing.sync import sync_paths

        pending = self._staleness.list_pending()
        paths = [some for some in pending.values() if some is not None]
        if self._suspects or self._staleness.has_failed or len(paths) < len(pending):
            return None
        with suppress(CorruptIndexError, IndexReplacedError):  # a whole sync builds the index again
            parts = self._gather_parts(waits=False)
            prepare(parts.store)
            report = sync_paths(parts, chain.from_iterable(paths))
            if report is None or not report.ok or report.skipped:
                return None
            self._staleness.forget(pending)
            if report.changed or report.removed:
                self._has_unerased = True
                self._background.request(ERASE_SECONDS)
            return report
        return None

    def _record_report(self, report: SyncReport, reason: str, started: float) -> None:
        self.last_error, self._had_index = None, True
        self._missing = {} if report.ok and not report.skipped else None  # skipped files may lack vectors
        with suppress(OpenClawMemoryError, OSError):  # the index may have become read-only
            self.store().set_meta(LAST_SYNC, encode_sync(report, reason, started))
            if self.store().get_meta(LAST_ERROR):
                self.store().set_meta(LAST_ERROR, "")  # it may name a file that is gone

    def _record_error(self, error: BaseException) -> None:
        self.last_error = make_failure(error, time.time())
        with suppress(OpenClawMemoryError, OSError):
            if not isinstance(error, IndexLockedError) and self.has_index():  # a lock would be waited for once more
                self.store().set_meta(LAST_ERROR, msgspec.json.encode(self.last_error).decode())

    def _make_notify(self, progress: ShowProgress | None) -> Callable[[str], None]:
        def notify(message: str) -> None:
            self.check_open()
            if progress is not None:
                progress(Progress(0, 0, message))

        return notify

    def _sync_quietly(self) -> None:
        """Sync in the background; a failure is kept for the status and the next search."""
        try:
            self.sync(progress=lambda _: self.check_open(), wait=0, reason="background")
        except SyncBusyError:
            self._staleness.ask_again()
        except Exception:  # noqa: BLE001 - whatever it is, it is kept in last_error
            return

    def _request_vectors(self, *, again: bool = False) -> None:
        """Have the vectors of a slow embedder computed in the background, if the interim one answers."""
        can_begin = self.config.sync.on_search and self.embedders.has_interim
        if can_begin and self.embedders.is_interim(self.store().read_meta()):
            self._embedding.request(EMBED_AGAIN_SECONDS if again else EMBED_AFTER_SECONDS)

    def _embed_quietly(self) -> None:
        """Compute the vectors of a slow embedder while the interim one answers, then build the index with them."""
        from openclaw_memory.indexing.sync import gather_vectors

        def show(progress: Progress) -> None:
            self.store().set_meta(EMBEDDED, f"{progress.completed:,} of {progress.total:,} files")

        with suppress(OpenClawMemoryError, OSError), self.store().lock("vectors", 0):
            parts = self._gather_parts(show, waits=True)
            newest = sorted(self.workspace.scan().files, key=lambda file: -file.mtime_ns)
            try:
                embedder = self.embedders.load()
                while embedder and not get_preparing(embedder) and gather_vectors(parts, embedder, newest)[0]:
                    pass
                report = self.sync(progress=lambda _: self.check_open(), reason="vectors")
                self.store().set_meta(EMBEDDED, report.waiting[0].reason if report.waiting else "")
            except OpenClawMemoryError as error:
                self.store().set_meta(EMBEDDED, str(error))
        with suppress(OpenClawMemoryError, OSError):  # another process may leave them undone
            self._request_vectors(again=True)

    def explain_interim(self, meta: IndexMeta | None) -> str | None:
        """Return why the interim embedder answers, and how many files have the vectors of the wanted one, if so."""
        if self.embedders.is_interim(meta):
            state = self.store().get_meta(EMBEDDED) or "not begun"
            return f"{INTERIM} answers until the vectors of {self.embedders.requested} exist ({state})"
        return None

    # --- writing and forgetting ----------------------------------------------------------------------------------

    def record_write(self, paths: Iterable[str] | None = None) -> None:
        """Note that files were changed here, which the index does not know yet: those at `paths`, if that is known."""
        self._staleness.record_write(paths)

    def sync_soon(self) -> None:
        """Note that a file was changed here, and begin a sync in the background, as a search does."""
        self._staleness.record_write()
        if self.config.sync.on_search and self.has_index():
            self._background.request()

    def read_again(self, paths: Iterable[str]) -> None:
        """Read files again that differ from the index in spite of their stamps; once for each."""
        fresh = set(paths) - self._suspected
        self._suspected |= fresh
        self._suspects |= fresh
        if fresh:
            self.sync_soon()

    def _forget_suspects(self, store: Store) -> None:
        """Forget the stamps of suspects, so that this sync reads them and writes their rows again."""
        records, suspects = store.get_files(), sorted(self._suspects)
        self._suspects = set()
        stale = [replace(records[path], hash="", size=UNREAD_SIZE) for path in suspects if path in records]
        store.replace_files([(record, None) for record in stale])

    def forget(self, paths: Iterable[str], wait: float) -> str | None:
        """Erase text from the bytes of the index that files at these paths no longer hold, and all unused vectors.

        Returns why that could not be done, wholly or at all; None if nothing of it is left.
        """
        try:
            if not self.has_index():
                return None
            self._suspects |= {*paths}
            if self._suspects or self.is_behind():
                report = self.sync(wait=wait)
                if behind := [file.path for file in (*report.failed, *report.skipped) if file.path in {*paths}]:
                    return f"these could not be read, and are in the index as they were: {', '.join(behind)}"
            with self.store().lock("sync", wait) as is_alone:
                if not is_alone:
                    return "its folder knows no locks, so that nothing is erased there: delete the index"
                self.store().prune()
            if (cache := self.make_cache()) is not None:
                cache.forget()
            if self.store().describe().unerased:
                return "a program reads an old state of it: the first sync after that has ended erases the rest"
        except (OpenClawMemoryError, OSError) as error:
            return f"{error}; sync again"
        return None

    # --- watching ------------------------------------------------------------------------------------------------

    def watch(self) -> Watcher:
        """Return the watcher of these files, which is started unless it runs."""
        from openclaw_memory.indexing.watcher import Watcher

        with self._opening:
            self.check_open()
            if self.watcher is None or not self.watcher.is_running:
                self.watcher = Watcher(self.workspace, self, self.config).start()
            return self.watcher

    # --- being behind --------------------------------------------------------------------------------------------

    def is_behind(self) -> bool:
        """Return whether the index is known to be behind, after a look at the files unless there was one just now."""
        if not self.config.sync.on_search:
            return self._staleness.is_behind()
        if self.watcher is not None and self.watcher.is_at_work:
            is_behind = self.watcher.is_behind  # before the other: a sync of the watcher is no news afterwards
            return is_behind or self._staleness.is_behind()
        if self._staleness.look():
            self._background.request()
        return self._staleness.is_behind()

    def sync_if_behind(self) -> None:
        """Begin a sync in the background if the index is behind, and a search may do that."""
        is_watched = self.watcher is not None and self.watcher.is_at_work
        if self.config.sync.on_search and not is_watched and self._staleness.should_sync():
            self._background.request()

    def count_missing_vectors(self, store: Store) -> Mapping[str, int]:
        """Return how many files lack vectors, by the reason; counted again as long as some do."""
        if self._missing is None or self._missing:
            self._missing = count_missing_vectors(store.get_files())
        return self._missing
