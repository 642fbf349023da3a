"""Who is at work: doors inside each other, sessions, tasks and threads, and blocks that end elsewhere than they began."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

from openclaw_memory._acting import acting_as, actor
from openclaw_memory.aio import in_thread


def test_without_a_door_it_is_the_library():
    assert actor() == "library"


def test_doors_add_up_and_the_innermost_session_counts():
    with acting_as("mcp:zed", session="a"):
        assert actor() == "mcp:zed@a"
        with acting_as("tool:memory_get"), acting_as("tool:memory_get"):
            assert actor() == "mcp:zed/tool:memory_get@a"
        with acting_as("bot", session="b"):
            assert actor() == "mcp:zed/bot@b"
        assert actor() == "mcp:zed@a"
    assert actor() == "library"


def test_a_name_can_be_taken_for_no_other_door_and_is_cut():
    with acting_as("web@x/cli:get\n", session="s\x1b[2J\n" + "y" * 500):
        assert actor().startswith("web_x_cli:get_@s_[2J_yyy")
        assert len(actor()) < 230


def test_a_task_and_a_thread_are_in_the_block_that_began_them():
    async def both() -> list[str]:
        with acting_as("web"):
            task = asyncio.create_task(in_thread(actor))
        return [await task, await in_thread(actor)]

    assert asyncio.run(both()) == ["web", "library"]
    with acting_as("web"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(actor).result() == "library"  # a thread of another's has a way of its own


def test_a_block_that_ends_in_another_context_ends_nothing_there():
    block = acting_as("web")
    elsewhere = contextvars.copy_context()
    elsewhere.run(block.__enter__)
    with acting_as("cli:get"):
        block.__exit__()
        assert actor() == "cli:get"
    assert elsewhere.run(actor) == "web"
    elsewhere.run(block.__exit__)
    assert elsewhere.run(actor) == "library"
