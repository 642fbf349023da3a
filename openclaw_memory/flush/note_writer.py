"""Write what a flush saves: new sections, at the end of one day's note, without secrets."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    PolicyError,
    UndecodableError,
)
from openclaw_memory.text.fence import strip_recalled
from openclaw_memory.text.redaction import redact_talk
from openclaw_memory.text.silent_reply import SILENT, is_silent
from openclaw_memory.types import ToolAnswer
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_folder
from openclaw_memory.workspace.journal import check_text, make_day_path
from openclaw_memory.workspace.notes import Notes
from openclaw_memory.workspace.paths import NOTES_FOLDER

TOOL_NAME = "memory_append"
NOTHING_TO_SAVE = "nothing"  # the status of a call without a text
DESCRIPTION = (
    "Save lasting memories: adds text to the end of today's note, and changes nothing else. Say each thing in a line "
    "of its own that can be understood alone, with names and dates. What the note says already is not added again."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "What to remember, in Markdown."},
        "quotedFrom": {
            "type": "string",
            "minLength": 1,
            "description": "Where it comes from, if a web page, mail or program says it and not the user.",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}
# More than a model writes in one answer, and few enough that a note stays one that people read.
MAX_CHARS = 65_536


def append_new(
    workspace: Workspace, arguments: Mapping[str, Any], *, day: datetime.date, other_days: Iterable[datetime.date] = ()
) -> ToolAnswer:
    """Add the new sections of the `text` in a call to the note of a day.

    New is what neither this note nor those of `other_days` have, see `missing`. The answer's status is `ok` (with
    `path`, `existed`, and `lines` if any were written), `nothing` (there are no words to save), `invalid`,
    `not_allowed` or `failed`. Its artifact is the `Excerpt` of what was written.
    """
    path = workspace.files.find(make_day_path(day))
    try:
        text = redact_talk(strip_recalled(_checked(arguments, path)))
        if not text.strip() or is_silent(text):
            return _refused(NOTHING_TO_SAVE, f"there is no text to save: reply with {SILENT} if there is nothing")
        with lock_folder(workspace.root, (NOTES_FOLDER,), path, ".flush-lock"):  # against other flushes
            note, *others = (_note(workspace, each) for each in (day, *other_days))
            source = arguments.get("quotedFrom")
            new = text if source is not None else missing(text, *note, others)
            if not new:
                return ToolAnswer({"status": "ok", "path": path, "existed": True})
            written = Notes(workspace).append(new, date=day, quoted_from=source, skip_existing=source is not None)
    except (OpenClawMemoryError, OSError) as error:
        is_query, is_path = isinstance(error, InvalidInputError), isinstance(error, PathNotAllowedError | PolicyError)
        return _refused("invalid" if is_query else "not_allowed" if is_path else "failed", str(error))
    lines = f"{written.start_line}-{written.end_line}"
    return ToolAnswer({"status": "ok", "path": path, "lines": lines, "existed": written.existed}, written)


def _checked(arguments: object, path: str) -> str:
    """Return the text in the arguments of a call.

    Raises:
        InvalidInputError: They are not an object, or the text is not a Unicode string or is too long.
        PathNotAllowedError: The call names another file than `path`, or something else that a model cannot choose.
    """
    if not isinstance(arguments, Mapping):
        raise InvalidInputError(f"the arguments must be an object with `text`, not {arguments!r:.80}")
    others = set(arguments) - {"text", "quotedFrom"}
    if others and (others != {"path"} or get_plain_name(str(arguments["path"])) != get_plain_name(path)):
        raise PathNotAllowedError(f"only `text` and `quotedFrom` count now, and {path} alone grows: send nothing else")
    text = arguments.get("text")
    if not isinstance(text, str):
        raise InvalidInputError(f"text must be a string, not {text!r:.80}: send what to remember, in Markdown")
    if len(text) > MAX_CHARS:
        raise InvalidInputError(
            f"the text has {len(text):,} characters, of which {MAX_CHARS:,} are taken at once: part it"
        )
    return check_text(text, "text")


def _note(workspace: Workspace, day: datetime.date) -> tuple[str, str]:
    """Return the note of a day, "" if it cannot be read, and its title."""
    try:
        text = workspace.read(workspace.files.find(make_day_path(day)))
    except (NotFoundError, UndecodableError):
        text = ""
    return text, f"# {day.isoformat()}"


def _refused(status: str, error: str) -> ToolAnswer:
    return ToolAnswer({"status": status, "error": error})


# The headings above some lines, the outermost first, as they are written: `("## Anna", "### Tea")`.
Headings: TypeAlias = tuple[str, ...]

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")


class _Section(NamedTuple):
    path: Headings
    lines: list[str]


def missing(text: str, note: str, title: str, others: Iterable[tuple[str, str]] = ()) -> str:
    """Return the sections of a text that a note lacks, ready to be added at its end; "" if it has them all.

    A section is all text below a heading, or above the first one. Its lines may depend on each other, so the note has
    it as a whole, line after line below the same headings, or it is added as a whole. `title` is the heading of the
    note, `# 2026-11-21`, which says nothing about what follows it. Added sections bring their headings along; where
    these cannot close the headings at the end of the note, the title is repeated. A section that begins with the last
    lines of the note is added without them. What `others` have, notes with their titles, is not added either.
    """
    there, fence = _sections(note, title)
    wanted, unclosed = _sections(text, title)
    wanted[-1].lines.extend(unclosed)
    added = list(fence)
    at, end = there[-1].path, [] if fence else there[-1].lines
    there += [section for other in others for section in _sections(*other)[0]]
    for section in wanted:
        if not any(_holds(other, section) for other in there):
            new = _behind(end, section.lines) if section.path == at and len(added) == len(fence) else section.lines
            lines = "\n".join(new).strip("\n")
            added += [*_way(at, section.path, title), *([lines] if lines else [])]
            at = section.path
            there.append(section)
    return "\n\n".join(added) if added != fence else ""


def _sections(text: str, title: str) -> tuple[list[_Section], list[str]]:
    """Return the sections of a text, the one above its first heading first, and what closes code that was left open."""
    found = [_Section((), [])]
    fence = ""
    for line, fence in _lines(text):
        if fence or not _HEADING.match(line):
            found[-1].lines.append(line)
            continue
        heading = " ".join(line.split())
        above = found[-1].path
        while above and _level(above[-1]) >= _level(heading):
            above = above[:-1]
        found.append(_Section(() if heading == title else (*above, heading), []))
    return found, [fence] if fence else []


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a text with the fence of the code block that it is in, "" outside of one."""
    fence = ""
    for line in map(str.rstrip, text.split("\n")):
        mark = _FENCE.match(line)
        if not fence:
            fence = mark[1] if mark else ""
        elif mark and line.strip().startswith(fence) and not line.strip(fence[0] + " \t"):
            fence = ""
        yield line, fence


