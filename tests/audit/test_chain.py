"""An access log that was changed in any way is told from one that was not."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from pathlib import Path

import pytest
from audited import ON, PLACE, files, filled, head_of, lines, log_of, proven

from openclaw_memory.audit import entries
from openclaw_memory.errors import AuditError, EncryptionKeyError, PathNotAllowedError


def rewritten(root: Path, kept: list[bytes]) -> None:
    files(root)[0].write_bytes(b"".join(kept))


def test_an_honest_log_is_whole(tmp_path):
    filled(tmp_path)
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.entries, verdict.first, verdict.last) == (True, 10, 1, 10)
    assert (files(tmp_path)[0].stat().st_mode & 0o777, files(tmp_path)[0].parent.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )


def test_an_entry_says_who_has_done_what_to_which_lines(tmp_path):
    filled(tmp_path, 1)
    entry = json.loads(lines(tmp_path)[0])
    assert list(entry) == ["seq", "ts", "actor", "op", "path", "lines", "result", "prev", "mac"]
    assert (entry["seq"], entry["actor"], entry["op"]) == (1, "library", "get")
    assert (entry["path"], entry["lines"], entry["result"]) == (["memory/0.md"], ["1-2"], "ok")


def test_a_log_that_was_never_written_has_nothing_wrong(tmp_path):
    assert proven(tmp_path).ok
    assert list(entries(tmp_path, ON)) == []


@pytest.mark.parametrize(
    ("change", "first_wrong"),
    [
        (lambda log: [*log[:4], log[4].replace(b'"op":"get"', b'"op":"put"'), *log[5:]], 5),
        (lambda log: [*log[:4], *log[5:]], 5),
        (lambda log: [*log[:4], log[5], log[4], *log[6:]], 5),
        (lambda log: log[:-1], 10),
        (lambda log: log[:3], 4),
        (lambda log: log[1:], 1),
        (lambda log: [*log[:4], log[4], log[4], *log[5:]], 6),
        (lambda log: [*log, b"{}\n"], 11),
        (lambda _: [], 1),
    ],
    ids=["edited", "deleted", "reordered", "cut tail", "cut short", "cut beginning", "repeated", "forged", "emptied"],
)
def test_what_was_done_to_a_log_is_found_and_the_first_wrong_entry_named(tmp_path, change, first_wrong):
    filled(tmp_path)
    rewritten(tmp_path, change(lines(tmp_path)))
    verdict = proven(tmp_path)
    assert not verdict.ok
    assert verdict.wrong.seq == first_wrong
    log_of(tmp_path).write("get", PLACE)  # what goes on with it mends nothing
    assert proven(tmp_path).wrong is not None


def test_each_byte_of_a_log_counts(tmp_path):
    filled(tmp_path, 3)
    [file], whole = files(tmp_path), b"".join(lines(tmp_path))
    for at in range(len(whole)):
        for other in (whole[at] ^ 1, 0x0A):
            if other != whole[at]:
                file.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
                assert not proven(tmp_path).ok, (at, whole[at], other)
        file.write_bytes(whole[:at] + whole[at + 1 :])
        assert not proven(tmp_path).ok, at
    file.write_bytes(whole)
    assert proven(tmp_path).ok


def test_a_log_that_is_gone_is_missed(tmp_path):
    filled(tmp_path)
    shutil.rmtree(tmp_path / ".memory")
    assert proven(tmp_path).wrong.reason == "the log ends with 0, and its head says 10: the end was cut off"
    filled(tmp_path, 1)
    assert not proven(tmp_path).ok


def test_a_log_of_another_workspace_is_no_substitute(tmp_path):
    filled(tmp_path / "one", 5)
    filled(tmp_path / "two", 9)
    shutil.copy(files(tmp_path / "two")[0], files(tmp_path / "one")[0])
    assert not proven(tmp_path / "one").ok


def test_an_older_copy_of_the_log_is_a_cut_tail(tmp_path):
    filled(tmp_path, 5)
    old = files(tmp_path)[0].read_bytes()
    filled(tmp_path, 5)
    files(tmp_path)[0].write_bytes(old)
    assert proven(tmp_path).wrong.seq == 6


def test_a_workspace_that_was_moved_keeps_its_log(tmp_path):
    filled(tmp_path / "old", 5)
    os.rename(tmp_path / "old", tmp_path / "new")
    assert proven(tmp_path / "new").ok
    filled(tmp_path / "new", 5)
    assert (proven(tmp_path / "new").ok, proven(tmp_path / "new").last) == (True, 10)
    assert not head_of(tmp_path / "old").exists()
    rewritten(tmp_path / "new", lines(tmp_path / "new")[:-1])
    assert not proven(tmp_path / "new").ok


def test_a_log_that_was_cut_and_moved_is_not_taken_for_whole(tmp_path):
    filled(tmp_path / "old", 5)
    rewritten(tmp_path / "old", lines(tmp_path / "old")[:-1])
    os.rename(tmp_path / "old", tmp_path / "new")
    assert not proven(tmp_path / "new").ok
    filled(tmp_path / "new", 1)
    assert proven(tmp_path / "new").wrong.reason.startswith("it does not follow entry 4")


def test_a_copy_is_not_the_log(tmp_path):
    filled(tmp_path / "one", 5)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert not proven(tmp_path / "two").ok
    assert proven(tmp_path / "one").ok


def test_a_clock_that_goes_back_breaks_nothing(tmp_path, monkeypatch):
    class Back(datetime.datetime):
        at = 2_000_000_000

        @classmethod
        def now(cls, tz=None):
            cls.at -= 86_400
            return cls.fromtimestamp(cls.at, tz)

    monkeypatch.setattr("openclaw_memory.audit.chain.datetime.datetime", Back)
    filled(tmp_path)
    assert proven(tmp_path).ok
    times = [json.loads(line)["ts"] for line in lines(tmp_path)]
    assert times == sorted(times, reverse=True)


def test_entries_are_read_newest_first_and_by_what_they_say(tmp_path):
    filled(tmp_path, 3)
    log_of(tmp_path).write("search", PLACE, "ok")
    assert [one.seq for one in entries(tmp_path, ON)] == [4, 3, 2, 1]
    assert [one.places for one in entries(tmp_path, ON, op="search")] == [("memory/2026-11-21.md#3-9",)]
    assert [one.seq for one in entries(tmp_path, ON, path="memory/1")] == [2]
    assert list(entries(tmp_path, ON, actor="mcp")) == []
    assert list(entries(tmp_path, ON, since="2999-01-01")) == []
    assert len(list(entries(tmp_path, ON, since=datetime.date(2020, 1, 1)))) == 4


def test_another_users_key_proves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_MEMORY_KEY", "ab" * 32)
    filled(tmp_path)
    monkeypatch.setenv("OPENCLAW_MEMORY_KEY", "cd" * 32)
    with pytest.raises(EncryptionKeyError, match="put it back"):
        proven(tmp_path)
    monkeypatch.setenv("OPENCLAW_MEMORY_KEY", f"{'cd' * 32},{'ab' * 32}")
    filled(tmp_path)  # it goes on with the key that it began with
    assert proven(tmp_path).last == 20


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / ".memory").symlink_to(tmp_path / "elsewhere")
    log = log_of(tmp_path / "notes")
    log.write("get", PLACE)
    assert "is a symbolic link" in log.problems()[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with pytest.raises(PathNotAllowedError):
        proven(tmp_path / "notes")


def test_a_file_with_another_name_is_not_written_to(tmp_path):
    filled(tmp_path, 1)
    other = tmp_path / "other"
    os.link(files(tmp_path)[0], other)
    size, log = other.stat().st_size, log_of(tmp_path)
    log.write("get", PLACE)
    assert (other.stat().st_size, "hard links" in log.problems()[0]) == (size, True)


def test_required_refuses_what_leaves_no_entry(tmp_path):
    (tmp_path / ".memory").write_text("a file in the place of the folder")
    with pytest.raises(AuditError, match=r"get: an entry could not be written .*audit.required"):
        log_of(tmp_path, required=True).write("get", PLACE)
