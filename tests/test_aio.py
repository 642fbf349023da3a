"""`AsyncMemory`: the same calls, awaited; the event loop goes on, and a cancelled task leaves the memory usable."""

import asyncio
import doctest
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

from openclaw_memory import AsyncMemory, Memory, aio
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import InvalidInputError, StoreError

AWAITED = [
    "search", "get", "append", "edit", "delete", "promote", "bootstrap", "sync", "status", "heartbeat", "inspect",
    "forget", "close",
]  # fmt: skip


class Gate(HashingEmbedder):
    """An embedder that waits, in `embed_documents`, until it is let on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.open = threading.Event(), threading.Event()

    def embed_documents(self, texts: Any) -> Any:
        self.reached.set()
        assert self.open.wait(60)
        return super().embed_documents(texts)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the condition is set by a thread
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("name", AWAITED)
def test_an_awaited_call_takes_what_the_call_of_a_memory_takes(name):
    here, there = (inspect.signature(getattr(kind, name)) for kind in (AsyncMemory, Memory))
    assert list(here.parameters.values()) == list(there.parameters.values())
    assert inspect.iscoroutinefunction(getattr(AsyncMemory, name))


def test_the_tour_in_the_docstring_is_true():
    assert doctest.testmod(aio).failed == 0


def test_every_call_does_what_it_does_without_await(notes):
    async def use() -> None:
        async with AsyncMemory.open(notes, embedder=HashingEmbedder()) as memory:
            added = await memory.append("The zeppelin lands on Sunday.", date="2026-11-21")
            assert (await memory.sync()).ok
            assert (await memory.search("zeppelin", max_results=1))[0].path == added.path
            line = await memory.get(added.path, start=added.start_line, lines=1)
            edited = await memory.edit(added.path, line.start_line, line.end_line, "It lands on Monday.", seen=line)
            assert "Monday" in (await memory.promote(added.path, edited.start_line, edited.end_line)).text
            await memory.delete(added.path, edited.start_line, edited.end_line, seen=edited)
            assert "MEMORY.md" in [file.path for file in (await memory.bootstrap()).files]
            assert (await memory.status()).files == len(memory.memory.workspace.scan().files)
            assert (await memory.heartbeat(budget_seconds=60)).left == ()
            assert added.path in [item.path for item in await memory.inspect()]
            plan = (await memory.forget(paths=[added.path])).plan
            assert (await memory.forget(paths=[added.path], dry_run=False, seen=plan)).forgotten == (added.path,)
            with pytest.raises(InvalidInputError):
                await memory.append("")

    asyncio.run(use())


def test_the_event_loop_and_other_calls_go_on_while_a_sync_runs(notes):
    async def use() -> None:
        gate = Gate()
        async with AsyncMemory.open(notes, embedder=gate) as memory:
            syncing = asyncio.create_task(memory.sync())
            await until(gate.reached.is_set)
            assert (await memory.get("MEMORY.md", lines=1)).text
            assert not syncing.done()
            gate.open.set()
            assert (await syncing).ok

    asyncio.run(use())


def test_a_sync_whose_task_is_cancelled_ends_and_the_next_one_completes(notes):
    async def use() -> None:
        gate = Gate()
        async with AsyncMemory.open(notes, embedder=gate) as memory:
            syncing = asyncio.create_task(memory.sync())
            await until(gate.reached.is_set)
            syncing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await syncing
            gate.open.set()
            assert (await memory.sync()).ok
            assert (await memory.search("GEO-1000"))[0].path == "memory/2026-02-09.md"
            status = await memory.status()
            assert (status.dirty, status.last_error) == ({}, None)

    asyncio.run(use())


def test_a_call_that_waits_for_a_thread_is_not_made_once_its_task_is_cancelled(notes):
    async def use() -> None:
        gate = Gate()
        async with AsyncMemory.open(notes, embedder=gate, max_threads=1) as memory:
            syncing = asyncio.create_task(memory.sync())
            await until(gate.reached.is_set)
            waiting = asyncio.create_task(memory.append("Never said.", date="2026-11-21"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            gate.open.set()
            await syncing
        assert not (notes / "memory" / "2026-11-21.md").exists()

    asyncio.run(use())


def test_what_is_being_forgotten_is_forgotten_though_its_task_is_cancelled(notes, monkeypatch):
    async def use() -> None:
        reached, go_on = threading.Event(), threading.Event()
        async with AsyncMemory.open(notes, embedder=None) as memory:
            await memory.append("The ferry leaves at seven.", date="2026-11-21")
            planned = memory.memory.forget

            def forget(**wanted: Any) -> Any:
                reached.set()
                assert go_on.wait(60)
                return planned(**wanted)

            monkeypatch.setattr(memory.memory, "forget", forget)
            forgetting = asyncio.create_task(memory.forget(paths=["memory/2026-11-21.md"], dry_run=False))
            await until(reached.is_set)
            forgetting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await forgetting
            assert (notes / "memory" / "2026-11-21.md").exists()
            go_on.set()
            await until(lambda: not (notes / "memory" / "2026-11-21.md").exists())

    asyncio.run(use())


def test_closing_ends_a_sync_and_refuses_what_comes_later(notes):
    async def use() -> None:
        gate = Gate()
        memory = AsyncMemory.open(notes, embedder=gate, max_threads=1)
        syncing = asyncio.create_task(memory.sync())
        await until(gate.reached.is_set)
        queued = asyncio.create_task(memory.search("boiler"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        with pytest.raises(StoreError, match="closed"):
            await memory.search("boiler")
        gate.open.set()
        await closing
        for call in (syncing, queued):
            with pytest.raises(StoreError):
                await call
        await memory.close()

    asyncio.run(use())
