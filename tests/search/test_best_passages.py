"""Scored lines to passages: the best lines of one place, within a snippet, and never sharing a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.search.line_features import spans_of, text_of
from openclaw_memory.search.lines import Line
from openclaw_memory.search.passages import best_passages
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
