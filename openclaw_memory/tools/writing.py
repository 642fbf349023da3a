"""A text that a model wants to have written, made fit for a note: no secrets, and nothing that was recalled."""

from __future__ import annotations

import re
from typing import NamedTuple

from openclaw_memory.fence import NAME, without_fenced
from openclaw_memory.redaction import redact

_GAP = re.compile(r"\n{3,}")
_LOOSE_FENCE = re.compile(rf"<(/?){NAME}")


class Written(NamedTuple):
    """A text fit to be written, and whether secrets were masked in it."""

    text: str
    redacted: bool


def fit_to_write(text: str) -> Written:
    """The text without fenced blocks of recalled memory, with secrets masked.

    A fence that is open at one end cannot swallow what others write between it and another.
    """
    kept = without_fenced(text)
    if kept != text:
        kept = _GAP.sub("\n\n", kept).strip("\n")
    kept = _LOOSE_FENCE.sub(rf"<\1{NAME.replace('-', ' ')}", kept)
    safe = redact(kept)
    return Written(safe, safe != kept)
