"""Which memory a run uses: one for all, or one that a template or a function chooses for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import ConfigError
from openclaw_memory.events import acting_as
from openclaw_memory.memories import Lease, MemoryTemplate, template_of
from openclaw_memory.memory import Memory

__all__ = ["lease_memory", "read_memory_choice", "run_values"]

# What `memory=` of an adapter takes: a memory, a template such as "users/{user_id}" or `Memories.template`, or a
# function of the run that returns a memory, or the lease of one: `lambda run: users.use(...)`.
MemoryChoice: TypeAlias = Memory | str | MemoryTemplate | Callable[..., Memory | Lease]


class Held(nullcontext[Memory]):
    """A memory that stays open anyway, in place of a lease."""

    @property
    def folder(self) -> Path:
        """The folder of the memory."""
        return self.enter_result.workspace.root

    @property
    def config(self) -> MemoryConfig:
        """The settings of the memory."""
        return self.enter_result.config


class Through:
    """Use a memory for the time of a block, and name the door in its events."""

    def __init__(self, leased: Lease | Held, door: str, *, session: str | None = None) -> None:
        """`leased` is the memory; the door and its session are as for `openclaw_memory.events.acting_as`."""
        self._leased, self._acting = leased, acting_as(door, session=session)

    @property
    def folder(self) -> Path:
        """The folder of the memory."""
        return self._leased.folder

    @property
    def config(self) -> MemoryConfig:
        """The settings of the memory."""
        return self._leased.config

    def __enter__(self) -> Memory:
        memory = self._leased.__enter__()
        self._acting.__enter__()
        return memory

    def __exit__(self, *error: object) -> None:
        self._acting.__exit__()
        self._leased.__exit__(*error)

    async def __aenter__(self) -> Memory:
        memory = await self._leased.__aenter__()
        self._acting.__enter__()
        return memory

    async def __aexit__(self, *error: object) -> None:
        self._acting.__exit__()
        await self._leased.__aexit__(*error)

    def __repr__(self) -> str:
        return repr(self._leased)


# A memory for the time of a `with` or `async with` block, of which there may be several, also at once.
Leased: TypeAlias = Lease | Held | Through

_values: ContextVar[Mapping[str, Any]] = ContextVar("openclaw_memory.run_values", default=MappingProxyType({}))


@contextmanager
def run_values(**values: Any) -> Iterator[None]:
    """Give the runs of a `with` block the values that templates choose a memory by, such as `user_id="anna"`.

    They reach the tasks and the calls of `run_in_thread` that begin in the block. Blocks add to the values around.

    Args:
        **values: By their names.
    """
    token = _values.set({**_values.get(), **values})
    try:
        yield
    finally:
        _values.reset(token)


def read_memory_choice(memory: MemoryChoice) -> Memory | MemoryTemplate | Callable[..., Memory | Lease]:
    """Return what chooses the memory of a run, with a template read.

    Args:
        memory: What was passed as `memory=`.

    Raises:
        TypeError: It is something else, such as the path of a folder.
        ConfigError: The template is wrong.
    """
    if isinstance(memory, str) and "{" in memory:
        return template_of(memory)
    if isinstance(memory, Memory | MemoryTemplate) or (callable(memory) and not isinstance(memory, type)):
        return memory
    raise TypeError(
        f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder), or have each run choose its "
        'own by a template such as "users/{user_id}", or by a function'
    )


def lease_memory(
    choice: MemoryChoice,
    *run: object,
    values: Mapping[str, Any] | None = None,
    how: str = "with run_values(user_id=...) around the run",
) -> Lease | Held:
    """Return the memory of a run, for a `with` or `async with` block.

    Args:
        choice: What chooses the memory; see `read_memory_choice`.
        *run: What a function is called with.
        values: The values of the run, for a template, before those of `run_values`.
        how: How to give a value that is missing, in words that end an error.

    Raises:
        TypeError, ConfigError: As `read_memory_choice`; or a value is missing, or the function returned something else.
    """
    choice = read_memory_choice(choice)
    if isinstance(choice, Memory):
        return Held(choice)
    if isinstance(choice, MemoryTemplate):
        return choice.use({**_values.get(), **(values or {})}, how)
    chosen = choice(*run)
    if isinstance(chosen, Lease):
        return chosen
    if isinstance(chosen, Memory):
        return Held(chosen)
    raise ConfigError(
        f"the function that chooses a memory returned {chosen!r:.80}: return a Memory, or the lease of one, as in "
        'users = Memories("users"); lambda run: users.use(...)'
    )
