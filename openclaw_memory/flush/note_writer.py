"""Write the text of a flush at the end of a day's note: new sections, without secrets."""

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
from openclaw_memory.text.silent_reply import NO_REPLY, is_silent
from openclaw_memory.types import ToolAnswer
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_folder
from openclaw_memory.workspace.journal import check_text
from openclaw_memory.workspace.notes import Notes

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
MAX_CHARS = 65_536  # more than a model writes in one answer

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
# The headings above some lines, the outermost first: `("## Anna", "### Tea")`.
Headings: TypeAlias = tuple[str, ...]


def append_new(
    workspace: Workspace, arguments: Mapping[str, Any], *, day: datetime.date, other_days: Iterable[datetime.date] = ()
) -> ToolAnswer:
    """Add the sections of the `text` in a call that the note of a day lacks, and those of `other_days` too.

    Args:
        workspace: The files.
        arguments: The arguments of the call.
        day: The day of the note.
        other_days: Days whose notes may have some sections.

    Returns:
        Its status is `ok` (with `path`, `existed`, and `lines` if any were written), `nothing` (there is no text to
        save), `invalid`, `not_allowed` or `failed`. Its artifact is the `Excerpt` that was written.
    """
    path = workspace.files.find_day(day)
    try:
        text = redact_talk(strip_recalled(_read_text(arguments, path)))
        if not text.strip() or is_silent(text):
            error = f"there is no text to save: reply with {NO_REPLY} if there is nothing"
            return ToolAnswer({"status": NOTHING_TO_SAVE, "error": error})
        with lock_folder(workspace.root, workspace.files.lock_parts, path, ".flush-lock"):  # against other flushes
            source = arguments.get("quotedFrom")
            if source is None:
                note, *other_notes = (_read_note(workspace, date) for date in (day, *other_days))
                text = find_missing(text, *note, other_notes)
                if not text:
                    return ToolAnswer({"status": "ok", "path": path, "existed": True})
            excerpt = Notes(workspace).append(text, date=day, quoted_from=source, skip_existing=source is not None)
    except InvalidInputError as error:
        return ToolAnswer({"status": "invalid", "error": str(error)})
    except (PathNotAllowedError, PolicyError) as error:
        return ToolAnswer({"status": "not_allowed", "error": str(error)})
    except (OpenClawMemoryError, OSError) as error:
        return ToolAnswer({"status": "failed", "error": str(error)})
    lines = f"{excerpt.start_line}-{excerpt.end_line}"
    return ToolAnswer({"status": "ok", "path": path, "lines": lines, "existed": excerpt.existed}, excerpt)


def _read_text(arguments: object, path: str) -> str:
    """Return the text in the arguments of a call.

    Raises:
        InvalidInputError: They are not an object, or the text is not a Unicode string or is too long.
        PathNotAllowedError: The call names another file than `path`, or something else that a model cannot choose.
    """
    if not isinstance(arguments, Mapping):
        raise InvalidInputError(f"the arguments must be an object with `text`, not {arguments!r:.80}")
    extra = set(arguments) - {"text", "quotedFrom"}
    if extra and (extra != {"path"} or get_plain_name(str(arguments["path"])) != get_plain_name(path)):
        raise PathNotAllowedError(f"only `text` and `quotedFrom` count now, and {path} alone grows: send nothing else")
    text = arguments.get("text")
    if not isinstance(text, str):
        raise InvalidInputError(f"text must be a string, not {text!r:.80}: send the text to remember, in Markdown")
    if len(text) > MAX_CHARS:
        raise InvalidInputError(
            f"the text has {len(text):,} characters, of which {MAX_CHARS:,} are taken at once: send it in parts"
        )
    return check_text(text, "text")


def _read_note(workspace: Workspace, day: datetime.date) -> tuple[str, str]:
    """Return the note of a day, "" if it cannot be read, and its title."""
    title = f"# {day.isoformat()}"
    try:
        return workspace.read(workspace.files.find_day(day)), title
    except (NotFoundError, UndecodableError):
        return "", title


