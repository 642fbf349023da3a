"""Decide which paths may name a memory file, for all who scan, read and write, and whether a stamp is settled."""

from __future__ import annotations

import os
import posixpath
import re
import stat
import unicodedata
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from openclaw_memory._safe import has_controls
from openclaw_memory.config.path_rules import AGENT_FILES, is_agent_file, is_matched, read_globs
from openclaw_memory.config.sections import FilesConfig, SessionsConfig
from openclaw_memory.types.codec import SUFFIX, get_plain_name

ROOT_NOTES = ("MEMORY.md", "USER.md")
LOWER_CASE_NOTE = "memory.md"  # counts only where there is no MEMORY.md
NOTES_FOLDER = "memory"
DOCUMENTS_FOLDER = f"{NOTES_FOLDER}/notes"  # documents that programs add
RECORDS_FOLDER = f"{NOTES_FOLDER}/records"  # facts, by type and key
TRANSCRIPTS = "sessions"  # begins the path of a transcript, wherever its folder lies
TRANSCRIPT_SUFFIX = ".jsonl"
MOVE_NOTE = f"move it elsewhere in {NOTES_FOLDER}/, or delete it"  # where a record belongs
NOTE_ENDINGS = (".md", f".md{SUFFIX}")  # of notes that the library itself writes
TRANSCRIPT_ENDINGS = (TRANSCRIPT_SUFFIX, f"{TRANSCRIPT_SUFFIX}{SUFFIX}")

# A conversation fills some megabytes. A larger file is not one, and would take seconds to read.
MAX_TRANSCRIPT_BYTES = 1 << 30
# A sealed one is unsealed as a whole, and written anew for each message.
MAX_SEALED_TRANSCRIPT_BYTES = 64 << 20

OWN_FOLDER = ".memory"  # settings, snapshots and locks
NEVER_ENTERED = frozenset({OWN_FOLDER, ".openclaw-repair"})  # where OpenClaw puts damaged notes aside

# The parts of a path that the library makes: its folders, the day of a note, the digest or UUID in a name.
_OWN_FOLDERS = re.compile(rf"(?:{RECORDS_FOLDER}/[a-z]+/|{DOCUMENTS_FOLDER}/|{NOTES_FOLDER}/|{TRANSCRIPTS}/)")
_GENERATED = re.compile(
    r"(?<![0-9a-z])(?:\d{4}-\d\d-\d\d|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\d*[a-f])[0-9a-f]{12})(?![0-9a-z])"
)


class Place(msgspec.Struct, frozen=True):
    """The place of a memory file.

    Attributes:
        path: The path by which it is cited.
        base: A trusted folder.
        parts: The way from there, walked part by part, never through a symlink.
    """

    path: str
    base: str
    parts: tuple[str, ...]


def with_ending(place: Place, *, sealed: bool) -> Place:
    """Return the place of the same file with the ending of a sealed one, or without it."""
    path, name = get_plain_name(place.path), get_plain_name(place.parts[-1])
    return Place(path + SUFFIX * sealed, place.base, (*place.parts[:-1], name + SUFFIX * sealed))


class Stamp(NamedTuple):
    """The numbers of a stat that identify a file, and tell whether it counts and has changed."""

    st_mode: int
    st_nlink: int
    st_size: int
    st_mtime_ns: int
    st_ino: int
    st_ctime_ns: int
    st_dev: int


def list_note_endings(settings: FilesConfig) -> tuple[str, ...]:
    """Return the endings of notes: `.md`, sealed or not, and those of the settings."""
    return tuple(dict.fromkeys((*NOTE_ENDINGS, *settings.endings)))


def is_transcript(path: str) -> bool:
    """Return whether the path of a memory file is that of a transcript."""
    return path.startswith(f"{TRANSCRIPTS}/") and path.endswith(TRANSCRIPT_ENDINGS)


