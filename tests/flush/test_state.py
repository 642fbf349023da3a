"""`sessions.json`: OpenClaw's fields, changed without touching anything else, and never lost."""

import json

import pytest

from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import PathNotAllowedError, WorkspaceError
from openclaw_memory.flush import state
from openclaw_memory.flush.session import Session
from openclaw_memory.flush.state import FlushCycle, FlushRegistry, SessionState, read_states, remove_states
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.paths import locate_transcripts


def change_state(folder, key, session_id=None, chat_type=None, **fields):
    cycle = FlushCycle(folder, Session(key, session_id, chat_type), is_new=True)
    assert cycle.save(**fields)
    return cycle.state


@pytest.fixture
def folder(tmp_path):
    return locate_transcripts(tmp_path, SessionsConfig())


@pytest.fixture
def file(tmp_path):
    (tmp_path / "sessions").mkdir()
    return tmp_path / "sessions" / "sessions.json"


def test_the_fields_are_those_of_openclaw(folder, file):
    values = {"session_id": "uuid", "chat_type": "group", "compaction_count": 5, "memory_flush_compaction_count": 5}
    tokens = {"input_tokens": 45_000, "output_tokens": 12_000, "context_tokens": 176_000}
    change_state(folder, "agent:main", memory_flush_at="2026-02-18T11:58:00Z", **values, **tokens)
    entry = json.loads(file.read_text())["agent:main"]
    assert entry.pop("updatedAt").endswith("Z")
    assert entry == {
        "sessionId": "uuid",
        "chatType": "group",
        "compactionCount": 5,
        "memoryFlushAt": "2026-02-18T11:58:00Z",
        "memoryFlushCompactionCount": 5,
        "inputTokens": 45_000,
        "outputTokens": 12_000,
        "contextTokens": 176_000,
    }
    found = read_states(folder)["agent:main"]
    assert (found.session_id, found.memory_flush_compaction_count, found.context_tokens) == ("uuid", 5, 176_000)


def test_where_there_is_no_file_there_is_no_state_and_reading_makes_none(folder, tmp_path):
    assert read_states(folder) == {}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "sessions.json").touch()
    assert read_states(folder) == {}, "a file that holds nothing yet is no damage"
    assert change_state(folder, "a", compaction_count=1).compaction_count == 1


def test_what_is_not_ours_stays_as_it_is(folder, file):
    before = {
        "other": {"sessionId": "o", "skills": [1, {"x": None}], "odd": "\ud800"},
        "a": {"modelOverride": "big", "compactionCount": 2, "flushError": "x", "ratio": 0.1},
        "list": [1, 2],
    }
    file.write_text(json.dumps(before))
    change_state(folder, "a", compaction_count=3, flush_error=None)
    after = json.loads(file.read_text())
    assert list(after) == list(before)
    assert (after["other"], after["list"]) == (before["other"], before["list"])
    assert {key: after["a"][key] for key in after["a"] if key != "updatedAt"} == {
        "modelOverride": "big",
        "compactionCount": 3,
        "ratio": 0.1,
    }
    assert set(read_states(folder)) == {"other", "a"}


def test_times_in_milliseconds_are_read_and_written_as_the_others_are(folder, file):
    file.write_text('{"a": {"updatedAt": 1771416000500, "memoryFlushAt": 1771416000000.0}, "b": {"updatedAt": 1e300}}')
    states = read_states(folder)
    assert states["a"].updated_at == "2026-02-18T12:00:00.500Z"
    assert states["a"].memory_flush_at == "2026-02-18T12:00:00.000Z"
    assert states["b"] == SessionState()
    change_state(folder, "a", memory_flush_at="2026-02-18T12:00:00.500Z")
    assert change_state(folder, "mine", compaction_count=0).memory_flush_compaction_count is None
    entries = json.loads(file.read_text())
    assert entries["a"]["memoryFlushAt"] == 1771416000500
    assert isinstance(entries["mine"]["updatedAt"], int)


@pytest.mark.parametrize("value", ["5", -1, True, None, 2.5, [5]])
def test_a_count_that_is_none_counts_as_absent(folder, file, value):
    entry = {"compactionCount": value, "memoryFlushCompactionCount": value, "sessionId": 7, "chatType": " "}
    file.write_text(json.dumps({"a": entry}))
    assert read_states(folder)["a"] == SessionState()


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe\x00", b'{"a": {}} trailing', b"[" * 100_000, b"9" * 5_000])
def test_a_damaged_file_is_named_and_left_as_it_is(folder, file, content):
    file.write_bytes(content)
    for work in (lambda: read_states(folder), lambda: remove_states(folder, ["a"])):
        with pytest.raises(WorkspaceError, match=r"sessions/sessions\.json is damaged"):
            work()
    assert file.read_bytes() == content


def test_a_symlink_is_not_followed(folder, file, tmp_path):
    (tmp_path / "elsewhere.json").write_text("{}")
    file.symlink_to(tmp_path / "elsewhere.json")
    for work in (lambda: read_states(folder), lambda: remove_states(folder, ["a"])):
        with pytest.raises(PathNotAllowedError):
            work()
    assert (tmp_path / "elsewhere.json").read_text() == "{}"


def test_what_another_program_writes_in_between_is_not_overwritten(folder, file, monkeypatch):
    change_state(folder, "a", compaction_count=1)
    replace = state.replace_file

    def late(*given: object) -> None:
        monkeypatch.undo()  # they write once
        file.write_text(json.dumps(json.loads(file.read_text()) | {"theirs": {"compactionCount": 9}}))
        replace(*given)

    monkeypatch.setattr(state, "replace_file", late)
    change_state(folder, "a", compaction_count=2)
    assert {key: found.compaction_count for key, found in read_states(folder).items()} == {"a": 2, "theirs": 9}


def test_failed_flushes_are_listed_and_a_damaged_file_is_one_of_them(folder, file, tmp_path):
    workspace = Workspace.open(tmp_path)
    change_state(folder, "a", flush_error="the model is away")
    change_state(folder, "b", flush_error=None)
    assert FlushRegistry().list_failures(workspace) == {"a": "the model is away"}
    file.write_text("{")
    [(name, message)] = FlushRegistry().list_failures(workspace).items()
    assert name == "sessions.json"
    assert "damaged" in message
