"""Discover which files of a workspace count as memory, which are skipped and why, and which could be included."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter
from pathlib import Path
from shlex import quote
from typing import TypeAlias

import msgspec

from openclaw_memory._safe import mask_controls
from openclaw_memory.config.path_rules import is_skipped_folder
from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.types import MemoryFile, Source
from openclaw_memory.types.codec import NOT_READ, SUFFIX
from openclaw_memory.types.files import Skipped
from openclaw_memory.workspace import paths
from openclaw_memory.workspace.files import WorkspaceFiles

# A few thousand names take some milliseconds to look at. A home folder holds millions.
MOST_NAMES = 20_000
_MOST = 2**63 - 1  # of an integer in SQLite
# Endings of notes that other programs know; those that are read here are in `files.endings`.
_OTHER_ENDINGS = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".org", ".canvas", ".rst", ".adoc", ".text")
_SEALED_NAMES = tuple(f"{name}{SUFFIX}" for name in paths.ROOT_NOTES)
_ROOT_NAMES = (paths.ROOT_NOTES[0], paths.LOWER_CASE_NOTE, *paths.ROOT_NOTES[1:], *_SEALED_NAMES)
_TOP_NAMES = frozenset({*_ROOT_NAMES, paths.NOTES_FOLDER})

_SYMLINK = "is a symlink and is not followed: put the file itself here, or name its real place in files.extra_paths"
_MISSING = (FileNotFoundError, NotADirectoryError)

# The state of a path: its `Stamp` as a plain tuple, the reason why it does not count, the error that kept us from
# looking, or None where it was removed meanwhile.
_State: TypeAlias = tuple[int, ...] | str | OSError | None
_Entry: TypeAlias = tuple[str, _State]  # with its path
Listing: TypeAlias = list[list[_Entry]]  # the entries of each place, in the order of the system
_to_stamp = attrgetter(*paths.Stamp._fields)


class Scan(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The result of scanning a workspace.

    Attributes:
        files: The memory files, in a fixed order: root notes, `memory/` by path, extra paths, transcripts.
        skipped: The files that do not count, and why.
        unreadable: The paths of `skipped` that could not be examined: they may or may not exist.
        key_ids: If some files are sealed, the id of the index's key; None for a plain index, which has none of them.
    """

    files: tuple[MemoryFile, ...]
    skipped: tuple[Skipped, ...]
    unreadable: tuple[str, ...] = ()
    key_ids: tuple[str | None, ...] = ()

    def is_unknown(self, path: str) -> bool:
        """Return whether a path that is not among `files` may still exist, below something unreadable."""
        return any(path == folder or path.startswith(f"{folder}/") for folder in self.unreadable)


def list_files(files: WorkspaceFiles, sessions: SessionsConfig | None = None) -> Listing:
    """List the entries that may be memory files.

    Raises:
        WorkspaceError: The workspace folder itself cannot be listed.
    """
    return [*map(list, _list_notes(files)), _list_transcripts(files.root, sessions)]


