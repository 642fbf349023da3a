"""Coroutines run in a thread of their own, for callers with and without an event loop."""

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, wait
from contextlib import suppress

import pytest

from openclaw_memory.embeddings import _background
from openclaw_memory.embeddings._background import Background
from openclaw_memory.embeddings._failures import ServiceError


async def _double(number):
    await asyncio.sleep(0)
    return 2 * number


def _names():
    return [thread.name for thread in threading.enumerate()]


@pytest.fixture
def background():
    made = Background("a test's loop")
    yield made
    made.close()


def test_work_is_done_in_one_thread_that_begins_with_the_first(background):
    assert "a test's loop" not in _names()
    assert [background.run(_double(number)).result(20) for number in range(3)] == [0, 2, 4]
    assert _names().count("a test's loop") == 1


def test_work_is_done_for_a_caller_inside_a_loop(background):
    async def ask():
        return background.run(_double(4)).result(20)

    assert asyncio.run(ask()) == 8


def test_an_error_reaches_the_caller(background):
    async def fail():
        raise LookupError("of the work")

    with pytest.raises(LookupError, match="of the work"):
        background.run(fail()).result(20)


def test_cancelling_the_future_cancels_the_work(background):
    begun, ended = threading.Event(), threading.Event()

    async def work():
        begun.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    future = background.run(work())
    assert begun.wait(20)
    future.cancel()
    assert ended.wait(20)


def test_closing_cancels_the_work_says_goodbye_and_ends_the_thread():
    said = []

    async def goodbye():
        said.append(threading.current_thread().name)

    background = Background("a test's loop", goodbye)
    future = background.run(asyncio.sleep(1000))
    background.close()
    background.close()
    with pytest.raises(CancelledError):
        future.result(20)
    assert said == ["a test's loop"]
    assert "a test's loop" not in _names()
    assert background.run(_double(5)).result(20) == 10
    background.close()
    assert said == ["a test's loop"] * 2


def test_work_that_belongs_to_what_was_closed_is_cancelled_and_begins_no_thread(background):
    since = background.closings
    assert background.run(_double(1), since).result(20) == 2
    background.close()
    work = _double(2)
    future = background.run(work, since)
    assert wait([future], 20).done == {future}
    assert future.cancelled()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert "a test's loop" not in _names()
    assert background.run(_double(3), background.closings).result(20) == 6


def test_closing_what_never_ran_says_no_goodbye():
    said = []

    async def goodbye():
        said.append("goodbye")

    Background("a test's loop", goodbye).close()
    assert said == []


def test_a_goodbye_that_fails_does_not_keep_the_thread():
    async def goodbye():
        raise OSError("the connection is gone")

    background = Background("a test's loop", goodbye)
    background.run(_double(1)).result(20)
    background.close()
    assert "a test's loop" not in _names()


def test_the_thread_ends_with_the_last_reference():
    background = Background("a test's loop")
    background.run(_double(1)).result(20)
    del background
    gc.collect()
    assert "a test's loop" not in _names()


def test_closing_while_the_loop_is_busy_ends_what_waits_for_it(monkeypatch):
    monkeypatch.setattr(_background, "GOODBYE_SECONDS", 0.05)
    busy, free, said = threading.Event(), threading.Event(), []

    async def work():
        busy.set()
        free.wait(20)
        await asyncio.sleep(1000)

    async def goodbye():
        said.append("goodbye")

    background = Background("a test's loop", goodbye)
    futures = [background.run(work()), background.run(asyncio.sleep(1000))]
    assert busy.wait(20)
    background.close()
    assert not any(future.done() for future in futures)
    free.set()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(20)
    while "a test's loop" in _names():
        time.sleep(0.01)
    assert said == ["goodbye"]


def test_closing_ends_what_waits_for_work_that_does_not_end(monkeypatch):
    monkeypatch.setattr(_background, "GOODBYE_SECONDS", 0.05)
    begun, stop = threading.Event(), threading.Event()

    async def work():
        while not stop.is_set():
            begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    background = Background("a test's loop")
    future = background.run(work())
    assert begun.wait(20)
    background.close()
    assert wait([future], 20).done == {future}
    assert future.cancelled()
    stop.set()


def test_a_goodbye_that_does_not_end_does_not_keep_the_thread(monkeypatch):
    monkeypatch.setattr(_background, "GOODBYE_SECONDS", 0.05)
    background = Background("a test's loop", lambda: asyncio.sleep(1000))
    background.run(_double(1)).result(20)
    background.close()
    while "a test's loop" in _names():
        time.sleep(0.01)


def test_a_thread_that_cannot_be_had_is_an_error_and_the_next_call_tries_again(background, monkeypatch):
    def full(_thread):
        raise RuntimeError("can't start new thread")

    work = _double(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        with pytest.raises(ServiceError, match="can't start new thread"):
            background.run(work)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert background.run(_double(2)).result(20) == 4


FORK = """
import asyncio, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads, which is the point
from openclaw_memory.embeddings._background import Background
background, unused = Background("parent"), Background("child")
background.run(asyncio.sleep(0)).result(20)
if os.fork() == 0:
    unused.run(asyncio.sleep(0)).result(20)
    unused.close()
    print("the child has its own", flush=True)
    background.close()
    try:
        background.run(asyncio.sleep(0)).result(20)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
background.run(asyncio.sleep(0)).result(20)
print("the parent goes on")
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no processes are forked here")
def test_a_forked_process_is_told_to_make_its_own_unless_it_is_the_first_to_ask():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=True)
    assert "the child has its own" in run.stdout
    assert "ServiceError parent: this process was forked" in run.stdout
    assert "the parent goes on" in run.stdout
