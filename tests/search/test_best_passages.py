"""Scored lines to passages: the best lines of one place, within a snippet, and never sharing a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.search.line_features import spans_of, text_of
from openclaw_memory.search.lines import Line, lines_of
from openclaw_memory.search.passages import DROP, REACH, best_passages
from openclaw_memory.types import Chunk, StoredChunk
from openclaw_memory.types.files import LEFT_OUT


def lines(*texts, path="a.md", source="memory", context="", numbers=None):
    made, start = [], 0
    for at, text in enumerate(texts):
        made.append(Line(path, source, numbers[at] if numbers else at + 1, start, text, context))
        start += len(text) + 1
    return made


def passages(made, values, max_chars=700, count=6, blocks=None):
    of_lines = np.array(blocks or [0] * len(made), np.int64)
    return best_passages(made, of_lines, np.array(values, np.float32), max_chars, count)


def picked(found):
    return [passage.picked for passage in found]


def test_a_passage_is_the_best_line_and_the_next_best_that_fit():
    made = lines("aaaa", "bbbb", "cccc", "dddd")
    assert picked(passages(made, [2, 4, 0, 3], max_chars=11, count=1)) == [(1, 3)]
    assert picked(passages(made, [2, 4, 0, 3], max_chars=4, count=2)) == [(1,), (3,)]


def test_what_is_left_out_is_marked_and_the_spans_name_what_is_shown():
    made = lines("aaaa", "bbbb", "cccc", "", "dddd", "eeee")
    shown = [made[at] for at in (0, 2, 4)]
    assert text_of(shown) == "aaaa\n…\ncccc\n\ndddd"
    assert spans_of(shown) == ((1, 1), (3, 5))


def test_a_short_line_that_is_left_out_is_no_blank_line():
    made = lines("aaaa", "no", "cccc", "xy", "", "z", "dddd")
    shown = [made[at] for at in (0, 2, 6)]
    assert text_of(shown) == "aaaa\n…\ncccc\n…\ndddd"
    assert spans_of(shown) == ((1, 1), (3, 3), (7, 7))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_blank_lines_are_shown_as_such_whatever_ends_a_line(end):
    text = end.join(["aaaa", "", "bbbb", "--", "cccc", "dddd"])
    made = lines_of([StoredChunk(1, "a.md", "memory", Chunk(1, 6, 0, text))])
    shown = [made[at] for at in (0, 2, 4, 5)]
    assert text_of(shown) == "aaaa\n\nbbbb\n…\ncccc\ndddd"
    assert spans_of(shown) == ((1, 3), (5, 6))


def test_a_line_that_looks_like_what_is_left_out_is_never_shown_as_a_line():
    made = lines("aaaa", "…", "bbbb")
    [found] = passages(made, [9, 8, 7])
    assert found.picked == (0, 2)
    shown = [made[at] for at in found.picked]
    assert text_of(shown).split(LEFT_OUT) == ["aaaa", "bbbb"]
    assert spans_of(shown) == ((1, 1), (3, 3))


def test_lines_that_are_worth_much_less_or_far_away_are_left_out():
    assert picked(passages(lines("aaaa", "bbbb"), [9, 9 - DROP - 1])) == [(0,), (1,)]
    assert picked(passages(lines("aaaa", "bbbb", numbers=[1, REACH + 2]), [9, 8])) == [(0,), (1,)]


def test_a_heading_brings_what_is_below_it():
    made = lines("before", "## Restart", "stop it", "start it", "other")
    assert picked(passages(made, [0, 20, 0, 0, 0], count=1, blocks=[0, 1, 1, 1, 2])) == [(1, 2, 3)]


def test_a_passage_holds_lines_of_one_file_and_of_one_day_of_a_transcript():
    files = [*lines("aaaa"), *lines("bbbb", path="b.md")]
    assert picked(passages(files, [5, 5])) == [(0,), (1,)]
    days = [
        line._replace(context=day)
        for day, line in zip(["2026-01-06", "2026-01-07"], lines("a", "b", source="sessions"), strict=True)
    ]
    assert picked(passages(days, [5, 5])) == [(0,), (1,)]


def test_blank_lines_are_nothing():
    assert picked(passages(lines("", "text", "  ", ""), [9, 1, 9, 9])) == [(1,)]
    assert passages(lines("", " "), [9, 9]) == []
    assert passages([], []) == []


def test_a_line_that_is_longer_than_a_snippet_is_a_passage_of_its_own():
    assert (1,) in picked(passages(lines("short", "x" * 900, "short"), [0, 5, 0]))


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab# …", max_size=30), st.integers(0, 1), st.floats(-20, 20)),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 60),
    st.integers(1, 8),
)
def test_passages_share_no_line_fit_and_come_best_first(rows, max_chars, count):
    blocks = np.cumsum([step for _, step, _ in rows]).tolist()
    made = lines(*(text for text, _, _ in rows))
    found = passages(made, [value for _, _, value in rows], max_chars, count, blocks)
    assert len(found) <= count
    taken = [at for passage in found for at in passage.picked]
    assert len(taken) == len(set(taken))
    for passage in found:
        shown = [made[at] for at in passage.picked]
        assert passage.best in passage.picked
        assert all(line.says_something for line in shown)
        assert len(shown) == 1 or len(text_of(shown)) <= max_chars
        runs = text_of(shown).split(LEFT_OUT)
        assert len(runs) == len(spans_of(shown))
        for run, (first, last) in zip(runs, spans_of(shown), strict=True):
            own = [line.text for line in made[first - 1 : last]]
            assert [text or None for text in run.split("\n")] == [text if text.strip() else None for text in own]
    values = [passage.value for passage in found]
    assert values == pytest.approx(sorted(values, reverse=True))


def test_look_alikes_of_the_best_line_do_not_take_all_places(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    names = "Abel Bram Clara Daria Edith Fabian Greta Hugo Ida Jonas".split()
    for day, name in enumerate(names, 1):
        (folder / f"2025-01-{day:02}.md").write_text(f"{name}: The gate is nice and green in the evening light.\n")
    (folder / "2025-02-01.md").write_text("Klara: My gate needs oil, says the smith.\n")
    with Memory.open(tmp_path) as memory:
        found = memory.search("Tell me about the gate", min_score=0)
    assert any("oil" in one.snippet for one in found)
