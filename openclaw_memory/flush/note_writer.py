"""Write the text of a flush at the end of a day's note: new items, without secrets."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    PolicyError,
    UndecodableError,
)
from openclaw_memory.events import locate_excerpt, observed
from openclaw_memory.text.fence import remove_fences
from openclaw_memory.text.quotation import quote
from openclaw_memory.text.redaction import redact_talk
from openclaw_memory.text.silent_reply import NO_REPLY, is_silent
from openclaw_memory.types import Excerpt, ToolAnswer
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.encodings import check_text
from openclaw_memory.workspace.notes import append

TOOL_NAME = "memory_append"
NOTHING_TO_SAVE = "nothing"  # the status of a call without a text
DESCRIPTION = (
    "Save lasting memories: adds text to the end of today's note, and changes nothing else. Say each thing in a line "
    "of its own that can be understood alone, with names and dates. What the note says already is not added again."
)
SCHEMA: Mapping[str, Any] = json.loads(Path(__file__).with_name("note_schema.json").read_text("utf-8"))
MAX_CHARS = 65_536  # more than a model writes in one answer
_AFTER_MIDNIGHT = datetime.timedelta(minutes=15)  # when a turn, or one that broke off, may have begun

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_MARKER = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+")
# A line of fewer words, and of fewer bytes, which a word of a script without spaces has too, is no fact of its own.
_SHORT_WORDS, _SHORT_BYTES = 3, 15
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
# The headings above some lines, the outermost first: `("## Anna", "### Tea")`.
Headings: TypeAlias = tuple[str, ...]


def append_new(workspace: Workspace, arguments: Mapping[str, Any], now: datetime.datetime) -> ToolAnswer:
    """Add the items of the `text` in a call that the note of the day lacks, and just after midnight that of yesterday.

    Returns:
        Its status is `ok` (with `path`, `existed`, and `lines` if any were written), `nothing` (there is no text to
        save), `invalid`, `not_allowed` or `failed`. Its artifact is the `Excerpt` that was written.
    """
    path = workspace.files.find_day(now.date())
    try:
        text = redact_talk(remove_fences(_read_text(arguments, path)))
        if not text.strip() or is_silent(text):
            error = f"there is no text to save: reply with {NO_REPLY} if there is nothing"
            return ToolAnswer({"status": NOTHING_TO_SAVE, "error": error})
        source = arguments.get("quotedFrom")
        excerpt = _append(workspace, text, source, now)
    except InvalidInputError as error:
        return ToolAnswer({"status": "invalid", "error": str(error)})
    except (PathNotAllowedError, PolicyError) as error:
        return ToolAnswer({"status": "not_allowed", "error": str(error)})
    except (OpenClawMemoryError, OSError) as error:
        return ToolAnswer({"status": "failed", "error": str(error)})
    if not excerpt.text:
        return ToolAnswer({"status": "ok", "path": path, "existed": True})
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
        raise InvalidInputError(f"the text has {len(text):,} characters, more than {MAX_CHARS:,}: send it in parts")
    return check_text(text, "text")


@observed("append", locate_excerpt, writes=True)
def _append(workspace: Workspace, text: str, source: str | None, now: datetime.datetime) -> Excerpt:
    """Add the new items of a text to the note of the day, or all of a quotation that it lacks."""
    day = now.date()
    if source is not None:
        quotation = quote(text, source)
        return append(workspace.files, quotation, date=day, now=now, skip_existing=True)

    def select(note: str) -> str:
        other_days = {(now - _AFTER_MIDNIGHT).date()} - {day}
        other_notes = [(_read_note(workspace, date), f"# {date}") for date in other_days]
        return find_missing(text, note, f"# {day}", other_notes)

    return append(workspace.files, select, date=day, now=now)


def _read_note(workspace: Workspace, day: datetime.date) -> str:
    """Return the note of a day; "" if it cannot be read."""
    try:
        return workspace.read(workspace.files.find_day(day))
    except (NotFoundError, UndecodableError):
        return ""


class _Item(NamedTuple):
    """A fact as it is written, below its headings; `is_apart` if a blank line is above it."""

    headings: Headings
    lines: list[str]
    is_apart: bool


def find_missing(text: str, note: str, title: str, other_notes: Iterable[tuple[str, str]] = ()) -> str:
    """Return the items of a text that a note lacks, as they are to be added at its end.

    An item is a line with what belongs to it: lines that are indented below it, the line that it introduces by a colon,
    and answers as short as "Yes"; or a block of code, or a table. It is there if the note has its lines in a row below
    the same headings. Headings come along; where these cannot close the headings at the end of the note, the title is
    repeated.

    Args:
        text: The text.
        note: The note.
        title: The heading of the note, such as `# 2026-11-21`, which stands for no section.
        other_notes: Notes with their titles: the items that they have are not added either.
    """
    items, open_fence = _split_items(note, title)
    items_there: dict[Headings, list[str]] = {}
    for item in items + [item for pair in other_notes for item in _split_items(*pair)[0]]:
        items_there.setdefault(item.headings, []).extend(_normalise(item))
    end, missing = items[-1].headings, "\n"
    new_items, unclosed = _split_items(text, title)
    new_items[-1].lines.extend([unclosed] if unclosed else [])
    for headings, lines, is_apart in new_items:
        is_known, lines_there = headings in items_there, items_there.setdefault(headings, [])
        new_lines = _normalise(_Item(headings, lines, is_apart))
        places = range(len(lines_there) - len(new_lines) + 1)
        if is_known and any(lines_there[at : at + len(new_lines)] == new_lines for at in places):
            continue
        above = _write_headings(end, headings, title)
        block = "\n\n".join([*above, *(["\n".join(lines)] if lines else [])])
        missing += f"\n\n{block}" if above or is_apart else f"\n{block}"
        end = headings
        lines_there.extend(new_lines)
    return "\n\n".join(filter(None, [open_fence, missing.strip("\n")])) if missing.strip("\n") else ""


def _split_items(text: str, title: str) -> tuple[list[_Item], str]:
    """Return the items of a text, and the fence that closes its last block of code if it is open.

    A heading begins with an item of no lines, and so does the text.
    """
    items, fence, is_apart = [_Item((), [], True)], "", True
    for line in map(str.rstrip, text.split("\n")):
        headings, lines, _ = items[-1]
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            is_closed = mark and line.strip().startswith(fence) and not line.strip(fence[0] + " \t")
            fence = "" if is_closed else fence
        elif _HEADING.match(line):
            heading = " ".join(line.split())
            above = tuple(each for each in headings if _get_level(each) < _get_level(heading))
            items.append(_Item(() if heading == title else (*above, heading), [], True))
        elif line:
            fence = mark[1] if mark else ""
            if lines and not mark and _is_part(line, lines):
                lines.extend(["", line] if is_apart else [line])
            else:
                items.append(_Item(headings, [line], is_apart))
        is_apart = not fence and (not line or not items[-1].lines)
    return items, fence


def _is_part(line: str, lines: list[str]) -> bool:
    """Return whether a line is part of the item before it."""
    if _FENCE.match(lines[0]):
        return False
    words = " ".join(_MARKER.sub("", line).split())
    is_short = len(words.encode("utf-8", "replace")) < _SHORT_BYTES and words.count(" ") < _SHORT_WORDS - 1
    indents = [len(each) - len(each.lstrip()) for each in (line, lines[0])]
    is_row = line.lstrip().startswith("|") and lines[-1].lstrip().startswith("|")
    return is_short or indents[0] > indents[1] or is_row or lines[-1].endswith(":")


def _normalise(item: _Item) -> list[str]:
    """Return the lines of an item without the marks of a list and blank lines."""
    if item.lines and _FENCE.match(item.lines[0]):
        return list(filter(None, item.lines))
    return [" ".join(_MARKER.sub("", line).split()) for line in item.lines if line]


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
