"""The fence around recalled text: it marks what a model is shown as data, and is cut out again."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

from openclaw_memory._safe import mask_controls
from openclaw_memory.errors import InvalidInputError

NAME = "recalled-memory"

# A program that keeps a block as JSON, in JSON or as HTML escapes its signs, and some write names in capitals.
_LESS, _SLASH = r"(?:<|\\{1,9}u003c|&lt;)", r"\\{0,9}/"
_MORE, _QUOTE = r"(?:>|\\{1,9}u003e|&gt;)", r"(?:\\{0,9}[\"']|\\{1,9}u0022|&quot;)?"
_ID = rf"{NAME}\s+id\s*=\s*{_QUOTE}([0-9a-f]{{16}})(?![0-9a-f])"
_OPENING = re.compile(f"{_LESS}{_ID}", re.IGNORECASE)
_CLOSING_OR_OPENING = re.compile(rf"{_LESS}{_SLASH}{_ID}{_QUOTE}\s*{_MORE}|{_OPENING.pattern}", re.IGNORECASE)
_LOOSE = re.compile(rf"({_LESS}(?:{_SLASH})?){NAME}", re.IGNORECASE)
# OpenClaw's memory plugins put what they recall between these.
_OPENCLAWS = re.compile(rf"{_LESS}({_SLASH})?relevant-memories{_MORE}", re.IGNORECASE)
_MARK = re.compile(r"[0-9a-f]{16}")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NO_LABEL = re.compile(r'[<>"]+')
# So many digits of the mark are in each citation inside of a fence: a note that was written before guesses them in one
# of four billion.
_SHORT = 8
# Known to this process alone. What is shown again unchanged has the same mark, so that a provider's prompt cache holds.
_KEY = os.urandom(32)


def fence_text(text: str, label: str, mark: str | None = None) -> str:
    """Wrap `text` between an opening and a closing line that carry the same `mark`.

    The text cannot close its fence: where it holds the fence's name, in letters that Unicode counts as the same (NFKC,
    any case, with invisible characters in between), a blank replaces the hyphen.

    Args:
        text: The recalled text.
        label: Where the text is from; shown in the opening line.
        mark: 16 hex digits that the text cannot hold; None derives them from the text and a secret of this process.

    Raises:
        InvalidInputError: `mark` is not 16 hex digits.
    """
    mark = _mark_of(label, text) if mark is None else mark
    if not _MARK.fullmatch(mark):
        raise InvalidInputError(
            f"the mark of a fence must be 16 digits of 0-9a-f, not {mark!r}: leave it out for one that no text can hold"
        )
    origin = _NO_LABEL.sub(" ", mask_controls(escape_fences(label))).strip()
    return f'<{NAME} id="{mark}" from="{origin}">\n{escape_fences(text)}\n</{NAME} id="{mark}">'


def fence_results(results: Iterable[tuple[str, str]], label: str = "memory", mark: str | None = None) -> str:
    """Put texts into one fence, each below its citation: `[MEMORY.md#L3 0123abcd]`.

    The digits are the first ones of the fence's mark. No note can know these, and so no line of a text is a citation,
    whatever it looks like.

    Args:
        results: The citation and the text of each result.
        label: Where they are from; shown in the opening line.
        mark: 16 hex digits that no note can hold; None derives them from the results and a secret of this process.

    Raises:
        InvalidInputError: `mark` is not 16 hex digits.
    """
    results = list(results)
    mark = _mark_of(label, *(part for result in results for part in result)) if mark is None else mark
    shown = (f"[{mask_controls(place)} {mark[:_SHORT]}]\n{text}" for place, text in results)
    return fence_text("\n\n".join(shown), label, mark)


def _mark_of(*parts: str) -> str:
    """Return a mark for these texts: none of them can hold it, as it depends on every character of them."""
    mark = blake2b(key=_KEY, digest_size=8)
    for part in parts:
        mark.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return mark.hexdigest()


def split_fence(block: str) -> tuple[str, list[str], str]:
    """Return the opening line of a fence, the results in it, and its closing line; no results for any other text.

    Results without citations are separated by paragraphs.

    Args:
        block: What `fenced_results` or `fenced` returned.
    """
    opening, *lines = block.split("\n")
    mark = _OPENING.match(opening)
    if mark is None or len(lines) < 2:
        return opening, [], ""
    body = "\n".join(lines[:-1])
    cited = rf"\[[^\n]+ {mark[1][:_SHORT]}\]\n"
    return opening, re.split(rf"\n\n(?={cited})" if re.match(cited, body) else r"\n\n", body), lines[-1]


def strip_fenced(text: str) -> str:
    """Return the text without its fenced blocks, those of OpenClaw included; their newlines stay.

    They are found in capitals too, and escaped, in JSON or HTML. A block that is not closed stays: what others write
    below it is theirs.
    """
    small = text.lower()
    if NAME in small:
        text = _without_ours(text)
    return _without_openclaws(text) if "relevant-memories" in small else text


def strip_recalled(text: str) -> str:
    """Return the text fit to be written: no fenced blocks, and no open fence that could swallow what follows."""
    return _LOOSE.sub(rf"\1{NAME.replace('-', ' ')}", strip_fenced(text))


def strip_open_fence(text: str) -> str:
    """Return the text up to a fenced block that is not closed, as in a truncated message."""
    opening = _OPENING.search(text) if NAME in text.lower() else None
    return text[: opening.start()] if opening else text


def strip_between(text: str, opening: str, closing: str) -> str:
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
            ends[closing.lower()] = edge.end()
        elif opening.lower() in ends:
            blocks.append((edge.start(), ends[opening.lower()]))
    return _without(text, reversed(blocks))


def _without_openclaws(text: str) -> str:
    blocks: list[tuple[int, int]] = []
    begin = None
    for edge in _OPENCLAWS.finditer(text):
        if not edge[1]:
            begin = edge.start() if begin is None else begin
        elif begin is not None:
            blocks.append((begin, edge.end()))
            begin = None
    return _without(text, blocks)


def _without(text: str, spans: Iterable[tuple[int, int]], instead: str | None = None) -> str:
    """Return the text with `instead` for each span, by default its newlines; one that begins in another stays."""
    kept: list[str] = []
    at = 0
    for start, end in spans:
        if start >= at:
            kept += [text[at:start], "\n" * text.count("\n", start, end) if instead is None else instead]
            at = end
    return "".join((*kept, text[at:]))


def escape_fences(text: str) -> str:
    """Return the text with a blank for the hyphen of every look-alike of the fence's name.

    Args:
        text: What is shown next to fences, or in one.
    """
    if text.isascii():
        return re.sub(NAME, NAME.replace("-", " "), text, flags=re.IGNORECASE)
    # Most texts hold none, which is seen without a look at each character of ASCII.
    if not re.search(NAME, _NOT_ASCII.sub(lambda found: _folded(found[0]), text), re.IGNORECASE):
        return text
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