def _holds(there: _Section, wanted: _Section) -> bool:
    """Whether another section has all lines of a section in a row; blank ones do not matter."""
    if there.path != wanted.path:
        return False
    lines, sought = list(filter(None, there.lines)), list(filter(None, wanted.lines))
    return any(lines[at : at + len(sought)] == sought for at in range(len(lines) - len(sought) + 1))


def _behind(end: list[str], lines: list[str]) -> list[str]:
    """Return the lines without the first ones, as far as a section already ends with them."""
    last = list(filter(None, end))
    said = [] if any(map(_FENCE.match, lines)) else [at for at, line in enumerate(lines) if line]
    for size in range(min(len(last), len(said)), 0, -1):
        if last[-size:] == [lines[at] for at in said[:size]]:
            return lines[said[size - 1] + 1 :]
    return lines


def _way(at: Headings, to: Headings, title: str) -> Headings:
    """Return the headings to write so that the lines that follow are below `to` instead of `at`."""
    same = next((n for n, (one, other) in enumerate(zip(at, to, strict=False)) if one != other), min(len(at), len(to)))
    if same == len(at) or (same < len(to) and _level(to[same]) <= _level(at[same])):
        return to[same:]
    # A heading ends one of its own level: the last that both have in common is said again.
    return to[same - 1 :] if same else (title, *to)


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))
