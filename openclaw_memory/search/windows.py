"""Scored lines to answers: the best contiguous windows of lines that fit a snippet (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.search.lines import Line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# A line counts exp(value / TEMPERATURE): the best line decides, then its neighbours.
TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `start` to `end` (inclusive, indices into the list of lines).

    `best` is the index of the best line; `value` is log(sum(exp(value of each line))), at least the best line's.
    """

    start: int
    end: int
    best: int
    value: float

    def moved(self, by: int) -> Window:
        """The window in a list that has so many lines more in front."""
        return replace(self, start=self.start + by, end=self.end + by, best=self.best + by) if by else self


def best_windows(lines: Sequence[Line], values: Floats, max_chars: int, count: int) -> list[Window]:
    """Up to `count` windows of at most `max_chars` characters, none sharing a line, the weightiest first.

    A window never crosses a heading or a gap. A single line longer than `max_chars` is a window of its own.
    """
    if not lines:
        return []
    filled = np.array([line.says_something for line in lines])
    peak = values.max()
    weights = np.where(filled, np.exp((values - peak) / TEMPERATURE), 0.0)
    totals = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    starts, ends = np.arange(len(lines)), _ends(lines, max_chars)
    free = np.ones(len(lines), bool)
    found: list[Window] = []
    while len(found) < count:
        sums = np.where(free, totals[ends + 1] - totals[starts], 0.0)
        start = int(sums.argmax())
        if sums[start] <= 0:
            break
        end = int(ends[start])
        found.append(_trimmed(filled, values, start, end, float(peak + TEMPERATURE * np.log(sums[start]))))
        free[start : end + 1] = False
        ends[(starts < start) & (ends >= start)] = start - 1
    return found


def _ends(lines: Sequence[Line], max_chars: int) -> NDArray[np.intp]:
    """For each line the last one that a window starting there may hold."""
    blocks = np.array([line.block for line in lines], np.int64)
    first = np.array([line.start_char for line in lines], np.int64)
    length = np.array([len(line.text) for line in lines], np.int64)
    # Blocks are numbered in the order of the lines: with them as high digits, places in all files sort as one.
    base = blocks * (int((first + length).max()) + max_chars + 2)
    ends = np.searchsorted(base + first + length, base + first + max_chars, side="right") - 1
    return np.maximum(ends, np.arange(len(lines)))


def _trimmed(filled: NDArray[np.bool_], values: Floats, start: int, end: int, value: float) -> Window:
    """The window without lines that say nothing at its edges."""
    kept = start + np.flatnonzero(filled[start : end + 1])
    return Window(int(kept[0]), int(kept[-1]), int(kept[values[kept].argmax()]), value)
