"""Follow the files of a workspace, and sync once a burst of changes is over."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Protocol, Self

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.indexing.background import Ended
from openclaw_memory.indexing.changes import compare_scan, select_urgent
from openclaw_memory.store.connection import read_identity
from openclaw_memory.types import Progress, Source, Store, SyncReport
from openclaw_memory.types.files import SOURCES
from openclaw_memory.workspace.paths import (
    NEVER_ENTERED,
    NOTES_FOLDER,
    TRANSCRIPT_ENDINGS,
    is_around_workspace,
    list_note_endings,
    locate_transcripts,
)

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

    from openclaw_memory.workspace import Workspace


# How often a watcher checks whether its owner is gone, another one has ended, or a missing folder has appeared.
TICK_SECONDS = 2.0
# While files keep changing, a sync waits for as many pauses as this, and no longer.
PATIENCE = 4
# Without events, scanning all files may take this share of the time.
POLL_SECONDS = 5.0
POLL_SHARE = 0.02
RESCAN_SECONDS = 300.0  # between scans of all files, with events or without
TRANSCRIPT_DEBOUNCE_SECONDS = 5.0  # for which a transcript is left alone after its last change
# A sync that failed is tried again after this time, and then twice as long each time, up to `RESCAN_SECONDS`.
RETRY_SECONDS = 2.0
STOP_SECONDS = 10.0

# Version control writes there all day, and nothing in it is a note.
_IGNORED_FOLDERS = NEVER_ENTERED | {".git"}


class WatchedIndex(Protocol):
    """The index that a watcher keeps up to date: the calls of an `IndexService` that it makes."""

    def check_open(self) -> None:
        """Raise StoreError if the memory is closed."""

    def store(self) -> Store:
        """Return the store."""

    def sync(self, *, progress: Callable[[Progress], None], reason: str) -> SyncReport:
        """Bring the index up to date."""


class Watcher:
    """Syncs whenever files have changed and a pause has followed; a context manager, run by a daemon thread.

    File events are hints: any number of them leads to one scan, and to one sync if the files differ from the index. A
    transcript counts once it has grown as `sessions` says. In addition, everything is synced every
    `RESCAN_SECONDS`, and files are scanned again and again where the system gives no events.

    One watcher is at work on an index, over all processes: others wait, and one takes over when it ends.

    Attributes:
        state: Its state, in a line.
        syncs: How many syncs it has done.
        last: The report of the last of them.
        last_error: Why the last sync failed, or the files it left out.
    """

    def __init__(self, workspace: Workspace, index: WatchedIndex, config: MemoryConfig) -> None:
        """Prepare a watcher; `start` begins.

        Args:
            workspace: Whose files to follow.
            index: The index to keep up to date. The watcher ends when this object is gone.
            config: The settings of the memory.
        """
        self.state = "not started"
        self.last_error: str | None = None
        self.syncs = 0
        self.last: SyncReport | None = None
        self._workspace, self._index, self._config = workspace, weakref.ref(index), config
        self._pauses: dict[Source, float] = {
            "memory": config.sync.debounce_seconds,
            "sessions": TRANSCRIPT_DEBOUNCE_SECONDS,
        }
        self._hints: dict[Source, tuple[float, float]] = {}  # when the first and the last one came
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock, self._has_lock = ExitStack(), False
        self._observer: BaseObserver | None = None
        self._followed: dict[str, tuple[int, int] | None] = {}
        self._no_events: str | None = None  # why there are none
        self._poll_at = self._sync_at = 0.0
        self._retry_seconds = RETRY_SECONDS
        self._busy = self._failing = self._at_work = False

    @property
    def is_behind(self) -> bool:
        """True if a change is not synced yet; a transcript that has grown too little to count is not a change."""
        return self._busy or self._failing or bool(self._hints)

    @property
    def is_running(self) -> bool:
        """True if its thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_at_work(self) -> bool:
        """True if it follows the files now, and does not wait for another watcher to end."""
        return self._at_work and self.is_running

    def start(self) -> Self:
        """Begin with a sync, and follow the files in a thread; does nothing where it does so already."""
        if not self.is_running:
            self._stopping.clear()
            self._busy, self._sync_at, self.state = True, 0.0, "starting"
            self._thread = threading.Thread(target=self._run, name="openclaw-memory watcher", daemon=True)
            self._thread.start()
            # Runs at the end of the interpreter, when a thread in the middle of a sync could bring it down.
            weakref.finalize(self, _stop_at_exit, weakref.ref(self))
        return self

    def stop(self) -> None:
        """End, after the transaction under way of a sync; it may be called twice."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Watcher of {self._workspace.root}: {self.state}>"

    # --- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    pause = self._step()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and the watch goes on
                    self._record_failure(f"{type(error).__name__}: {error}")
                    pause = TICK_SECONDS
                if pause is None:
                    break
                self._busy = False
                self._wake.wait(pause)
                self._wake.clear()
        finally:
            self._end_events()
            self._lock.close()
            self._has_lock = self._busy = self._at_work = False
            self.state = "stopped"

    def _step(self) -> float | None:
        """Sync if it is time to; return how many seconds to wait, or None once the index is gone."""
        if (index := self._index()) is None:
            return None
        self._at_work = self._take_lock(index)
        if not self._at_work:
            self._end_events()
            self._sync_at = 0.0  # taking over begins with a sync
            self.state = "standing by: another watcher is at work on this index"
            return TICK_SECONDS
        self._follow()
        now = time.monotonic()
        ready = {source for source, at in self._list_due().items() if at <= now}
        is_polling = self._no_events is not None and self._poll_at <= now
        self._busy = self._sync_at <= now or bool(ready)
        if self._sync_at <= now:
            self._hints.clear()
            self._sync(index)
        elif ready or is_polling:
            for source in ready:
                del self._hints[source]
            if self._has_changes(index, set(SOURCES) if is_polling else ready):
                self._busy = True
                self._sync(index)
        if is_polling:
            pause = max(POLL_SECONDS, (time.monotonic() - now) / POLL_SHARE)
            self._poll_at = time.monotonic() + pause
            self.state = f"polling every {pause:.3g} s: {self._no_events}"
        times = [self._sync_at, *self._list_due().values(), *([self._poll_at] if self._no_events else [])]
        return min(max(min(times) - time.monotonic(), 0.0), TICK_SECONDS)

    def _take_lock(self, index: WatchedIndex) -> bool:
        """Keep other watchers out; return False while another one is at work."""
        if not self._has_lock:
            try:
                self._has_lock = self._lock.enter_context(index.store().lock("watch", 0))
            except SyncBusyError:
                return False
            if not self._has_lock:  # a second watcher costs time and does no harm; the lock is tried again
                self._lock.close()
        return True

    def _has_changes(self, index: WatchedIndex, ready: set[Source]) -> bool:
        """Return whether files of these sources differ from the index by enough for a sync."""
        records, scan = index.store().get_files(), self._workspace.scan()
        difference = compare_scan(scan, records)
        sources = {path: record.source for path, record in records.items()}
        sources |= {file.path: file.source for file in scan.files}
        paths = {file.path for file in difference.doubtful if file.source == "memory"}
        paths |= select_urgent(difference, records, self._config.sessions, self._workspace).keys()
        return any(sources[path] in ready and not scan.is_unknown(path) for path in paths)

    def _sync(self, index: WatchedIndex) -> None:
        def end_if_stopped(_: Progress) -> None:
            index.check_open()
            if self._stopping.is_set():
                raise Ended

        self.last = report = index.sync(progress=end_if_stopped, reason="watcher")
        self.syncs += 1
        self._wake.set()  # the lock can be taken now, where the index had no folder before
        if not report.ok:
            files = (*report.failed, *report.waiting)
            more = f", and {len(files) - 1} more" if len(files) > 1 else ""
            self._record_failure(f"{files[0].path} is not indexed as it should be: {files[0].reason}{more}")
            return
        self.last_error, self._failing = None, False
        self._retry_seconds = RETRY_SECONDS
        self._sync_at = time.monotonic() + RESCAN_SECONDS

    def _record_failure(self, message: str) -> None:
        self.last_error, self._failing = message, True
        self._sync_at = time.monotonic() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, RESCAN_SECONDS)

    # --- hints ---------------------------------------------------------------------------------------------------

    def _take_hint(self, source: Source) -> None:
        now = time.monotonic()
        if source not in self._hints:
            self._wake.set()
        self._hints[source] = self._hints.get(source, (now, now))[0], now

    def _list_due(self) -> dict[Source, float]:
        """Return when to act on the hints: a pause after the last one, but soon after the first in any case."""
        return {
            source: min(last + self._pauses[source], first + PATIENCE * self._pauses[source])
            for source, (first, last) in self._hints.copy().items()
        }

    def _follow(self) -> None:
        """Follow the folders that exist; give up events where the system does not give them."""
        if self._no_events is not None:
            return
        folders = list_folders(self._workspace)
        existing = {path: read_identity(path) for path in folders if os.path.isdir(path) and not os.path.islink(path)}
        observer = self._observer
        if observer is None or existing != self._followed or not all(part.is_alive() for part in observer.emitters):
            self._end_events()
            try:
                self._observer = _observe(self._workspace, {path: folders[path] for path in existing}, self._take_hint)
            except (ImportError, OSError, RuntimeError) as error:
                self._no_events = str(error)
                return
            self._followed = existing
            for source in SOURCES:
                self._take_hint(source)  # earlier changes there gave no event
        self.state = f"watching {len(existing)} folder{'' if len(existing) == 1 else 's'}"

    def _end_events(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _stop_at_exit(watcher: weakref.ref[Watcher]) -> None:
    if (alive := watcher()) is not None:
        alive.stop()


# --- file events -------------------------------------------------------------------------------------------------


def list_folders(workspace: Workspace) -> dict[str, bool]:
    """Return the folders to follow, whether they exist or not; True: with all folders below."""
    root = str(workspace.root)
    trees = [os.path.join(root, NOTES_FOLDER)]
    flat = [root, *([_locate_transcripts(workspace)] if workspace.sessions.index else [])]
    for place in workspace.files.locate_extras():
        if is_around_workspace(place) or not NEVER_ENTERED.isdisjoint(place.parts):
            continue
        path = os.path.join(place.base, *place.parts)
        if path.endswith(list_note_endings(workspace.files.settings)) and not os.path.isdir(path):
            flat.append(os.path.dirname(path))
        else:
            trees.append(path)
    outer = [path for path in trees if not any(path.startswith(tree.rstrip(os.sep) + os.sep) for tree in trees)]
    return {**dict.fromkeys(flat, False), **dict.fromkeys(outer, True)}


def _observe(workspace: Workspace, folders: Mapping[str, bool], hint: Callable[[Source], None]) -> BaseObserver:
    """Follow folders in a thread of its own, and call `hint` for each event that counts.

    Raises:
        ImportError: watchdog is not installed.
        OSError: The system grants no more event queues, or no more watches.
    """
    import logging
    import warnings

    from watchdog import events
    from watchdog.observers import Observer

    transcripts, endings = _locate_transcripts(workspace), list_note_endings(workspace.files.settings)

    class Handler(events.FileSystemEventHandler):
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def dispatch(self, event: events.FileSystemEvent) -> None:
            for path in map(str, filter(None, (event.src_path, event.dest_path))):
                parent, name = os.path.split(path)
                is_inside = _IGNORED_FOLDERS.isdisjoint(path[len(self.folder) :].split(os.sep))
                if path == transcripts or (parent == transcripts and name.endswith(TRANSCRIPT_ENDINGS)):
                    hint("sessions")
                elif is_inside and (event.is_directory or name.endswith(endings)):
                    hint("memory")

    # A folder added twice makes watchdog warn in its thread; where warnings are errors, that would end all events.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    if not (log := logging.getLogger("watchdog")).handlers:  # it would print on stderr that events were lost
        log.addHandler(logging.NullHandler())
    # Opening, reading and closing a file changes nothing: leaving those events out saves two thirds of the work.
    of_files = [events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent, events.FileDeletedEvent]
    counting = [*of_files, events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent]
    observer = Observer()
    observer.start()
    try:
        # When watches run out within a tree, only the next folder raises: trees come first, so that there is one.
        for path in sorted(folders, key=lambda path: not folders[path]):
            with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile: the next look sees it
                observer.schedule(Handler(path), path, recursive=folders[path], event_filter=counting)
    except BaseException:
        observer.stop()
        raise
    return observer


def _locate_transcripts(workspace: Workspace) -> str:
    place = locate_transcripts(workspace.root, workspace.sessions)
    return os.path.join(place.base, *place.parts)
