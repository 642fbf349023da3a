"""Decide which paths may name a memory file, for all who scan, read and write, and read the day in a path."""

from __future__ import annotations

import datetime
import os
import posixpath
import re
import stat
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from openclaw_memory._safe import has_controls
from openclaw_memory.config import FilesConfig, SessionsConfig
from openclaw_memory.config.config import OF_THE_AGENT, may_be_of_the_agent
from openclaw_memory.config.globs import is_matched, read_globs
from openclaw_memory.types.codec import SUFFIX, get_plain_name

ROOT_NOTES = ("MEMORY.md", "USER.md")
LOWER_CASE_NOTE = "memory.md"  # counts only where there is no MEMORY.md
NOTES_FOLDER = "memory"
DOCUMENTS_FOLDER = f"{NOTES_FOLDER}/notes"  # what programs add
RECORDS_FOLDER = f"{NOTES_FOLDER}/records"  # facts, by type and key
TRANSCRIPTS = "sessions"  # what a transcript's path begins with, wherever its folder lies
TRANSCRIPT_SUFFIX = ".jsonl"
MOVE_NOTE = f"move it elsewhere in {NOTES_FOLDER}/, or delete it"  # where a record belongs
NOTE_ENDINGS = (".md", f".md{SUFFIX}")  # of what the library itself writes
TRANSCRIPT_ENDINGS = (TRANSCRIPT_SUFFIX, f"{TRANSCRIPT_SUFFIX}{SUFFIX}")
_BELOW_TRANSCRIPTS = f"{TRANSCRIPTS}/"

# A conversation fills some megabytes. A larger file is not one, and would take seconds to read.
MAX_TRANSCRIPT_BYTES = 1 << 30
# A sealed one is unsealed as a whole, and written anew for each message.
MAX_SEALED_TRANSCRIPT_BYTES = 64 << 20

# `.memory` is this library's own folder (the index), `.openclaw-repair` is where OpenClaw puts damaged notes aside.
NEVER_ENTERED = frozenset({".memory", ".openclaw-repair"})

# `2026-11-01.md` or `2026-11-01-any-slug.md`, at any depth below a `memory` folder: OpenClaw's dated notes.
_DATED = re.compile(
    rf"(?:^|/)memory/(?:[^/]+/)*([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:-[^/]+)?\.md(?:{re.escape(SUFFIX)})?"
)

_DATE_TITLE = re.compile(r"\s*#{1,6}\s+\d{4}-\d{2}-\d{2}\s*")

# What a path has of the library: its folders, its endings, the day of a note, the digest or UUID in a name.
_OWN = re.compile(rf"(?:{RECORDS_FOLDER}/[a-z]+/|{DOCUMENTS_FOLDER}/|{NOTES_FOLDER}/|{TRANSCRIPTS}/)")
_MADE = re.compile(
    r"(?<![0-9a-z])(?:\d{4}-\d\d-\d\d|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\d*[a-f])[0-9a-f]{12})(?![0-9a-z])"
)

# OpenClaw reads years below 100 as 19xx and then finds that they do not fit: such names carry no date.
_FIRST_YEAR = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path is. `parts` are walked one by one, never through a symlink, from the trusted folder `base`."""

    path: str
    base: str
    parts: tuple[str, ...]


def with_ending(place: Place, *, sealed: bool) -> Place:
    """Return the place of the same file with the ending of a sealed one, or without it."""
    path, name = get_plain_name(place.path), get_plain_name(place.parts[-1])
    return replace(place, path=path + SUFFIX * sealed, parts=(*place.parts[:-1], name + SUFFIX * sealed))


class Stamp(NamedTuple):
    """Those numbers of a stat that say which file it is, whether it counts, and whether it has changed."""

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
    return path.startswith(_BELOW_TRANSCRIPTS) and path.endswith(TRANSCRIPT_ENDINGS)


def is_record(path: str) -> bool:
    """Return whether the path of a memory file is that of a record; case is ignored, as on disks that ignore it."""
    return path.casefold().startswith(f"{RECORDS_FOLDER}/")


def locate_transcripts(root: Path, sessions: SessionsConfig) -> Place:
    """Return the transcripts' folder: walked from the workspace where it is inside, else from the folder around it."""
    return replace(locate_configured(root, sessions.folder.strip() or TRANSCRIPTS), path=TRANSCRIPTS)


