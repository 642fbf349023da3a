"""Discover which files of a workspace count as memory, which are skipped and why, and which could be included."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TypeAlias

from openclaw_memory._safe import mask_controls
from openclaw_memory.config import SessionsConfig
from openclaw_memory.config.config import is_passed_over
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.types import MemoryFile, Skipped, Source
from openclaw_memory.types.codec import NOT_READ, SUFFIX
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import (
    LOWER_CASE_NOTE,
    NEVER_ENTERED,
    NOTE_ENDINGS,
    NOTES_FOLDER,
    ROOT_NOTES,
    TRANSCRIPT_ENDINGS,
    TRANSCRIPTS,
    Place,
    Stamp,
    explain_left_out,
    explain_wrong_name,
    is_around_workspace,
    is_set_apart,
    is_transcript,
    list_note_endings,
    locate_transcripts,
    matches_globs,
)

# A few thousand names take some milliseconds to look at. A home folder holds millions.
MOST_NAMES = 20_000
# Endings of Markdown that other programs know; which are read here, `files.endings` says.
_MOST = 2**63 - 1  # of an integer in SQLite
_OTHER_ENDINGS = (".md", ".markdown", ".mdown", ".mkd", ".mdx")

_SYMLINK = "is a symlink and is not followed: put the file itself here, or name its real place in files.extra_paths"


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Scan:
    """The result of scanning a workspace.

    `files` are in a fixed order: root notes, `memory/` by path, extra paths, transcripts. `unreadable` are the paths of
    `skipped` that could not be examined: what is there is unknown, not gone. Where some are sealed, `key_ids` has
    the id of the index's key, None for a plain index, which has none of them.
    """

    files: tuple[MemoryFile, ...]
    skipped: tuple[Skipped, ...]
    unreadable: tuple[str, ...] = ()
    key_ids: tuple[str | None, ...] = ()

    def is_unknown(self, path: str) -> bool:
        """Return whether a path that is not among `files` may still exist, below something unreadable.

        Args:
            path: A path relative to the workspace.
        """
        return any(path == folder or path.startswith(f"{folder}/") for folder in self.unreadable)


# What is at a path: its `Stamp` as a plain tuple, the reason why it does not count, the error that kept us from
# looking, or None where it has gone meanwhile.
_What: TypeAlias = tuple[int, ...] | str | OSError | None
# What the path of a folder adds to names, those of its entries that matter, and what is at each. They are in the order
# of the system, which stays while nothing changes.
_Folder: TypeAlias = tuple[str, list[str], list[_What]]
Listing: TypeAlias = list[list[_Folder]]  # the folders of each place
_MISSING = (FileNotFoundError, NotADirectoryError)
_path = itemgetter(0)
_stamp = attrgetter(*Stamp._fields)


def list_files(files: WorkspaceFiles, sessions: SessionsConfig | None = None, last: Listing | None = None) -> Listing:
    """List what may be a memory file. A folder that is as in the `last` listing is the same object.

    Raises:
        WorkspaceError: The workspace folder itself cannot be listed.
    """
    before = {folder[0]: folder for folder in chain.from_iterable(last or ())}

    def kept(folder: _Folder) -> _Folder:
        known = before.get(folder[0])
        return known if known is not None and known == folder else folder

    return [list(map(kept, place)) for place in chain(_candidates(files), _transcripts(files.root, sessions))]


def scan_listing(files: WorkspaceFiles, listed: Listing) -> Scan:
    """Return which of the listed files count.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    memory_files: dict[str, MemoryFile] = {}
    skipped: list[Skipped] = []
    unreadable: list[str] = []
    first_names: dict[tuple[int, int] | str, str] = {}
    key_ids: tuple[str | None, ...] = ()
    has_globs = bool(files.settings.include or files.settings.exclude)
    for path, what in chain.from_iterable(map(_by_path, listed)):
        if what is None or (has_globs and not matches_globs(files.settings, path)):
            continue
        if isinstance(what, OSError):
            unreadable.append(path)
        info = _looked_at(path, what, files)
        if path.endswith(SUFFIX) and not isinstance(info, str):
            key_ids = key_ids or (files.codec.key_id,)
            info = NOT_READ if key_ids == (None,) else info
        if isinstance(info, str):
            skipped.append(Skipped(_printable(files.mask_path(path)), info))
        elif (first := first_names.setdefault(_identity(path, info), path)) != path:
            skipped.append(Skipped(path, f"is the same file as {first}"))
        elif path in memory_files:  # two extra paths can lead to it
            continue
        else:
            memory_files[path] = _memory_file(path, info, files)
    return Scan(tuple(memory_files.values()), tuple(skipped), tuple(unreadable), key_ids)