def is_record(path: str) -> bool:
    """Return whether the path of a memory file is that of a record; case is ignored, as on disks that ignore it."""
    return path.casefold().startswith(f"{RECORDS_FOLDER}/")


def locate_transcripts(root: Path, sessions: SessionsConfig) -> Place:
    """Return the transcripts' folder: walked from the workspace where it is inside, else from the folder around it."""
    place = locate_configured(root, sessions.folder.strip() or TRANSCRIPTS)
    return Place(TRANSCRIPTS, place.base, place.parts)


def is_of_the_agent(root: Path, path: str) -> bool:
    """Return whether a file holds the agent's own rules, by its name or, where case is ignored, by another.

    It counts only where `files.extra_paths` names it itself, and is never changed here.
    """
    if not is_agent_file(path):
        return False
    return any(name in AGENT_FILES and name.casefold() == path.casefold() for name in (path, *list_names(root)))


def is_set_apart(root: Path, path: str) -> bool:
    """Return whether a file at the top of the workspace does not count where the whole workspace is an extra path."""
    return is_of_the_agent(root, path) or (path == LOWER_CASE_NOTE and ROOT_NOTES[0] in list_names(root))


def is_around_workspace(place: Place) -> bool:
    """Return whether an extra place is a folder around the workspace: its files would have two names."""
    return set(place.path.split("/")) == {".."}


def is_matching(settings: FilesConfig, path: str) -> bool:
    """Return whether the globs let a path count: it matches `include`, if there is one, and not `exclude`.

    Globs are read as in a .gitignore file: `drafts/` is a folder anywhere, `/memory/old/**` starts at the workspace.

    Raises:
        ConfigError: A glob cannot be read.
    """
    if settings.include and not is_matched(read_globs("files.include", settings.include), path):
        return False
    return not (settings.exclude and is_matched(read_globs("files.exclude", settings.exclude), path))


def strip_generated(path: str) -> str:
    """Return the part of a path that a person or a program chose, without days, digests and UUIDs."""
    return _GENERATED.sub("", split_chosen(path)[1])


def split_chosen(path: str) -> tuple[str, str, str]:
    """Return the library's folders in a path, the part that a person or a program chose, and the ending."""
    plain = get_plain_name(path)
    if plain in {*ROOT_NOTES, LOWER_CASE_NOTE}:
        return path, "", ""
    above = match[0] if (match := _OWN_FOLDERS.match(path)) else ""
    stem, dot, ending = plain[len(above) :].rpartition(".")
    if dot and f".{ending}" in {".md", TRANSCRIPT_SUFFIX}:
        return above, stem, dot + ending + path[len(plain) :]
    return above, path[len(above) :], ""


def explain_left_out(info: os.stat_result | Stamp, settings: FilesConfig, path: str = "") -> str | None:
    """Return why a file is not read, as a phrase that follows its name; None for a regular file of allowed size."""
    if not stat.S_ISREG(info.st_mode):
        return "is a folder" if stat.S_ISDIR(info.st_mode) else "is not a regular file, but a link, a pipe or a device"
    if info.st_nlink > 1:
        return f"has {info.st_nlink} hard links and may lie elsewhere too: copy it"
    if is_transcript(path):
        most = MAX_SEALED_TRANSCRIPT_BYTES if path.endswith(SUFFIX) else MAX_TRANSCRIPT_BYTES
        if info.st_size > most:
            return f"is {info.st_size:,} bytes, too many for a transcript (at most {most:,}): part it"
    elif info.st_size > settings.max_bytes:
        return f"is {info.st_size:,} bytes, more than files.max_bytes ({settings.max_bytes:,})"
    return None


def explain_wrong_name(path: str) -> str | None:
    """Return why a path cannot be stored and cited, as a phrase that follows it, or None if it can.

    Names on disk may be any bytes, which are read as lone surrogates. A control character or the end of a line would
    tear a citation apart.
    """
    if path.isascii() and path.isprintable():
        return None
    try:
        path.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8: rename it"
    return "has a control character or a line break in its name: rename it" if has_controls(path) else None