def scan_listing(files: WorkspaceFiles, listing: Listing) -> Scan:
    """Decide which of the listed files count.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    memory_files: dict[str, MemoryFile] = {}
    skipped: list[Skipped] = []
    unreadable: list[str] = []
    first_names: dict[tuple[int, int] | str, str] = {}
    key_ids: tuple[str | None, ...] = ()
    has_globs = bool(files.settings.include or files.settings.exclude)
    for path, state in (entry for place in listing for entry in sorted(place, key=itemgetter(0))):
        if state is None or (has_globs and not paths.is_matching(files.settings, path)):
            continue
        if isinstance(state, OSError):
            unreadable.append(path)
        info = _check_entry(path, state, files)
        if path.endswith(SUFFIX) and not isinstance(info, str):
            key_ids = key_ids or (files.codec.key_id,)
            info = NOT_READ if key_ids == (None,) else info
        if isinstance(info, str):
            skipped.append(Skipped(_to_printable(files.mask_path(path)), info))
        elif (first := first_names.setdefault((info.st_dev, info.st_ino) if info.st_ino else path, path)) != path:
            skipped.append(Skipped(path, f"is the same file as {first}"))
        elif path not in memory_files:  # two extra paths can lead to it
            memory_files[path] = _make_file(path, info, files)
    return Scan(tuple(memory_files.values()), tuple(skipped), tuple(unreadable), key_ids)


def walk_notes(files: WorkspaceFiles, folder: str) -> Iterator[tuple[str, paths.Stamp]]:
    """Yield the notes below a folder of the workspace that count, by path; nothing if the folder is missing.

    Raises:
        WorkspaceError: A folder cannot be listed.
        ConfigError: A glob of the rules is invalid.
    """
    place = files.make_place(folder)
    info = _get_stat(place)
    if isinstance(info, OSError) and not isinstance(info, _MISSING):
        raise WorkspaceError(f"{folder} cannot be looked at: {info.strerror}; fix its permissions") from info
    if not isinstance(info, os.stat_result) or not stat.S_ISDIR(info.st_mode):
        return
    entries = _walk(os.path.join(place.base, *place.parts), folder)
    for path, state in sorted(entries, key=itemgetter(0)):
        if isinstance(state, OSError):
            raise WorkspaceError(f"{_to_printable(path)} cannot be looked at: {state.strerror}; fix its permissions")
        if isinstance(state, tuple) and not _is_left_out(path, stamp := paths.Stamp(*state), files):
            yield path, stamp


def list_notes_at(files: WorkspaceFiles, note_paths: Iterable[str]) -> list[MemoryFile] | None:
    """Return the notes at these paths below `memory/`, without missing ones, as a scan lists them.

    None if one exists and does not count, or may be another file of the scan: only a whole scan decides about it.
    """
    notes: list[MemoryFile] = []
    for path in sorted(set(note_paths)):
        place = files.make_place(path)
        info = _get_stat(place)
        if isinstance(info, _MISSING):
            continue
        if place.parts[0] != paths.NOTES_FOLDER or not isinstance(info, os.stat_result) or info.st_nlink > 1:
            return None
        if _is_left_out(path, info, files):
            return None
        notes.append(_make_file(path, info, files))
    return notes


def _check_entry(path: str, state: tuple[int, ...] | str | OSError, files: WorkspaceFiles) -> paths.Stamp | str:
    """Return the stamp of a file that counts, or why it does not, as a phrase that follows its name."""
    if rule := files.find_hiding_rule(path):
        return f"has a name that policies say never to store: {rule!r}"
    if isinstance(state, OSError):
        return f"cannot be looked at: {state.strerror}"
    if isinstance(state, str):
        return state
    stamp = paths.Stamp(*state)
    return paths.explain_wrong_name(path) or paths.explain_left_out(stamp, files.settings, path) or stamp


def _is_left_out(path: str, info: os.stat_result | paths.Stamp, files: WorkspaceFiles) -> bool:
    is_closed = path.endswith(SUFFIX) and files.codec.key_id is None
    if paths.explain_wrong_name(path) or not files.is_included(path) or is_closed:
        return True
    return paths.explain_left_out(info, files.settings, path) is not None


def _make_file(path: str, info: os.stat_result | paths.Stamp, files: WorkspaceFiles) -> MemoryFile:
    source: Source = "sessions" if paths.is_transcript(path) else "memory"
    # Copies of one note differ by inode and ctime alone.
    identity = (0, 0) if files.shared is not None else (info.st_ino, info.st_ctime_ns)
    numbers = info.st_size, info.st_mtime_ns, *identity
    if max(numbers) > _MOST or min(numbers) < -_MOST:  # an index has 64 bits: a file may claim to be of the year 9999
        return MemoryFile(path, source, *(max(-_MOST, min(number, _MOST)) for number in numbers))
    return MemoryFile(path, source, *numbers)


def _list_notes(files: WorkspaceFiles) -> Iterator[Iterable[_Entry]]:
    root, endings = files.root, paths.list_note_endings(files.settings)
    try:
        with os.scandir(root) as entries:
            # The listing has the names as they are spelled, also where the file system ignores case.
            top = {entry.name: entry for entry in entries if entry.name in _TOP_NAMES}
    except OSError as error:
        remedy = "create it" if isinstance(error, FileNotFoundError) else "fix its permissions"
        raise WorkspaceError(f"workspace {root} cannot be listed: {error.strerror}; {remedy}") from error
    if paths.ROOT_NOTES[0] in top and paths.LOWER_CASE_NOTE in top:
        del top[paths.LOWER_CASE_NOTE]
        yield [(paths.LOWER_CASE_NOTE, f"is left out next to {paths.ROOT_NOTES[0]}: move what it says there")]
    for name in _ROOT_NAMES:
        if name in top:
            yield [(name, _get_state(top[name]))]
    if (notes := top.get(paths.NOTES_FOLDER)) is not None:
        if notes.is_dir(follow_symlinks=False):
            yield _walk(notes.path, paths.NOTES_FOLDER, endings=endings)
        else:
            reason = _SYMLINK if notes.is_symlink() else "is not a folder: notes live in a folder `memory`"
            yield [(paths.NOTES_FOLDER, reason)]
    for place in files.locate_extras():
        extra = _list_extra(place, endings)
        if place.path == ".":
            extra = (entry for entry in extra if "/" in entry[0] or not paths.is_set_apart(root, entry[0]))
        yield extra


def _list_extra(place: paths.Place, endings: tuple[str, ...]) -> Iterable[_Entry]:
    """List the Markdown file, or the files of the folder, that one of `files.extra_paths` names."""
    if paths.is_around_workspace(place):
        return [(place.path, "holds the workspace itself: name the folders next to it in files.extra_paths")]
    if not paths.NEVER_ENTERED.isdisjoint(place.parts):
        return [(place.path, "lies in a folder that is never indexed")]
    info = _get_stat(place)
    if isinstance(info, _MISSING):
        return [(place.path, "does not exist: correct files.extra_paths, or create it")]
    if not isinstance(info, os.stat_result):
        return [(place.path, info)]
    if stat.S_ISDIR(info.st_mode):
        path = "" if place.path == "." else place.path
        return _walk(os.path.join(place.base, *place.parts), path, is_skipped_folder, endings=endings)
    is_note = place.path.endswith(endings)
    return [(place.path, _to_stamp(info) if is_note else f"is neither a folder nor a {', '.join(endings)} file")]


def _list_transcripts(root: Path, sessions: SessionsConfig | None) -> list[_Entry]:
    """List the transcripts in their folder. The folder is flat; other files in it are not mentioned."""
    if sessions is None or not sessions.index:
        return []
    place = paths.locate_transcripts(root, sessions)
    info = _get_stat(place)
    if isinstance(info, _MISSING):
        reason = f"does not exist ({sessions.folder}): correct sessions.folder, or create it"
        return [] if sessions.folder == SessionsConfig().folder else [(paths.TRANSCRIPTS, reason)]
    if not isinstance(info, os.stat_result):
        return [(paths.TRANSCRIPTS, info)]
    if not stat.S_ISDIR(info.st_mode):
        return [(paths.TRANSCRIPTS, "is not a folder: correct sessions.folder")]
    try:
        with os.scandir(os.path.join(place.base, *place.parts)) as entries:
            transcripts = [entry for entry in entries if entry.name.endswith(paths.TRANSCRIPT_ENDINGS)]
            return [(f"{paths.TRANSCRIPTS}/{entry.name}", _get_state(entry)) for entry in transcripts]
    except OSError as error:
        return [(paths.TRANSCRIPTS, error.with_traceback(None))]


def _get_stat(place: paths.Place) -> os.stat_result | str | OSError:
    """Return the stat of a place, or the reason or error that bars the way there."""
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


def _walk(
    folder: str,
    path: str,
    is_left_out: Callable[[str], bool] = paths.NEVER_ENTERED.__contains__,
    endings: tuple[str, ...] = paths.NOTE_ENDINGS,
) -> Iterator[_Entry]:
    """Yield the notes below a folder, and the entries that have to be mentioned: symlinks and special files.

    Folders whose name `is_left_out` are not entered.
    """
    # A stack, not recursion: a chain of folders can be deeper than Python's stack.
    stack = [(folder, path)]
    while stack:
        folder, path = stack.pop()
        prefix = f"{path}/" if path else ""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if not is_left_out(name):
                            stack.append((entry.path, prefix + name))
                    elif name.endswith(endings) or not entry.is_file(follow_symlinks=False):
                        yield prefix + name, _get_state(entry)
        except FileNotFoundError:  # removed since its parent was listed
            continue
        except OSError as error:
            yield path, error.with_traceback(None)


def _get_state(entry: os.DirEntry[str]) -> _State:
    if entry.is_symlink():
        return _SYMLINK
    try:
        return _to_stamp(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.with_traceback(None)


def _to_printable(path: str) -> str:
    return mask_controls(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


# --- files that could be included --------------------------------------------------------------------------------


def count_overlooked(files: WorkspaceFiles) -> tuple[int, Counter[str], bool]:
    """Count the Markdown files below the workspace that do not count as memory, among the first `MOST_NAMES` names.

    Hidden folders, folders of installed programs, excluded files and the agent's own files are left out.

    Returns:
        Their number, that of the notes with other endings by ending, and whether these are all.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    root, left, count, misnamed = files.root, MOST_NAMES, 0, Counter[str]()
    markdown = tuple(ending for ending in paths.list_note_endings(files.settings) if ending.lower() != ".txt")
    for folder, folders, names in os.walk(root):  # a folder that cannot be listed is named by a sync
        folders[:] = [name for name in folders if not is_skipped_folder(name)]
        left -= len(folders) + len(names)
        if left < 0:
            break
        for path in (Path(folder, name).relative_to(root).as_posix() for name in names):
            if path.endswith(markdown) and not paths.is_set_apart(root, path) and not os.path.islink(root / path):
                count += files.is_included(path) and files.allow(path) is None
            elif path.lower().endswith(_OTHER_ENDINGS) and not path.endswith(markdown):
                misnamed[os.path.splitext(path)[1]] += files.is_included(path)
    return count, misnamed, left >= 0


