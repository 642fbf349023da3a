"""The access log through what befalls it: many writers, kills, power cuts, full disks, rotation."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from audited import PLACE, files, filled, head_of, lines, log_of, proven
from processes import points, python, traced, why_not_traced

from openclaw_memory.audit import head as heads
from openclaw_memory.audit.chain import opened

WRITER = """
import sys
from pathlib import Path
from openclaw_memory.audit.log import AccessLog
from openclaw_memory.config import AuditConfig
log = AccessLog(Path(sys.argv[1]), AuditConfig(enabled=True, max_bytes=int(sys.argv[3]), keep=100_000))
for number in range(int(sys.argv[2])):
    log.write("get", [(f"memory/{number}.md", "1-2")])
log.close()
"""
STARTED_AGAIN = "another start of the machine"


@pytest.mark.parametrize("most", [40, pytest.param(2000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("max_bytes", [1 << 22, 4096], ids=["one file", "rotating"])
def test_processes_that_write_at_once_make_one_chain(tmp_path, most, max_bytes):
    writers = [python(WRITER, tmp_path, most, max_bytes, stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.entries, verdict.gaps) == (True, 8 * most, ())


def test_threads_and_forked_children_write_to_the_chain_of_their_parent(tmp_path):
    log = log_of(tmp_path)
    log.write("get", PLACE)
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            for _ in range(20):
                log.write("get", PLACE)
            log.close()
            os._exit(0)
        children.append(child)
    for _ in range(20):
        log.write("get", PLACE)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert (proven(tmp_path).ok, proven(tmp_path).entries) == (True, 81)


def test_a_full_file_is_followed_by_a_new_one_and_the_oldest_go(tmp_path):
    filled(tmp_path, 100, max_bytes=4096, keep=2)
    kept = files(tmp_path)
    assert len(kept) == 3
    assert all(file.stat().st_size <= 4096 for file in kept)
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.last) == (True, 100)
    assert verdict.first > 50
    kept[0].unlink()
    assert "the beginning is missing" in proven(tmp_path).wrong.reason
    filled(tmp_path, 60, max_bytes=4096, keep=2)  # all that was damaged has gone since
    assert proven(tmp_path).ok


def test_a_file_in_the_middle_that_is_missing_or_renamed_is_found(tmp_path):
    filled(tmp_path, 60, max_bytes=4096, keep=9)
    middle = files(tmp_path)[2]
    data = middle.read_bytes()
    middle.unlink()
    assert "does not follow" in proven(tmp_path).wrong.reason
    middle.with_name("access.000000000002.jsonl").write_bytes(data)
    assert not proven(tmp_path).ok
    middle.with_name("access.000000000002.jsonl").rename(middle)
    assert proven(tmp_path).ok


def test_without_older_files_only_the_latest_is_kept(tmp_path):
    filled(tmp_path, 60, max_bytes=4096, keep=0)
    assert (len(files(tmp_path)), proven(tmp_path).ok) == (1, True)


def test_part_of_an_entry_is_no_forgery_and_the_next_one_follows(tmp_path):
    filled(tmp_path)
    with files(tmp_path)[0].open("ab") as file:
        file.write(b'{"seq":11,"ts":"20')
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.unfinished) == (True, True)
    filled(tmp_path, 1)
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.unfinished, verdict.last) == (True, False, 11)


def test_an_entry_ahead_of_its_head_counts(tmp_path):
    filled(tmp_path, 5)
    before = head_of(tmp_path).read_bytes()
    filled(tmp_path, 3)
    head_of(tmp_path).write_bytes(before)  # as a killed process, or a power cut, leaves it
    assert (proven(tmp_path).ok, proven(tmp_path).last) == (True, 8)
    filled(tmp_path, 1)
    assert (proven(tmp_path).ok, proven(tmp_path).last) == (True, 9)


def unsynced(root: Path) -> None:
    """A log of ten entries, of which the disk has confirmed the first five."""
    filled(root, 5)
    log = log_of(root)
    log._synced_at = float("inf")
    for _ in range(5):
        log.write("get", PLACE)
    log._release()


def cut(root: Path, kept: int) -> None:
    files(root)[0].write_bytes(b"".join(lines(root)[:kept]))


@pytest.mark.parametrize("kept", [5, 7, 9])
def test_what_a_power_cut_took_is_missing_and_not_called_forged(tmp_path, monkeypatch, kept):
    unsynced(tmp_path)
    cut(tmp_path, kept)
    assert "cut off" in proven(tmp_path).wrong.reason  # the machine still runs: nothing is lost by itself
    monkeypatch.setattr("openclaw_memory.audit.head.boot", lambda: STARTED_AGAIN)
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.wrong, verdict.lost) == (False, None, (f"{10 - kept} entries after {kept}",))
    filled(tmp_path, 3)
    verdict = proven(tmp_path)
    assert (verdict.ok, verdict.wrong, verdict.last) == (False, None, 14)
    assert verdict.lost == (f"{10 - kept} entries before 11",)
    assert [gap.result for gap in verdict.gaps] == [f"lost {10 - kept}"]


def test_what_the_disk_had_confirmed_is_lost_by_no_power_cut(tmp_path, monkeypatch):
    unsynced(tmp_path)
    cut(tmp_path, 4)
    monkeypatch.setattr("openclaw_memory.audit.head.boot", lambda: STARTED_AGAIN)
    assert "cut off" in proven(tmp_path).wrong.reason
    filled(tmp_path, 1)
    assert proven(tmp_path).wrong.seq == 5


def test_a_machine_that_was_started_again_and_lost_nothing_goes_on(tmp_path, monkeypatch):
    unsynced(tmp_path)
    monkeypatch.setattr("openclaw_memory.audit.head.boot", lambda: STARTED_AGAIN)
    assert proven(tmp_path).ok
    filled(tmp_path, 2)
    assert (proven(tmp_path).ok, proven(tmp_path).gaps, proven(tmp_path).last) == (True, (), 12)


def test_half_an_entry_after_a_power_cut_is_a_loss(tmp_path, monkeypatch):
    unsynced(tmp_path)
    files(tmp_path)[0].write_bytes(b"".join(lines(tmp_path)[:8]) + lines(tmp_path)[8][:100])
    monkeypatch.setattr("openclaw_memory.audit.head.boot", lambda: STARTED_AGAIN)
    filled(tmp_path, 1)
    verdict = proven(tmp_path)
    assert (verdict.wrong, verdict.lost, verdict.last) == (None, ("2 entries before 11",), 12)


def test_a_torn_head_leaves_the_one_before(tmp_path):
    filled(tmp_path, 5)
    data = head_of(tmp_path).read_bytes()
    head = heads.decoded(data)
    at = head.turn % 2 * 4096
    head_of(tmp_path).write_bytes(data[: at + 60] + b"\0" * 40 + data[at + 100 :])
    assert heads.decoded(head_of(tmp_path).read_bytes()).turn == head.turn - 1
    assert proven(tmp_path).ok


def test_where_restarts_cannot_be_told_each_entry_is_on_the_disk_first(tmp_path, monkeypatch):
    monkeypatch.setattr("openclaw_memory.audit.head.boot", lambda: "")
    log = log_of(tmp_path)
    for _ in range(3):
        log.write("get", PLACE)
        head = heads.head_in(head_of(tmp_path))
        assert head.synced == head.seq


@pytest.fixture
def full_disk(tmp_path):
    """A log that the system lets grow no further, as on a full disk, and a way to make room."""
    import resource
    import signal

    filled(tmp_path, 5)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_entries_that_a_full_disk_refuses_are_told_and_stand_as_a_gap(tmp_path, full_disk):
    log = log_of(tmp_path)
    for number in range(60):
        log.write("get", [(f"memory/{number}.md", "1-2")])
    written = len(lines(tmp_path))
    assert files(tmp_path)[0].stat().st_size <= 8192
    missing = 65 - written
    assert missing > 10
    assert log.problems()[0].startswith(f"the access log lacks {missing} entries")
    assert log_of(tmp_path).problems() == [f"the access log lacks {missing} entries"]  # another process knows it too
    assert proven(tmp_path).ok
    full_disk()
    log.write("get", PLACE)
    verdict = proven(tmp_path)
    assert (verdict.ok, [gap.result for gap in verdict.gaps], log.problems()) == (True, [f"missed {missing}"], [])
    assert verdict.last == written + 2


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / ".memory").write_text("a file in the place of the folder")
    log = log_of(tmp_path)
    log.write("get", PLACE)
    log.write("get", PLACE)
    assert log.problems()[0].startswith("the access log lacks 2 entries: ")
    (tmp_path / ".memory").unlink()
    log.write("get", PLACE)
    assert [gap.result for gap in proven(tmp_path).gaps] == ["missed 2"]


def test_a_call_with_very_many_places_leaves_several_entries(tmp_path):
    log_of(tmp_path).write("forget", [(f"memory/{number}.md", "") for number in range(450)])
    found = [opened(line.rstrip(b"\n"), None) for line in lines(tmp_path)]
    assert [len(entry.path) for entry in found] == [200, 200, 50]
    assert proven(tmp_path).ok


def test_a_stuck_writer_keeps_nobody_waiting_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr("openclaw_memory.audit.head.LOCK_SECONDS", 0.05)
    filled(tmp_path, 1)
    code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    with python(code, head_of(tmp_path), stdin=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "held\n"
        log = log_of(tmp_path)
        log.write("get", PLACE)
        assert "another process has held its head" in log.problems()[0]
        holder.stdin.close()
    log.write("get", PLACE)
    assert [gap.result for gap in proven(tmp_path).gaps] == ["missed 1"]


KILLED = """
import os, sys
from pathlib import Path
import hmac, json
from openclaw_memory.audit.log import AccessLog
from openclaw_memory.audit import reading
from openclaw_memory.config import AuditConfig
import filelock, platformdirs
log = AccessLog(Path(sys.argv[1]), AuditConfig(enabled=True, max_bytes=4096, keep=1))
os.getpgid(0)
for number in range(50):
    log.write("get", [(f"memory/{number}.md", "1-2")])
