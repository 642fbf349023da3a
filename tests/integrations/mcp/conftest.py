"""What the tests of the MCP server share: a memory that is indexed, and the SDK's own client, connected to it."""

from contextlib import asynccontextmanager

import anyio
import pytest

pytest.importorskip("mcp")

from mcp.client import Client
from openclaw_memory_mcp import MemoryServer

from openclaw_memory import Memory


@pytest.fixture
def memory(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        yield memory


@pytest.fixture(params=["auto", "legacy"])
def mode(request):
    """The protocol of 2026-07-28, and the one that begins with a handshake."""
    return request.param


@pytest.fixture
def connected():
    """Connects a client to a server of a memory, in this process."""

    @asynccontextmanager
    async def connected(memory, mode="auto", *, session_key=None, follows=False, waits=True, **options):
        include = options.pop("include", ("search", "get", "append"))
        server = MemoryServer(memory, session_key=session_key, include=include)
        async with anyio.create_task_group() as tasks:
            if follows:
                tasks.start_soon(server.changes.follow)
                while waits and not server.changes.is_following:  # noqa: ASYNC110 - only tests wait for it
                    await anyio.sleep(0.01)
            async with Client(server.protocol, mode=mode, **options) as client:
                yield client
            tasks.cancel_scope.cancel()

    return connected