class _Section(NamedTuple):
    headings: Headings
    lines: list[str]


def find_missing(text: str, note: str, title: str, other_notes: Iterable[tuple[str, str]] = ()) -> str:
    """Return the sections of a text that a note lacks, ready to be added at its end; "" if it has them all.

    A section is all text below a heading, or above the first one. Its lines may depend on each other: the note has it
    if they follow each other below the same headings, else all of it is added. Added sections bring their headings
    along; where these cannot close the headings at the end of the note, the title is repeated. A section that begins
    with the last lines of the note is added without them.

    Args:
        text: The text.
        note: The note.
        title: The heading of the note, such as `# 2026-11-21`, which stands for no section.
        other_notes: Notes with their titles: the sections that they have are not added either.
    """
    sections, open_fence = _split_sections(note, title)
    new_sections, unclosed = _split_sections(text, title)
    new_sections[-1].lines.extend(unclosed)
    end = sections[-1].headings
    last_lines = [] if open_fence else sections[-1].lines
    sections += [section for pair in other_notes for section in _split_sections(*pair)[0]]
    blocks: list[str] = []
    for section in new_sections:
        if any(_has_section(candidate, section) for candidate in sections):
            continue
        goes_on = section.headings == end and not blocks
        lines = "\n".join(_drop_overlap(last_lines, section.lines) if goes_on else section.lines).strip("\n")
        blocks += [*_write_headings(end, section.headings, title), *([lines] if lines else [])]
        end = section.headings
        sections.append(section)
    return "\n\n".join([*open_fence, *blocks]) if blocks else ""


def _split_sections(text: str, title: str) -> tuple[list[_Section], list[str]]:
    """Return the sections of a text, first the one above all headings, and the fence that closes an open code block."""
    sections = [_Section((), [])]
    fence = ""
    for line, fence in _read_lines(text):
        if fence or not _HEADING.match(line):
            sections[-1].lines.append(line)
            continue
        heading = " ".join(line.split())
        above = sections[-1].headings
        while above and _get_level(above[-1]) >= _get_level(heading):
            above = above[:-1]
        sections.append(_Section(() if heading == title else (*above, heading), []))
    return sections, [fence] if fence else []


def _read_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a text with the fence of its code block, "" outside of one."""
    fence = ""
    for line in map(str.rstrip, text.split("\n")):
        mark = _FENCE.match(line)
        if not fence:
            fence = mark[1] if mark else ""
        elif mark and line.strip().startswith(fence) and not line.strip(fence[0] + " \t"):
            fence = ""
        yield line, fence


def _has_section(section: _Section, part: _Section) -> bool:
    """Tell whether a section has all lines of another one in a row, apart from blank ones."""
    if section.headings != part.headings:
        return False
    lines, block = list(filter(None, section.lines)), list(filter(None, part.lines))
    return any(lines[at : at + len(block)] == block for at in range(len(lines) - len(block) + 1))


def _drop_overlap(end: list[str], lines: list[str]) -> list[str]:
    """Drop the first lines, as far as a section already ends with them."""
    last = list(filter(None, end))
    places = [] if any(map(_FENCE.match, lines)) else [at for at, line in enumerate(lines) if line]
    for size in range(min(len(last), len(places)), 0, -1):
        if last[-size:] == [lines[at] for at in places[:size]]:
            return lines[places[size - 1] + 1 :]
    return lines


def _write_headings(start: Headings, end: Headings, title: str) -> Headings:
    """Return the headings that lead from below `start` to below `end`."""
    pairs = enumerate(zip(start, end, strict=False))
    same = next((at for at, (before, after) in pairs if before != after), min(len(start), len(end)))
    if same == len(start) or (same < len(end) and _get_level(end[same]) <= _get_level(start[same])):
        return end[same:]
    # A heading ends one of its own level: the last common one is repeated.
    return end[same - 1 :] if same else (title, *end)


def _get_level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))
