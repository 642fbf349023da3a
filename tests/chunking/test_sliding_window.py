"""OpenClaw's sliding window; its agreement with OpenClaw itself is in tests/golden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.chunking import chunk
from openclaw_memory.chunking.sliding_window import chunk_tokens, entries, estimate_chars, split_utf8, strip_annotations
from openclaw_memory.config import ChunkingConfig
from openclaw_memory.text.utf16 import truncate_utf16, utf16_length

TEXT = st.text(alphabet="ab \n-#é数か\u3400ｱ😀\U00020000\r\ud83d", max_size=300)


@given(TEXT, st.integers(0, 30), st.booleans())
def test_without_overlap_the_pieces_are_the_text(text, tokens, per_entry):
    chunks = list(chunk_tokens(text, tokens, 0, per_entry=per_entry))

    assert "".join(c.text for c in chunks).replace("\n", "") == text.replace("\n", "")


@given(TEXT, st.integers(0, 30), st.integers(0, 60))
def test_a_chunk_never_outgrows_its_limit_however_large_the_overlap(text, tokens, overlap):
    assert all(estimate_chars(c.text) <= max(32, tokens * 4) for c in chunk_tokens(text, tokens, overlap))


@given(TEXT, st.integers(0, 30), st.integers(0, 60))
def test_no_chunk_reaches_from_one_entry_into_the_next(text, tokens, overlap):
    spans = [range(entry.start_line, entry.end_line + 1) for entry in entries(text)]

    for c in chunk_tokens(text, tokens, overlap, per_entry=True):
        assert any(c.start_line in span and c.end_line in span for span in spans)


@given(TEXT)
def test_entries_follow_each_other_without_a_gap(text):
    numbers = [line for entry in entries(text) for line in range(entry.start_line, entry.end_line + 1)]

    assert numbers == list(range(1, text.count("\n") + 2))


@given(TEXT, TEXT)
def test_weights_add_up(one, other):
    assert estimate_chars(one + other) == estimate_chars(one) + estimate_chars(other)
    assert estimate_chars(one) >= utf16_length(one) >= len(one)


@given(TEXT, st.integers(-3, 100))
def test_truncation_keeps_the_longest_beginning_that_fits(text, max_units):
    kept = truncate_utf16(text, max_units)

    assert text.startswith(kept)
    assert utf16_length(kept) <= max(0, max_units)
    assert kept == text or utf16_length(text[: len(kept) + 1]) > max(0, max_units)


@given(TEXT, st.integers(-1, 40))
def test_byte_pieces_join_to_the_text(text, max_bytes):
    pieces = split_utf8(text, max_bytes)

    assert "".join(pieces) == text
    if max_bytes > 0:
        assert all(len(p) == 1 or len(p.encode("utf-8", "surrogatepass")) <= max_bytes for p in pieces)


@pytest.mark.parametrize(
    ("path", "expected"), [("MEMORY.md", 3), ("USER.md", 3), ("memory/MEMORY.md", 1), ("memory.md", 1)]
)
def test_only_the_curated_files_are_cut_entry_by_entry(path, expected):
    assert len(chunk("# Me\n- tea\n- no cake", path, ChunkingConfig(style="tokens"))) == expected


def test_overlap_repeats_whole_lines_within_its_budget():
    lines = ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg"]

    # Each line costs 5 of the 32; 12 hold two of them, and 8 one.
    assert list(chunk_tokens("\n".join(lines), 8, 3))[1].text.startswith("eeee\nffff\ngggg")
    assert list(chunk_tokens("\n".join(lines), 8, 2))[1].text.startswith("ffff\ngggg")
    assert list(chunk_tokens("\n".join(lines), 8, 1))[1].text.startswith("fff\ngggg")
    # A line break costs one too: 12 hold six lines of one letter.
    assert [c.start_line for c in chunk_tokens("\n".join("abcdefghijklmnopqrstuvwxyz"), 8, 3)] == [1, 11]


def test_annotations_are_not_indexed_and_an_entry_of_nothing_else_is_dropped():
    text = "- tea <!-- importance: 7 -->\n- <!-- trigger: x -->\n<!-- project: a -->"

    assert [c.text for c in chunk(text, "memory/x.md", ChunkingConfig(style="tokens"))] == ["- tea\n-\n"]
    assert chunk("<!-- project: a -->", "MEMORY.md", ChunkingConfig(style="tokens")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <!--TRIGGER : x--> b  ", "a  b"),
        ("a  \nb <!-- project:x -->", "a\nb"),
        ("a <!-- trigger: x\n-->  ", "a <!-- trigger: x\n-->  "),
        ("<!-- trigger: a <!-- trigger: b -->", ""),
        ("<!-- triggers: a -->", "<!-- triggers: a -->"),
    ],
)
def test_annotations_are_stripped_where_they_end_on_their_line(text, expected):
    assert strip_annotations(text) == expected


def test_a_chunk_has_no_context():
    assert {c.context for c in chunk("# A\ntext", "memory/projects/x.md", ChunkingConfig(style="tokens"))} == {""}
