"""Sliding-window chunks of about `tokens` tokens, as OpenClaw makes them: now (style "tokens"), or in 2026.2 ("lines").

They follow OpenClaw 2026.9.6 and 2026.2.19, whose lengths are UTF-16 code units, as JavaScript counts them. A long line
is cut in pieces, and pieces of one chunk are joined by line feeds: such a text is not a slice of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from openclaw_memory._system import read_lines
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.text.utf16 import measure_utf16, truncate_utf16
from openclaw_memory.types import Chunk
from openclaw_memory.types.codec import get_plain_name

CHARS_PER_TOKEN = 4
MIN_CHARS = 32

# Files that a person curates: one entry, one thought. OpenClaw knows them by exactly these paths.
CURATED_PATHS = frozenset({"MEMORY.md", "USER.md"})

# What a character weighs beyond its UTF-16 length, so that weight / 4 estimates tokens also for CJK text.
_ROWS = map(str.split, read_lines(__file__, "token_weights.txt"))
_EXTRA_WEIGHTS = [(int(extra), characters) for extra, characters in _ROWS]

# What JavaScript calls white space; Python's \s has a few more and lacks U+FEFF.
_JS_SPACE = r"[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
_CURATED_HEADING = re.compile(rf"#{{1,6}}(?:{_JS_SPACE}|\Z)")
_ANNOTATION = re.compile(
    rf"<!--{_JS_SPACE}*(?:trigger|importance|project){_JS_SPACE}*:[^\r\n]*?-->", re.IGNORECASE | re.ASCII
)
_TRAILING_BLANKS = re.compile(r"[ \t]+(?=[\r\n\u2028\u2029]|\Z)")


class Entry(NamedTuple):
    """A curated entry: its lines, both included, and whether it is a `- ` item or a section's own text."""

    start_line: int
    end_line: int
    is_item: bool


class _Piece(NamedTuple):
    """A line, or a part of a long one: its number, its offset in the file, and its weight."""

    line: int
    start_char: int
    text: str
    weight: int


def chunk_sliding_window(text: str, path: str, rules: ChunkingConfig, _note_date: date | None) -> Iterator[Chunk]:
    """Yield chunks as OpenClaw makes them: curated files entry by entry, annotations removed, without context."""
    chunks = chunk_tokens(text, rules.tokens, rules.overlap_tokens, per_entry=get_plain_name(path) in CURATED_PATHS)
    return (Chunk(c.start_line, c.end_line, c.start_char, strip_annotations(c.text)) for c in chunks)


def chunk_line_window(text: str, _path: str, rules: ChunkingConfig, _note_date: date | None) -> Iterator[Chunk]:
    """Yield chunks as OpenClaw 2026.2 made them: every file as a whole, and annotations as they are."""
    return chunk_lines(text, rules.tokens, rules.overlap_tokens)


def chunk_tokens(text: str, tokens: int, overlap: int, *, per_entry: bool = False) -> Iterator[Chunk]:
    """Yield chunks that weigh at most max(32, 4 * tokens).

    Blank chunks are kept, and an empty text is one empty chunk.

    Args:
        text: The text.
        tokens: The size of a chunk.
        overlap: How many tokens of the previous chunk each repeats, at most.
        per_entry: Whether every entry begins a chunk, without overlap between entries.
    """
    max_chars, overlap_chars = _measure_sizes(tokens, overlap)

    def keep_chars(window: list[_Piece], room: int) -> list[_Piece]:
        # Carried text and the piece that follows share one budget, so no window outgrows max_chars.
        return _keep_tail(window, min(overlap_chars, room))

    lines = text.split("\n")
    spans = split_entries(text) if per_entry else [Entry(1, len(lines), False)]
    offset = 0
    for span in spans:
        own_lines = lines[span.start_line - 1 : span.end_line]
        pieces = _split_pieces(own_lines, span.start_line, offset, max_chars, estimate_chars)
        yield from map(_join_pieces, _split_windows(pieces, max_chars, keep_chars))
        offset += sum(map(len, own_lines)) + len(own_lines)


def chunk_lines(text: str, tokens: int, overlap: int) -> Iterator[Chunk]:
    """Yield chunks that repeat whole lines of the previous one, until these have the overlap or more.

    All characters weigh the same. A chunk may hold up to three times max(32, 4 * tokens) UTF-16 units, since what it
    repeats is not counted against what follows. Blank chunks are kept, and an empty text is one empty chunk.

    Args:
        text: The text.
        tokens: The size that completes a chunk.
        overlap: How many tokens of the previous chunk each repeats at least, in whole lines; no more than `tokens`.
    """
    max_chars, overlap_chars = _measure_sizes(tokens, overlap)
    least = min(overlap_chars, max_chars)  # with more, each chunk would repeat all before it, up to the whole file
    pieces = _split_pieces(text.split("\n"), 1, 0, max_chars, measure_utf16)
    return map(_join_pieces, _split_windows(pieces, max_chars, lambda window, _room: _keep_lines(window, least)))


def _measure_sizes(tokens: int, overlap: int) -> tuple[int, int]:
    return max(MIN_CHARS, tokens * CHARS_PER_TOKEN), max(0, overlap * CHARS_PER_TOKEN)


