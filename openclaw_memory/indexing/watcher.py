"""Keeps an index true while files change: waits until they have settled, and then syncs."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.indexing.changes import compare, worth_a_sync
from openclaw_memory.types import FileRecord, MemoryFile, Source, SyncReport
from openclaw_memory.workspace.paths import (
    LOWER_CASE_NOTE,
    NEVER_ENTERED,
    NOTES_FOLDER,
    ROOT_NOTES,
    TRANSCRIPT_SUFFIX,
    extra_places,
    holds_workspace,
    transcripts_place,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import ObservedWatch

    from openclaw_memory.workspace import Workspace


LOCK_SUFFIX = ".watch-lock"
# How often a watcher looks up: whether its owner is gone, another one has ended, a missing folder has appeared.
TICK_SECONDS = 2.0
# While hints keep coming, a sync waits for as many pauses as this, and no longer.
PATIENCE = 4
# A file is settled when two looks so far apart see the same; one that never is gets read after so many looks.
SETTLE_SECONDS = 0.1
SETTLE_LOOKS = 20
# Looking at all files may take this share of the time where there are no events.
POLL_SECONDS = 5.0
POLL_SHARE = 0.02
# With more hints than this since the last look, events cost more than looking: what changes is then seen by looks.
FLOOD = 200
# A sync that failed is tried again after this time, and then twice as long each time, up to `sync.rescan_seconds`.
RETRY_SECONDS = 2.0
STOP_SECONDS = 10.0

_Result = TypeVar("_Result")


class Pause:
    """When to act on hints: once none has come for `seconds`, and at the latest `PATIENCE` times that after the first.

    Times are in seconds, by a clock that never goes back. Safe to use from several threads.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._first: float | None = None
        self._last = 0.0

    def hint(self, now: float) -> bool:
        """Take a hint; whether it is the first."""
        with self._lock:
            self._last = now
            is_first = self._first is None
            if is_first:
                self._first = now
            return is_first

    @property
    def due(self) -> float:
        """When to act; infinity without a hint."""
        with self._lock:
            if self._first is None:
                return float("inf")
            return min(self._last + self.seconds, self._first + PATIENCE * self.seconds)

    def clear(self) -> None:
        """Forget the hints."""
        with self._lock:
            self._first = None


