"""OpenClaw's sliding window; its agreement with OpenClaw itself is in tests/golden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.chunking import chunk
from openclaw_memory.chunking.sliding_window import chunk_tokens, split_entries
from openclaw_memory.config.sections import ChunkingConfig

TEXT = st.text(alphabet="ab \n-#é数か\u3400ｱ😀\U00020000\r\ud83d", max_size=300)


@given(TEXT, st.integers(0, 30), st.booleans())
def test_without_overlap_the_pieces_are_the_text(text, tokens, per_entry):
    chunks = list(chunk_tokens(text, tokens, 0, per_entry=per_entry))
    assert "".join(c.text for c in chunks).replace("\n", "") == text.replace("\n", "")


@given(TEXT, st.integers(0, 30), st.integers(0, 60))
def test_no_chunk_reaches_from_one_entry_into_the_next(text, tokens, overlap):
    spans = [range(entry.start_line, entry.end_line + 1) for entry in split_entries(text)]
    for c in chunk_tokens(text, tokens, overlap, per_entry=True):
        assert any(c.start_line in span and c.end_line in span for span in spans)


@pytest.mark.parametrize(
    ("path", "expected"), [("MEMORY.md", 3), ("USER.md", 3), ("memory/MEMORY.md", 1), ("memory.md", 1)]
)
def test_only_the_curated_files_are_cut_entry_by_entry(path, expected):
    assert len(chunk("# Me\n- tea\n- no cake", path, ChunkingConfig(style="tokens"))) == expected


def test_annotations_are_not_indexed_and_an_entry_of_nothing_else_is_dropped():
    text = "- tea <!-- importance: 7 -->\n- <!-- trigger: x -->\n<!-- project: a -->"
    assert [c.text for c in chunk(text, "memory/x.md", ChunkingConfig(style="tokens"))] == ["- tea\n-\n"]
    assert chunk("<!-- project: a -->", "MEMORY.md", ChunkingConfig(style="tokens")) == []


def test_a_chunk_has_no_context():
    assert {c.context for c in chunk("# A\ntext", "memory/projects/x.md", ChunkingConfig(style="tokens"))} == {""}
