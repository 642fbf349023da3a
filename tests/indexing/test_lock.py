"""One holder of a lock at a time: the turn is waited for, told of, and falls with its holder."""

from __future__ import annotations

import errno
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.store import SqliteStore
from openclaw_memory.store.lock import is_locked, lock_file
from openclaw_memory.workspace import Workspace

HOLDER = """
import sys
from pathlib import Path
from openclaw_memory.store.lock import lock_file
with lock_file(Path(sys.argv[1])):
    print("taken", flush=True)
    sys.stdin.read()
"""
SECONDS = 60  # how long another thread may take before a test gives up on it


@pytest.fixture
def lock_path(tmp_path):
    return tmp_path / "index.sqlite.sync-lock"


@contextmanager
def another_process(lock_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the turn, until its standard input ends or it is killed."""
    command = [sys.executable, "-c", HOLDER, str(lock_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "taken\n"
            yield process
        finally:
            process.kill()


def test_who_will_not_wait_is_told_which_process_has_the_turn(lock_path):
    with another_process(lock_path) as process:
        for wait in (0, 0.2):
            with pytest.raises(SyncBusyError, match=rf"process {process.pid}, and was waited for {wait:g} s"):
                lock_file(lock_path, wait).__enter__()


def test_who_waits_is_told_so_and_gets_the_turn_when_the_other_ends(lock_path):
    words: list[str] = []
    with another_process(lock_path) as process:

        def told(word: str) -> None:
            words.append(word)
            assert process.stdin is not None
            process.stdin.close()

        with lock_file(lock_path, None, told) as alone:
            assert alone
            assert process.wait(SECONDS) == 0
    assert words[0].startswith("waiting")
    assert f"process {process.pid}" in words[0]


@pytest.mark.fault(3)
def test_a_holder_that_is_killed_keeps_nobody_waiting(lock_path):
    with another_process(lock_path) as process:
        assert is_locked(lock_path)
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        with lock_file(lock_path, 0) as alone:
            assert alone


def test_asking_again_and_again_keeps_nobody_from_the_turn(lock_path):
    with lock_file(lock_path):
        pass
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            is_locked(lock_path)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        try:
            for _ in range(20):
                with lock_file(lock_path, 5) as alone:
                    assert alone
        finally:
            done.set()
        asking.result(SECONDS)


def test_asking_leaves_no_file_and_the_lock_is_for_its_owner_alone(lock_path):
    is_locked(lock_path)
    assert list(lock_path.parent.iterdir()) == []
    with lock_file(lock_path):
        assert stat.S_IMODE(lock_path.stat().st_mode) == 0o600


def test_where_no_lock_can_be_made_the_work_goes_on_and_knows_that_it_may_not_be_alone(tmp_path):
    lock_path = tmp_path / "none" / "index.sqlite.sync-lock"
    with lock_file(lock_path, 0) as alone:
        assert not alone
        assert not is_locked(lock_path)


def test_a_file_system_without_locks_has_no_turns_and_nobody_is_taken_for_dead(lock_path, monkeypatch):
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    with lock_file(lock_path, 0) as alone, lock_file(lock_path, 0) as alone_too:
        assert (alone, alone_too) == (False, False)
        assert not is_locked(lock_path)


def test_a_sync_that_would_have_to_wait_says_so_and_changes_nothing(tmp_path, notes):
    labels: list[str] = []
    with Memory(Workspace.open(notes), SqliteStore(tmp_path / "index.sqlite"), None) as memory:
        store = memory._engine.service.store()
        store.set_meta("name", "text")
        with another_process(tmp_path / "index.sqlite.sync-lock"), pytest.raises(SyncBusyError):
            memory.sync(progress=lambda step: labels.append(step.label), wait=0.3)
        assert [label.split(":")[0] for label in labels] == ["waiting"]
        assert store.read_meta() is None
        assert len(memory.sync().added) == 4
