"""Scored lines to windows: contiguous, within a snippet, and never sharing a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.search.lines import Line
from openclaw_memory.search.passages import best_windows


def lines(*texts, blocks=None, path="a.md"):
    made, start = [], 0
    for at, text in enumerate(texts):
        block = blocks[at] if blocks else 0
        made.append(Line(path, "memory", at + 1, start, text, block))
        start += len(text) + 1
    return made


def windows(made, values, max_chars=700, count=6):
    return best_windows(made, np.array(values, np.float32), max_chars, count)


def spans(found):
    return [(window.start, window.end) for window in found]


def test_a_window_grows_to_what_fits():
    made = lines("aaaa", "bbbb", "cccc", "dddd")
    assert spans(windows(made, [0, 5, 0, 0], max_chars=14, count=1)) in ([(0, 2)], [(1, 3)])
    assert spans(windows(made, [0, 5, 0, 0], max_chars=4, count=1)) == [(1, 1)]


def test_the_best_line_decides_then_its_neighbours():
    made = lines("aaaa", "bbbb", "cccc", "dddd", "eeee")
    best = windows(made, [0, 3, 9, 2, 0], max_chars=9, count=1)[0]
    assert (best.start, best.end, best.best) == (1, 2, 2)
    assert best.value >= 9


def test_a_window_crosses_neither_a_heading_nor_a_gap():
    made = lines("aaaa", "bbbb", "cccc", blocks=[0, 1, 1])
    assert sorted(spans(windows(made, [5, 5, 5]))) == [(0, 0), (1, 2)]


def test_blank_lines_at_the_edges_are_left_out_and_alone_are_nothing():
    assert spans(windows(lines("", "text", "  ", ""), [9, 1, 9, 9])) == [(1, 1)]
    assert windows(lines("", " "), [9, 9]) == []
    assert windows([], []) == []


def test_a_line_that_is_longer_than_a_snippet_is_a_window_of_its_own():
    made = lines("short", "x" * 900, "short")
    assert (1, 1) in spans(windows(made, [0, 5, 0]))


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab ", max_size=30), st.integers(0, 1), st.floats(-20, 20)), min_size=1, max_size=30
    ),
    st.integers(1, 60),
    st.integers(1, 8),
)
def test_windows_share_no_line_fit_and_come_best_first(rows, max_chars, count):
    blocks = np.cumsum([step for _, step, _ in rows]).tolist()
    made = lines(*(text for text, _, _ in rows), blocks=blocks)
    found = windows(made, [value for _, _, value in rows], max_chars, count)
    assert len(found) <= count
    taken = [at for window in found for at in range(window.start, window.end + 1)]
    assert len(taken) == len(set(taken))
    for window in found:
        first, last = made[window.start], made[window.end]
        assert window.start <= window.best <= window.end
        assert first.text.strip()
        assert last.text.strip()
        assert first.block == last.block
        assert window.start == window.end or last.end_char - first.start_char <= max_chars
    values = [window.value for window in found]
    assert values == pytest.approx(sorted(values, reverse=True))