def suggest_setup(files: WorkspaceFiles, count: int) -> str:
    """Suggest in a sentence where to put files, if a workspace has few memory files; "" if nothing is needed.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    root, (markdown, misnamed, is_all), hints = files.root, count_overlooked(files), list[str]()
    if markdown > count and root in {Path.home(), Path(root.anchor)}:
        return f"{root} holds {count or 'no'} memory files: name the folder of your notes as the workspace"
    if markdown > count:
        least = "" if is_all else "at least "
        is_one = markdown == 1
        files_lie = "a Markdown file lies" if is_one else f"{markdown:,} Markdown files lie"
        is_not = "is not searched; to search it too" if is_one else "are not searched; to search them too"
        command = f"openclaw-memory init --all-markdown --workspace {quote(str(root))}"
        hints.append(f"{least}{files_lie} in {root} outside of {paths.NOTES_FOLDER}/ and {is_not}: `{command}`")
    elif not count and not misnamed.total():
        hints.append(f"{root} holds no memory file yet: add a note, or put Markdown into {root / paths.NOTES_FOLDER}")
    if counts := [f"{number:,} in {ending}" for ending, number in misnamed.most_common() if number]:
        hints.append(f"files that end {', '.join(counts)} are not read: add to files.endings, or rename them")
    return "; ".join(hints)
