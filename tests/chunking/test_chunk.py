"""What holds for every style: order, lines, size, determinism."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory.chunking import STYLES, chunk
from openclaw_memory.chunking.sliding_window import estimate_chars
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.text.utf16 import measure_utf16

MARKDOWN = (
    *(
        "", " ", "\r", "# One", "## Two", "### Three ##", "---", "title: Rome", "```", "~~~sh", "- item", "  - inner",
        "* x",
    ),
    *("| a | b |", "|---|---|", "1. first", "数据库迁移。", "👨\u200d👩\u200d👧" * 30, "word " * 40, "One. Two! " * 15),
)  # fmt: skip
LINES = st.one_of(st.sampled_from(MARKDOWN), st.text(alphabet="ab #-`|.。é😀\u0301\r\t\u2028", max_size=200))
NOTES = st.lists(LINES, max_size=30).map("\n".join)
RULES = st.builds(
    ChunkingConfig,
    style=st.sampled_from(sorted(STYLES)),
    max_chars=st.integers(80, 300),
    tokens=st.integers(8, 60),
    overlap_tokens=st.integers(0, 80),
)
PATHS = st.sampled_from(["MEMORY.md", "memory/2023-05-08.md"])


def headings_outside_code(text: str) -> set[int]:
    """1-based lines, found by another way than the code under test: a scan for fences, then for hashes."""
    found: set[int] = set()
    fence = ""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        mark = bare[: len(bare) - len(bare.lstrip("`"))] or bare[: len(bare) - len(bare.lstrip("~"))]
        hashes = line.rstrip("\r").strip(" ").partition(" ")[0].partition("\t")[0]
        if fence:
            if len(bare) >= len(fence) and set(bare) == {fence[0]}:
                fence = ""
        elif len(mark) >= 3 and (mark[0] == "~" or "`" not in bare[len(mark) :]):
            fence = mark
        elif 0 < len(hashes) <= 6 and set(hashes) == {"#"} and not line.startswith("    "):
            found.add(number)
    return found


@given(NOTES, PATHS, RULES)
def test_chunks_hold_every_line_in_order_and_within_the_limit(text, path, rules):
    chunks = chunk(text, path, rules)
    lines = text.split("\n")
    covered = {line for c in chunks for line in range(c.start_line, c.end_line + 1)}
    assert (
        {number for number, line in enumerate(lines, start=1) if line.strip()} <= covered <= {*range(1, len(lines) + 1)}
    )
    for before, after in pairwise(chunks):
        assert after.start_line >= before.start_line
        assert after.end_line >= before.end_line
    for c in chunks:
        assert c.text.strip()
        assert text.count("\n", 0, c.start_char) == c.start_line - 1
        assert (len(c.context) <= 200, len(c.context.splitlines()) <= 1) == (True, True)
        if rules.style == "headings":
            assert len(c.text) <= rules.max_chars
        elif rules.style == "tokens":
            assert estimate_chars(c.text) <= max(32, rules.tokens * 4)
        else:  # what is repeated is not counted against what follows
            assert measure_utf16(c.text) <= 3 * max(32, rules.tokens * 4)


@given(NOTES, RULES)
def test_heading_aware_chunks_are_slices_of_the_file_that_cross_no_heading(text, rules):
    headings = set() if text.startswith("---") else headings_outside_code(text)
    for c in chunk(text, "memory/x.md", replace(rules, style="headings")):
        assert text[c.start_char :].startswith(c.text)
        assert not headings & set(range(c.start_line + 1, c.end_line + 1))


def test_a_heading_may_be_underlined_and_what_follows_text_is_none():
    text = "Boiler\n======\nserviced\n\nRouter\n---\nattic\n---\nlast\n"
    found = chunk(text, "memory/x.md", ChunkingConfig())
    assert [(c.start_line, c.end_line, c.section) for c in found] == [(1, 3, 1), (5, 9, 5)]


@pytest.mark.parametrize("style", sorted(STYLES))
@pytest.mark.parametrize("text", ["", "\n", " \n\t\n\r\n"])
def test_a_blank_file_has_no_chunks(style, text):
    assert chunk(text, "memory/x.md", ChunkingConfig(style=style)) == []  # type: ignore[arg-type]


@pytest.mark.fault(16)
@pytest.mark.parametrize("style", sorted(STYLES))
def test_only_a_line_feed_ends_a_line(style):
    text = "one\u2028still one\x0cstill one\rstill one\ntwo"
    (only,) = chunk(text, "memory/x.md", ChunkingConfig(style=style))  # type: ignore[arg-type]
    assert (only.start_line, only.end_line) == (1, 2)


def test_lines_that_repeat_themselves_do_not_pile_up():
    text = "\n".join(["x"] * 400 + ["y" * 1600] * 40)
    chunks = chunk(text, "memory/a.md", ChunkingConfig(style="lines", tokens=400, overlap_tokens=100_000))
    assert max(len(c.text) for c in chunks) <= 3 * 1600
