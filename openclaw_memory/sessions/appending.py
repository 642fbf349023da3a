"""What the turn of a flush may write: blocks that are new, at the end of one day's note, without secrets."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, PathNotAllowedError, QueryError, UndecodableError
from openclaw_memory.fence import without_recalled
from openclaw_memory.redaction import redact_talk
from openclaw_memory.sessions.blocks import missing
from openclaw_memory.sessions.silent import SILENT, is_silent
from openclaw_memory.types import ToolAnswer
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.journal import checked_text, day_path
from openclaw_memory.workspace.paths import NOTES_FOLDER
from openclaw_memory.workspace.writing import locked, make_folder, refused

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

    See `blocks.missing` for what is new. The answer's status is `ok` (with `path`, `existed`, and `lines` where they
    were written), `nothing` (there are no words to be saved), `invalid`, `not_allowed` or `failed`. Its artifact is the
    `Excerpt` of what was written.
    """
    path = day_path(day)
    try:
        text = redact_talk(without_recalled(_checked(arguments, path)))
        if not text.strip() or is_silent(text):
            return _refused(NOTHING_TO_SAVE, f"there is no text to save: reply with {SILENT} if there is nothing")
        with _alone(workspace, path):
            note, *others = (_note(workspace, each) for each in (day, *other_days))
            new = missing(text, *note, others)
            if not new:
                return ToolAnswer({"status": "ok", "path": path, "existed": True})
            written = workspace.append(new, date=day)
    except (OpenClawMemoryError, OSError) as error:
        is_query, is_path = isinstance(error, QueryError), isinstance(error, PathNotAllowedError)
        return _refused("invalid" if is_query else "not_allowed" if is_path else "failed", str(error))
    lines = f"{written.start_line}-{written.end_line}"
    return ToolAnswer({"status": "ok", "path": path, "lines": lines, "existed": False}, written)


def _checked(arguments: object, path: str) -> str:
    """The text in the arguments of a call.

    Raises:
        QueryError: they are no object, or it is no string of Unicode, or too long.
        PathNotAllowedError: the call names another file than `path`, or something else that a model cannot choose.
    """
    if not isinstance(arguments, Mapping):
        raise QueryError(f"the arguments must be an object with `text`, not {arguments!r:.80}")
    others = set(arguments) - {"text"}
    if others and (others != {"path"} or arguments["path"] != path):
        raise PathNotAllowedError(f"only text can be added now, and only to {path}: send nothing but `text`")
    text = arguments.get("text")
    if not isinstance(text, str):
        raise QueryError(f"text must be a string, not {text!r:.80}: send what to remember, in Markdown")
    if len(text) > MAX_CHARS:
        raise QueryError(f"the text has {len(text):,} characters, of which {MAX_CHARS:,} are taken at once: part it")
    return checked_text(text, "text")


@contextmanager
def _alone(workspace: Workspace, path: str) -> Iterator[None]:
    """Look at a note and add to it while no other flush does."""
    try:
        make_folder(workspace.root, NOTES_FOLDER)
    except OSError as error:
        raise refused(error, path) from error
    with locked(Path(workspace.root, NOTES_FOLDER, ".flush-lock"), path):
        yield


def _note(workspace: Workspace, day: datetime.date) -> tuple[str, str]:
    """The note of a day, "" where it cannot be read, and its title."""
    try:
        text = workspace.read(day_path(day))
    except (NotFoundError, UndecodableError):
        text = ""
    return text, f"# {day.isoformat()}"


def _refused(status: str, error: str) -> ToolAnswer:
    return ToolAnswer({"status": status, "error": error})
