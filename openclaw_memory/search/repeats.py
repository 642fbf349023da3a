"""What was said in a conversation and written down in a note as it was said, to be shown once (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from openclaw_memory.search.lines import Line

_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")

_MARKS = "\"'“”„*_"


def unrepeated(lines: Sequence[Line]) -> list[Line]:
    """The lines without those of transcripts whose words stand in a line of a note, be it in a list or with a label.

    The lines around one that is left out do not follow one another any more: they are of different blocks.
    """
    written = {form for line in lines if line.source == "memory" for form in _forms(line.text)}
    kept: list[Line] = []
    gaps = 0
    for line in lines:
        if line.source == "sessions" and _plain(line.said) in written:
            gaps += 1
        else:
            kept.append(line._replace(block=line.block + gaps) if gaps else line)
    return kept


def _forms(text: str) -> Iterator[str]:
    """A line of a note, and what stands behind each label in it ("10:30 Anna: "); nothing for a blank line."""
    rest = _plain(text)
    while rest:
        yield rest
        rest = rest.partition(": ")[2].strip(_MARKS)


def _plain(text: str) -> str:
    """Without list marker, emphasis and quotation marks around it; case and the width of spaces do not matter."""
    marker = _LIST_MARKER.match(text)
    words = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(words).strip(_MARKS).casefold()