class Watcher:
    """Syncs whenever files have changed and come to rest; a context manager, and a daemon thread.

    File events are hints only: what is done about any number of them is one look at the stamps of all files, and one
    sync if they differ from what is indexed. All files are looked at each `sync.rescan_seconds` besides, and again and
    again where the system gives no events. A transcript counts once it has grown as `sessions` says.

    One watcher is at work on an index, in all processes: another one stands by, and takes over when the first ends.

    `state` says in a line what it does, `syncs` how many syncs it has done, `last` is the report of the last of them,
    and `last_error` says why it failed or what it had to leave out.
    """

    def __init__(
        self,
        workspace: Workspace,
        sync: Callable[[], SyncReport],
        config: MemoryConfig,
        *,
        index_path: Path | None,
        known: Callable[[], Mapping[str, FileRecord]],
    ) -> None:
        """Put a watcher together; `start` sets it to work.

        `known` gives the records of the index. Where `sync` and `known` are methods, their object is not kept alive:
        once it is gone, the watcher ends.
        """
        self.state = "not started"
        self.last_error: str | None = None
        self.syncs = 0
        self.last: SyncReport | None = None
        self._workspace, self._config, self._index_path = workspace, config, index_path
        self._sync, self._known = _weakly(sync), _weakly(known)
        self._pauses: dict[Source, Pause] = {
            "memory": Pause(config.sync.debounce_seconds),
            "sessions": Pause(config.sessions.debounce_seconds),
        }
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock: BaseFileLock | None = None
        self._events: FileEvents | None = None
        self._no_events: str | None = None  # why there are none
        self._heard, self._muted = 0, False
        self._seen: tuple[MemoryFile, ...] | None = None  # what the last poll found
        self._poll_at = self._sync_at = 0.0
        self._retry_seconds = RETRY_SECONDS
        self._busy = self._failing = self._at_work = False

    @property
    def is_behind(self) -> bool:
        """Whether something has happened that is not synced yet; what a transcript may be behind does not count."""
        return self._busy or self._failing or any(pause.due < float("inf") for pause in self._pauses.values())

    @property
    def is_running(self) -> bool:
        """Whether its thread lives; a fork leaves none."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_at_work(self) -> bool:
        """Whether it follows the files now, and does not stand by."""
        return self._at_work and self.is_running

    def start(self) -> Self:
        """Begin to watch, in a thread of its own; nothing happens where it does already. It begins with a sync."""
        if self._thread is None or not self._thread.is_alive():
            self._stopping.clear()
            self._busy, self._sync_at, self.state = True, 0.0, "starting"
            self._thread = threading.Thread(target=self._work, name="openclaw-memory watcher", daemon=True)
            self._thread.start()
            # Runs at the end of the interpreter, when a thread in the middle of a sync could bring it down.
            weakref.finalize(self, _stop_at_exit, weakref.ref(self))
        return self

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to end; a sync under way then ends at its next transaction."""
        return self._stopping.is_set()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """End; the transaction under way is waited for, `timeout` seconds at most. Calling it twice is allowed."""
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Watcher of {self._workspace.root}: {self.state}>"

    # --- the thread ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._is_over():
                try:
                    idle = self._step()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the watch goes on
                    self._fail(f"{type(error).__name__}: {error}")
                    idle = TICK_SECONDS
                self._busy = False
                self._wake.wait(idle)
                self._wake.clear()
        finally:
            self._drop_events()
            if self._lock is not None:
                self._lock.release()
            self._busy, self._at_work, self.state = False, False, "stopped"

    def _is_over(self) -> bool:
        return self._stopping.is_set() or self._sync() is None or self._known() is None

    def _step(self) -> float:
        """Do what is due; returns for how many seconds nothing is, if nothing happens."""
        self._at_work = self._has_turn()
        if not self._at_work:
            self._drop_events()
            self._sync_at = 0.0  # whoever takes over begins with a sync
            self.state = "standing by: another watcher is at work on this index"
            return TICK_SECONDS
        self._listen()
        now = time.monotonic()
        due: set[Source] = {source for source, pause in self._pauses.items() if pause.due <= now}
        is_time = self._sync_at <= now
        if due or is_time:
            self._busy = True
            self._act(set(self._pauses) if is_time else due, is_time=is_time)
        until = [self._sync_at, *(pause.due for pause in self._pauses.values())]
        if self._events is None or self._muted:
            until.append(self._poll_at)
        return min(max(min(until) - time.monotonic(), 0.0), TICK_SECONDS)

    def _act(self, due: set[Source], *, is_time: bool) -> None:
        """Sync, if it is time to whatever has changed, or if files of these sources differ from the index."""
        self._heard = 0
        if self._muted:
            self._muted, due = False, set(self._pauses)
            self._listen()
        for source in due:
            self._pauses[source].clear()
        if (is_time or self._differs(due)) and (sync := self._sync()) is not None:
            self._succeed(sync())

    def _succeed(self, report: SyncReport) -> None:
        self.last = report
        self.syncs += 1
        self._wake.set()  # a lock can be had now, where the index had no folder before
        if not report.ok:
            left = (*report.failed, *report.waiting)
            more = f", and {len(left) - 1} more" if len(left) > 1 else ""
            self._fail(f"{left[0].path} is not indexed as it should be: {left[0].reason}{more}")
            return
        self.last_error, self._failing = None, False
        self._retry_seconds = RETRY_SECONDS
        self._sync_at = time.monotonic() + self._config.sync.rescan_seconds

    def _fail(self, words: str) -> None:
        self.last_error, self._failing = words, True
        longest = self._config.sync.rescan_seconds
        self._sync_at = time.monotonic() + min(self._retry_seconds, longest)
        self._retry_seconds = min(2 * self._retry_seconds, longest)

    def _has_turn(self) -> bool:
        """Whether no other watcher is at work on this index; where no lock can be had, that is taken for granted."""
        path = self._index_path
        if path is None or not path.parent.is_dir():  # the first sync makes the folder, and the lock is taken then
            return True
        import filelock

        if self._lock is None:
            self._lock = filelock.FileLock(f"{path}{LOCK_SUFFIX}", mode=0o600, thread_local=False)
        if not self._lock.is_locked:
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout:
                return False
            except OSError:  # read-only, or a file system without locks: a second watcher costs time and does no harm
                return True
        return True

    # --- hints ---------------------------------------------------------------------------------------------------

    def _hear(self, source: Source | None) -> None:
        self._heard += 1
        if (source is not None and self._pauses[source].hint(time.monotonic())) or self._heard == FLOOD:
            self._wake.set()

    def _listen(self) -> None:
        """Have events of all folders that are there, or look at the files instead."""
        if self._events is not None and self._heard >= FLOOD and not self._muted:
            self._muted = True
            self._events.mute()
            self._seen = self._files()
            self._poll_at = time.monotonic() + max(self._pauses["memory"].seconds, SETTLE_SECONDS)
        if self._no_events is None and not self._muted:
            try:
                self._follow()
            except (ImportError, OSError, RuntimeError) as error:
                self._drop_events()
                self._no_events = str(error)
        if self._events is None or self._muted:
            self._poll()

    def _follow(self) -> None:

        if self._events is None:
            self._events = FileEvents(self._workspace, self._hear)
        if self._events.follow():  # what happened there before was not heard
            for pause in self._pauses.values():
                pause.hint(time.monotonic())
        count = len(self._events)
        self.state = f"watching {count} folder{'' if count == 1 else 's'}"

    def _drop_events(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events, self._muted = None, False

    def _poll(self) -> None:
        started = time.monotonic()
        if started < self._poll_at:
            return
        files = self._files()
        if files != self._seen:
            changed = set(files or ()) ^ set(self._seen or ())
            for source in {file.source for file in changed} or set(self._pauses):
                self._pauses[source].hint(started)
        self._seen = files
        took = time.monotonic() - started
        if self._muted:
            every = max(self._pauses["memory"].seconds, SETTLE_SECONDS)
        else:
            every = max(POLL_SECONDS, took / POLL_SHARE)
            self.state = f"polling every {every:.3g} s: {self._no_events}"
        self._poll_at = time.monotonic() + every

    def _files(self) -> tuple[MemoryFile, ...] | None:
        """The files as they are now; None where the workspace cannot be looked at, which the next sync tells."""
        try:
            return self._workspace.scan().files
        except WorkspaceError:
            return None

    # --- what differs --------------------------------------------------------------------------------------------

    def _differs(self, due: set[Source]) -> bool:
        """Whether files of these sources differ from the index by enough; notes have come to rest by then."""
        known_now = self._known()
        if known_now is None:
            return False
        known = known_now()
        scan = self._workspace.scan()
        difference = compare(scan.files, known)
        notes = [file for file in difference.to_read if file.source == "memory"]
        gone = [path for path in difference.vanished if not scan.is_unknown(path)]
        if "memory" in due and (notes or any(known[path].source == "memory" for path in gone)):
            settle([os.path.join(self._workspace.root, file.path) for file in notes], self._stopping.wait)
            return True
        if "sessions" not in due:
            return False
        worth = worth_a_sync(difference, known, self._config.sessions, self._workspace)
        talks = [file.path for file in difference.fresh + difference.touched if file.source == "sessions"]
        return any(path in worth for path in talks) or any(known[path].source == "sessions" for path in gone)


def settle(paths: Sequence[str], wait: Callable[[float], bool]) -> bool:
    """Wait until nobody writes these files any more; False where somebody went on and on, or `wait` said to end.

    `wait` lets so many seconds pass, and returns whether it was cut short.
    """
    before = [_stamp(path) for path in paths]
    for _ in range(SETTLE_LOOKS):
        if wait(SETTLE_SECONDS):
            return False
        after = [_stamp(path) for path in paths]
        if after == before:
            return True
        before = after
    return False


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:  # gone, or moved: that is another stamp too
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino


def _weakly(function: Callable[[], _Result]) -> Callable[[], Callable[[], _Result] | None]:
    """A function that gives `function`, or None once the object whose method it is has gone."""
    return weakref.WeakMethod(function) if isinstance(function, MethodType) else lambda: function


def somebody_watches(index_path: Path | None) -> bool:
    """Whether a watcher is at work on this index, in any process; False where it cannot be known."""
    import filelock

    if index_path is None or not (lock := Path(f"{index_path}{LOCK_SUFFIX}")).exists():
        return False
    try:
        with filelock.FileLock(lock, mode=0o600, thread_local=False, timeout=0):
            return False
    except filelock.Timeout:
        return True
    except OSError:
        return False


def _stop_at_exit(watcher: weakref.ref[Watcher]) -> None:
    if (alive := watcher()) is not None:
        alive.stop()


# Version control writes there all day, and nothing in it is a note.
_UNHEARD = NEVER_ENTERED | {".git"}

# Folders by their path, and whether what lies below them is followed too.
Folders: TypeAlias = Mapping[str, bool]
_Identity: TypeAlias = tuple[int, int]


def transcripts_folder(workspace: Workspace) -> str:
    """The path of the folder of the transcripts."""
    place = transcripts_place(workspace.root, workspace.sessions)
    return os.path.join(place.base, *place.parts)


def folders_of(workspace: Workspace) -> Folders:
    """The folders in which a change may count, whether they exist or not."""
    root = str(workspace.root)
    trees = [os.path.join(root, NOTES_FOLDER)]
    flat = [root, *([transcripts_folder(workspace)] if workspace.sessions.index else [])]
    for place in extra_places(workspace.root, workspace.rules):
        if holds_workspace(place) or not NEVER_ENTERED.isdisjoint(place.parts):
            continue
        path = os.path.join(place.base, *place.parts)
        if path.endswith(".md") and not os.path.isdir(path):
            flat.append(os.path.dirname(path))
        else:
            trees.append(path)
    outer = [path for path in trees if not any(_lies_in(path, tree) for tree in trees if tree != path)]
    return {**dict.fromkeys(flat, False), **dict.fromkeys(outer, True)}


class FileEvents:
    """Follows folders, and calls `told` for each event: with the kind of file where it may count, else with None.

    It does so in a thread of its own, which `told` must not hold up. Folders that are missing are passed over: `follow`
    is called again and again, and finds those that have appeared, and those that have been replaced by others.

    Raises:
        ImportError: watchdog is not installed.
        OSError: the system grants no more event queues.
    """

    def __init__(self, workspace: Workspace, told: Callable[[Source | None], None]) -> None:
        import logging
        import warnings

        from watchdog.observers import Observer

        # A folder that appears while the one above it is being added is added twice, which watchdog settles, and warns
        # of in its reading thread. Where warnings are errors, that would end the thread, and all events with it.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)

        # Where nobody asked for its log, watchdog would print on stderr that it was muted amid events.
        if not (log := logging.getLogger("watchdog")).handlers:
            log.addHandler(logging.NullHandler())
        self._root, self._sessions = str(workspace.root), transcripts_folder(workspace)
        self._folders = folders_of(workspace)
        self._top = {*ROOT_NOTES, LOWER_CASE_NOTE} | {
            os.path.relpath(path, self._root).split(os.sep)[0] for path in self._folders if _lies_in(path, self._root)
        }
        self._told = told
        self._watches: dict[str, tuple[ObservedWatch, _Identity]] = {}
        self._observer = Observer()
        self._observer.start()

    def __len__(self) -> int:
        """How many folders are followed, those below them not counted."""
        return len(self._watches)

    def follow(self) -> bool:
        """Follow what is there now of the folders; whether these are others than before.

        Raises:
            OSError: the system grants no more watches, or nothing reads the events any more.
        """
        if _reader_has_ended():
            raise OSError("watchdog's thread that reads file events has ended")
        alive = {emitter.watch for emitter in self._observer.emitters if emitter.is_alive()}
        identities = {path: _identity(path) for path in self._folders}
        are_others = False
        for path, (watch, identity) in list(self._watches.items()):
            if watch not in alive or identities[path] != identity:
                del self._watches[path]
                self._observer.unschedule(watch)
                are_others = True
        # Where watches run out amid a tree, watchdog leaves out the rest of it without a word: only the next folder
        # fails aloud. Trees come first, so that there is a next one.
        for path in sorted(self._folders, key=lambda path: not self._folders[path]):
            identity_now = identities[path]
            if identity_now is not None and path not in self._watches:
                are_others = self._watch(path, identity_now) or are_others
        return are_others

    def mute(self) -> None:
        """Follow nothing, and drop the events that wait, until `follow` is called again."""
        self._observer.unschedule_all()
        self._watches.clear()

    def close(self) -> None:
        """End; what is told after that is not heard."""
        self._observer.stop()
        self._observer.join()

    def _watch(self, path: str, identity: _Identity) -> bool:
        from watchdog import events

        # Notes are read when they have been written, not when they are opened, read or closed: leaving those events
        # out spares two thirds of the work, most of it in the kernel.
        wanted: list[type[FileSystemEvent]] = [
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
            events.DirCreatedEvent,
            events.DirMovedEvent,
            events.DirDeletedEvent,
        ]
        owner = self

        class Handler(events.FileSystemEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                owner.hear(path, event)

        try:
            watch = self._observer.schedule(Handler(), path, recursive=self._folders[path], event_filter=wanted)
        except (FileNotFoundError, NotADirectoryError):
            return False  # gone since it was looked at: it may come back
        self._watches[path] = (watch, identity)
        return True

    def hear(self, folder: str, event: FileSystemEvent) -> None:
        """Tell of an event in a folder that is followed."""
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        kinds = [self._kind(folder, path, is_folder=event.is_directory) for path in paths]
        self._told(next(filter(None, kinds), None))

    def _kind(self, folder: str, path: str, *, is_folder: bool) -> Source | None:
        parent, name = os.path.split(path)
        if path == self._sessions or (parent == self._sessions and name.endswith(TRANSCRIPT_SUFFIX)):
            return "sessions"
        if folder == self._root and not self._folders[folder]:
            return "memory" if name in self._top or path == folder else None
        if not (is_folder or path.endswith(".md")):
            return None
        return "memory" if _UNHEARD.isdisjoint(path[len(folder) :].split(os.sep)) else None


def _reader_has_ended() -> bool:
    """Whether the one thread is dead that reads events for the whole process; watchdog 7 never starts another."""
    module = sys.modules.get("watchdog.observers.inotify_c")
    reader = getattr(getattr(module, "InotifyFD", None), "_instance", None)
    return reader is not None and not reader.is_alive()


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _identity(path: str) -> _Identity | None:
    """What tells a folder from another one of its name; None where there is none, or a link."""
    try:
        info = os.lstat(path)
    except OSError:  # whatever it is, a sync says so
        return None
    return (info.st_dev, info.st_ino) if stat.S_ISDIR(info.st_mode) else None
