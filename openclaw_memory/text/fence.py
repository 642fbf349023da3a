"""Fence recalled text, which marks it as data for a model, and cut fenced text out again."""

from __future__ import annotations

import os
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

from openclaw_memory._safe import mask_controls
from openclaw_memory._system import read_lines
from openclaw_memory.errors import InvalidInputError

NAME = "recalled-memory"
_SPACED_NAME = NAME.replace("-", " ")

# As a lenient reader sees them: escapes are read, and case, invisible characters and the kinds of signs do not count.
_ID = rf"{NAME}[\s+]+id\s*=\s*[\"']?([0-9a-f]{{16}})(?![0-9a-f])"
_OPENING = f"<{_ID}"
# OpenClaw's memory plugins put recalled text between tags without a mark.
_EDGE = rf"</{_ID}[\"']?\s*>|{_OPENING}|<(/?)relevant-memories>"
_LOOSE = rf"(?<=<){NAME}|(?<=</){NAME}"
# A sign as HTML, JSON, Markdown or an address escapes it, also several times.
_ESCAPE = re.compile(
    r"(?:&|\\+u0026)(?:amp;)*(?P<entity>#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,8}(?=;));?|(?:%(?:25)*[\da-f]{2})+"
    r"|\\+(?:(?:u\{?|x)(?P<code>(?<=x)[\da-f]{2}|(?<=u)[\da-f]{4}|(?<=\{)[\da-f]{1,5}(?=\}))\}?)?",
    re.IGNORECASE,
)
_DISGUISE = re.compile(rf"{_ESCAPE.pattern}|[^\n\t\x20-\x7e]", re.IGNORECASE)
_TWINS = str.maketrans(*read_lines(__file__, "look_alikes.txt"))
_MARK = re.compile(r"[0-9a-f]{16}")
_NOT_IN_LABEL = re.compile(r'[<>"＜＞＂]+')
# So many digits of the mark are in each citation inside of a fence: an older note guesses them in one of four billion.
_SHORT = 8
# Known to this process alone. Unchanged text has the same mark when it is shown again, so that a prompt cache holds.
_KEY = os.urandom(32)


def fence_text(text: str, label: str, mark: str | None = None) -> str:
    """Wrap `text` between an opening and a closing line that carry the same `mark`.

    The text cannot close its fence: a blank replaces the hyphen of the fence's name in it, also in letters that Unicode
    counts as the same (NFKC, any case) or that look so, escaped, and with invisible characters in between.

    Args:
        text: The recalled text.
        label: The origin of the text; shown in the opening line.
        mark: 16 hex digits that the text cannot hold; None derives them from the text and a secret of this process.

    Raises:
        InvalidInputError: `mark` is not 16 hex digits.
    """
    mark = _make_mark(label, text) if mark is None else mark
    if not _MARK.fullmatch(mark):
        raise InvalidInputError(f"the mark of a fence must be 16 digits of 0-9a-f, not {mark!r}: leave it out")
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
    whole = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(whole.encode("utf-8", "surrogatepass"), key=_KEY, digest_size=8).hexdigest()


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

    Blocks in capitals count, and escaped ones, in JSON, HTML or an address. A block that is not closed stays: the lines
    below it may be another's.
    """
    ends: dict[str, int] = {}  # of the next block with a mark; from the end on, so that each is looked for once
    blocks: list[tuple[int, int]] = []
    for edge, (start, end) in reversed(list(_find(_EDGE, text, "recalled", "relevant"))):
        closing, opening, slash = edge.groups(default="")
        if closing or slash:
            ends[closing] = end
        elif opening in ends:
            blocks.append((start, ends[opening]))
    return replace_spans(text, reversed(blocks))


def remove_fences(text: str) -> str:
    """Return the text fit to be written: no fenced blocks, and no open fence that could swallow later text."""
    text = strip_fenced(text)
    return replace_spans(text, (span for _, span in _find(_LOOSE, text, "recalled")), lambda _: _SPACED_NAME)


def strip_open_fence(text: str) -> str:
    """Return the text up to a fenced block that is not closed, as in a truncated message."""
    return text[: next((start for _, (start, _) in _find(_OPENING, text, "recalled")), None)]


def strip_between(text: str, opening: str, closing: str) -> str:
    """Return the text without its parts from each `opening` to the next `closing`; their newlines stay.

    An `opening` without a `closing` stays.
    """
    spans, at = list[tuple[int, int]](), 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        at = end + len(closing)
        spans.append((start, at))
    return replace_spans(text, spans)


def replace_spans(
    text: str, spans: Iterable[tuple[int, int]], make: Callable[[str], str] = lambda part: "\n" * part.count("\n")
) -> str:
    """Return the text with the spans replaced, by default by their newlines; one that begins in another stays.

    Args:
        text: The text.
        spans: Where each begins and ends.
        make: Returns the replacement of a part.
    """
    parts, at = list[str](), 0
    for start, end in spans:
        if start >= at:
            parts += [text[at:start], make(text[start:end])]
            at = end
    return "".join((*parts, text[at:])) if parts else text


def escape_fences(text: str) -> str:
    """Return the text with a blank for the hyphen of every look-alike of the fence's name.

    Args:
        text: A text that is shown next to fences, or in one.
    """
    return replace_spans(text, (span for _, span in _find(NAME, text, "")), lambda _: _SPACED_NAME)


def _find(pattern: str, text: str, *words: str) -> Iterator[tuple[re.Match[str], tuple[int, int]]]:
    """Find a pattern in a text as a lenient reader sees it, and where that is in the text.

    Args:
        pattern: The pattern.
        text: The text.
        words: Without any of these, in letters of any width, a text is not read: most have none.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).encode("ascii", "ignore").decode()
    small = plain.lower()
    matches = list(re.finditer(pattern, _see(text))) if any(word in small for word in words) else []
    places, at = array("L"), 0
    for disguise in _DISGUISE.finditer(text) if matches else ():
        places.extend(range(at, disguise.start()))
        places.extend([disguise.start()] * len(_see(disguise[0])))
        at = disguise.end()
    places.extend(range(at, len(text) + 1) if matches else ())
    return ((match, (places[match.start()], places[match.end()])) for match in matches)


def _see(text: str) -> str:
    """Return a text as a lenient reader sees it: in small letters, without escapes and invisible characters."""
    if any(sign in text for sign in "&%\\"):
        text = _ESCAPE.sub(_unescape, text)
    return text.translate({ord(sign): _fold(sign) for sign in {*text}})


def _unescape(escape: re.Match[str]) -> str:
    from html import unescape
    from urllib.parse import unquote

    entity, code = escape["entity"], escape["code"]
    if entity or code:
        return unescape(f"&{entity};" if entity else f"&#x{code};")
    return unquote(re.sub("(?i)(?<=%)(?:25)+(?=[0-9a-f]{2})", "", escape[0])).lstrip("\\")


@lru_cache(maxsize=4096)
def _fold(sign: str) -> str:
    """Return a character as a lenient reader sees it: "" for invisible ones, "-" for every dash."""
    kind = unicodedata.category(sign)
    if kind in {"Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp"} or sign in "\u115f\u1160\u2800\u3164\uffa0\ufffd":
        return sign if sign in "\n\t" else ""
    return "-" if kind == "Pd" else unicodedata.normalize("NFKC", sign).casefold().translate(_TWINS)
