"""The fence around recalled text: it marks what a model is shown as data, and is cut out again."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable

from openclaw_memory.errors import InvalidInputError

NAME = "recalled-memory"

# OpenClaw's memory plugins put what they recall between these.
_OPENCLAW = ("<relevant-memories>", "</relevant-memories>")
_OPENING = re.compile(rf'<{NAME} id="([0-9a-f]{{16}})"')
_CLOSING_OR_OPENING = re.compile(rf'</{NAME} id="([0-9a-f]{{16}})">|{_OPENING.pattern}')
_LOOSE = re.compile(rf"<(/?){NAME}")
_MARK = re.compile(r"[0-9a-f]{16}")
_NO_LABEL = re.compile(r'[<>"\x00-\x1f\x7f]+')


def fenced(text: str, label: str, mark: str | None = None) -> str:
    """Wrap `text` between an opening and a closing line that carry the same `mark`.

    The text cannot close its fence: where it holds the fence's name, in letters that Unicode counts as the same (NFKC,
    any case, with invisible characters in between), a blank replaces the hyphen.

    Args:
        text: The recalled text.
        label: Where the text is from; shown in the opening line.
        mark: 16 hex digits; random where None.

    Raises:
        InvalidInputError: `mark` is not 16 hex digits.
    """
    mark = os.urandom(8).hex() if mark is None else mark
    if not _MARK.fullmatch(mark):
        raise InvalidInputError(
            f"the mark of a fence must be 16 digits of 0-9a-f, not {mark!r}: leave it out for a random one"
        )
    origin = _NO_LABEL.sub(" ", _harmless(label)).strip()
    return f'<{NAME} id="{mark}" from="{origin}">\n{_harmless(text)}\n</{NAME} id="{mark}">'


def without_fenced(text: str) -> str:
    """Return the text without its fenced blocks, those of OpenClaw included; their newlines stay.

    A block that is not closed stays: what others write below it is theirs.
    """
    if f"<{NAME}" in text:
        text = _without_ours(text)
    return without_between(text, *_OPENCLAW)


def without_recalled(text: str) -> str:
    """Return the text fit to be written: no fenced blocks, and no open fence that could swallow what follows."""
    return _LOOSE.sub(rf"<\1{NAME.replace('-', ' ')}", without_fenced(text))


def without_cut_off(text: str) -> str:
    """Return the text up to a fenced block that is not closed, as in a truncated message."""
    opening = _OPENING.search(text) if f"<{NAME}" in text else None
    return text[: opening.start()] if opening else text


def without_between(text: str, opening: str, closing: str) -> str:
    """Return the text without what is between each `opening` and the next `closing`, except for its newlines.

    An `opening` without a `closing` stays.
    """
    spans: list[tuple[int, int]] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        at = end + len(closing)
        spans.append((start, at))
    return _without(text, spans)


def _without_ours(text: str) -> str:
    ends: dict[str, int] = {}  # of the next block with a mark; from the end on, so that each is looked for once
    blocks: list[tuple[int, int]] = []
    for edge in reversed(list(_CLOSING_OR_OPENING.finditer(text))):
        closing, opening = edge.groups()
        if closing:
            ends[closing] = edge.end()
        elif opening in ends:
            blocks.append((edge.start(), ends[opening]))
    return _without(text, reversed(blocks))


def _without(text: str, spans: Iterable[tuple[int, int]], instead: str | None = None) -> str:
    """Return the text with `instead` for each span, by default its newlines; one that begins in another stays."""
    kept: list[str] = []
    at = 0
    for start, end in spans:
        if start >= at:
            kept += [text[at:start], "\n" * text.count("\n", start, end) if instead is None else instead]
            at = end
    return "".join((*kept, text[at:]))


def _harmless(text: str) -> str:
    """The text with a blank for the hyphen of every look-alike of the fence's name."""
    if text.isascii():
        return re.sub(NAME, NAME.replace("-", " "), text, flags=re.IGNORECASE)
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        letters = _folded(character)
        folded.append(letters)
        places += [place] * len(letters)
    found = re.finditer(NAME, "".join(folded))
    spans = ((places[match.start()], places[match.end() - 1] + 1) for match in found)
    return _without(text, spans, NAME.replace("-", " "))


def _folded(character: str) -> str:
    """What a character looks like to a lenient reader: "" for invisible ones, "-" for every dash."""
    if character.isascii():
        return character.lower()
    kind = unicodedata.category(character)
    if kind in {"Cf", "Mn", "Me"}:
        return ""
    return "-" if kind == "Pd" or character == "\u2212" else unicodedata.normalize("NFKC", character).casefold()
