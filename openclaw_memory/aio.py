"""`AsyncMemory`: the calls of a `Memory`, awaited; and the way from an event loop into a thread that adapters use."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from openclaw_memory import _forks
from openclaw_memory.errors import StoreError

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.control.inspection import Order
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import Excerpt, Progress, Source, Status, SyncReport
    from openclaw_memory.types.control import ExportReport, ForgetPlan, ForgetReceipt, ImportReport, Item, Kind
    from openclaw_memory.types.heartbeat import HeartbeatReport
    from openclaw_memory.types.records import RecordType
    from openclaw_memory.types.snapshots import Snapshot
    from openclaw_memory.workspace.journal import Bootstrap

__all__ = ["in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread of the event loop's own pool, and return what it returns.

    The call sees the context variables of the task. When the task is cancelled, a call that has begun runs to its end
    in its thread, and its result is dropped; one that has not begun is not made.

    Args:
        call: The function.
        *args: Its positional arguments.
        **kwargs: Its keyword arguments.
    """
    return await _awaited(None, partial(call, *args, **kwargs))


async def _awaited(pool: Executor | None, call: Callable[[], T]) -> T:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(call))


class AsyncMemory:
    """The calls of a `Memory`, awaited: each runs in a thread of a pool, and the event loop goes on meanwhile.

    Arguments, results and errors are those of `Memory`. Everything else (`flush`, `documents`, `records`,
    `watch`) is reached through `memory`, in a thread: `await in_thread(memory.memory.records.get, "fact", "office")`.

    A call whose task is cancelled while it runs is finished in its thread: a note that was being appended is appended,
    what was being forgotten is forgotten.
    A `sync` ends at its next step, and the index stays as it was.

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
        self.memory = memory
        self._max_threads = max_threads
        self._closed = False
        self.after_fork()
        _forks.in_child(self)

    def after_fork(self) -> None:
        """Begin without threads, and leave those of a parent to it."""
        self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="openclaw-memory")

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
        from openclaw_memory.memory import Memory

        return cls(Memory.open(path, **options), max_threads=max_threads)

    async def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        max_chars: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        explain: bool = False,
        now: datetime.datetime | None = None,
        path: str | Sequence[str] | None = None,
        since: datetime.date | str | None = None,
        until: datetime.date | str | None = None,
        type: RecordType | Sequence[RecordType] | None = None,  # noqa: A002 - the field's name
        key: str | Sequence[str] | None = None,
        user_id: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        min_confidence: float | None = None,
        phrases: str | Sequence[str] | None = None,
        without: str | Sequence[str] | None = None,
        task: str | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> SearchResults:
        """Return the lines that answer `query`, best first. See `Memory.search`."""
        return await self._call(
            self.memory.search,
            query,
            max_results=max_results,
            max_chars=max_chars,
            min_score=min_score,
            source=source,
            explain=explain,
            now=now,
            path=path,
            since=since,
            until=until,
            type=type,
            key=key,
            user_id=user_id,
            tags=tags,
            min_confidence=min_confidence,
            phrases=phrases,
            without=without,
            task=task,
            rules=rules,
        )

    async def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Return lines of a memory file. See `Memory.get`."""
        return await self._call(self.memory.get, path, start=start, lines=lines)

    async def append(
        self,
        text: str,
        *,
        date: datetime.date | str | None = None,
        title: str | None = None,
        skip_existing: bool = False,
        quoted_from: str | None = None,
    ) -> Excerpt:
        """Add `text` to the note of a day. See `Memory.append`."""
        return await self._call(
            self.memory.append, text, date=date, title=title, skip_existing=skip_existing, quoted_from=quoted_from
        )

    async def edit(self, path: str, start: int, end: int, text: str, *, seen: str | Excerpt) -> Excerpt:
        """Replace lines of a note that are still as `seen`. See `Memory.edit`."""
        return await self._call(self.memory.edit, path, start, end, text, seen=seen)

    async def delete(self, path: str, start: int, end: int, *, seen: str | Excerpt) -> None:
        """Remove lines of a note that are still as `seen`. See `Memory.delete`."""
        await self._call(self.memory.delete, path, start, end, seen=seen)

    async def promote(
        self, path: str, start: int, end: int, *, section: str | None = None, seen: str | Excerpt | None = None
    ) -> Excerpt:
        """Copy lines of a note to `MEMORY.md`. See `Memory.promote`."""
        return await self._call(self.memory.promote, path, start, end, section=section, seen=seen)

    async def bootstrap(
        self, *, private: bool = True, max_chars: int | None = None, now: datetime.date | str | None = None
    ) -> Bootstrap:
        """Return what an agent reads when a session starts. See `Memory.bootstrap`."""
        return await self._call(self.memory.bootstrap, private=private, max_chars=max_chars, now=now)

    async def snapshot(
        self, session_id: str, messages: Sequence[Mapping[str, Any]] | None = None, summary: str | None = None
    ) -> Snapshot | None:
        """Keep the end of a session, and name it in today's note. See `Memory.snapshot`."""
        return await self._call(self.memory.snapshot, session_id, messages, summary)

    async def snapshots(self, session_id: str | None = None) -> tuple[Snapshot, ...]:
        """Return the snapshots that there are, the latest first. See `Memory.snapshots`."""
        return await self._call(self.memory.snapshots, session_id)

    async def resume(self, session_id: str) -> list[Mapping[str, Any]]:
        """Return the messages by which a session goes on. See `Memory.resume`."""
        return await self._call(self.memory.resume, session_id)

    async def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files. See `Memory.sync`.

        `progress` is called in a thread. A task that is cancelled ends the sync at its next step; the index stays as it
        was, and the next sync continues from there.
        """
        from openclaw_memory.indexing.service import Ended

        cancelled = threading.Event()

        def step(done: Progress) -> None:
            if cancelled.is_set():
                raise Ended
            if progress is not None:
                progress(done)

        try:
            return await self._call(self.memory.sync, force=force, progress=step, wait=wait)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def heartbeat(
        self, *, budget_seconds: float = 5.0, ask: Callable[[str], str] | None = None
    ) -> HeartbeatReport:
        """Look after the memory within a budget of time; `ask` is called in a thread. See `Memory.heartbeat`."""
        return await self._call(self.memory.heartbeat, budget_seconds=budget_seconds, ask=ask)

    async def inspect(
        self,
        *,
        kind: Kind | None = None,
        since: datetime.date | str | None = None,
        until: datetime.date | str | None = None,
        type: str | None = None,  # noqa: A002 - the field's name
        source: str | None = None,
        sensitivity: str | None = None,
        sort: Order = "path",
    ) -> tuple[Item, ...]:
        """Return everything that is remembered, as it is on disk. See `Memory.inspect`."""
        return await self._call(
            self.memory.inspect,
            kind=kind,
            since=since,
            until=until,
            type=type,
            source=source,
            sensitivity=sensitivity,
            sort=sort,
        )

    async def forget(
        self,
        *,
        last_days: int | None = None,
        since: datetime.date | str | None = None,
        query: str | None = None,
        key: str | None = None,
        session: str | None = None,
        paths: Sequence[str] | None = None,
        dry_run: bool = True,
        seen: str | ForgetPlan | None = None,
        now: datetime.date | str | None = None,
    ) -> ForgetReceipt:
        """Plan what is forgotten, and with `dry_run=False` forget it. See `Memory.forget`.

        A task that is cancelled drops the receipt: what had begun is forgotten all the same.
        """
        return await self._call(
            self.memory.forget,
            last_days=last_days,
            since=since,
            query=query,
            key=key,
            session=session,
            paths=paths,
            dry_run=dry_run,
            seen=seen,
            now=now,
        )

    async def export(self, file: str | os.PathLike[str]) -> ExportReport:
        """Write everything that is remembered to one file of JSON lines. See `Memory.export`."""
        return await self._call(self.memory.export, file)

    async def import_(self, file: str | os.PathLike[str]) -> ImportReport:
        """Add the files of an export that are missing here. See `Memory.import_`."""
        return await self._call(self.memory.import_, file)

    async def status(self, *, deep: bool = False) -> Status:
        """Return what is indexed, with what, and what is degraded. See `Memory.status`."""
        return await self._call(self.memory.status, deep=deep)

    async def close(self) -> None:
        """Close the memory, and wait for the calls that are running. Calling it twice is allowed."""
        self._closed = True
        # Not in the pool: its threads may all be taken by calls that only end because the memory is closed.
        await in_thread(self.memory.close)
        await in_thread(self._pool.shutdown)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncMemory({str(self.memory.workspace.root)!r})"

    async def _call(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise StoreError(f"{self!r} is closed: open it again with AsyncMemory.open(path)")
        return await _awaited(self._pool, partial(call, *args, **kwargs))
