"""Scored lines to answers: the best contiguous windows of lines that fit a snippet (pure)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from openclaw_memory.search.lines import Line

# A line counts exp(value / TEMPERATURE): the window with the best line wins, good neighbours decide between such windows.
TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `start` to `end` (inclusive, indices into the list of lines); `best` is the index of the best of them."""

    start: int
    end: int
    best: int


def best_windows(lines: Sequence[Line], values: Sequence[float], max_chars: int, count: int) -> list[Window]:
    """Up to `count` windows of at most `max_chars` characters, none sharing a line, the weightiest first.

    A window never crosses a heading or a gap. A single line longer than `max_chars` is a window of its own.
    """
    if not lines:
        return []
    peak = max(values)
    weights = [
        math.exp((value - peak) / TEMPERATURE) if line.text.strip() else 0.0
        for line, value in zip(lines, values, strict=True)
    ]
    totals = [0.0]
    for weight in weights:
        totals.append(totals[-1] + weight)
    free = [True] * len(lines)
    ends = _ends(lines, free, max_chars)
    found: list[Window] = []
    while len(found) < count:
        start = max(
            (at for at in range(len(lines)) if free[at]), key=lambda at: totals[ends[at] + 1] - totals[at], default=None
        )
        if start is None or totals[ends[start] + 1] - totals[start] <= 0:
            break
        window = _trimmed(lines, start, ends[start], values)
        found.append(window)
        free[start : ends[start] + 1] = [False] * (ends[start] + 1 - start)
        ends = _ends(lines, free, max_chars)
    return found


def _ends(lines: Sequence[Line], free: Sequence[bool], max_chars: int) -> list[int]:
    """For each line the last one that a window starting there may hold."""
    ends = [0] * len(lines)
    end = -1
    for start, line in enumerate(lines):
        end = max(end, start)
        while (
            end + 1 < len(lines)
            and free[end + 1]
            and lines[end + 1].block == line.block
            and lines[end + 1].end_char - line.start_char <= max_chars
        ):
            end += 1
        ends[start] = end
    return ends


def _trimmed(lines: Sequence[Line], start: int, end: int, values: Sequence[float]) -> Window:
    """The window without blank lines at its edges."""
    while start < end and not lines[start].text.strip():
        start += 1
    while end > start and not lines[end].text.strip():
        end -= 1
    return Window(start, end, max(range(start, end + 1), key=lambda at: values[at]))
