"""The heading-aware style: what stays together, where it is cut, and what a chunk says of its place."""

from __future__ import annotations

from datetime import date
from unittest.mock import patch

import pytest

from openclaw_memory.chunking import chunk, headings
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.types import Chunk


def cut(text: str, max_chars: int = 80, overlap_lines: int = 0, path: str = "memory/2023-05-08.md") -> list[Chunk]:
    with patch.object(headings, "OVERLAP_LINES", overlap_lines):
        return chunk(text, path, ChunkingConfig(max_chars=max_chars))


def texts(chunks: list[Chunk]) -> list[str]:
    return [c.text for c in chunks]


A, B, C, Y = "a" * 50, "b" * 50, "c" * 50, "y" * 60
GOES_ON = "x" * 40 + "\naa\nbb\n\n"
CODE = f"```\n{'b' * 60}\n```"
CUTS: dict[str, tuple[str, int, list[str]]] = {
    "blocks below one heading are packed together": (
        "# Trip\n\nWe went to Rome.\n\n- hotel\n- train\n\n# Work\nDemo on Friday.", 0,
        ["# Trip\n\nWe went to Rome.\n\n- hotel\n- train", "# Work\nDemo on Friday."],
    ),
    "a block that no longer fits begins a chunk": (f"{A}\n\n\n{B}\n", 0, [A, B]),
    "a block over the limit is cut between lines": (f"{A}\n{B}\n{C}", 0, [A, B, C]),
    "a list item keeps its nested items": (f"- {A}\n- {'b' * 30}\n  - nested", 0, [f"- {A}", f"- {'b' * 30}\n  - nested"]),
    "one line is repeated": (GOES_ON + Y, 1, [GOES_ON[:-2], f"bb\n\n{Y}"]),
    "two lines are repeated": (GOES_ON + Y, 2, [GOES_ON[:-2], f"aa\nbb\n\n{Y}"]),
    "what does not fit is not repeated": (f"{A}\n{'b' * 25}\n{Y}", 1, [f"{A}\n{'b' * 25}", Y]),
    "headings and marks of fences are not repeated": (f"# Head\n{A}\n\n{CODE}\n{C}", 3, [f"# Head\n{A}", CODE, C]),
    **{
        f"{line!r} is no heading": (f"before\n{line}\nafter", 0, [f"before\n{line}\nafter"])
        for line in ("#hashtag", "####### seven", "    # indented code", "text # not a heading")
    },
}  # fmt: skip


@pytest.mark.parametrize(("text", "overlap", "expected"), CUTS.values(), ids=CUTS)
def test_a_note_is_cut_into_these_chunks(text, overlap, expected):
    chunks = cut(text, overlap_lines=overlap)
    assert texts(chunks) == expected
    assert all(c.text.endswith(text.split("\n")[c.end_line - 1]) for c in chunks)


def test_a_heading_is_not_left_alone_when_its_block_is_too_large_to_join_it():
    text = "## Heading\n" + "\n".join(letter * 24 for letter in "abc")
    assert cut(text)[0].text.startswith("## Heading\naaa")


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("A first sentence that is long enough to count. " + "And then more words " * 4, "sentence that is long enough to count."),
        ("今日は東京でみんなと会って、新しい計画についてゆっくり話しました。とても楽しい一日でした。" * 3, "ゆっくり話しました。"),
        ("words " * 30, "words words"),
        ("x" * 200, "x" * 80),
    ],
    ids=["sentence", "cjk sentence", "space", "hard"],
)  # fmt: skip
def test_a_long_line_is_cut_at_a_sentence_else_at_a_space_else_hard(line, first):
    pieces = cut(f"short\n{line}")
    assert pieces[1].text.endswith(first)
    assert {(p.start_line, p.end_line) for p in pieces[1:]} == {(2, 2)}
    assert "".join(texts(pieces)[1:]).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize("sign", ["e\u0301", "👨\u200d👩\u200d👧", "👍🏽"])
def test_a_hard_cut_parts_no_combined_character(sign):
    for padding in range(len(sign)):
        pieces = texts(cut("x" * padding + sign * 60))
        assert all(piece.endswith(sign) for piece in pieces)


def test_the_first_piece_of_a_long_line_takes_its_heading_along():
    first, *rest = cut("# Diary\n" + "word " * 40)
    assert first.text.startswith("# Diary\nword")
    assert (first.start_line, first.end_line, first.context) == (1, 2, "")
    assert {(c.start_line, c.end_line, c.context) for c in rest} == {(2, 2, "Diary")}


def test_front_matter_is_a_chunk_of_its_own_and_names_the_others():
    text = "---\ntitle: 'Rome'\ntags:\n  - travel\n  - italy\n---\nWe flew."
    front, body = cut(text)
    assert (front.start_line, front.end_line, front.context) == (1, 6, "")
    assert (body.text, body.context) == ("We flew.", "Rome > travel, italy")


def test_later_parts_of_a_table_name_its_columns():
    rows = "\n".join(f"| {name} | {'x' * 20} |" for name in ("Rome", "Oslo", "Bern", "Kyiv"))
    chunks = cut(f"# Cities\n| City | Note |\n|---|---|\n{rows}")
    assert [c.context for c in chunks] == ["", "Cities > City | Note", "Cities > City | Note"]


@pytest.mark.parametrize(
    ("note_date", "context"), [(None, "Trip > Hotel"), (date(2023, 5, 8), "2023-05-08 > Trip > Hotel")]
)
def test_a_context_says_the_date_and_the_titles_above(note_date, context):
    last = chunk("# Trip\n## Hotel\n### Room ###\nsmall", "memory/x.md", ChunkingConfig(), note_date=note_date)[-1]
    assert (last.text, last.context) == ("### Room ###\nsmall", context)


def test_a_title_is_not_above_the_sections_beside_it():
    assert [c.context for c in cut("# A\n## B\nb\n## C\nc\n# D\nd")] == ["", "A", "A", ""]


def test_a_renamed_file_keeps_its_chunks():
    text = "---\ntitle: Phoenix\n---\n# Plan\nFly."
    assert cut(text, path="memory/a.md") == cut(text, path="memory/projects/phoenix.md")


def test_a_context_does_not_repeat_a_date_that_a_title_says():
    chunks = chunk(
        "# 2023-05-08\nSlept.\n## Work\nDemo.", "memory/2023-05-08.md", ChunkingConfig(), note_date=date(2023, 5, 8)
    )
    assert [c.context for c in chunks] == ["", "2023-05-08"]


def test_a_context_drops_the_outer_titles_first():
    titles = [f"{'#' * level} {letter * 70}" for level, letter in enumerate("abcde", start=1)]
    context = cut("\n".join(titles), path="MEMORY.md")[-1].context
    assert context.startswith("a" * 70)
    assert context.endswith("d" * 70)
    assert len(context) <= 200


def test_windows_line_ends_change_no_boundary():
    text = "# Trip\n\nWe went.\n\n## Work\n```\n# no\n```\nDone."
    unix, windows = cut(text), cut(text.replace("\n", "\r\n"))
    assert [(c.start_line, c.end_line, c.context) for c in unix] == [
        (c.start_line, c.end_line, c.context) for c in windows
    ]
    assert [c.text for c in unix] == [c.text.replace("\r\n", "\n") for c in windows]
