"""Scored lines to passages: the best lines of one place, within a snippet, and never sharing a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.search.line_index import LineIndex
from openclaw_memory.search.lines import find_spans, has_content, join_lines
from openclaw_memory.search.passages import PassageFinder
from openclaw_memory.search.query import parse_query
from openclaw_memory.types import Chunk, StoredChunk
from openclaw_memory.types.files import LEFT_OUT


def read(*texts, path="memory/a.md", context="", start_line=1):
    text = "\n".join(texts)
    source = "sessions" if path.startswith("sessions/") else "memory"
    chunk = Chunk(start_line, start_line + len(texts) - 1, 1000 * start_line, text, context)
    return StoredChunk(start_line, path, source, chunk, start_line)


def find(chunks, values, max_chars=700, count=6, blocks=None):
    table = LineIndex().read(chunks)
    if blocks is not None:
        table.blocks[:] = blocks
    finder = PassageFinder(table, parse_query("x"), max_chars, max_chars, lambda _path: None)
    return table, finder.find(np.array(values, np.float32), count)


@pytest.mark.parametrize(
    "chunks",
    [
        [read("aaaa"), read("bbbb", path="memory/b.md")],
        [
            read("a", path="sessions/a.jsonl", context="2026-01-06"),
            read("b", path="sessions/a.jsonl", context="2026-01-07", start_line=2),
        ],
    ],
)
def test_a_passage_holds_lines_of_one_file_and_of_one_day_of_a_transcript(chunks):
    assert [passage.lines for passage in find(chunks, [5, 5])[1]] == [(0,), (1,)]


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
    blocks = np.cumsum([step for _, step, _ in rows])
    texts = [text for text, _, _ in rows]
    table, found = find([read(*texts)], [value for _, _, value in rows], max(40, max_chars), count, blocks)
    assert len(found) <= count
    taken = [at for passage in found for at in passage.lines]
    assert len(taken) == len(set(taken))
    for passage in found:
        shown = [table.get_line(at) for at in passage.lines]
        assert passage.best in passage.lines
        assert all(has_content(line.text) for line in shown)
        assert len(shown) == 1 or len(join_lines(shown)) <= max(40, max_chars)
        runs = join_lines(shown).split(LEFT_OUT)
        assert len(runs) == len(find_spans(shown))
        for run, (first, last) in zip(runs, find_spans(shown), strict=True):
            own = texts[first - 1 : last]
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


ROWS = [f"| Unit{at:02} | {'red' if at % 2 else 'blue'} | {300 + at} |" for at in range(60)]
TABLE = ["| Depot | Badge colour | Rent per month |", "|---|---|---|", *ROWS]
CODE = ["set -e", "make build", "", "make deploy-zeppelin", "echo done"]


@pytest.mark.parametrize("embedder", ["static", None], ids=["static", "keywords"])
@pytest.mark.parametrize(
    ("lines", "question", "whole"),
    [
        (TABLE, "rent per month of Unit41", [*TABLE[:2], ROWS[41]]),
        ([f"> {row}" for row in TABLE], "badge colour of Unit33", [f"> {row}" for row in [*TABLE[:2], ROWS[33]]]),
        ([row.strip("| ") for row in TABLE], "Unit07 rent", [row.strip("| ") for row in [*TABLE[:2], ROWS[7]]]),
        (["```sh", *CODE, "```"], "deploy zeppelin", ["```sh", *CODE, "```"]),
        (["~~~", *CODE, "~~~", "", "Then wait."], "deploy zeppelin", ["~~~", *CODE, "~~~"]),
        ([f"    {line}" if line else "" for line in CODE], "deploy zeppelin", [f"    {line}" for line in CODE if line]),
        (["- Start:", "", "  ```", *CODE, "  ```"], "deploy zeppelin", ["- Start:", "  ```", *CODE, "  ```"]),
        (["- Boat", "  - Sails", "    - washed by Geertje"], "who washed", ["- Boat", "  - Sails"]),
        (["- Boat", "\t- Sails", "\t\t- washed by Geertje"], "who washed", ["- Boat", "\t- Sails"]),
        (["1. The mast is down.", "", "   Its key is with Geertje."], "Geertje's key", ["1. The mast is down."]),
    ],
    ids=["table", "quoted", "bare", "fence", "tildes", "indented", "in a list", "nested", "tabs", "continued"],
)
def test_what_is_not_understood_alone_is_shown_as_a_whole(tmp_path, lines, question, whole, embedder):
    text = "\n".join(["# A title", "", "Some words before.", "", *lines, ""])
    (tmp_path / "MEMORY.md").write_text(text, encoding="utf-8")
    with Memory.open(tmp_path, embedder=embedder) as memory:
        memory.sync()
        best = memory.search(question)[0]
    assert [line for line in whole if line not in best.snippet.split("\n")] == []
    assert len(best.spans) <= 3
    assert len(best.snippet) <= 700


def test_a_long_line_is_cut_at_the_sentences_that_answer(tmp_path):
    talk = " ".join(f"The board spoke of point {at} for long." for at in range(60))
    (tmp_path / "MEMORY.md").write_text(f"{talk} The walrus gets a pool in May. {talk}\n", encoding="utf-8")
    with Memory.open(tmp_path) as memory:
        memory.sync()
        snippet = memory.search("walrus pool")[0].snippet
    assert "The walrus gets a pool in May." in snippet
    assert snippet.startswith("The ")
    assert snippet.endswith(".")


@pytest.mark.parametrize(
    "line",
    ["![board](data:image/png;base64,DATA)", '<img src="data:image/jpeg;base64,DATA">', '{"icon": "data:image\\/png;base64,DATA"}',
     "a { background: url(data:font/woff2;charset=utf-8;base64,DATA) }", "[1]: <data:image/png;base64,DATA>",
     '<svg viewBox="0 0 9 9"><path fill="red" d="DATA"/></svg>'],
    ids=["markdown", "html", "json", "css", "reference", "svg"],
)  # fmt: skip
def test_the_data_of_an_image_is_neither_indexed_nor_shown(tmp_path, line):
    text = f"# Board\n\n{line.replace('DATA', 'QUJD' * 20_000)}\n\nThe whiteboard shows the marten.\n"
    (tmp_path / "MEMORY.md").write_text(text, encoding="utf-8")
    with Memory.open(tmp_path) as memory:
        memory.sync()
        assert memory.status().chunks == 1
        best = memory.search("whiteboard")[0]
    assert (best.end_line, best.snippet.split("\n")[2]) == (5, line.replace("DATA", "…"))
