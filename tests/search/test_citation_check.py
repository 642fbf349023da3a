"""A text is cited only from lines that hold it now."""

import json

import apsw
import pytest
from index_files import index_file

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.search.citation_check import CitationChecker

CALM = MemoryConfig(sync=SyncConfig(on_search=False))
QUESTION = "Who has the spare key?"
KEY = "- The spare key is with Mrs. Groen."


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def note(folder):
    path = folder / "MEMORY.md"
    path.write_text(f"# Long-term memory\n\n{KEY}\n- The boiler is blue.\n", encoding="utf-8")
    return path


@pytest.fixture
def memory(folder, request):
    request.getfixturevalue("note")
    with Memory.open(folder, embedder="none", config=CALM) as opened:
        opened.sync()
        yield opened


def test_a_text_that_has_moved_is_cited_where_it_is_now(memory, note):
    before = memory.search(QUESTION)
    note.write_text("A new first line.\n\n" + note.read_text(), encoding="utf-8")
    found = memory.search(QUESTION)
    assert (before[0].start_line, before.stale) == (1, False)
    assert (found[0].start_line, found[0].end_line, found.stale) == (3, before[0].end_line + 2, True)
    assert memory.get(found[0].citation).text == found[0].snippet


@pytest.mark.parametrize(
    "text", ["# Long-term memory\n", "", None, f"# Long-term memory\n\n{KEY}5\n- The boiler is blue.\n"]
)
def test_a_text_that_has_gone_is_not_shown_and_the_reason_says_so(memory, note, text):
    note.unlink() if text is None else note.write_text(text, encoding="utf-8")
    found = memory.search(QUESTION)
    assert (len(found), found.stale) == (0, True)
    assert found.reason == "1 result was left out: MEMORY.md no longer holds the text, and is indexed again"
    memory.sync()
    assert memory.search(QUESTION).reason is None or text is None


def test_a_file_whose_record_was_forged_is_read_again(memory, folder, note):
    """Whoever holds an index of ours and the notes can say in it that an old text is that of the present file."""
    note.write_text("# Long-term memory\n\n- The spare key is with nobody now.\n", encoding="utf-8")
    memory.close()
    with Memory.open(folder, embedder="none", config=CALM, index_path=folder / "other/index.sqlite") as other:
        other.sync()
    columns = "hash, size, mtime_ns, inode, checked_ns, ctime_ns"
    row = apsw.Connection(str(folder / "other/index.sqlite")).execute(f"SELECT {columns} FROM files").fetchall()[0]
    db = apsw.Connection(str(index_file(folder)))
    db.execute(f"UPDATE files SET ({columns}) = (?, ?, ?, ?, ?, ?)", row)
    db.close()
    with Memory.open(folder, embedder="none", config=CALM) as memory:
        assert len(memory.search(QUESTION)) == 0
        memory.sync()
        assert "nobody" in memory.search(QUESTION)[0].snippet


TOKEN = "ghp_" + "4rX9kQ7z" * 4
HONEST = {
    "Windows line ends": f"# Keys\r\n\r\n{KEY}\r\n- The key board is red.\r\n",
    "a secret": f"# Keys\n\nThe key of the server is {TOKEN}.\nAnna has it.\n",
    "a private key": f"# Keys\n\nThe key:\n-----BEGIN PRIVATE KEY-----\n{'A' * 64}\n-----END PRIVATE KEY-----\nAnna has the key.\n",
    "recalled text": f'# Keys\n\nThe key <recalled-memory id="{"a" * 16}" from="x">old</recalled-memory id="{"a" * 16}"> is here.\n',
    "blanks": "# Keys\n\n- The spare\tkey  is here.   \n   \n- The key is there. \n",
    "a long line": "# Keys\n\n" + "The spare key is with Mrs. Groen, as it was before. " * 60 + "\n",
    "a mark of order": "\ufeff# Keys\n\nThe spare key is here.\n",
    "front matter": "---\ntitle: Keys\n---\n\nThe spare key is here.\n",
    "many lines": "# Keys\n\n" + "\n".join(f"- The key of room {number} is here." for number in range(300)) + "\n",
    "a comment": "# Keys\n\n- The spare key is here. <!-- trigger: keys -->\n- The key is there.\n",
}


@pytest.mark.parametrize("config", [CALM, MemoryConfig.openclaw()], ids=["lines", "chunks"])
@pytest.mark.parametrize("what", HONEST)
@pytest.mark.sampled(6)
def test_what_a_note_says_is_shown_whatever_the_index_leaves_out(folder, what, config, monkeypatch):
    (folder / "MEMORY.md").write_text(HONEST[what], encoding="utf-8", newline="")
    with Memory.open(folder, embedder="none", config=config) as memory:
        memory.sync()
        for question in ("Where is the spare key?", "MEMORY.md"):
            shown = memory.search(question, min_score=0)
            with monkeypatch.context() as patch:
                patch.setattr(CitationChecker, "verify", lambda _, results: (results, set(), None))
                assert list(memory.search(question, min_score=0)) == list(shown)
            assert shown
            assert not shown.stale


def test_what_a_transcript_says_is_shown_and_what_it_does_not_say_is_not(folder):
    def say(text):
        message = {"role": "user", "content": text, "timestamp": "2026-11-21T10:00:00Z"}
        return json.dumps({"type": "message", "message": message})

    (folder / "sessions").mkdir()
    log = folder / "sessions/a.jsonl"
    lines = [say(f"Line {number} is about trains.") for number in range(40)]
    lines[20] = say(f"My token={TOKEN} opens the greenhouse.\nWater it on Monday.")
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Memory.open(folder, embedder="none", config=CALM) as memory:
        memory.sync()
        found = memory.search("What opens the greenhouse?", filter={"source": "sessions"})
        assert ("greenhouse" in found[0].snippet, found.stale) == (True, False)
        lines[20] = say("My token opens nothing at all.")
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = memory.search("What opens the greenhouse?", filter={"source": "sessions"})
        assert not any("greenhouse" in result.snippet for result in found)
