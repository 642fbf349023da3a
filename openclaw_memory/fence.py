"""The fence around recalled text: what is shown to a model as data can be told from its talk, and is cut out again."""

from __future__ import annotations

import os
import re
import unicodedata

from openclaw_memory.errors import QueryError

NAME = "recalled-memory"

# OpenClaw's memory plugins put what they recall between these.
_OPENCLAW = ("<relevant-memories>", "</relevant-memories>")
_OPENING = re.compile(rf'<{NAME} id="([0-9a-f]{{16}})"')
_MARK = re.compile(r"[0-9a-f]{16}")
_NO_LABEL = re.compile(r'[<>"\x00-\x1f\x7f]+')


def fenced(text: str, label: str, mark: str | None = None) -> str:
    """The text between an opening and a closing line that both bear `mark`: 16 hex digits, random unless given.

    `label` says where the text is from. The text cannot close its fence: where it holds the fence's name, in letters
    that Unicode counts as the same (NFKC, any case, with invisible characters in between), a blank takes the place of
    the hyphen.

    Raises:
        QueryError: `mark` is not 16 hex digits.
    """
    mark = os.urandom(8).hex() if mark is None else mark
    if not _MARK.fullmatch(mark):
        raise QueryError(
            f"the mark of a fence must be 16 digits of 0-9a-f, not {mark!r}: leave it out for a random one"
        )
    origin = _NO_LABEL.sub(" ", _harmless(label)).strip()
    return f'<{NAME} id="{mark}" from="{origin}">\n{_harmless(text)}\n{_closing(mark)}'


def without_fenced(text: str) -> str:
    """The text without its fenced blocks, those of OpenClaw included; a block that was cut off goes to the end."""
    if NAME in text:
        text = _without_ours(text)
    return without_between(text, *_OPENCLAW)


def without_between(text: str, opening: str, closing: str) -> str:
    """The text without what stands from each `opening` to the next `closing`; one that is not closed stays."""
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join((*kept, text[at:])) if kept else text


def _without_ours(text: str) -> str:
    kept: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        kept.append(text[at : opening.start()])
        closing = _closing(opening[1])
        end = text.find(closing, opening.end())
        at = len(text) if end < 0 else end + len(closing)
    return "".join((*kept, text[at:]))


def _closing(mark: str) -> str:
    return f'</{NAME} id="{mark}">'


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
    plain = "".join(folded)
    kept: list[str] = []
    at = 0
    for match in re.finditer(NAME, plain):
        start, end = places[match.start()], places[match.end() - 1] + 1
        if start >= at:
            kept += [text[at:start], NAME.replace("-", " ")]
            at = end
    return "".join((*kept, text[at:]))


def _folded(character: str) -> str:
    """What a character looks like to a lenient reader: "" for invisible ones, "-" for every dash."""
    if character.isascii():
        return character.lower()
    kind = unicodedata.category(character)
    if kind in {"Cf", "Mn", "Me"}:
        return ""
    return "-" if kind == "Pd" or character == "\u2212" else unicodedata.normalize("NFKC", character).casefold()