def is_of_the_agent(root: Path, path: str) -> bool:
    """Whether a file of the workspace holds the agent's own rules, by its name or, where case is ignored, by another.

    It counts only where `files.extra_paths` names it itself, and is never changed here.
    """
    if not may_be_of_the_agent(path):
        return False
    return any(name in OF_THE_AGENT and name.casefold() == path.casefold() for name in (path, *list_names(root)))


def is_set_apart(root: Path, path: str) -> bool:
    """Return whether a file at the top of the workspace does not count where the whole workspace is an extra path."""
    return is_of_the_agent(root, path) or (path == LOWER_CASE_NOTE and ROOT_NOTES[0] in list_names(root))


def is_around_workspace(place: Place) -> bool:
    """Return whether an extra place is a folder around the workspace, whose files would have two names."""
    return set(place.path.split("/")) == {".."}


def matches_globs(settings: FilesConfig, path: str) -> bool:
    """Whether the globs let a path count: it matches `include`, where there is one, and not `exclude`.

    Globs are read as in a .gitignore file: `drafts/` is a folder anywhere, `/memory/old/**` starts at the workspace.

    Raises:
        ConfigError: a glob cannot be read.
    """
    if settings.include and not is_matched(read_globs("files.include", settings.include), path):
        return False
    return not (settings.exclude and is_matched(read_globs("files.exclude", settings.exclude), path))


def strip_made(path: str) -> str:
    """Strip a path of the library's folders and endings, and of a day, digest or UUID."""
    return _MADE.sub("", split_chosen(path)[1])


def split_chosen(path: str) -> tuple[str, str, str]:
    """Return what a path has of the library, what a person or a program chose of it, and its ending."""
    inner = get_plain_name(path)
    if inner in {*ROOT_NOTES, LOWER_CASE_NOTE}:
        return path, "", ""
    above = found[0] if (found := _OWN.match(path)) else ""
    stem, dot, ending = inner[len(above) :].rpartition(".")
    if dot and f".{ending}" in {".md", TRANSCRIPT_SUFFIX}:
        return above, stem, dot + ending + path[len(inner) :]
    return above, path[len(above) :], ""


def explain_left_out(info: os.stat_result | Stamp, settings: FilesConfig, path: str = "") -> str | None:
    """Return why a file is not read, as a phrase that follows its name; None for a regular file of allowed size."""
    if not stat.S_ISREG(info.st_mode):
        return f"is {_kind(info.st_mode)}, not a regular file"
    if info.st_nlink > 1 and not settings.allow_hard_links:
        return f"has {info.st_nlink} hard links and may lie elsewhere too: copy it, or set files.allow_hard_links"
    if is_transcript(path):
        most = MAX_SEALED_TRANSCRIPT_BYTES if path.endswith(SUFFIX) else MAX_TRANSCRIPT_BYTES
        if info.st_size > most:
            return f"is {info.st_size:,} bytes, too many for a transcript (at most {most:,}): part it"
    elif info.st_size > settings.max_bytes:
        return f"is {info.st_size:,} bytes, more than files.max_bytes ({settings.max_bytes:,})"
    return None


