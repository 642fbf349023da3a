"""One sync an index at a time: the turn is waited for, told of, and falls with its holder."""

from __future__ import annotations

import errno
import os
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

from openclaw_memory.errors import SyncBusyError
from openclaw_memory.indexing import somebody_is_at_work, sync
from openclaw_memory.indexing.lock import SUFFIX, one_at_a_time

HOLDER = """
import sys
from pathlib import Path
from openclaw_memory.indexing.lock import one_at_a_time
with one_at_a_time(Path(sys.argv[1])):
    print("taken", flush=True)
    sys.stdin.read()
"""
SECONDS = 60  # how long another thread may take before a test gives up on it


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@contextmanager
def another_process(index: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the turn, until its standard input ends or it is killed."""
    command = [sys.executable, "-c", HOLDER, str(index)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "taken\n"
            yield process
        finally:
            process.kill()


def test_the_turn_shows_while_a_block_runs_and_not_before_or_after(index: Path) -> None:
    assert not somebody_is_at_work(index)
    with one_at_a_time(index) as alone:
        assert alone
        assert somebody_is_at_work(index)
    assert not somebody_is_at_work(index)


def test_threads_take_their_turns_one_after_the_other(index: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> bool:
        with one_at_a_time(index) as alone:
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
            return alone

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(20)))
    assert most == [1] * 20


def test_who_will_not_wait_is_told_which_process_has_the_turn(index: Path) -> None:
    with another_process(index) as process:
        for wait in (0, 0.2):
            with pytest.raises(SyncBusyError, match=rf"process {process.pid}, and was waited for {wait:g} s"):
                one_at_a_time(index, wait).__enter__()


def test_who_waits_is_told_so_and_gets_the_turn_when_the_other_ends(index: Path) -> None:
    words: list[str] = []
    with another_process(index) as process:

        def told(word: str) -> None:
            words.append(word)
            assert process.stdin is not None
            process.stdin.close()

        with one_at_a_time(index, None, told) as alone:
            assert alone
            assert process.wait(SECONDS) == 0
    assert words[0].startswith("waiting")
    assert f"process {process.pid}" in words[0]


def test_waiting_can_be_ended_by_whoever_is_told(index: Path) -> None:
    def told(_: str) -> None:
        raise KeyboardInterrupt

    with another_process(index), pytest.raises(KeyboardInterrupt), one_at_a_time(index, None, told):
        pass


def test_a_holder_that_is_killed_keeps_nobody_waiting(index: Path) -> None:
    with another_process(index) as process:
        assert somebody_is_at_work(index)
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        with one_at_a_time(index, 0) as alone:
            assert alone


def test_a_thread_does_not_wait_for_itself(index: Path) -> None:
    with one_at_a_time(index):
        with one_at_a_time(index) as alone:
            assert not alone
        with ThreadPoolExecutor(1) as threads, pytest.raises(SyncBusyError, match=f"process {os.getpid()}"):
            threads.submit(one_at_a_time(index, 0).__enter__).result(SECONDS)


def test_asking_again_and_again_keeps_nobody_from_the_turn(index: Path) -> None:
    with one_at_a_time(index):
        pass
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            somebody_is_at_work(index)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        try:
            for _ in range(20):
                with one_at_a_time(index, 5) as alone:
                    assert alone
        finally:
            done.set()
        asking.result(SECONDS)


def test_asking_leaves_no_file_and_the_lock_is_for_its_owner_alone(index: Path) -> None:
    somebody_is_at_work(index)
    assert list(index.parent.iterdir()) == []
    with one_at_a_time(index):
        assert stat.S_IMODE(Path(f"{index}{SUFFIX}").stat().st_mode) == 0o600


def test_an_index_without_a_file_has_nobody_else() -> None:
    with one_at_a_time(None, 0) as alone, one_at_a_time(None, 0) as alone_too:
        assert (alone, alone_too) == (True, True)
    assert not somebody_is_at_work(None)


def test_where_no_lock_can_be_made_the_work_goes_on_and_knows_that_it_may_not_be_alone(tmp_path: Path) -> None:
    index = tmp_path / "none" / "index.sqlite"
    with one_at_a_time(index, 0) as alone:
        assert not alone
        assert not somebody_is_at_work(index)


def test_a_file_system_without_locks_has_no_turns_and_nobody_is_taken_for_dead(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    with one_at_a_time(index, 0) as alone, one_at_a_time(index, 0) as alone_too:
        assert (alone, alone_too) == (False, False)
        assert not somebody_is_at_work(index)


def test_a_sync_that_would_have_to_wait_says_so_and_changes_nothing(place, index) -> None:  # type: ignore[no-untyped-def]
    place.write("MEMORY.md", "memo apple")
    told: list[str] = []

    def progress(step) -> None:  # type: ignore[no-untyped-def]
        told.append(step.label)

    options = {"index_path": index, "progress": progress, "wait": 0.3}
    with another_process(index), pytest.raises(SyncBusyError):
        sync(place.workspace, place.store, place.embedder, place.config, **options)
    assert [label.split(":")[0] for label in told] == ["waiting"]
    assert place.store.meta() is None
    assert sync(place.workspace, place.store, place.embedder, place.config, **options).added == ("MEMORY.md",)
