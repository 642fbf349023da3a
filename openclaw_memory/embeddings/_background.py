"""An event loop in a thread of its own: coroutines run there for callers that have none, or have one running."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from openclaw_memory.embeddings._failures import Meaning, ServiceError

T = TypeVar("T")

# How long closing waits for what runs to end, and for connections to say goodbye, in seconds.
GOODBYE_SECONDS = 2.0


class Background:
    """Runs coroutines in one thread, which begins with the first of them and ends with `close`.

    `goodbye` is awaited there before the thread ends. `closings` counts how often `close` was called.
    """

    def __init__(self, name: str, goodbye: Callable[[], Awaitable[None]] | None = None) -> None:
        self.closings = 0
        self._name = name
        self._goodbye = goodbye
        self._lock = threading.Lock()
        self._end: weakref.finalize[Any, Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: weakref.WeakSet[Future[Any]] = weakref.WeakSet()
        self._process: int | None = None

    def run(self, work: Coroutine[Any, Any, T], since: int | None = None) -> Future[T]:
        """Begin `work`; cancelling the future cancels it. After `close`, a new thread begins.

        Work that belongs to what began earlier, when there were `since` closings, is cancelled if there are more now.

        Raises:
            ServiceError: no thread can be had, or this process was forked from the one whose thread it is.
        """
        try:
            if self._is_forked():
                words = f"{self._name}: this process was forked after the embedder was used; make one in each"
                raise ServiceError(words, Meaning.DENIED)
            with self._lock:  # under which `close` counts: no work slips in between the look and its beginning
                if since is not None and since != self.closings:
                    work.close()
                    return _cancelled()
                future = asyncio.run_coroutine_threadsafe(work, self._started())
                self._under_way.add(future)
                return future
        except BaseException:
            work.close()
            raise

    def close(self) -> None:
        """Cancel what runs, and end the thread. Calling it twice is allowed."""
        if self._is_forked():  # thread and connections are the parent's
            return
        with self._lock:
            self.closings += 1
            if self._end is not None:
                self._end()
            self._loop = self._end = None

    def _is_forked(self) -> bool:
        return self._loop is not None and self._process != os.getpid()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            under_way: weakref.WeakSet[Future[Any]] = weakref.WeakSet()
            # Neither the thread nor the loop may refer to this object: it also ends when the last reference goes.
            parts = (loop, under_way, self._goodbye)
            thread = threading.Thread(target=_run, args=parts, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                loop.close()
                raise ServiceError(f"{self._name}: {error}; end some threads", Meaning.PASSING) from error
            self._loop, self._process, self._under_way = loop, os.getpid(), under_way
            self._end = weakref.finalize(self, _end, loop, thread, under_way)
        return self._loop


def _cancelled() -> Future[Any]:
    future: Future[Any] = Future()
    future.cancel()
    future.set_running_or_notify_cancel()  # or whoever waits for the first of several does not hear of it
    return future


def _run(
    loop: asyncio.AbstractEventLoop, under_way: Iterable[Future[Any]], goodbye: Callable[[], Awaitable[None]] | None
) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_last_words(goodbye))
    finally:
        for future in list(under_way):  # of work that does not let itself be cancelled: somebody waits for it
            if not future.done() and future.cancel():
                future.set_running_or_notify_cancel()
        loop.close()


async def _last_words(goodbye: Callable[[], Awaitable[None]] | None) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=GOODBYE_SECONDS)
    with suppress(Exception):  # whatever goes wrong, the connections are lost with the thread
        async with asyncio.timeout(GOODBYE_SECONDS):
            if goodbye is not None:
                await goodbye()
            await asyncio.get_running_loop().shutdown_asyncgens()
            await asyncio.get_running_loop().shutdown_default_executor()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, under_way: Iterable[Future[Any]]) -> None:
    if not thread.is_alive():  # this process was forked
        return
    if not threading.main_thread().is_alive() and not all(future.done() for future in under_way):
        return  # the interpreter ends, and with it the threads that wait: they would only print that they were told
    loop.call_soon_threadsafe(loop.stop)
    if threading.current_thread() is not thread:  # it may be collected there
        thread.join(2 * GOODBYE_SECONDS)
