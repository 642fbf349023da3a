"""Coroutines run in a thread of their own, for callers with and without an event loop."""

import asyncio
import gc
import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from openclaw_memory.embeddings._background import Background


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


FORK = """
import asyncio, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads, which is the point
from openclaw_memory.embeddings._background import Background
background = Background("parent")
background.run(asyncio.sleep(0)).result(20)
if os.fork() == 0:
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
def test_a_forked_process_is_told_to_make_its_own():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=True)
    assert "EmbedderError parent: this process was forked" in run.stdout
    assert "the parent goes on" in run.stdout
