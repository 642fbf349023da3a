"""What the turn of a flush may write: blocks that are new, at the end of one day's note, without secrets."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, PathNotAllowedError, QueryError, UndecodableError
from openclaw_memory.fence import without_recalled
from openclaw_memory.redaction import redact_talk
from openclaw_memory.sessions.blocks import missing
from openclaw_memory.sessions.silent import SILENT, is_silent
from openclaw_memory.types import ToolAnswer
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.journal import day_path

TOOL_NAME = "memory_append"
NOTHING_TO_SAVE = "nothing"  # the status of a call without a text
DESCRIPTION = (
    "Save lasting memories: adds text to the end of today's note, and changes nothing else. Say each thing in a line "
    "of its own that can be understood alone, with names and dates. What the note says already is not added again."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1, "description": "What to remember, in Markdown."}},
    "required": ["text"],
    "additionalProperties": False,
}
# More than a model writes in one answer, and few enough that a note stays one that people read.
MAX_CHARS = 65_536


def append_new(
    workspace: Workspace, arguments: Mapping[str, Any], *, day: datetime.date, other_days: Iterable[datetime.date] = ()
) -> ToolAnswer:
    """Add what is new of the `text` in a call to the note of a day; new is what no note of `other_days` has either.

    The answer's status is `ok` (with `path`, `existed`, and `lines` where they were written), `nothing` (there are no
    words to be saved), `invalid`, `not_allowed` or `failed`. Its artifact is the `Excerpt` of what was written.
    """
    path = day_path(day)
    try:
        text = fit_to_write(_checked(arguments, path))
        if not text.strip() or is_silent(text):
            return _refused(NOTHING_TO_SAVE, f"there is no text to save: reply with {SILENT} if there is nothing")
        for other in (*other_days, day):
            text = missing(text, _note(workspace, day_path(other)))
        if not text:
            return ToolAnswer({"status": "ok", "path": path, "existed": True})
        written = workspace.append(text, date=day, skip_existing=True)
    except OpenClawMemoryError as error:
        status = {QueryError: "invalid", PathNotAllowedError: "not_allowed"}.get(type(error), "failed")
        return _refused(status, str(error))
    lines = f"{written.start_line}-{written.end_line}"
    return ToolAnswer({"status": "ok", "path": path, "lines": lines, "existed": written.existed}, written)


def _checked(arguments: Mapping[str, Any], path: str) -> str:
    """The text in the arguments of a call.

    Raises:
        QueryError: it is no string, or too long.
        PathNotAllowedError: the call names another file than `path`, or something else that a model cannot choose.
    """
    others = set(arguments) - {"text"}
    if others and (others != {"path"} or arguments["path"] != path):
        raise PathNotAllowedError(f"only text can be added now, and only to {path}: send nothing but `text`")
    text = arguments.get("text")
    if not isinstance(text, str):
        raise QueryError(f"text must be a string, not {text!r:.80}: send what to remember, in Markdown")
    if len(text) > MAX_CHARS:
        raise QueryError(f"the text has {len(text):,} characters, of which {MAX_CHARS:,} are taken at once: part it")
    return text


def fit_to_write(text: str) -> str:
    """The text without recalled memory, with secrets masked as in talk."""
    return redact_talk(without_recalled(text))


def _note(workspace: Workspace, path: str) -> str:
    try:
        return workspace.read(path)
    except (NotFoundError, UndecodableError):
        return ""


def _refused(status: str, error: str) -> ToolAnswer:
    return ToolAnswer({"status": status, "error": error})
