"""Fence recalled text, which marks it as data for a model, and cut fenced text out again."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

from openclaw_memory._safe import mask_controls
from openclaw_memory.errors import InvalidInputError

NAME = "recalled-memory"
_SPACED_NAME = NAME.replace("-", " ")

# A program that stores a block as JSON, in JSON or as HTML escapes its signs, and some write names in capitals.
_LESS, _SLASH = r"(?:<|\\{1,9}u003c|&lt;)", r"\\{0,9}/"
_MORE, _QUOTE = r"(?:>|\\{1,9}u003e|&gt;)", r"(?:\\{0,9}[\"']|\\{1,9}u0022|&quot;)?"
_ID = rf"{NAME}\s+id\s*=\s*{_QUOTE}([0-9a-f]{{16}})(?![0-9a-f])"
_OPENING = f"{_LESS}{_ID}"
_EDGE = rf"{_LESS}{_SLASH}{_ID}{_QUOTE}\s*{_MORE}|{_OPENING}"
_LOOSE = rf"({_LESS}(?:{_SLASH})?){NAME}"
# OpenClaw's memory plugins put recalled text between these.
_OPENCLAW_EDGE = rf"{_LESS}({_SLASH})?relevant-memories{_MORE}"
_MARK = re.compile(r"[0-9a-f]{16}")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NOT_IN_LABEL = re.compile(r'[<>"]+')
# So many digits of the mark are in each citation inside of a fence: an older note guesses them in one of four billion.
_SHORT = 8
# Known to this process alone. Unchanged text has the same mark when it is shown again, so that a prompt cache holds.
_KEY = os.urandom(32)


def fence_text(text: str, label: str, mark: str | None = None) -> str:
    """Wrap `text` between an opening and a closing line that carry the same `mark`.

    The text cannot close its fence: a blank replaces the hyphen of the fence's name in it, also in letters that Unicode
    counts as the same (NFKC, any case, with invisible characters in between).

    Args:
        text: The recalled text.
        label: The origin of the text; shown in the opening line.
        mark: 16 hex digits that the text cannot hold; None derives them from the text and a secret of this process.

    Raises:
        InvalidInputError: `mark` is not 16 hex digits.
    """
    mark = _make_mark(label, text) if mark is None else mark
    if not _MARK.fullmatch(mark):
        raise InvalidInputError(
            f"the mark of a fence must be 16 digits of 0-9a-f, not {mark!r}: leave it out for one that no text can hold"
        )
    origin = _NOT_IN_LABEL.sub(" ", mask_controls(escape_fences(label))).strip()
    return f'<{NAME} id="{mark}" from="{origin}">\n{escape_fences(text)}\n</{NAME} id="{mark}">'


def fence_results(results: Iterable[tuple[str, str]], label: str = "memory") -> str:
    """Put texts into one fence, each below its citation: `[MEMORY.md#L3 0123abcd]`.

    The digits are the first ones of the fence's mark. No note can know these, and so no line of a text is a citation,
    whatever it looks like.

    Args:
        results: The citation and the text of each result.
        label: Their origin; shown in the opening line.
    """
    results = list(results)
    mark = _make_mark(label, *(part for result in results for part in result))
    blocks = (f"[{mask_controls(place)} {mark[:_SHORT]}]\n{text}" for place, text in results)
    return fence_text("\n\n".join(blocks), label, mark)


def _make_mark(*parts: str) -> str:
    """Return a mark for these texts, which none can hold, as it depends on every character."""
    mark = blake2b(key=_KEY, digest_size=8)
    for part in parts:
        mark.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return mark.hexdigest()


def split_fence(block: str) -> tuple[str, list[str], str]:
    """Return the opening line of a fence, the results in it, and its closing line; no results for any other text.

    Results without citations are separated by paragraphs.

    Args:
        block: A text as `fence_results` or `fence_text` returns it.
    """
    opening, *lines = block.split("\n")
    mark = re.match(_OPENING, opening, re.IGNORECASE)
    if mark is None or len(lines) < 2:
        return opening, [], ""
    body = "\n".join(lines[:-1])
    citation = rf"\[[^\n]+ {mark[1][:_SHORT]}\]\n"
    return opening, re.split(rf"\n\n(?={citation})" if re.match(citation, body) else r"\n\n", body), lines[-1]


def strip_fenced(text: str) -> str:
    """Return the text without its fenced blocks, those of OpenClaw included; their newlines stay.

    Blocks in capitals count, and escaped ones, in JSON or HTML. A block that is not closed stays: the lines below it
    may be another's.

    Args:
        text: The text.
    """
    small = text.lower()
    if NAME in small:
        text = _strip_own(text)
    return _strip_openclaw(text) if "relevant-memories" in small else text


def remove_fences(text: str) -> str:
    """Return the text fit to be written: no fenced blocks, and no open fence that could swallow later text.

    Args:
        text: The text.
    """
    return re.sub(_LOOSE, rf"\1{_SPACED_NAME}", strip_fenced(text), flags=re.IGNORECASE)


def strip_open_fence(text: str) -> str:
    """Return the text up to a fenced block that is not closed, as in a truncated message.

    Args:
        text: The text.
    """
    opening = re.search(_OPENING, text, re.IGNORECASE) if NAME in text.lower() else None
    return text[: opening.start()] if opening else text


def strip_between(text: str, opening: str, closing: str) -> str:
    """Return the text without its parts from each `opening` to the next `closing`; their newlines stay.

    An `opening` without a `closing` stays.

    Args:
        text: The text.
        opening: The beginning of a part.
        closing: The end of a part.
    """
    spans: list[tuple[int, int]] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        at = end + len(closing)
        spans.append((start, at))
    return _replace_spans(text, spans)


def _strip_own(text: str) -> str:
    ends: dict[str, int] = {}  # of the next block with a mark; from the end on, so that each is looked for once
    blocks: list[tuple[int, int]] = []
    for edge in reversed(list(re.finditer(_EDGE, text, re.IGNORECASE))):
        closing, opening = edge.groups()
        if closing:
            ends[closing.lower()] = edge.end()
        elif opening.lower() in ends:
            blocks.append((edge.start(), ends[opening.lower()]))
    return _replace_spans(text, reversed(blocks))


def _strip_openclaw(text: str) -> str:
    blocks: list[tuple[int, int]] = []
    begin = None
    for edge in re.finditer(_OPENCLAW_EDGE, text, re.IGNORECASE):
        if not edge[1]:
            begin = edge.start() if begin is None else begin
        elif begin is not None:
            blocks.append((begin, edge.end()))
            begin = None
    return _replace_spans(text, blocks)


def _replace_spans(text: str, spans: Iterable[tuple[int, int]], instead: str | None = None) -> str:
    """Return the text with `instead` for each span, by default its newlines; one that begins in another stays."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        if start >= at:
            parts += [text[at:start], "\n" * text.count("\n", start, end) if instead is None else instead]
            at = end
    return "".join((*parts, text[at:]))


def escape_fences(text: str) -> str:
    """Return the text with a blank for the hyphen of every look-alike of the fence's name.

    Args:
        text: A text that is shown next to fences, or in one.
    """
    if text.isascii():
        return re.sub(NAME, _SPACED_NAME, text, flags=re.IGNORECASE)
    # Most texts hold none, which is seen without a look at each character of ASCII.
    if not re.search(NAME, _NOT_ASCII.sub(lambda match: _fold(match[0]), text), re.IGNORECASE):
        return text
    letters = [(letter, place) for place, character in enumerate(text) for letter in _fold(character)]
    matches = re.finditer(NAME, "".join(letter for letter, _ in letters))
    spans = ((letters[match.start()][1], letters[match.end() - 1][1] + 1) for match in matches)
    return _replace_spans(text, spans, _SPACED_NAME)


def _fold(character: str) -> str:
    """Return a character as a lenient reader sees it: "" for invisible ones, "-" for every dash."""
    if character.isascii():
        return character.lower()
    kind = unicodedata.category(character)
    if kind in {"Cf", "Mn", "Me"}:
        return ""
    return "-" if kind == "Pd" or character == "\u2212" else unicodedata.normalize("NFKC", character).casefold()
