"""Which lines of Markdown belong together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.text.markdown_blocks import blocks, front_matter, heading

LINES = st.one_of(
    st.sampled_from(["", "# One", "---", "title: x", "```", "~~~sh", "- a", "  - b", "| a |", "|--|", "1. x", "text"]),
    st.text(alphabet="a #-`~|:\r", max_size=12),
)


@given(st.lists(LINES, min_size=1, max_size=30))
def test_every_line_that_is_not_blank_is_in_exactly_one_block(lines):
    covered = [line for block in blocks(lines) for line in range(block.first, block.stop)]

    assert covered == sorted(set(covered))
    assert {index for index, line in enumerate(lines) if line.strip()} <= set(covered)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("---\ntitle: x\n---\ntext", ["front 0-3", "text 3-4"]),
        ("---\ntitle: x\nnever closed", ["text 0-3"]),
        ("# a\ntext\n\ntext", ["heading 0-1", "text 1-2", "text 3-4"]),
        ("~~~\n```\n# no\n~~~~\ntext", ["fence 0-4", "text 4-5"]),
        ("````\n```\n````", ["fence 0-3"]),
        ("```inline``` code", ["text 0-1"]),
        ("- a\n  - b\n  more\n- c", ["item 0-3", "item 3-4"]),
        ("1. a\n2) b", ["item 0-1", "item 1-2"]),
        ("- a\n  ```\n  # no\n  ```\n- b", ["item 0-1", "fence 1-4", "item 4-5"]),
        ("| a |\n|--|\n| 1 |\n# h | x", ["table 0-3", "heading 3-4"]),
        ("a | b\n--|--\n1 | 2\n\nx", ["table 0-3", "text 4-5"]),
        ("| no | table |\n| here | either |", ["text 0-2"]),
        ("text\n- item", ["text 0-1", "item 1-2"]),
    ],
)
def test_lines_fall_into_blocks(text, kinds):
    assert [f"{block.kind} {block.first}-{block.stop}" for block in blocks(text.split("\n"))] == kinds


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# One", (1, "One")), ("   ### Three ##", (3, "Three")), ("###### Six\r", (6, "Six")), ("#", (1, "")),
        ("## ##", (2, "")), ("# C#", (1, "C#")), ("\ufeff# Marked", (1, "Marked")), ("#tag", None),
        ("####### seven", None), ("    # code", None),
    ],
)  # fmt: skip
def test_a_heading_has_a_level_and_a_title(line, expected):
    assert heading(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: Rome\ntags: [a, 'b']", {"title": "Rome", "tags": "a, b"}),
        ('Title: "Rome: a trip"\r', {"title": "Rome: a trip"}),
        ("tags:\n- a\n- b\n# comment\n- lost", {"tags": "a, b"}),
        ("nested:\n  inner: x", {"nested": ""}),
        ("http://x", {}),
    ],
)
def test_front_matter_gives_its_plain_keys(text, expected):
    assert front_matter(text.split("\n")) == expected
