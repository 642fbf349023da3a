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


def test_blocks_below_one_heading_are_packed_together():
    text = "# Trip\n\nWe went to Rome.\n\n- hotel\n- train\n\n# Work\nDemo on Friday."

    assert texts(cut(text)) == ["# Trip\n\nWe went to Rome.\n\n- hotel\n- train", "# Work\nDemo on Friday."]


def test_a_block_that_no_longer_fits_begins_a_chunk():
    first, second = "a" * 50, "b" * 50

    assert [(c.start_line, c.end_line, c.text) for c in cut(f"{first}\n\n\n{second}\n")] == [
        (1, 1, first),
        (4, 4, second),
    ]


def test_a_block_over_the_limit_is_cut_between_lines():
    lines = [f"{letter * 30}" for letter in "abcde"]

    assert texts(cut("\n".join(lines))) == ["\n".join(lines[:2]), "\n".join(lines[2:4]), lines[4]]


def test_a_list_item_keeps_its_nested_items():
    text = "- " + "a" * 30 + "\n- " + "b" * 30 + "\n  - nested " + "c" * 20

    assert texts(cut(text)) == [text[:32], text[33:]]


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


@pytest.mark.parametrize(("overlap_lines", "repeated"), [(0, ""), (1, "bb\n"), (2, "aa\nbb\n")])
def test_a_chunk_that_goes_on_repeats_the_last_lines(overlap_lines, repeated):
    text = "x" * 40 + "\naa\nbb\n\n" + "y" * 60

    last = cut(text, overlap_lines=overlap_lines)[-1]

    assert last.text == (f"{repeated}\n" if repeated else "") + "y" * 60


def test_overlap_is_left_out_where_it_does_not_fit():
    assert texts(cut("a" * 30 + "\n" + "b" * 30 + "\n" + "c" * 60, overlap_lines=1))[-1] == "c" * 60


def test_overlap_repeats_neither_headings_nor_fence_markers():
    code = "```\n" + "b" * 60 + "\n```"

    assert texts(cut(f"# Head\n{'a' * 60}\n\n{code}\n{'c' * 40}", overlap_lines=3)) == [
        "# Head\n" + "a" * 60,
        code,
        "c" * 40,
    ]


@pytest.mark.parametrize("line", ["#hashtag", "####### seven", "    # indented code", "text # not a heading"])
def test_what_only_looks_like_a_heading_does_not_cut(line):
    assert texts(cut(f"before\n{line}\nafter")) == [f"before\n{line}\nafter"]


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
