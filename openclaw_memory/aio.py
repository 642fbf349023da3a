"""Await the calls of a memory, and run any blocking call in a thread beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from openclaw_memory.control.control import Control
from openclaw_memory.errors import StoreError
from openclaw_memory.memory import Memory
from openclaw_memory.sessions import Sessions
from openclaw_memory.workspace.notes import Notes

if TYPE_CHECKING:
    from openclaw_memory.types import Progress, SyncReport

__all__ = ["run_in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread of the event loop's own pool.

    The call sees the context variables of the task. When the task is cancelled, a call that has begun runs to its end
    in its thread, and its result is dropped; one that has not begun is not made.

    Args:
        call: The function.
        *args: Its positional arguments.
        **kwargs: Its keyword arguments.
    """
    return await _run_in(None, partial(call, *args, **kwargs))


async def _run_in(pool: Executor | None, call: Callable[[], T]) -> T:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(call))


def _await_method(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a method of a memory, or of a part, into one that is awaited."""

    @wraps(method)
    async def run(self: _AsyncPart, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._memory._run(getattr(self._part, method.__name__), *args, **kwargs)

    summary = (method.__doc__ or "").partition("\n")[0].partition(" See ")[0]  # there is none with `python -OO`
    run.__doc__ = f"{summary} See `{method.__qualname__}`.".strip()
    run.__module__ = __name__
    return run


class _AsyncPart:
    """Await the calls of a part of a memory."""

    def __init__(self, memory: AsyncMemory, part: object) -> None:
        self._memory, self._part = memory, part


class AsyncNotes(_AsyncPart):
    """The calls of `Memory.notes`, awaited."""

    append = _await_method(Notes.append)
    edit = _await_method(Notes.edit)
    delete = _await_method(Notes.delete)
    promote = _await_method(Notes.promote)
    bootstrap = _await_method(Notes.bootstrap)


class AsyncSessions(_AsyncPart):
    """The calls of `Memory.sessions`, awaited; a log and a flush belong to a thread: see `run_in_thread`."""

    snapshot = _await_method(Sessions.snapshot)
    snapshots = _await_method(Sessions.snapshots)
    resume = _await_method(Sessions.resume)


class AsyncControl(_AsyncPart):
    """The calls of `Memory.control`, awaited."""

    inspect = _await_method(Control.inspect)
    forget = _await_method(Control.forget)


class AsyncMemory(_AsyncPart):
    """The calls of a `Memory`, awaited: each runs in a thread of a pool, and the event loop goes on meanwhile.

    Arguments, results and errors are those of `Memory`, also in its parts `notes`, `sessions` and `control`. All else
    (a log, a flush, `documents`, `records`, `watch`) is reached through `memory`, in a thread:
    `await run_in_thread(memory.memory.records.get, "fact", "office")`.

    A call whose task is cancelled while it runs is finished in its thread: a note that was being appended is appended,
    a running `forget` completes, and its receipt is dropped. A `sync` ends at its next step, and the index
    stays as it was. Functions that are handed over, such as `ask` of `heartbeat`, are called in a thread.

    >>> import asyncio, tempfile
    >>> async def ask(folder: str) -> str:
    ...     async with AsyncMemory.open(folder, embedder=None) as memory:
    ...         await memory.append("The ferry leaves at seven.", date="2026-11-21")
    ...         await memory.sync()
    ...         return (await memory.search("ferry"))[0].citation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(ask(folder))
    'memory/2026-11-21.md#L3'
    """

    def __init__(self, memory: Memory, *, max_threads: int = 4) -> None:
        """Await the calls of an open memory.

        Args:
            memory: The memory; `close` closes it.
            max_threads: How many calls run at the same time; others wait for their turn.
        """
        super().__init__(self, memory)
        self.memory = memory
        self.notes, self.sessions = AsyncNotes(self, memory.notes), AsyncSessions(self, memory.sessions)
        self.control = AsyncControl(self, memory.control)
        self._max_threads, self._is_closed = max_threads, False
        self._start_threads()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, max_threads: int = 4, **options: Any) -> Self:
        """Open the memory of the workspace folder `path`; use it with `async with`, or `close` it.

        Nothing is read but the workspace's configuration, nothing is written.

        Args:
            path: The workspace folder.
            max_threads: How many calls run at the same time.
            **options: As for `Memory.open`.

        Raises:
            WorkspaceError, ConfigError: As `Memory.open`.
        """
        return cls(Memory.open(path, **options), max_threads=max_threads)

    search = _await_method(Memory.search)
    get = _await_method(Memory.get)
    append = _await_method(Memory.append)
    edit = _await_method(Memory.edit)
    delete = _await_method(Memory.delete)
    heartbeat = _await_method(Memory.heartbeat)
    status = _await_method(Memory.status)

    async def sync(
        self, *, force: bool = False, progress: Callable[[Progress], None] | None = None, wait: float | None = None
    ) -> SyncReport:
        """Bring the index up to date with the files. See `Memory.sync`.

        `progress` is called in a thread. A task that is cancelled ends the sync at its next step; the index stays as it
        was, and the next sync continues from there.
        """
        from openclaw_memory.indexing.background import Ended

        is_cancelled = threading.Event()

        def report(step: Progress) -> None:
            if is_cancelled.is_set():
                raise Ended
            if progress is not None:
                progress(step)

        try:
            return await self._run(self.memory.sync, force=force, progress=report, wait=wait)
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    async def close(self) -> None:
        """Close the memory, and wait for the calls that are running. Calling it twice is allowed."""
        self._is_closed = True
        # Not in the pool: its threads may all be taken by calls that only end because the memory is closed.
        await run_in_thread(self.memory.close)
        await run_in_thread(self._pool.shutdown)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncMemory({str(self.memory.workspace.root)!r})"

    async def _run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed: open it again with AsyncMemory.open(path)")
        if self._pid != os.getpid():  # a forked child has none of the threads of its parent
            self._start_threads()
        return await _run_in(self._pool, partial(call, *args, **kwargs))

    def _start_threads(self) -> None:
        self._pid = os.getpid()
        self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="openclaw-memory")
