"""Quote text from outside in a note, with its source below it (pure).

A web page, a mail or the output of a program may say anything, also to the model that reads it. In a note it is a
quotation of Markdown, line by line, with `> — source` as its last line: no part looks like the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from openclaw_memory._safe import clean_line
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.fence import escape_fences
from openclaw_memory.text.redaction import redact

EXTERNAL = "external"  # the `origin` of a document that comes from outside
MAX_SOURCE = 500  # characters: an address, not a text of its own
# Everything that any reader takes for the end of a line.
_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_QUOTED = re.compile(r" {0,3}>")
_SOURCE = re.compile(r"[ >]*>[ ]?(?:—|–|--)[ ]*(\S.*)")


def quote(text: str, source: str) -> str:
    """Return a text as a quotation with its source.

    Args:
        text: A text that neither the user nor the agent wrote.
        source: Its origin, such as an address; one line.

    Raises:
        InvalidInputError: One of them is empty, or the source is too long.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("the text to quote is empty: give at least one word")
    lines = _BREAK.split(escape_fences(text).strip())
    return "\n".join([*(f"> {line}".rstrip() for line in lines), ">", f"> — {check_source_name(source)}"])


def check_source_name(source: str) -> str:
    """Return the name of a source as one safe line, with secrets masked.

    Raises:
        InvalidInputError: It is not a text, empty or too long.
    """
    name = clean_line(" ".join(source.split())) if isinstance(source, str) else ""
    if not name.strip() or len(name) > MAX_SOURCE:
        raise InvalidInputError(f"quoted_from is {source!r:.80}, not a name or address up to {MAX_SOURCE} characters")
    return redact(escape_fences(name))


def find_source(lines: Sequence[str], start: int, end: int) -> str | None:
    """Return the source of the first quotation that lines belong to; None if they belong to none with a source."""
    at, is_quoted = max(0, start - 1), [_QUOTED.match(line) is not None for line in lines]
    while at > 0 and is_quoted[at] and is_quoted[at - 1]:
        at -= 1
    inside = False
    while at < len(lines) and (at < end or inside):
        inside = is_quoted[at]
        if inside and (source := _SOURCE.fullmatch(lines[at].rstrip())):
            return source[1]
        at += 1
    return None


def is_external(fields: Mapping[str, object]) -> bool:
    """Return whether a document comes from outside, by its front matter or its metadata."""
    metadata = fields.get("metadata")
    return EXTERNAL in (fields.get("origin"), metadata.get("origin") if isinstance(metadata, dict) else None)
