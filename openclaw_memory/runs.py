"""Choose the memory that a run uses: one for all, or one by a template or a function for each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Self, TypeAlias

from openclaw_memory.errors import ConfigError
from openclaw_memory.events import VALUES, acting_as, run_values
from openclaw_memory.flush.detector import keep_recent
from openclaw_memory.flush.session import Session
from openclaw_memory.memories import Lease, MemoryTemplate, read_template
from openclaw_memory.memory import Memory

__all__ = ["RunMemory", "keep_recent", "run_values"]

# `memory=` of an adapter: a memory, a template such as "users/{user_id}" or `Memories.use_template`, or a function of
# the run that returns a memory, or the lease of one: `lambda run: users.use(...)`.
MemoryChoice: TypeAlias = Memory | str | MemoryTemplate | Callable[..., Memory | Lease]


class RunMemory:
    """Use the memory of a run for a `with` or `async with` block; several blocks may run at once.

    Two are equal that are of the same memory and the same conversation.

    Attributes:
        config: The settings of the memory.
        session: The session of the run; None if it is unknown.
    """

    def __init__(self, memory: Memory | Lease, door: str | None = None, session: Session | None = None) -> None:
        """Take an open memory, or a lease; `door` and `session` are as for `openclaw_memory.events.acting_as`."""
        self._lease = nullcontext(memory) if isinstance(memory, Memory) else memory
        self._acting = nullcontext() if door is None else acting_as(door, session=session.key if session else None)
        folder = memory.workspace.root if isinstance(memory, Memory) else memory.folder
        self._place = (folder, session.conversation.key if session else None)
        self.config, self.session = memory.config, session

    @staticmethod
    def read_choice(memory: MemoryChoice) -> Memory | MemoryTemplate | Callable[..., Memory | Lease]:
        """Check the argument `memory=` of an adapter, and read a template.

        Args:
            memory: The argument.

        Raises:
            TypeError: It is something else, such as the path of a folder.
            ConfigError: The template is wrong.
        """
        if isinstance(memory, str) and "{" in memory:
            return read_template(memory)
        if isinstance(memory, Memory | MemoryTemplate) or (callable(memory) and not isinstance(memory, type)):
            return memory
        raise TypeError(
            f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder), or have each run choose "
            'its own by a template such as "users/{user_id}", or by a function'
        )

    @classmethod
    def lease(
        cls,
        choice: MemoryChoice,
        *run: object,
        values: Mapping[str, Any] | None = None,
        how: str = "with run_values(user_id=...) around the run",
        door: str | None = None,
        session: Session | None = None,
    ) -> Self:
        """Lease the memory of a run, for a `with` or `async with` block.

        Args:
            choice: The choice of a memory; see `read_choice`.
            *run: The arguments of a function.
            values: The values of the run, for a template, before those of `run_values`.
            how: How to give a missing value, as the end of an error.
            door: Names the caller in the events of the memory; see `openclaw_memory.events.acting_as`.
            session: Names the session in the events.

        Raises:
            TypeError, ConfigError: As `read_choice`; or a value is missing, or the function returned something else.
        """
        memory: object = cls.read_choice(choice)
        if isinstance(memory, MemoryTemplate):
            memory = memory.use({**VALUES.get({}), **(values or {})}, how)
        elif not isinstance(memory, Memory) and callable(memory):
            memory = memory(*run)
        if isinstance(memory, Memory | Lease):
            return cls(memory, door, session)
        raise ConfigError(
            f"the function that chooses a memory returned {memory!r:.80}: return a Memory, or the lease of one, as in "
            'users = Memories("users"); lambda run: users.use(...)'
        )

    def __eq__(self, value: object) -> bool:
        return isinstance(value, RunMemory) and self._place == value._place

    def __hash__(self) -> int:
        return hash(self._place)

    def __enter__(self) -> Memory:
        memory = self._lease.__enter__()
        self._acting.__enter__()
        return memory

    def __exit__(self, *error: object) -> None:
        self._acting.__exit__(None, None, None)
        self._lease.__exit__(*error)

    async def __aenter__(self) -> Memory:
        memory = await self._lease.__aenter__()
        self._acting.__enter__()
        return memory

    async def __aexit__(self, *error: object) -> None:
        self._acting.__exit__(None, None, None)
        await self._lease.__aexit__(*error)
