"""Encrypted transcripts and snapshots: written, read, searched and gone on from as others are."""

import json

import pytest
from encrypted import KEY, OTHER, holding, with_settings
from openclaw_memory_encryption import age

from openclaw_memory import Memory
from openclaw_memory.errors import SealedFileError

ENCRYPTED = with_settings(enabled=True, transcripts=True, snapshots=True)
pytestmark = pytest.mark.usefixtures("with_key")
PATH = "sessions/s1.jsonl.age"
TEXTS = {"user": "The marmalade is in the cellar.", "assistant": "Noted: the cellar."}


@pytest.fixture
def memory(folder):
    with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
        yield memory


def talk(memory):
    log = memory.sessions.log("s1")
    for role, text in TEXTS.items():
        log.append(role, text)
    return log


def test_a_transcript_is_encrypted_where_the_settings_say_so(memory, folder):
    log = talk(memory)
    assert log.path == PATH
    assert [one["content"] for one in log.read_messages()] == [*TEXTS.values()]
    lines = age.unseal((folder / PATH).read_bytes(), [KEY], PATH).split(b"\n")
    assert [json.loads(line)["type"] for line in lines[:-1]] == ["session", "message", "message"]
    assert log.size == sum(map(len, lines)) + len(lines) - 1
    assert [entry["type"] for entry in log.read_entries(log.size)] == []
    assert not (folder / "sessions" / "s1.jsonl").exists()


def test_it_is_found_cited_and_followed_as_it_grows(memory, folder):
    log = talk(memory)
    memory.sync()
    assert memory.search("marmalade")[0].citation.startswith(f"{PATH}#L")
    assert "cellar" in memory.get(f"{PATH}#L2").text
    log.append("user", "The quince jam is in the attic.")
    memory.sync()
    assert memory.search("quince")[0].path == PATH
    assert memory.search("marmalade")
    for words in (b"marmalade", b"quince"):
        assert holding(folder, words) == []


def test_an_entry_is_added_once(memory):
    log = talk(memory)
    entry = {"type": "message", "id": "e1", "message": {"role": "user", "content": "once"}}
    assert log.append_entries([entry], once=True) == ["e1"]
    assert log.append_entries([entry], once=True) == []
    assert [one["content"] for one in log.read_messages()][-1] == "once"


def test_a_transcript_that_was_begun_in_the_open_stays_there(folder):
    with Memory.open(folder, embedder=None) as memory:
        talk(memory)
    with Memory.open(folder, embedder=None, config=ENCRYPTED, index_path=folder / "other.sqlite") as memory:
        memory.sessions.log("s1").append("user", "more")
        assert memory.sessions.log("s1").path == "sessions/s1.jsonl"
    assert sorted(file.name for file in (folder / "sessions").glob("*.jsonl*")) == ["s1.jsonl"]


def test_where_the_index_is_plain_it_is_not_written_in_the_open_instead(folder):
    config = with_settings(transcripts=True)
    with Memory.open(folder, embedder=None, config=config) as memory:
        log = memory.sessions.log("s1")
        with pytest.raises(SealedFileError, match="openclaw-memory encrypt"):
            log.append("user", "The marmalade is in the cellar.")
    assert holding(folder, b"marmalade") == []


def test_messages_are_forgotten(memory, folder):
    talk(memory)
    memory.sync()
    memory.control.forget(query="marmalade", dry_run=False)
    assert b"marmalade" not in age.unseal((folder / PATH).read_bytes(), [KEY], PATH)
    assert not memory.search("marmalade")
    assert [one["content"] for one in memory.sessions.log("s1").read_messages()][-1] == "Noted: the cellar."
    memory.sessions.snapshot("s1")
    memory.control.forget(session="s1", dry_run=False)
    assert not (folder / PATH).exists()
    assert memory.sessions.snapshots() == ()


def test_a_transcript_that_cannot_be_decrypted_is_named_in_the_plan_to_forget_it(memory, folder):
    talk(memory)
    (folder / PATH).write_bytes(age.seal(b"{}\n", OTHER))
    receipt = memory.control.forget(session="s1")
    assert [one.where for one in receipt.plan.review] == [PATH]


def test_a_snapshot_is_encrypted_and_its_note_does_not_say_what_it_is_about(memory, folder):
    talk(memory)
    made = memory.sessions.snapshot("s1", summary="Where the marmalade is")
    assert made.path.endswith("-s1.json.age")
    assert json.loads(age.unseal((folder / made.path).read_bytes(), [KEY], made.path))["id"] == "s1"
    assert holding(folder, b"marmalade") == []
    assert [one.path for one in memory.sessions.snapshots("s1")] == [made.path]
    assert memory.sessions.snapshots("s1")[0].summary == "Where the marmalade is"
    assert memory.sessions.resume("s1")[-1]["content"] == "Noted: the cellar."
    day = next((folder / "memory").glob("*.md"))
    assert f"(../{made.path}): the last 2 messages" in day.read_text()
