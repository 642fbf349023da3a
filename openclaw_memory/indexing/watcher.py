"""Follows the files of a workspace: waits until a burst of changes is over, and then syncs."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from types import MethodType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from openclaw_memory import _forks
from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import SyncBusyError, WorkspaceError
from openclaw_memory.indexing.changes import compared, worth_a_sync
from openclaw_memory.types import FileRecord, MemoryFile, Source, SyncReport
from openclaw_memory.workspace.paths import (
    NEVER_ENTERED,
    NOTE_ENDINGS,
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
# A sync that failed is tried again after this time, and then twice as long each time, up to `sync.rescan_seconds`.
RETRY_SECONDS = 2.0
STOP_SECONDS = 10.0

_NEVER = float("inf")
# Version control writes there all day, and nothing in it is a note.
_IGNORED_FOLDERS = NEVER_ENTERED | {".git"}
_Identity: TypeAlias = tuple[int, int]
_Result = TypeVar("_Result")


class Debounce:
    """Decides when to act on hints: `seconds` after the last one, but at most `PATIENCE` times that after the first.

    It needs no lock: whatever a race between a hint and `clear` leaves of the two times is due.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first = self._last = _NEVER

    def hint(self, now: float) -> bool:
        """Take a hint at a monotonic time; return whether it is the first."""
        is_first = self._first == _NEVER
        self._first, self._last = min(self._first, now), now
        return is_first

    @property
    def due(self) -> float:
        """Return the monotonic time to act at; infinity without a hint."""
        return min(self._last + self._seconds, self._first + PATIENCE * self._seconds)

    def clear(self) -> None:
        """Forget the hints."""
        self._first = self._last = _NEVER


