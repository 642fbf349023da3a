"""`AsyncMemory`: the same calls, awaited; the event loop goes on, and a cancelled task leaves the memory usable."""

import asyncio
import doctest
import inspect
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest

from openclaw_memory import AsyncMemory, aio
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import InvalidInputError, StoreError

AWAITED = """
    search get append edit delete notes.append notes.edit notes.delete notes.promote notes.bootstrap sessions.snapshot
    sessions.snapshots sessions.resume control.inspect control.forget sync status heartbeat close
""".split()


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
async def test_an_awaited_call_takes_what_the_call_of_a_memory_takes(name, tmp_path):
    async with AsyncMemory.open(tmp_path) as memory:
        here, there = map(attrgetter(name), (memory, memory.memory))
        assert inspect.signature(here).parameters == inspect.signature(there).parameters
        assert inspect.iscoroutinefunction(here)


def test_the_tour_in_the_docstring_is_true():
    assert doctest.testmod(aio).failed == 0


async def test_every_call_does_what_it_does_without_await(notes):
    async with AsyncMemory.open(notes, embedder=HashingEmbedder()) as memory:
        added = await memory.append("The zeppelin lands on Sunday.", date="2026-11-21")
        assert (await memory.sync()).ok
        assert (await memory.search("zeppelin", max_results=1))[0].path == added.path
        line = await memory.get(added.path, start=added.start_line, lines=1)
        edited = await memory.edit(added.path, line.start_line, line.end_line, "It lands on Monday.", expected=line)
        assert "Monday" in (await memory.notes.promote(added.path, edited.start_line, edited.end_line)).text
        await memory.delete(added.path, edited.start_line, edited.end_line, expected=edited)
        assert "MEMORY.md" in [file.path for file in (await memory.notes.bootstrap()).files]
        assert (await memory.status()).files == len(memory.memory.workspace.scan().files)
        assert (await memory.heartbeat(budget_seconds=60)).left == ()
        assert added.path in [item.path for item in await memory.control.inspect()]
        plan = (await memory.control.forget(paths=[added.path])).plan
        assert (await memory.control.forget(paths=[added.path], dry_run=False, expected=plan)).forgotten == (
            added.path,
        )
        with pytest.raises(InvalidInputError):
            await memory.append("")


async def test_the_event_loop_and_other_calls_go_on_while_a_sync_runs(notes):
    gate = Gate()
    async with AsyncMemory.open(notes, embedder=gate) as memory:
        syncing = asyncio.create_task(memory.sync())
        await until(gate.reached.is_set)
        assert (await memory.get("MEMORY.md", lines=1)).text
        assert not syncing.done()
        gate.open.set()
        assert (await syncing).ok


async def test_a_sync_whose_task_is_cancelled_ends_and_the_next_one_completes(notes):
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


async def test_what_is_being_forgotten_is_forgotten_though_its_task_is_cancelled(notes, monkeypatch):
    reached, go_on = threading.Event(), threading.Event()
    async with AsyncMemory.open(notes, embedder=None) as memory:
        await memory.append("The ferry leaves at seven.", date="2026-11-21")
        planned = memory.memory.control.forget

        def forget(**wanted: Any) -> Any:
            reached.set()
            assert go_on.wait(60)
            return planned(**wanted)

        monkeypatch.setattr(memory.memory.control, "forget", forget)
        forgetting = asyncio.create_task(memory.control.forget(paths=["memory/2026-11-21.md"], dry_run=False))
        await until(reached.is_set)
        forgetting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await forgetting
        assert (notes / "memory" / "2026-11-21.md").exists()
        go_on.set()
        await until(lambda: not (notes / "memory" / "2026-11-21.md").exists())


async def test_closing_ends_a_sync_and_refuses_what_comes_later(notes):
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