def split_entries(text: str) -> list[Entry]:
    """Return the entries of a curated file: each line that begins with "- ", and each heading, begins one."""
    lines = text.split("\n")
    starts = [0, *(index for index, line in enumerate(lines) if index and _is_entry(line))]
    return [
        Entry(start + 1, end, lines[start].startswith("- "))
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def estimate_chars(text: str) -> int:
    """Return the UTF-16 length of a text, and more for CJK; a quarter estimates its tokens."""
    if text.isascii():
        return len(text)
    extra = sum(weight * len(run) for weight, pattern in _EXTRA_WEIGHTS for run in re.findall(pattern, text))
    return measure_utf16(text) + extra


def split_utf8(text: str, max_bytes: int) -> list[str]:
    """Return pieces of at most `max_bytes` UTF-8 bytes that joined are the text, which stays whole if max_bytes <= 0.

    A single character longer than the limit is a piece of its own.
    """
    if max_bytes <= 0 or len(text.encode("utf-8", "surrogatepass")) <= max_bytes:
        return [text]
    pieces: list[str] = []
    start, size = 0, 0
    for index, character in enumerate(text):
        width = len(character.encode("utf-8", "surrogatepass"))
        if size + width > max_bytes and index > start:
            pieces.append(text[start:index])
            start, size = index, 0
        size += width
    return [*pieces, text[start:]]


def strip_annotations(text: str) -> str:
    """Return the text without `<!-- trigger: ... -->`, `importance` and `project` comments that end on their own line.

    If one is removed, trailing blanks of all lines are too; otherwise the text is returned unchanged.
    """
    stripped, count = _ANNOTATION.subn("", text)
    return _TRAILING_BLANKS.sub("", stripped) if count else text


def _is_entry(line: str) -> bool:
    return line.startswith("- ") or _CURATED_HEADING.match(line) is not None


def _split_pieces(
    lines: Iterable[str], number: int, offset: int, max_chars: int, weigh: Callable[[str], int]
) -> Iterator[_Piece]:
    """Yield the lines as pieces that weigh at most `max_chars`, counted from line `number` at `offset`."""
    for line in lines:
        start = 0
        for part in _split_parts(line, max_chars, weigh):
            yield _Piece(number, offset + start, part, weigh(part))
            start += len(part)
        number += 1
        offset += len(line) + 1


def _split_parts(line: str, max_chars: int, weigh: Callable[[str], int]) -> Iterator[str]:
    """Yield parts of at most `max_chars` UTF-16 units; those that weigh more are cut again, by weight."""
    start = 0
    while start < len(line) or start == 0:
        part = truncate_utf16(line[start : start + max_chars], max_chars)
        if weigh(part) <= max_chars:
            yield part
        else:
            yield from _split_by_weight(part, max_chars)
        start += len(part) or 1


def _split_by_weight(text: str, max_chars: int) -> Iterator[str]:
    start, weight = 0, 0
    for index, character in enumerate(text):
        own = _weigh(character)
        if weight + own > max_chars:
            yield text[start:index]
            start, weight = index, 0
        weight += own
    yield text[start:]


@lru_cache(maxsize=4096)
def _weigh(character: str) -> int:
    return estimate_chars(character)


def _split_windows(
    pieces: Iterable[_Piece], max_chars: int, keep_chars: Callable[[list[_Piece], int], list[_Piece]]
) -> Iterator[list[_Piece]]:
    """Yield windows, filled greedily; each piece costs its weight and one for the line break.

    `carried` returns what a window leaves to the next one, given the room that its first own piece leaves.
    """
    window: list[_Piece] = []
    size = 0
    for piece in pieces:
        cost = piece.weight + 1
        if window and size + cost > max_chars:
            yield window
            window = keep_chars(window, max_chars - cost)
            size = sum(carried_pieces.weight + 1 for carried_pieces in window)
        window.append(piece)
        size += cost
    if window:
        yield window


def _keep_tail(window: list[_Piece], budget: int) -> list[_Piece]:
    """Return the last pieces that cost no more than `budget`, or the end of the last one if even that is too much."""
    first = len(window)
    while first > 0 and window[first - 1].weight + 1 <= budget:
        first -= 1
        budget -= window[first].weight + 1
    if first < len(window):
        return window[first:]
    last = window[-1]
    tail = _take_tail(last.text, budget - 1)
    offset = last.start_char + len(last.text) - len(tail)
    return [_Piece(last.line, offset, tail, estimate_chars(tail))] if tail else []


def _keep_lines(window: list[_Piece], overlap: int) -> list[_Piece]:
    """Return the last pieces that together cost `overlap` or more."""
    first, cost = len(window), 0
    while first > 0 and cost < overlap:
        first -= 1
        cost += window[first].weight + 1
    return window[first:]


def _take_tail(text: str, budget: int) -> str:
    """Return the longest end of the text that weighs at most `budget`."""
    start = len(text)
    while start > 0 and (budget := budget - _weigh(text[start - 1])) >= 0:
        start -= 1
    return text[start:]


def _join_pieces(window: list[_Piece]) -> Chunk:
    first, last = window[0], window[-1]
    return Chunk(first.line, last.line, first.start_char, "\n".join(piece.text for piece in window))
