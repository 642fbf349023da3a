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


@pytest.mark.parametrize("embedder", ["static", None], ids=["static", "keywords"])
@pytest.mark.parametrize(
    "copies",
    [
        [f"boiler.sync-conflict-2026010{at}-101010-ABC" for at in range(1, 7)],
        [f"boiler (conflicted copy {at})" for at in range(6)],
        [f"2026-01-0{at}" for at in range(1, 7)],
    ],
    ids=["syncthing", "dropbox", "days"],
)
def test_a_text_that_several_files_have_takes_one_place(remember, copies, embedder):
    text = "The boiler pressure must stay at 1.6 bar; the engineer is Ines.\n"
    files = {f"memory/{name}.md": text for name in ["boiler", *copies]}
    others = {"memory/log.md": "Tomas checked the boiler.\n", "memory/shop.md": "A boiler valve costs 90.\n"}
    found = remember(files | others, embedder=embedder).search("boiler pressure")
    assert sum(result.snippet == text.strip() for result in found) == 1
    assert {result.path for result in found} >= {*others}


OLD, NEW = "The code of the office door is 4410", "- The office door has the code 9072.\n"


@pytest.mark.parametrize("embedder", ["static", None], ids=["static", "keywords"])
@pytest.mark.parametrize(
    ("note", "mark"),
    [
        (f"- ~~{OLD}~~\n", "~~"),
        (f"<del>{OLD}</del> (2026-05-01)\n", "<del>"),
        (f"| Door | Code |\n|---|---|\n| ~~{OLD}~~ | ~~4410~~ |\n", "~~"),
        (f"- [-] {OLD}\n", "[-]"),
        (f"- {OLD} (status: obsolete)\n", "obsolete"),
        (f"- {OLD}\n  status:: cancelled\n", "cancelled"),
        (f"---\nstatus: Superseded\n---\n# Door\n\n{OLD}.\n", "Superseded"),
        (f"# 3. Door\n\n## Status\n\nSuperseded by 5\n\n## Decision\n\n{OLD}.\n", "Superseded"),
        (f"# Ideas\n\n## Door\n\n**Status:** rejected\n\n{OLD}.\n\n## Roof\n\nIt is red.\n", "rejected"),
        (f"---\nstatus: abgelehnt\n---\n{OLD}.\n", "abgelehnt"),
    ],
)
def test_what_no_longer_holds_comes_after_what_does_and_is_marked(remember, note, mark, embedder):
    files = {"memory/a.md": note, "memory/b.md": NEW}
    first, second, *_ = remember(files, embedder=embedder).search("What is the code of the office door?")
    assert "9072" in first.snippet
    assert ("4410" in second.snippet, mark in second.snippet) == (True, True)


@pytest.mark.parametrize(
    ("later", "is_shown"),
    [("The gym day with Petra is now Thursday.", True), ("Is the gym day with Petra now Thursday?", False),
     ("Petra is now on holiday; the gym is with Tom.", False)],
)  # fmt: skip
def test_a_line_is_shown_with_the_later_one_that_replaces_it(remember, later, is_shown):
    between = "\n".join(f"- Bought thing {at} for the kitchen, in the shop at the old harbour." for at in range(50))
    note = f"# Gym\n\n- The gym day with Petra is Tuesday.\n{between}\n- {later}\n"
    found = remember({"memory/a.md": note}).search("Which day is the gym with Petra, Tuesday?")
    assert [later in result.snippet for result in found if "Tuesday" in result.snippet] == [is_shown]
