"""A record of high sensitivity that something else has written is shown at no door; as it was signed, at each of these."""

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from faults.doors import SHOWING, Asked, Place, shown_by

from openclaw_memory import Memory
from openclaw_memory.errors import RecordError

KEY = "door.code"
PATH = f"memory/records/fact/{KEY}.md"
SIGNED, EARLIER, FORGED = "quokka", "numbat", "wombat"
WORDS = (SIGNED, EARLIER, FORGED)
ASKED = Asked("What is the door code of the hut?", PATH, KEY)
# They show what stands in talks or in notes of a day, or counts, paths and problems.
OF_NO_RECORD = {
    "Notes.bootstrap", "Memory.status", "Control.inspect", "Control.forget", "Memory.heartbeat", "Sessions.snapshots",
    "Sessions.resume", "Notes.edit, conflict", "Documents.read", "Documents.iterate", "Records.list_problems", "session start",
    "command status", "LangGraph store",
}  # fmt: skip


def of_the_hut(word: str) -> str:
    return f"the door code of the hut is {word}"


def forged_in(text: str) -> str:
    return text.replace(SIGNED, FORGED)


def without(text: str, *names: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.partition(":")[0] not in names)


# The file as something else has written it.
FORGERIES: dict[str, Callable[[str], str]] = {
    "a changed value": forged_in,
    "a changed sentence": lambda text: FORGED.join(text.rsplit(SIGNED, 1)),
    "a document of an id": lambda text: forged_in(text).replace("memory_id:", 'id: "d1"\nmemory_id:'),
    "lowered": lambda text: forged_in(text).replace('"high"', '"low"'),
    "without its signature": lambda text: without(text, "signature"),
    "without its sensitivity": lambda text: without(text, "sensitivity", "signature"),
    "another version": lambda text: text.replace("version: 2", "version: 7"),
    "another expiry": lambda text: text.replace("ttl: ", "ttl: 1"),
    "another method": lambda text: text.replace('signature: "hmac', 'signature: "none'),
}
NEVER_SIGNED = "one that was never signed"


def forge(at: Place, how: str) -> None:
    file = at.memory.workspace.root / PATH
    text = file.read_text(encoding="utf-8")
    if how == NEVER_SIGNED:  # in the place of one that was forgotten, as if it were new
        at.memory.records.forget("fact", KEY)
        file.write_text(without(forged_in(text), "signature").replace("mem_", "mem_f"), encoding="utf-8")
    else:
        assert FORGERIES[how](text) != text
        file.write_text(FORGERIES[how](text), encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def user(tmp_path_factory):
    """The user's data folder with the key that signs: one for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path_factory.mktemp("data")))
        yield


def made(folder: Any) -> Place:
    (folder / "notes" / "memory").mkdir(parents=True)
    (folder / "notes" / "MEMORY.md").write_text("Anna likes tea.\n", encoding="utf-8")
    (folder / "settings.toml").write_text("", encoding="utf-8")
    at = Place(Memory.open(folder / "notes"), str(folder / "settings.toml"))
    at.memory.records.remember("fact", KEY, of_the_hut(EARLIER), sensitivity="high")
    at.memory.records.confirm("fact", KEY, value=of_the_hut(SIGNED))
    at.memory.sync()
    return at


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    at = made(tmp_path_factory.mktemp("genuine"))
    yield at
    at.memory.close()


# An index that still has the words of before is the harder case; one forgery stands for all there.
@pytest.fixture(
    scope="module", params=[*((one, True) for one in (*FORGERIES, NEVER_SIGNED)), ("a changed value", False)], ids=str
)
def forged(tmp_path_factory, request):
    how, is_synced = request.param
    at = made(tmp_path_factory.mktemp("forged"))
    forge(at, how)
    if is_synced:
        at.memory.sync()
    yield at
    at.memory.close()


@pytest.mark.parametrize("door", [door for door in SHOWING if door not in OF_NO_RECORD])
def test_a_record_as_it_was_signed_is_shown(genuine, door):
    assert SIGNED in shown_by(door, genuine, ASKED)


@pytest.mark.fault(63)
@pytest.mark.sampled(2)
def test_a_forged_record_is_shown_nowhere_and_reported(forged):
    shown = {door: shown_by(door, forged, ASKED) for door in SHOWING}
    assert [door for door, text in shown.items() if any(word in text for word in WORDS)] == []
    with pytest.raises(RecordError):
        forged.memory.get(PATH)
    assert PATH in "\n".join(forged.memory.status(deep=True).notices)


def test_an_expired_record_is_no_document_either(tmp_path):
    at = made(tmp_path)
    at.memory.records.remember("fact", "hut.code", of_the_hut(FORGED), ttl=60)
    path = "memory/records/fact/hut.code.md"
    file = at.memory.workspace.root / path
    file.write_text(re.sub(r"\b20\d\d-", "2001-", file.read_text(encoding="utf-8")), encoding="utf-8")
    os.utime(file, (1_000_000_000, 1_000_000_000))  # of 2001, when it was changed by hand
    at.memory.sync()
    asked = ASKED._replace(path=path, key="hut.code")
    doors = [door for door in SHOWING if door.startswith(("Document", "Lang", "Llama"))]
    assert [door for door in doors if FORGED in shown_by(door, at, asked)] == []
    at.memory.close()
