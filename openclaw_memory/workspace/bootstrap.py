"""Collect what an agent reads when a session starts: who it is, what stays true, and the notes of the last two days."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import NotFoundError, WorkspaceError
from openclaw_memory.text.redaction import redact
from openclaw_memory.workspace.journal import day_path
from openclaw_memory.workspace.paths import Place, counts, long_term_path
from openclaw_memory.workspace.safe_read import decode, read_place

SOUL = "SOUL.md"  # persona, values and boundaries: for the agent to read, but no memory, and never indexed


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """A file as it is shown: `text` is all of it, or whole lines of it within `max_chars`.

    `chars` is how long all of it is. `note` says what is not shown, why, and what to do; "" where all is.
    """

    path: str
    text: str
    chars: int
    max_chars: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The files that a session starts with, in reading order."""

    files: tuple[BootstrapFile, ...]

    @property
    def text(self) -> str:
        """All files as Markdown for a system prompt, each below its path and followed by its note; "" for no files."""
        return "\n\n".join(
            "\n\n".join(filter(None, (f"## {file.path}", file.text, file.note and f"({file.note})")))
            for file in self.files
        )


def bootstrap(root: Path, *, private: bool, max_chars: int, today: datetime.date, rules: FilesConfig) -> Bootstrap:
    """SOUL.md, MEMORY.md if the session is `private`, and the notes of yesterday and today: those that there are.

    No file is shown beyond `max_chars` characters: of a day the last lines are, of the others the first. Secrets are
    masked. A file that cannot be read is named with the reason, and does not keep the others from being read.
    """
    days = [day_path(today - datetime.timedelta(days=1)), day_path(today)]
    long_term = [long_term_path(root)] if private else []
    wanted = [SOUL, *(path for path in (*long_term, *days) if counts(rules, path))]
    files = (_file(root, path, max_chars, rules, keep_end=path in days) for path in wanted)
    return Bootstrap(tuple(file for file in files if file is not None))


def _file(root: Path, path: str, max_chars: int, rules: FilesConfig, *, keep_end: bool) -> BootstrapFile | None:
    try:
        data = read_place(Place(path, str(root), tuple(path.split("/"))), rules)
        text = redact(decode(data, path)).strip("\n")
    except NotFoundError:
        return None
    except WorkspaceError as error:
        return BootstrapFile(path, "", 0, max_chars, f"not shown: {error}")
    if len(text) <= max_chars:
        return BootstrapFile(path, text, len(text), max_chars)
    shown = _last_lines(text, max_chars) if keep_end else _first_lines(text, max_chars)
    where, remedy = (
        ("first", "search finds them") if keep_end else ("last", "move what matters less to notes in memory/")
    )
    note = f"the {where} {len(text) - len(shown):,} of {len(text):,} characters are not shown: {remedy}"
    return BootstrapFile(path, shown, len(text), max_chars, note)


def _first_lines(text: str, max_chars: int) -> str:
    """The whole lines that fit; where the first alone does not, the beginning of it."""
    stop = text.rfind("\n", 0, max_chars + 1)
    return text[: stop if stop > 0 else max_chars]


def _last_lines(text: str, max_chars: int) -> str:
    """The whole lines that fit; where the last alone does not, the end of it."""
    start = text.find("\n", len(text) - max_chars - 1)
    return text[start + 1 if start >= 0 else len(text) - max_chars :]
