"""What transcripts and notes both say, and the gap that it leaves."""

import pytest

from openclaw_memory.search.line_features import text_of
from openclaw_memory.search.lines import Line, unrepeated


def note(text, number=1):
    return Line("memory/a.md", "memory", number, 0, text, 0)


def talk(*texts):
    start, lines = 0, []
    for number, text in enumerate(texts, 1):
        lines.append(Line("sessions/a.jsonl", "sessions", number, start, text, 1))
        start += len(text) + 1
    return lines


def left(written, said):
    return [line.text for block in unrepeated([[note(written)], talk(said)])[1:] for line in block]


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


def test_two_notes_and_two_transcripts_may_say_the_same():
    blocks = [[note("the boiler", 1), note("the boiler", 2)]]
    assert unrepeated(blocks) == blocks
    talks = [talk("User: the boiler", "Assistant: the boiler")]
    assert unrepeated(talks) == talks


def test_blank_lines_are_no_repetition():
    blank = talk("User: a", "", "Assistant: b")
    assert unrepeated([[note("")], blank]) == [[note("")], blank]


def test_lines_around_one_that_is_left_out_do_not_follow_one_another():
    blocks = unrepeated([[note("b")], talk("User: a", "Assistant: b", "User: c", "Assistant: d")])
    assert [text_of(block) for block in blocks] == ["b", "User: a", "User: c\nAssistant: d"]