def _looked_at(path: str, what: tuple[int, ...] | str | OSError, files: WorkspaceFiles) -> Stamp | str:
    """Return the stamp of a file that counts, or why it does not, as a phrase that follows its name."""
    if rule := files.find_hiding_rule(path):
        return f"has a name that policies say never to store: {rule!r}"
    if isinstance(what, OSError):
        return f"cannot be looked at: {what.strerror}"
    if isinstance(what, str):
        return what
    info = Stamp(*what)
    return explain_wrong_name(path) or explain_left_out(info, files.settings, path) or info


def _by_path(folders: Iterable[_Folder]) -> list[tuple[str, _What]]:
    found = [(prefix + name, what) for prefix, *seen in folders for name, what in zip(*seen, strict=True)]
    return sorted(found, key=_path)


def walk_notes(
    files: WorkspaceFiles, folder: str, may_be: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, Stamp]]:
    """Yield the notes below a folder of the workspace that count, by path; nothing where the folder is missing.

    Only files whose names `may_be` lets pass are looked at.

    Raises:
        WorkspaceError: A folder cannot be listed.
        ConfigError: A glob of the rules is invalid.
    """
    place = files.make_place(folder)
    info = _stat_at(place)
    if isinstance(info, OSError) and not isinstance(info, _MISSING):
        raise WorkspaceError(f"{folder} cannot be looked at: {info.strerror}; fix its permissions") from info
    if not _is_folder(info):
        return
    for path, found in _by_path(_walk(os.path.join(place.base, *place.parts), folder, may_be=may_be)):
        if isinstance(found, OSError):
            raise WorkspaceError(f"{_printable(path)} cannot be looked at: {found.strerror}; fix its permissions")
        if isinstance(found, tuple) and not _is_left_out(path, stamp := Stamp(*found), files):
            yield path, stamp


def list_notes_at(files: WorkspaceFiles, paths: Iterable[str]) -> list[MemoryFile] | None:
    """Return the notes at these paths below `memory/`, without those that are gone; as a scan would find them.

    None where one is there and does not count, or may be another file of the scan: only a whole scan says what becomes
    of it.
    """
    found: list[MemoryFile] = []
    for path in sorted(set(paths)):
        place = files.make_place(path)
        info = _stat_at(place)
        if isinstance(info, _MISSING):
            continue
        if place.parts[0] != NOTES_FOLDER or not isinstance(info, os.stat_result) or info.st_nlink > 1:
            return None
        if _is_left_out(path, info, files):
            return None
        found.append(_memory_file(path, info, files))
    return found


def _is_left_out(path: str, info: os.stat_result | Stamp, files: WorkspaceFiles) -> bool:
    if (
        explain_wrong_name(path)
        or not files.is_included(path)
        or (path.endswith(SUFFIX) and files.codec.key_id is None)
    ):
        return True
    return explain_left_out(info, files.settings, path) is not None


def _memory_file(path: str, info: os.stat_result | Stamp, files: WorkspaceFiles) -> MemoryFile:
    source: Source = "sessions" if is_transcript(path) else "memory"
    numbers = info.st_size, info.st_mtime_ns, info.st_ino, info.st_ctime_ns
    if files.shared is not None:  # copies of one note are the same but for these
        numbers = info.st_size, info.st_mtime_ns, 0, 0
    if max(numbers) > _MOST or min(numbers) < -_MOST:  # an index has 64 bits: a file may claim to be of the year 9999
        return MemoryFile(path, source, *(max(-_MOST, min(number, _MOST)) for number in numbers))
    return MemoryFile(path, source, *numbers)


def _identity(path: str, info: Stamp) -> tuple[int, int] | str:
    """Return device and inode; some systems number no files, and only the path identifies them."""
    return (info.st_dev, info.st_ino) if info.st_ino else path