class Watcher:
    """Syncs whenever files have changed and a pause has followed; a context manager, run by a daemon thread.

    File events are hints: any number of them leads to one scan, and to one sync if the files differ from the index. A
    transcript counts once it has grown as `sessions` says. In addition, everything is synced every
    `sync.rescan_seconds`, and files are scanned again and again where the system gives no events.

    One watcher is at work on an index, over all processes: others wait, and one takes over when it ends.

    Attributes:
        state: What it does, in a line.
        syncs: How many syncs it has done.
        last: The report of the last of them.
        last_error: Why the last sync failed, or what it had to leave out.
    """

    def __init__(
        self,
        workspace: Workspace,
        sync: Callable[[], SyncReport],
        config: MemoryConfig,
        *,
        lock: Callable[[], AbstractContextManager[bool]],
        known: Callable[[], Mapping[str, FileRecord]],
    ) -> None:
        """Prepare a watcher; `start` begins. Where `sync` and `known` are methods, it ends when their object is gone.

        Args:
            workspace: Whose files to follow.
            sync: Brings the index up to date.
            config: The settings of the memory.
            lock: Keeps other watchers of the index out, or raises SyncBusyError.
            known: Returns the file records of the index.
        """
        self.state = "not started"
        self.last_error: str | None = None
        self.syncs = 0
        self.last: SyncReport | None = None
        self._workspace, self._config, self._take_lock = workspace, config, lock
        self._sync, self._known = _weakly(sync), _weakly(known)
        self._pauses: dict[Source, Debounce] = {
            "memory": Debounce(config.sync.debounce_seconds),
            "sessions": Debounce(config.sessions.debounce_seconds),
        }
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = ExitStack()
        self._has_lock = False
        self._observer: BaseObserver | None = None
        self._followed: dict[str, _Identity] = {}
        self._no_events: str | None = None  # why there are none
        self._scanned: tuple[MemoryFile, ...] | None = None  # what the last poll found
        self._poll_at = self._sync_at = 0.0
        self._retry_seconds = RETRY_SECONDS
        self._busy = self._failing = self._at_work = False
        _forks.in_child(self)

    @property
    def is_behind(self) -> bool:
        """Whether a change is not synced yet; a transcript that has grown too little to count is not a change."""
        return self._busy or self._failing or any(pause.due < _NEVER for pause in self._pauses.values())

    @property
    def is_running(self) -> bool:
        """Whether its thread is alive; a fork leaves none."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_at_work(self) -> bool:
        """Whether it follows the files now, and does not wait for another watcher to end."""
        return self._at_work and self.is_running

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called; a sync under way then ends at its next transaction."""
        return self._stopping.is_set()

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

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """End, after the transaction under way; it may be called twice.

        Args:
            timeout: How many seconds to wait for that at most.
        """
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def after_fork(self) -> None:
        """Leave the thread and the events to the parent."""
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = self._observer = None
        self._has_lock = self._busy = self._at_work = False
        self._lock, self.state = ExitStack(), "not started"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Watcher of {self._workspace.root}: {self.state}>"

    # --- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not (self._stopping.is_set() or self._sync() is None or self._known() is None):
                try:
                    idle = self._step()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and the watch goes on
                    self._fail(f"{type(error).__name__}: {error}")
                    idle = TICK_SECONDS
                self._busy = False
                self._wake.wait(idle)
                self._wake.clear()
        finally:
            self._end_events()
            self._lock.close()
            self._has_lock = False
            self._busy, self._at_work, self.state = False, False, "stopped"

    def _step(self) -> float:
        """Do what is due; returns for how many seconds there is nothing to do, unless something happens."""
        self._at_work = self._is_alone()
        if not self._at_work:
            self._end_events()
            self._sync_at = 0.0  # taking over begins with a sync
            self.state = "standing by: another watcher is at work on this index"
            return TICK_SECONDS
        self._listen()
        now = time.monotonic()
        due = {source for source, pause in self._pauses.items() if pause.due <= now}
        if self._sync_at <= now:
            self._act(set(self._pauses), in_any_case=True)
        elif due:
            self._act(due, in_any_case=False)
        until = [self._sync_at, *(pause.due for pause in self._pauses.values())]
        if self._observer is None:
            until.append(self._poll_at)
        return min(max(min(until) - time.monotonic(), 0.0), TICK_SECONDS)

    def _act(self, due: set[Source], *, in_any_case: bool) -> None:
        self._busy = True
        for source in due:
            self._pauses[source].clear()
        if (in_any_case or self._differs(due)) and (sync := self._sync()) is not None:
            self._succeed(sync())

    def _differs(self, due: set[Source]) -> bool:
        if (known_now := self._known()) is None:
            return False
        known, scan = known_now(), self._workspace.scan()
        difference = compared(scan, known)
        sources = {path: record.source for path, record in known.items()}
        sources |= {file.path: file.source for file in scan.files}
        changed = worth_a_sync(difference, known, self._config.sessions, self._workspace).keys()
        doubtful = {file.path for file in difference.doubtful if file.source == "memory"}
        return any(sources[path] in due and not scan.is_unknown(path) for path in changed | doubtful)

    def _succeed(self, report: SyncReport) -> None:
        self.last = report
        self.syncs += 1
        self._wake.set()  # the lock can be taken now, where the index had no folder before
        if not report.ok:
            left = (*report.failed, *report.waiting)
            more = f", and {len(left) - 1} more" if len(left) > 1 else ""
            self._fail(f"{left[0].path} is not indexed as it should be: {left[0].reason}{more}")
            return
        self.last_error, self._failing = None, False
        self._retry_seconds = RETRY_SECONDS
        self._sync_at = time.monotonic() + self._config.sync.rescan_seconds

    def _fail(self, message: str) -> None:
        self.last_error, self._failing = message, True
        longest = self._config.sync.rescan_seconds
        self._sync_at = time.monotonic() + min(self._retry_seconds, longest)
        self._retry_seconds = min(2 * self._retry_seconds, longest)

    def _is_alone(self) -> bool:
        if not self._has_lock:
            try:
                self._has_lock = self._lock.enter_context(self._take_lock())
            except SyncBusyError:
                return False
            if not self._has_lock:  # a second watcher costs time and does no harm; the lock is tried again
                self._lock.close()
        return True

    # --- hints ---------------------------------------------------------------------------------------------------

    def _hint(self, *sources: Source) -> None:
        for source in sources:
            if self._pauses[source].hint(time.monotonic()):
                self._wake.set()

    def _listen(self) -> None:
        """Follow the folders that exist; scan the files instead where the system gives no events."""
        if self._no_events is None:
            try:
                self._follow()
            except (ImportError, OSError, RuntimeError) as error:
                self._end_events()
                self._no_events = str(error)
        if self._no_events is not None and time.monotonic() >= self._poll_at:
            self._poll()

    def _follow(self) -> None:
        if _reader_has_ended():
            raise OSError("watchdog's thread that reads file events has ended")
        folders = folders_of(self._workspace)
        existing = {path: identity for path in folders if (identity := _identity(path)) is not None}
        observer = self._observer
        if observer is None or existing != self._followed or not all(one.is_alive() for one in observer.emitters):
            self._end_events()
            transcripts = _transcripts_folder(self._workspace)
            endings = list_note_endings(self._workspace.files.settings)
            self._observer = _observe({path: folders[path] for path in existing}, transcripts, endings, self._hint)
            self._followed = existing
            self._hint(*self._pauses)  # what happened there before gave no event
        count = len(existing)
        self.state = f"watching {count} folder{'' if count == 1 else 's'}"

    def _poll(self) -> None:
        started = time.monotonic()
        try:
            files = self._workspace.scan().files
        except WorkspaceError:  # the next sync reports it
            files = None
        if files != self._scanned:
            self._hint(*self._pauses)
        self._scanned = files
        every = max(POLL_SECONDS, (time.monotonic() - started) / POLL_SHARE)
        self._poll_at = time.monotonic() + every
        self.state = f"polling every {every:.3g} s: {self._no_events}"

    def _end_events(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _weakly(function: Callable[[], _Result]) -> Callable[[], Callable[[], _Result] | None]:
    """A function that returns `function`, or None once the object whose method it is has gone."""
    return weakref.WeakMethod(function) if isinstance(function, MethodType) else lambda: function


def _stop_at_exit(watcher: weakref.ref[Watcher]) -> None:
    if (alive := watcher()) is not None:
        alive.stop()


# --- file events -------------------------------------------------------------------------------------------------


def folders_of(workspace: Workspace) -> dict[str, bool]:
    """Return the folders in which a change may count, whether they exist or not; True: with all folders below."""
    root = str(workspace.root)
    trees = [os.path.join(root, NOTES_FOLDER)]
    flat = [root, *([_transcripts_folder(workspace)] if workspace.sessions.index else [])]
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


def kind_of(
    transcripts: str, folder: str, path: str, *, is_folder: bool, endings: tuple[str, ...] = NOTE_ENDINGS
) -> Source | None:
    """Return the kind of file that an event in a followed folder is about; None where it does not count."""
    parent, name = os.path.split(path)
    if path == transcripts or (parent == transcripts and name.endswith(TRANSCRIPT_ENDINGS)):
        return "sessions"
    if not is_folder and not name.endswith(endings):
        return None
    return "memory" if _IGNORED_FOLDERS.isdisjoint(path[len(folder) :].split(os.sep)) else None


def _observe(
    folders: Mapping[str, bool], transcripts: str, endings: tuple[str, ...], hint: Callable[[Source], None]
) -> BaseObserver:
    """Follow folders in a thread of its own, and call `hint` for each event that counts, which must not hold it up.

    Raises:
        ImportError: watchdog is not installed.
        OSError: the system grants no more event queues, or no more watches.
    """
    import logging
    import warnings

    from watchdog import events
    from watchdog.observers import Observer

    class Handler(events.FileSystemEventHandler):
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def dispatch(self, event: events.FileSystemEvent) -> None:
            for path in (event.src_path, event.dest_path):
                is_folder = event.is_directory
                source = kind_of(transcripts, self.folder, os.fsdecode(path), is_folder=is_folder, endings=endings)
                if path and source is not None:
                    hint(source)

    # watchdog settles it when a folder is added twice, and warns of it in its reading thread. Where warnings are
    # errors, that would end the thread, and all events with it.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    if not (log := logging.getLogger("watchdog")).handlers:  # it would print on stderr that events were lost
        log.addHandler(logging.NullHandler())
    # Opening, reading and closing a file changes nothing: leaving those events out saves two thirds of the work.
    files = [events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent, events.FileDeletedEvent]
    wanted = [*files, events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent]
    observer = Observer()
    observer.start()
    try:
        # Where watches run out within a tree, watchdog leaves out the rest of it silently: only the next folder
        # raises. Trees come first, so that there is a next one.
        for path in sorted(folders, key=lambda path: not folders[path]):
            with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile: the next look sees it
                observer.schedule(Handler(path), path, recursive=folders[path], event_filter=wanted)
    except BaseException:
        observer.stop()
        raise
    return observer


def _transcripts_folder(workspace: Workspace) -> str:
    place = locate_transcripts(workspace.root, workspace.sessions)
    return os.path.join(place.base, *place.parts)


def _reader_has_ended() -> bool:
    """Whether the one thread is dead that reads events for the whole process; watchdog 7 never starts another."""
    module = sys.modules.get("watchdog.observers.inotify_c")
    reader = getattr(getattr(module, "InotifyFD", None), "_instance", None)
    return reader is not None and not reader.is_alive()


def _identity(path: str) -> _Identity | None:
    """Return the device and inode of a folder; None for a missing one, or a link."""
    try:
        info = os.lstat(path)
    except OSError:  # whatever it is, a sync reports it
        return None
    return (info.st_dev, info.st_ino) if stat.S_ISDIR(info.st_mode) else None
