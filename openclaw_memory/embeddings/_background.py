"""An event loop in a thread of its own: coroutines run there for callers that have none, or have one running."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from openclaw_memory.errors import EmbedderError

T = TypeVar("T")

# How long closing waits for connections to say goodbye, in seconds.
GOODBYE_SECONDS = 2.0


class Background:
    """Runs coroutines in one thread, which begins with the first of them and ends with `close`.

    `goodbye` is awaited there before the thread ends.
    """

    def __init__(self, name: str, goodbye: Callable[[], Awaitable[None]] | None = None) -> None:
        self._name = name
        self._goodbye = goodbye
        self._lock = threading.Lock()
        self._end: weakref.finalize[Any, Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work`; cancelling the future cancels it. After `close`, a new thread begins.

        Raises:
            EmbedderError: this process was forked from the one that made this object.
        """
        if os.getpid() != self._process:  # the thread has stayed behind, and the connections are the parent's
            work.close()
            raise EmbedderError(f"{self._name}: this process was forked after the embedder was made; make one in each")
        with self._lock:
            return asyncio.run_coroutine_threadsafe(work, self._started())

    def close(self) -> None:
        """Cancel what runs, and end the thread. Calling it twice is allowed."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._loop = self._end = None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
            thread.start()
            # Also when the last reference goes: neither the thread nor the loop may refer to this object.
            self._end = weakref.finalize(self, _end, loop, thread, self._goodbye)
        return self._loop


def _end(
    loop: asyncio.AbstractEventLoop, thread: threading.Thread, goodbye: Callable[[], Awaitable[None]] | None
) -> None:
    async def last_words() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if goodbye is not None:
            await goodbye()
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    if threading.current_thread() is thread or not thread.is_alive():  # collected in its own thread, or forked
        loop.call_soon_threadsafe(loop.stop)
        return
    with suppress(Exception):  # whatever goes wrong, the connections are lost with the thread
        asyncio.run_coroutine_threadsafe(last_words(), loop).result(GOODBYE_SECONDS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(GOODBYE_SECONDS)
    if not thread.is_alive():
        loop.close()
