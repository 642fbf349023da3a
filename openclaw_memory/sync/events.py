"""Hints that something below a workspace has changed, from the system's own file events.

What an event says is not relied on: any event on a path that may count is a hint to look at all files.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from openclaw_memory.types import Source
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
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import ObservedWatch

    from openclaw_memory.workspace import Workspace

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
