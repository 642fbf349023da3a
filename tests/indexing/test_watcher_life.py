"""The life of a watcher: who is at work, what it does without events and after errors, and how it ends."""

from __future__ import annotations

import ctypes
import errno
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from watchdog.observers import inotify_c
from watching import CONFIG, LONG_ENOUGH, FakeIndex, append, eventually, replace_all_notes, replace_atomically

from openclaw_memory.indexing.watcher import Watcher
from openclaw_memory.types.files import Skipped
from openclaw_memory.workspace import Workspace


# --- one at work
def test_a_second_watcher_stands_by_and_takes_over_when_the_first_ends(watched, root):
    first, _ = watched(root)
    second, index = watched(root, ready=False)
    eventually(lambda: second.state.startswith("standing by"))
    assert not second.is_behind
    (root / "memory" / "b.md").write_text("two\n")
    eventually(lambda: first.syncs >= 2)
    assert second.syncs == 0
    first.stop()
    eventually(lambda: second.state.startswith("watching") and "memory/b.md" in index.records)


OTHER_PROCESS = """
import sys, time
from pathlib import Path
from openclaw_memory import MemoryConfig
from openclaw_memory.indexing.watcher import Watcher
from openclaw_memory.store.lock import lock_file
from openclaw_memory.types import SyncReport
from openclaw_memory.workspace import Workspace
class Index:
    sync, get_files, store = (lambda *_, **__: SyncReport()), (lambda _: {}), (lambda self: self)
    lock = lambda *_: lock_file(Path(sys.argv[2]), 0)
index = Index()
watcher = Watcher(Workspace.open(sys.argv[1]), index, MemoryConfig())
with watcher:
    while watcher.syncs == 0:
        time.sleep(0.01)
    print("at work", flush=True)
    if len(sys.argv) == 3:
        time.sleep(600)
"""


@pytest.mark.fault(24)
def test_it_takes_over_from_a_process_that_is_killed(watched, root, tmp_path):
    (tmp_path / "index").mkdir()
    arguments = [sys.executable, "-c", OTHER_PROCESS, str(root), str(tmp_path / "index" / "index.sqlite")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "at work\n"
        one, _ = watched(root, ready=False)
        eventually(lambda: one.state.startswith("standing by"))
        other.send_signal(signal.SIGKILL)
    eventually(lambda: one.state.startswith("watching"))


# --- where there are no events
def refuse(number: int, after: Callable[..., int] | None = None, times: int = 0) -> Callable[..., int]:
    """A system call that fails with this errno, after it went well so many times."""
    granted: list[int] = []

    def call(*arguments: object) -> int:
        if after is not None and len(granted) < times:
            granted.append(after(*arguments))
            return granted[-1]
        ctypes.set_errno(number)
        return -1

    return call


@pytest.fixture(params=["no watches left", "no queue left", "no watchdog"])
def without_events(request, monkeypatch):
    """Take file events away; returns what the state must say of it."""
    if request.param == "no watchdog":
        monkeypatch.setitem(sys.modules, "watchdog.observers", None)
        return "watchdog"
    if request.param == "no queue left":
        monkeypatch.setattr(inotify_c, "inotify_init", refuse(errno.EMFILE))
        return "inotify instance limit reached"
    monkeypatch.setattr(inotify_c, "inotify_add_watch", refuse(errno.ENOSPC))
    return "inotify watch limit reached"


def test_without_events_it_looks_again_and_again_and_says_why(watched, root, without_events):
    one, index = watched(root)
    assert one.state.startswith("polling every ")  # at longer distances on a busy machine
    assert without_events in one.state
    for change in (append, replace_atomically, replace_all_notes):
        before = one.syncs
        change(root)
        eventually(lambda before=before: one.syncs > before and index.follows_the_disk())


def test_everything_is_looked_at_now_and_then_whatever_was_told(watched, root, monkeypatch):
    monkeypatch.setattr(Watcher, "_take_hint", lambda *_: None)  # as on a network drive, or when the queue overflows
    monkeypatch.setattr("openclaw_memory.indexing.watcher.RESCAN_SECONDS", 1.0)
    _, index = watched(root)
    append(root)
    assert not index.follows_the_disk()
    eventually(index.follows_the_disk)


# --- errors
def test_what_a_sync_had_to_leave_out_is_told_and_tried_again(watched, root):
    one, index = watched(root)
    index.failed = (Skipped("memory/a.md", "cannot be read"), Skipped("memory/b.md", "cannot be cut"))
    append(root)
    eventually(lambda: one.syncs >= 3)
    assert one.is_behind
    assert one.last_error == "memory/a.md is not indexed as it should be: cannot be read, and 1 more"
    index.failed = ()
    eventually(lambda: not one.is_behind)
    assert one.last_error is None


def test_it_is_behind_from_the_first_hint_until_the_end_of_the_sync(watched, root):
    one, index = watched(root)
    seen: list[bool] = []
    go_on = threading.Event()
    index.before = lambda: (seen.append(one.is_behind), go_on.wait(LONG_ENOUGH))
    append(root)
    eventually(lambda: one.is_behind)
    eventually(lambda: seen)
    assert one.is_behind
    go_on.set()
    eventually(lambda: not one.is_behind)
    assert seen == [True]


# --- its end
def test_it_can_be_stopped_twice_and_from_any_thread(watched, root):
    one, index = watched(root)
    stoppers = [threading.Thread(target=one.stop) for _ in range(4)]
    for stopper in stoppers:
        stopper.start()
    for stopper in stoppers:
        stopper.join()
    one.stop()
    assert one.state == "stopped"
    append(root)
    with one:
        eventually(lambda: one.syncs >= 2)
    assert index.follows_the_disk()


def test_it_ends_when_the_owner_of_its_index_is_gone(root):
    index = FakeIndex(Workspace.open(root))
    one = Watcher(index.workspace, index, CONFIG).start()
    eventually(lambda: one.syncs)
    del index
    gc.collect()
    eventually(lambda: one.state == "stopped")


@pytest.mark.parametrize("ending", ["", "import gc; gc.collect()", "raise SystemExit(0)"])
@pytest.mark.sampled(1)
def test_an_interpreter_that_ends_takes_it_along_without_a_word(root, tmp_path, ending):
    code = OTHER_PROCESS.partition("with watcher:")[0] + "watcher.start()\ntime.sleep(0.3)\n" + ending
    done = subprocess.run(
        [sys.executable, "-c", code, str(root), str(tmp_path / "index.sqlite")],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
