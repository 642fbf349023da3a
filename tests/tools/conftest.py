"""A small memory with notes and a conversation, without an embedder, and its tools by their names."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import RecallConfig, SyncConfig
from openclaw_memory.tools import memory_tools
from openclaw_memory.types import ToolAnswer

Call = Callable[..., ToolAnswer]


@pytest.fixture
def open_memory(notes):
    """Opens the memory of `notes` by keywords, with the settings of `recall` that are given."""
    opened: list[Memory] = []

    def open_memory(**recall: Any) -> Memory:
        config = MemoryConfig(recall=RecallConfig(**recall), sync=SyncConfig(on_search=False))
        opened.append(Memory.open(notes, embedder=None, config=config))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory):
    return open_memory()


@pytest.fixture
def call(memory):
    """Calls a tool of `memory`, of the session `key`: `call("memory_get", path="MEMORY.md")`."""

    def call(name: str, /, key: str | None = None, **arguments: Any) -> ToolAnswer:
        return called(memory, name, arguments, key)

    return call


def called(memory: Memory, name: str, arguments: Mapping[str, Any], key: str | None) -> ToolAnswer:
    include = "search get append edit forget promote remember confirm".split()
    (tool,) = (tool for tool in memory_tools(memory, session_key=key, include=include) if tool.name == name)
    # `from` cannot be written as a keyword.
    return tool.run({argument.removesuffix("_"): value for argument, value in arguments.items()})
