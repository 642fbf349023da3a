"""What transcripts and notes both say."""

import pytest

from openclaw_memory.search.line_index import LineIndex
from openclaw_memory.types import Chunk, StoredChunk


def left(written, said):
    """The lines of a transcript that stay beside a note."""
    note = StoredChunk(1, "memory/a.md", "memory", Chunk(1, 1, 0, written))
    talk = StoredChunk(2, "sessions/a.jsonl", "sessions", Chunk(1, 1, 0, said))
    table = LineIndex().read([note, talk])
    return table.get_texts(table.note_count)


SAID = "User: The spare key is with Mrs. Groen."


@pytest.mark.parametrize(
    "written",
    [
        "The spare key is with Mrs. Groen.",
        "- the spare  key is with mrs. groen.",
        "12. The spare key is with Mrs. Groen.",
        "User: The spare key is with Mrs. Groen.",
        "- **User:** The spare key is with Mrs. Groen.",
        "- 10:30 Ines: “The spare key is with Mrs. Groen.”",
    ],
)
def test_what_a_note_says_is_left_out_of_the_transcript_however_it_was_written_down(written):
    assert left(written, SAID) == []
    assert left(written, SAID.replace("User", "Assistant")) == []


@pytest.mark.parametrize(
    "written",
    [
        "The spare key is with Mrs. Groen", "The key is with Mrs. Groen.", "", "- ", "with Mrs. Groen.",
        "key: with Groen",
    ],
)  # fmt: skip
def test_what_a_note_says_otherwise_or_in_part_stays(written):
    assert left(written, SAID) == [SAID]


def test_a_dash_in_the_middle_of_a_line_begins_no_list():
    assert left("the ferry - at seven", "User: the ferry at seven") == ["User: the ferry at seven"]
    assert left("at seven", "User: the ferry - at seven") == ["User: the ferry - at seven"]
