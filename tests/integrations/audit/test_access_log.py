"""An access log that was changed in any way is told from one that was not, and it keeps no name in clear."""

import json
import shutil

import pytest
from openclaw_memory_audit import AccessLog, AuditError

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError
from openclaw_memory.events import Event
from openclaw_memory.security import Key

ON = MemoryConfig(plugins={"audit": {"enabled": True}})


def test_an_honest_log_is_whole(log):
    log.fill()
    verdict = log.verify()
    assert (verdict.ok, verdict.entries, verdict.first, verdict.last) == (True, 10, 1, 10)
    assert {file.stat().st_mode & 0o777 for file in log.folder.iterdir()} == {0o600}
    assert log.folder.stat().st_mode & 0o777 == 0o700


def test_a_log_without_a_file_is_not_whole(log):
    assert log.verify().wrong.reason == "there is no log, or it was removed"
    log.fill()
    shutil.rmtree(log.folder)
    assert not log.verify().ok
    assert list(log.open().read_entries()) == []


def test_an_entry_says_what_was_done_to_which_lines_without_a_name(log):
    log.open()(Event("get", (("memory/anna.md", "1-2"),), "ok", "tool:memory_get", "chat-with-anna"))
    [line] = log.lines
    entry = json.loads(line)
    assert list(entry) == ["seq", "ts", "actor", "session", "op", "paths", "lines", "result", "prev", "mac"]
    assert (entry["seq"], entry["actor"], entry["op"], entry["lines"]) == (1, "tool:memory_get", "get", ["1-2"])
    assert b"anna" not in line


def test_names_are_shown_for_files_that_exist_and_found_by_whoever_knows_them(tmp_path):
    with Memory.open(tmp_path, config=ON, embedder=None) as memory:
        memory.append("Anna likes tea.", date="2026-11-21")
        memory.sessions.log("anna").append("user", "tea")
        [log] = memory.events.observers
        transcript, note = log.read_entries()
        assert (note.places, transcript.places) == (("memory/2026-11-21.md#3",), ("sessions/anna.jsonl",))
        assert [entry.op for entry in log.read_entries(path="2026-11")] == ["append"]
        assert not memory.control.forget(session="anna", dry_run=False).remaining
        gone = next(log.read_entries(op="write transcript"))
        assert gone.places[0].startswith("#")
        assert [entry.op for entry in log.read_entries(path="sessions/anna.jsonl")] == ["forget", "write transcript"]
        assert list(log.read_entries(path="anna")) == []


@pytest.mark.fault(37)
@pytest.mark.parametrize(
    ("change", "first_wrong"),
    [
        (lambda lines: [*lines[:4], lines[4].replace(b'"op":"get"', b'"op":"put"'), *lines[5:]], 5),
        (lambda lines: [*lines[:4], *lines[5:]], 5),
        (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], 5),
        (lambda lines: lines[:-1], 10),
        (lambda lines: lines[:3], 4),
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:4], lines[4], lines[4], *lines[5:]], 6),
        (lambda lines: [*lines, b"{}\n"], 11),
        (lambda _: [], 1),
    ],
    ids=["edited", "deleted", "reordered", "cut tail", "cut short", "cut beginning", "repeated", "forged", "emptied"],
)
def test_what_was_done_to_a_log_is_found_and_the_first_wrong_entry_named(log, change, first_wrong):
    log.fill()
    log.files[0].write_bytes(b"".join(change(log.lines)))
    verdict = log.verify()
    assert (verdict.ok, verdict.wrong.seq) == (False, first_wrong)
    log.write()
    assert log.verify().ok == (first_wrong == 11)  # what was added behind the end is dropped; the rest stays wrong


@pytest.mark.fault(37)
def test_each_byte_of_a_log_counts(log):
    log.fill(2)
    [file], whole = log.files, b"".join(log.lines)
    for at in range(len(whole)):
        for other in (whole[at] ^ 1, 0x0A):
            if other != whole[at]:
                file.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
                assert not log.verify().ok, (at, whole[at], other)
        file.write_bytes(whole[:at] + whole[at + 1 :])
        assert not log.verify().ok, at
    file.write_bytes(whole)
    assert log.verify().ok


def test_a_head_that_is_missing_or_changed_is_found_and_nothing_is_written(log):
    log.fill(3)
    head = log.head.read_bytes()
    for change in (head.replace(b"[3,", b"[2,"), None):
        log.head.write_bytes(change) if change else log.head.unlink()
        assert log.verify().wrong.file == "audit/head.json"
        with pytest.raises(AuditError, match="move its folder away"):
            log.write(required=True)
    log.head.write_bytes(head)
    assert (log.verify().ok, log.verify().last) == (True, 3)


def test_a_log_of_another_workspace_and_an_older_copy_are_found(log, tmp_path):
    log.fill(5)
    old = log.files[0].read_bytes()
    log.fill(5)
    other = type(log)(tmp_path / "other")
    other.fill(10)
    for content in (old, other.files[0].read_bytes()):
        log.files[0].write_bytes(content)
        assert not log.verify().ok


def test_another_users_key_proves_nothing(log, monkeypatch):
    log.fill()
    monkeypatch.setattr(Key, "load_user_key", lambda: Key(bytes(32)))
    assert "another user.key" in log.verify().wrong.reason


def test_entries_are_read_newest_first_and_by_what_they_say(log):
    log.fill(3)
    log.write(op="search")
    read = log.open().read_entries
    assert [entry.seq for entry in read()] == [4, 3, 2, 1]
    assert [entry.seq for entry in read(op="search")] == [4]
    assert [entry.seq for entry in read(path="memory/1.md")] == [2]
    assert list(read(actor="mcp")) == list(read(since="2999-01-01")) == list(read(session="anna")) == []
    assert len(list(read(since="2020-01-01"))) == 4


def test_required_refuses_what_leaves_no_entry(log):
    config = MemoryConfig(plugins={"audit": {"enabled": True, "required": True}})
    with Memory.open(log.root, config=config, embedder=None) as memory:
        memory.append("tea", date="2026-11-21")
        assert [entry.result for entry in log.open().read_entries()] == ["ok", "started"]
        shutil.rmtree(log.folder)
        log.folder.write_text("a file in the place of the folder")
        for refused in (lambda: memory.append("milk", date="2026-11-21"), lambda: memory.get("memory/2026-11-21.md")):
            with pytest.raises(AuditError, match=r"audit\.required"):
                refused()
    assert "milk" not in (log.root / "memory" / "2026-11-21.md").read_text(encoding="utf-8")


def test_settings_turn_the_log_on_and_a_wrong_one_is_an_error(tmp_path):
    with Memory.open(tmp_path, config=ON) as memory:
        assert [type(observer) for observer in memory.events.observers] == [AccessLog]
    with Memory.open(tmp_path, config=MemoryConfig(plugins={"audit": {"keep": 2}})) as memory:
        assert memory.events.observers == ()
    with pytest.raises(ConfigError, match=r"unknown key plugins\.audit\.folder"):
        Memory.open(tmp_path, config=MemoryConfig(plugins={"audit": {"folder": "x"}}))