log.close()
os.getpgid(0)
"""


@pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))
@pytest.mark.parametrize("most", [6, pytest.param(None, marks=pytest.mark.nightly)], ids=["some", "all"])
def test_a_writer_killed_at_any_system_call_leaves_a_log_that_is_whole(tmp_path, most):
    trace = tmp_path / "trace"
    traced(KILLED, tmp_path / "warm", options=("-o", os.devnull))  # the first run may still make folders and byte code
    traced(KILLED, tmp_path / "calm", options=("-o", trace))
    calls = list(points(trace.read_text()))
    assert {"write", "openat", "unlink"} <= {name for name, _ in calls}
    for name, number in calls if most is None else calls[:: max(1, len(calls) // most)]:
        root = tmp_path / f"{name}-{number}"
        done = traced(KILLED, root, options=("-o", os.devnull, "-e", f"inject={name}:signal=KILL:when={number}"))
        assert done.returncode != 0, (name, number)
        assert proven(root).ok, (name, number, proven(root))
        filled(root, 2, max_bytes=4096, keep=1)
        assert (proven(root).ok, proven(root).gaps) == (True, ()), (name, number, proven(root))


def test_entries_are_one_write_each(tmp_path):
    if why := why_not_traced():
        pytest.skip(why)
    trace = tmp_path / "trace"
    traced(
        KILLED.replace("4096", "1 << 22"), tmp_path / "notes", options=("-o", trace, "-y", "-e", "trace=write,getpgid")
    )
    written = re.findall(r"write\(\d+<[^>]*access\.\d+\.jsonl>", trace.read_text())
    assert len(written) == 50
