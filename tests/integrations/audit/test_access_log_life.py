"""The access log through what befalls it: many writers, kills, full disks, rotation."""

import os
import re
import resource
import signal
import subprocess

import pytest
from processes import points, python, traced, why_not_traced

WRITER = """
import os, sys
from openclaw_memory.workspace import Workspace
from openclaw_memory.events import Event
from openclaw_memory_audit import AccessLog, AuditConfig
import openclaw_memory_audit.reading
os.makedirs(sys.argv[1], exist_ok=True)
log = AccessLog(Workspace.open(sys.argv[1]), AuditConfig(max_bytes=int(sys.argv[3]), keep=int(sys.argv[4])))
os.getpgid(0)
for number in range(int(sys.argv[2])):
    log(Event("get", ((f"memory/{number}.md", "1-2"),)))
os.getpgid(0)
"""


@pytest.mark.fault(37)
@pytest.mark.parametrize("most", [40, pytest.param(2000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("max_bytes", [1 << 22, 4096], ids=["one file", "rotating"])
@pytest.mark.sampled(1)
def test_processes_that_write_at_once_make_one_chain(log, most, max_bytes):
    writers = [python(WRITER, log.root, most, max_bytes, 100_000, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    verdict = log.verify()
    assert (verdict.ok, verdict.entries, verdict.gaps) == (True, 4 * most, ())


def test_a_full_file_is_followed_by_a_new_one_and_the_oldest_go(log):
    log.fill(100, max_bytes=4096, keep=9)
    assert (len(log.files), log.verify().first) == (8, 1)
    log.fill(100, max_bytes=4096, keep=2)
    kept = log.files
    assert len(kept) == 3
    assert all(file.stat().st_size < 4096 + 400 for file in kept)
    assert (log.verify().ok, log.verify().last, log.verify().first > 150) == (True, 200, True)
    data = kept[1].read_bytes()
    kept[1].unlink()
    assert "others are missing" in log.verify().wrong.reason
    kept[1].write_bytes(data)
    assert log.verify().ok
    log.fill(60, max_bytes=4096, keep=0)
    assert (len(log.files), log.verify().ok) == (1, True)


def test_part_of_an_entry_is_dropped_and_an_entry_ahead_of_its_head_counts(log):
    log.fill(5)
    before = log.head.read_bytes()
    log.fill(3)
    log.head.write_bytes(before)  # as a killed process leaves it
    with log.files[0].open("ab") as file:
        file.write(b'{"seq":9,"ts":"20')
    assert (log.verify().ok, log.verify().last) == (True, 8)
    log.write()
    assert (log.verify().ok, log.verify().last) == (True, 9)


@pytest.mark.fault(37)
def test_entries_that_a_full_disk_refuses_are_a_notice_and_a_gap(log):
    log.fill(5)
    access = log.open()
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
        for _ in range(60):
            log.write(log=access)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    missing = 65 - sum(line.endswith(b"\n") for line in log.lines)
    assert missing > 10
    assert access.list_problems()[0].startswith(f"the access log lacks {missing} entries: ")
    assert log.verify().ok
    log.write(log=access)
    assert ([gap.result for gap in log.verify().gaps], access.list_problems()) == ([f"missed {missing}"], [])


def test_a_call_with_very_many_places_leaves_several_entries(log):
    log.write(*((f"memory/{number}.md", "") for number in range(450)), op="forget")
    assert [len(entry.paths) for entry in log.open().read_entries()] == [50, 200, 200]
    assert log.verify().ok


def test_a_stuck_writer_keeps_no_one_waiting_for_long(log):
    log.fill(1)
    code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    access = log.open()
    with python(code, log.head, stdin=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "held\n"
        log.write(log=access)
        assert "another process has held the log for over 0.1 s" in access.list_problems()[0]
        holder.stdin.close()
    log.write(log=access)
    assert [gap.result for gap in log.verify().gaps] == ["missed 1"]


@pytest.mark.fault(37)
@pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))
@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.nightly)], ids=["some", "all"])
def test_a_writer_killed_at_any_system_call_leaves_a_log_that_is_whole(log, tmp_path, most):
    trace, arguments = tmp_path / "trace", ("50", "4096", "1")
    traced(WRITER, tmp_path / "warm", *arguments, options=("-o", os.devnull))  # the first run may still make byte code
    traced(WRITER, tmp_path / "calm", *arguments, options=("-o", trace))
    written = re.findall(r"write\(\d+, \"\{", trace.read_text())
    assert len(written) == 50, "an entry is one write"
    calls = list(points(trace.read_text()))
    assert {"write", "openat", "unlinkat"} <= {name for name, _ in calls}
    for name, number in calls if most is None else calls[:: max(1, len(calls) // most)]:
        each = type(log)(tmp_path / f"{name}-{number}")
        inject = f"inject={name}:signal=KILL:when={number}"
        done = traced(WRITER, each.root, *arguments, options=("-o", os.devnull, "-e", inject))
        assert done.returncode != 0, (name, number)
        assert each.verify().ok or not each.lines, (name, number, each.verify())
        each.fill(2, max_bytes=4096, keep=1)
        assert (each.verify().ok, each.verify().gaps) == (True, ()), (name, number, each.verify())