def _candidates(files: WorkspaceFiles) -> Iterator[Iterable[_Folder]]:
    root, endings = files.root, list_note_endings(files.settings)
    try:
        with os.scandir(root) as listing:
            # The listing has the names as they are spelled, also where the file system ignores case.
            entries = {entry.name: entry for entry in listing if entry.name in _TOP_NAMES}
    except OSError as error:
        advice = "create it" if isinstance(error, FileNotFoundError) else "fix its permissions"
        raise WorkspaceError(f"workspace {root} cannot be listed: {error.strerror}; {advice}") from error
    if ROOT_NOTES[0] in entries and LOWER_CASE_NOTE in entries:
        del entries[LOWER_CASE_NOTE]
        yield _one(LOWER_CASE_NOTE, f"is left out next to {ROOT_NOTES[0]}: move what it says there")
    for name in _ROOT_NAMES:
        if name in entries:
            yield [("", [name], [_look(entries[name])])]
    if NOTES_FOLDER in entries:
        notes = entries[NOTES_FOLDER]
        if notes.is_dir(follow_symlinks=False):
            yield _walk(notes.path, NOTES_FOLDER, endings=endings)
        else:
            reason = _SYMLINK if notes.is_symlink() else "is not a folder: notes live in a folder `memory`"
            yield _one(NOTES_FOLDER, reason)
    for place in files.locate_extras():
        found = _extra(place, endings)
        yield found if place.path != "." else _without_set_apart(root, found)


_ROOT_NAMES = (
    *(ROOT_NOTES[0], LOWER_CASE_NOTE, *ROOT_NOTES[1:]),
    *(f"{name}{SUFFIX}" for name in ROOT_NOTES),
)
_TOP_NAMES = frozenset({*_ROOT_NAMES, NOTES_FOLDER})


def _one(path: str, what: _What) -> list[_Folder]:
    return [("", [path], [what])]


def _extra(place: Place, endings: tuple[str, ...]) -> Iterable[_Folder]:
    """Return what an entry of `files.extra_paths` names: a Markdown file, or a folder of them."""
    if is_around_workspace(place):
        return _one(place.path, "holds the workspace itself: name the folders next to it in files.extra_paths")
    if not NEVER_ENTERED.isdisjoint(place.parts):
        return _one(place.path, "lies in a folder that is never indexed")
    found = _stat_at(place)
    if isinstance(found, _MISSING):
        return _one(place.path, "does not exist: correct files.extra_paths, or create it")
    if not isinstance(found, os.stat_result):
        return _one(place.path, found)
    if stat.S_ISDIR(found.st_mode):
        path = "" if place.path == "." else place.path
        return _walk(os.path.join(place.base, *place.parts), path, is_passed_over, endings=endings)
    is_note = place.path.endswith(endings)
    return _one(place.path, _stamp(found) if is_note else f"is neither a folder nor a {', '.join(endings)} file")


def _without_set_apart(root: Path, folders: Iterable[_Folder]) -> Iterator[_Folder]:
    for prefix, names, what in folders:
        seen = zip(names, what, strict=True)
        yield prefix, names, what if prefix else [None if is_set_apart(root, name) else one for name, one in seen]


def _transcripts(root: Path, sessions: SessionsConfig | None) -> Iterator[Iterable[_Folder]]:
    """Yield the transcripts in their folder. The folder is flat; other files in it are not mentioned."""
    if sessions is None or not sessions.index:
        return
    place = locate_transcripts(root, sessions)
    found = _stat_at(place)
    if isinstance(found, _MISSING):
        if sessions.folder != SessionsConfig().folder:
            yield _one(TRANSCRIPTS, f"does not exist ({sessions.folder}): correct sessions.folder, or create it")
    elif not isinstance(found, os.stat_result):
        yield _one(TRANSCRIPTS, found)
    elif not stat.S_ISDIR(found.st_mode):
        yield _one(TRANSCRIPTS, "is not a folder: correct sessions.folder")
    else:
        try:
            with os.scandir(os.path.join(place.base, *place.parts)) as entries:
                seen = {entry.name: _look(entry) for entry in entries if entry.name.endswith(TRANSCRIPT_ENDINGS)}
        except OSError as error:
            yield _one(TRANSCRIPTS, error.with_traceback(None))
        else:
            yield [(f"{TRANSCRIPTS}/", [*seen], [*seen.values()])]


def _stat_at(place: Place) -> os.stat_result | str | OSError:
    """Return the stat of a place, or as in `_Found` what is wrong with the way there."""
    try:
        current, info = place.base, os.stat(place.base)
        for part in place.parts:
            current = os.path.join(current, part)
            info = os.lstat(current)
            if stat.S_ISLNK(info.st_mode):
                return _SYMLINK
    except OSError as error:
        return error.with_traceback(None)  # which names this very frame: only a garbage collection would free both
    return info