def explain_wrong_name(path: str) -> str | None:
    """Return what keeps a path from being stored and cited, as a phrase that follows it; None if nothing does.

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
    r"""How exactly a question names a file: 3 its whole path, 2 its name, 1 its name without extension, 0 not at all.

    Case and Unicode composition do not matter, `\` is `/`. A query with a slash can only be a whole path. A sealed
    file is meant by the name of what is in it, too.
    """
    wanted, given = get_plain_name(_folded(query)), get_plain_name(_folded(path))
    if not wanted:
        return 0
    if wanted == given:
        return 3
    name = posixpath.basename(given)
    if wanted == name:
        return 2
    return int("/" not in wanted and wanted == posixpath.splitext(name)[0])


def is_date_title(text: str) -> bool:
    """Return whether a text is only a heading that is a date, which the path of a daily note says already."""
    return _DATE_TITLE.fullmatch(text) is not None


def format_date_term(year: int | None, month: int, day: int | None) -> str:
    """Return a date as one term of the keyword index, in ISO 8601 form: 2026-01-06, 2026-01, --01-06 or --01."""
    start = f"{year:04}" if year is not None else "-"
    return f"{start}-{month:02}" if day is None else f"{start}-{month:02}-{day:02}"


def list_date_terms(day: datetime.date) -> tuple[str, ...]:
    """Return all terms by which a query may mean this day; its year is a term of the file's name already."""
    year, month = day.year, day.month
    return tuple(format_date_term(y, month, d) for y in (year, None) for d in (day.day, None))


def parse_note_date(path: str) -> datetime.date | None:
    """Return the day in the name of a dated note below `memory/`; None where the name holds no valid day."""
    match = _DATED.search(path.replace("\\", "/"))
    if match is None or match.end() != len(match.string):
        return None
    year, month, day = (int(group) for group in match.groups())
    if year < _FIRST_YEAR:
        return None
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def parse_day_in_name(path: str) -> datetime.date | None:
    """Return the day of a dated note as `note_date` does, whatever its ending is."""
    return parse_note_date(path) or parse_note_date(f"{os.path.splitext(get_plain_name(path))[0]}.md")


def locate_transcript(root: Path, sessions: SessionsConfig | None, relative: str) -> Place | None:
    """Return the place of a transcript; None for a path that names none, or without `sessions`."""
    if sessions is None or not sessions.index or not relative.endswith(TRANSCRIPT_ENDINGS):
        return None
    folder = locate_transcripts(root, sessions)
    where, _, name = relative.rpartition("/")
    inside = where == TRANSCRIPTS or os.path.normpath(root / where) == os.path.join(folder.base, *folder.parts)
    if not inside or explain_wrong_name(name):
        return None
    return Place(f"{TRANSCRIPTS}/{name}", folder.base, (*folder.parts, name))


def locate_configured(root: Path, given: str) -> Place:
    """Return the place of a path in the settings: walked from the workspace, or from the folder around it outside."""
    absolute = os.path.normpath(os.path.join(root, os.path.expanduser(given)))
    relative = resolve_path(root, absolute)
    if relative == "." or _is_inside(relative):
        return Place(relative, str(root), () if relative == "." else tuple(relative.split("/")))
    folder, name = os.path.split(absolute)
    return Place(relative, folder, (name,) if name else ())


def split_below(relative: str, folder: str) -> tuple[str, ...] | None:
    """Return the parts of `relative` below `folder`: () where they are the same, None where it is not below."""
    if relative == folder:
        return ()
    if folder == ".":
        return tuple(relative.split("/")) if _is_inside(relative) else None
    return tuple(relative[len(folder) + 1 :].split("/")) if relative.startswith(f"{folder}/") else None


def resolve_path(root: Path, path: str) -> str:
    """Return `path` as seen from the workspace, with forward slashes, resolved lexically."""
    if os.path.isabs(path):
        try:
            path = os.path.relpath(path, root)
        except ValueError:  # another drive: nothing relative leads there
            return path
    return posixpath.normpath(path.replace(os.sep, "/"))


def _is_inside(relative: str) -> bool:
    return relative != ".." and not relative.startswith("../") and not os.path.isabs(relative)


def list_names(root: Path) -> list[str]:
    """List the names in the workspace; none where it cannot be listed."""
    try:
        return os.listdir(root)
    except OSError:  # opening the file will say what is wrong with the folder
        return []


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symlink",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFBLK: "a block device",
        stat.S_IFCHR: "a character device",
    }
    return kinds.get(stat.S_IFMT(mode), "something special")


def _folded(path: str) -> str:
    folded = posixpath.normpath(unicodedata.normalize("NFC", path.strip().replace("\\", "/"))).lower()
    return "" if folded == "." else folded


# Two writes within one tick of the file system's clock leave the same stamp. Linux stamps with its scheduler's tick (at
# most 10 ms, doubled here); a stamp of whole seconds comes from a coarse file system (FAT counts in 2 s).
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000

FileStamp: TypeAlias = tuple[int, int, int, int]


def get_stamp(info: os.stat_result | Stamp) -> FileStamp:
    """Return what changes whenever a file changes, once it is settled."""
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_settled(info: os.stat_result | Stamp, now: int) -> bool:
    """Whether any later write will give the file another stamp than it has `now`, in ns since 1970."""
    last = max(info.st_mtime_ns, info.st_ctime_ns)
    return now - last > (_TICK_NS if last % 1_000_000_000 else _COARSE_TICK_NS)
