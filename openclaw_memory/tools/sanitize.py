"""A text that a model wants to have written, made fit for a note: no secrets, and nothing that was recalled."""

from __future__ import annotations

import re
from typing import NamedTuple

from openclaw_memory.text.fence import without_recalled
from openclaw_memory.text.redaction import redact

_GAP = re.compile(r"\n{3,}")


class Written(NamedTuple):
    """A text fit to be written, and whether secrets were masked in it."""

    text: str
    redacted: bool


def fit_to_write(text: str) -> Written:
    """The text without recalled memory, with secrets masked."""
    kept = without_recalled(text)
    if kept != text:
        kept = _GAP.sub("\n\n", kept).strip("\n")
    safe = redact(kept)
    return Written(safe, safe != kept)
