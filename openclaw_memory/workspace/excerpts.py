"""Show lines of a note as an excerpt within a budget, with secrets masked, and hash them for edits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from msgspec.structs import replace

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.text.redaction import redact
from openclaw_memory.text.utf16 import measure_utf16, truncate_utf16
from openclaw_memory.types import Excerpt

# As OpenClaw's memory_get, asked for no more than a path.
DEFAULT_LINES = 120
DEFAULT_CHARS = 12_000

# The time in the heading of an entry, as written here and as OpenClaw writes it: `9:05`, `09:05`, `9:05 AM`.
ENTRY = "## "
_TIME = re.compile(r"## \d{1,2}:\d{2}(?: ?[AaPp][Mm])? - ")


def make_excerpt(
    path: str, text: str, start: int = 1, lines: int = DEFAULT_LINES, max_chars: int = DEFAULT_CHARS
) -> Excerpt:
    """Return at most `lines` whole lines from line `start` (1-based), within `max_chars` UTF-16 units (as OpenClaw).

    A single line over the budget is cut, and the excerpt has `cut` set. A newline at the very end starts no line. Past
    the end the excerpt is empty, and its `end_line` is `start - 1`.

    Raises:
        InvalidInputError: `start` or `lines` is not a whole number of at least 1.
    """
    check_range(start, lines)
    every = split_lines(text)
    taken: list[str] = []
    room = max_chars
    for line in every[start - 1 : start - 1 + lines]:
        room -= measure_utf16(line) + bool(taken)
        if room < 0:
            break
        taken.append(line)
    cut = not taken and start <= len(every)
    if cut:
        taken = [truncate_utf16(every[start - 1], max_chars)]
    end = start + len(taken) - 1
    next_start = end + 1 if end < len(every) and taken else None
    return Excerpt(path, "\n".join(taken), start, end, next_start, cut, hash_lines("\n".join(every[start - 1 : end])))


def check_range(start: int, lines: int) -> None:
    """Check that `start` and `lines` are whole numbers of at least 1.

    Raises:
        InvalidInputError: One is not.
    """
    for name, value in (("start", start), ("lines", lines)):
        if not isinstance(value, int) or value < 1:
            raise InvalidInputError(f"{name} must be a whole number of at least 1, not {value!r}: lines count from 1")


def show_excerpt(path: str, text: str, start: int, lines: int, policies: Policies = NONE) -> Excerpt:
    """Return an excerpt with secrets masked and as policies say.

    Raises:
        InvalidInputError: As `make_excerpt`.
    """
    safe = redact(policies.mask(text))
    excerpt = make_excerpt(path, safe, start, lines)
    if safe == text:
        return excerpt
    original = split_lines(text)[excerpt.start_line - 1 : excerpt.end_line]
    return replace(excerpt, hash=hash_lines("\n".join(original)))


def mask_lines(lines: Sequence[str], policies: Policies = NONE) -> list[str]:
    """Return the lines of a note with secrets masked, as policies say."""
    return redact(policies.mask("\n".join(lines))).split("\n") if lines else []


def make_excerpt_of_lines(
    path: str, lines: Sequence[str], first: int, count: int, *, existed: bool = False, policies: Policies = NONE
) -> Excerpt:
    """Return lines of a note as they are shown; `hash` is that of the lines in the file."""
    visible = "\n".join(mask_lines(lines, policies)[first : first + count])
    text = "\n".join(lines[first : first + count])
    return Excerpt(path, visible, first + 1, first + count, hash=hash_lines(text), existed=existed)


def hash_lines(lines: str) -> str:
    """Return the `hash` of an excerpt: hex SHA-256 of its lines, joined by newlines."""
    return hashlib.sha256(lines.replace("\0", "\ufffd").encode("utf-8", "surrogatepass")).hexdigest()


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their newlines; a newline at the very end starts no line."""
    return text.removesuffix("\n").split("\n") if text else []


def find_block(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """Return the 0-based line at which `lines` contain a block, line after line, or None.

    Times in the headings of entries and carriage returns are ignored.
    """
    block, file = [_strip_time(line) for line in block], [_strip_time(line) for line in lines]
    starts = (first for first, line in enumerate(file) if line == block[0])
    return next((first for first in starts if file[first : first + len(block)] == block), None)


def _strip_time(line: str) -> str:
    return _TIME.sub(ENTRY, line.rstrip("\r"), count=1) if line.startswith(ENTRY) else line.rstrip("\r")
