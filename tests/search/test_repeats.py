"""What transcripts and notes both say."""

import pytest

from openclaw_memory.search.lines import Line, repeated


def note(text, number=1):
    return Line("memory/a.md", "memory", number, 0, text)


def talk(*texts):
    start, lines = 0, []
    for number, text in enumerate(texts, 1):
        lines.append(Line("sessions/a.jsonl", "sessions", number, start, text))
        start += len(text) + 1
    return lines


def left(written, said):
    lines = [note(written), *talk(said)]
    return [line.text for line, is_told in zip(lines[1:], repeated(lines)[1:], strict=True) if not is_told]


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