def _is_folder(found: os.stat_result | str | OSError) -> bool:
    return isinstance(found, os.stat_result) and stat.S_ISDIR(found.st_mode)


def _walk(
    folder: str,
    path: str,
    is_left_out: Callable[[str], bool] = NEVER_ENTERED.__contains__,
    may_be: Callable[[str], bool] | None = None,
    endings: tuple[str, ...] = NOTE_ENDINGS,
) -> Iterator[_Folder]:
    """Yield the folders below one, with what counts in them or has to be mentioned: symlinks and special files are.

    Folders whose name `is_left_out` are not entered; of other names, those that `may_be` lets pass are yielded.
    """
    # A stack, not recursion: a chain of folders can be deeper than Python's stack.
    stack = [(folder, path)]
    while stack:
        folder, path = stack.pop()
        prefix = f"{path}/" if path else ""
        names: list[str] = []
        what: list[_What] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if not is_left_out(name):
                            stack.append((entry.path, prefix + name))
                    elif may_be is not None and not may_be(name):
                        continue
                    elif name.endswith(endings) or not entry.is_file(follow_symlinks=False):
                        names.append(name)
                        what.append(_look(entry))
        except FileNotFoundError:  # gone since its parent was listed
            continue
        except OSError as error:
            yield from _one(path, error.with_traceback(None))
        if names:
            yield prefix, names, what


def _look(entry: os.DirEntry[str]) -> _What:
    if entry.is_symlink():
        return _SYMLINK
    try:
        return _stamp(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.with_traceback(None)  # which names this very frame: only a garbage collection would free both


def _printable(path: str) -> str:
    return mask_controls(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


# --- what does not count -----------------------------------------------------------------------------------------


class Overlooked(NamedTuple):
    """How many Markdown files do not count as memory but could, and how many cannot because of their extension.

    `is_all` is False where only a part of the folder was looked at.
    """

    markdown: int
    misnamed: int
    is_all: bool


def count_overlooked(files: WorkspaceFiles, most: int | None = None) -> Overlooked:
    """Count the Markdown files below `root` that do not count as memory, among the first `most` names.

    Hidden folders, folders of installed programs, what the globs exclude and the agent's own files are left out.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    root, most = files.root, MOST_NAMES if most is None else most
    count, misnamed, names, folders = 0, 0, 0, deque([""])
    markdown = tuple(ending for ending in list_note_endings(files.settings) if ending.lower() != ".txt")
    while folders and names < most:
        folder = folders.popleft()
        try:
            with os.scandir(root / folder) as listing:
                entries = list(listing)
        except OSError:  # a sync would say so, if it were asked to look there
            continue
        names += len(entries)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not is_passed_over(entry.name):
                    folders.append(path)
            elif path.endswith(markdown) and entry.is_file(follow_symlinks=False) and not is_set_apart(root, path):
                count += files.is_included(path) and files.allow(path) is None
            elif path.lower().endswith(_OTHER_ENDINGS) and not path.endswith(markdown):
                misnamed += files.is_included(path)
    return Overlooked(count, misnamed, not folders)


def suggest_setup(files: WorkspaceFiles, count: int) -> str:
    """Return what to do where a workspace has few memory files, in a sentence; "" where nothing is needed.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    root, found, words = files.root, count_overlooked(files), list[str]()
    if found.markdown > count and root in {Path.home(), Path(root.anchor)}:
        return f"{root} holds {count or 'no'} memory files: name the folder of your notes as the workspace"
    if found.markdown > count:
        least = "" if found.is_all else "at least "
        files_lie = "a Markdown file lies" if found.markdown == 1 else f"{found.markdown:,} Markdown files lie"
        is_not = "is not searched; to search it too" if found.markdown == 1 else "are not searched; to search them too"
        command = f"openclaw-memory init --all-markdown --workspace {quote(str(root))}"
        words.append(f"{least}{files_lie} in {root} outside of {NOTES_FOLDER}/ and {is_not}: `{command}`")
    elif not count and not found.misnamed:
        words.append(f"{root} holds no memory file yet: add a note, or put Markdown into {root / NOTES_FOLDER}")
    if found.misnamed:
        named = "1 file ends" if found.misnamed == 1 else f"{found.misnamed:,} files end"
        words.append(f"{named} in .mdx, .mdown or the like, which are not read: rename to .md")
    return "; ".join(words)