def rank_path_match(query: str, path: str) -> int:
    r"""Rank how exactly a query names a file: 3 its whole path, 2 its name, 1 its name without extension, 0 not at all.

    Case and Unicode composition do not matter, `\` is `/`. A query with a slash can only be a whole path. The name of
    a sealed file counts without its last ending, too.
    """
    query, path = get_plain_name(_fold_path(query)), get_plain_name(_fold_path(path))
    if not query:
        return 0
    name = posixpath.basename(path)
    if query in {path, name}:
        return 3 if query == path else 2
    return int("/" not in query and query == posixpath.splitext(name)[0])


def locate_transcript(root: Path, sessions: SessionsConfig | None, relative: str) -> Place | None:
    """Return the place of a transcript; None for a path that names none, or without `sessions`."""
    if sessions is None or not sessions.index or not relative.endswith(TRANSCRIPT_ENDINGS):
        return None
    folder = locate_transcripts(root, sessions)
    where, _, name = relative.rpartition("/")
    is_inside = where == TRANSCRIPTS or os.path.normpath(root / where) == os.path.join(folder.base, *folder.parts)
    if not is_inside or explain_wrong_name(name):
        return None
    return Place(f"{TRANSCRIPTS}/{name}", folder.base, (*folder.parts, name))


def locate_configured(root: Path, path: str) -> Place:
    """Return the place of a path in the settings: walked from the workspace, or from the folder around it outside."""
    absolute = os.path.normpath(os.path.join(root, os.path.expanduser(path)))
    relative = resolve_path(root, absolute)
    if (parts := split_below(relative, ".")) is not None:
        return Place(relative, str(root), parts)
    folder, name = os.path.split(absolute)
    return Place(relative, folder, (name,) if name else ())


def split_below(relative: str, folder: str) -> tuple[str, ...] | None:
    """Return the parts of a path below a folder: () where they are the same, None where it is not below."""
    if relative == folder:
        return ()
    if folder == ".":
        is_outside = relative == ".." or relative.startswith("../") or os.path.isabs(relative)
        return None if is_outside else tuple(relative.split("/"))
    return tuple(relative[len(folder) + 1 :].split("/")) if relative.startswith(f"{folder}/") else None


def resolve_path(root: Path, path: str) -> str:
    """Return a path as seen from the workspace, with forward slashes, resolved lexically."""
    if os.path.isabs(path):
        try:
            path = os.path.relpath(path, root)
        except ValueError:  # another drive: nothing relative leads there
            return path
    return posixpath.normpath(path.replace(os.sep, "/"))


def list_names(root: Path) -> list[str]:
    """List the names in the workspace; none if it cannot be listed."""
    try:
        return os.listdir(root)
    except OSError:  # opening the file will say what is wrong with the folder
        return []


def _fold_path(path: str) -> str:
    folded = posixpath.normpath(unicodedata.normalize("NFC", path.strip().replace("\\", "/"))).lower()
    return "" if folded == "." else folded


# Two writes within one tick of the file system's clock leave the same stamp. Linux stamps with its scheduler's tick (at
# most 10 ms, doubled here); a stamp of whole seconds comes from a coarse file system (FAT counts in 2 s).
TICK_NS = 20_000_000
COARSE_TICK_NS = 2_000_000_000

FileStamp: TypeAlias = tuple[int, int, int, int]


def get_stamp(info: os.stat_result | Stamp) -> FileStamp:
    """Return the numbers of a stat that change whenever the file changes, once it is settled."""
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_settled(mtime_ns: int, ctime_ns: int, now: int) -> bool:
    """Return whether any later write will give a file another stamp, by the times of its stat, taken at `now`."""
    last = max(mtime_ns, ctime_ns)
    return now - last >= (TICK_NS if last % 1_000_000_000 else COARSE_TICK_NS)
