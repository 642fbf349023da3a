"""`SessionStartBlock`: who an agent is, what stays true, and the last two days, as a block of LlamaIndex's `Memory`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import Field, PrivateAttr

from llama_index_openclaw_memory._session import memory_of_run, session_of
from openclaw_memory.aio import in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.runs import MemoryChoice, memory_choice
from openclaw_memory.tools import session_start

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.tools import BaseTool

_log = logging.getLogger(__name__)


class SessionStartBlock(BaseMemoryBlock[str]):
    """What a session starts with, as a block of LlamaIndex's `Memory`; see `session_start`.

    That is how to use the memory's tools, `SOUL.md`, `MEMORY.md` where the user alone reads, and the notes of yesterday
    and today, all of them bounded and the memory fenced. The text stays the same until one of these files changes.
    It keeps nothing of what `Memory` ejects: that is for `OpenClawMemoryBlock`. A memory that fails costs the text,
    never the turn: one warning is logged for each kind of failure.

    An open memory is not pickled, nor is its block: to a `Context` that was restored, hand the `Memory` over again.
    """

    memory: Any = Field(exclude=True, repr=False)
    tool_names: tuple[str, ...] = ()
    session_key: str | None = None
    max_chars: int | None = None

    _reported: set[type[Exception]] = PrivateAttr(default_factory=set)

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        tools: Sequence[BaseTool] = (),
        session_key: str | None = None,
        max_chars: int | None = None,
        name: str = "session_start",
        **options: Any,
    ) -> None:
        """Make a block over a memory.

        Args:
            memory: The memory, or what chooses that of each run; see `memory_tools`.
            tools: The agent's tools, which a block does not see: how to use those of a memory is said.
            session_key: The session. Default: the `session_id` of the `Memory`; where it names a group or a channel,
                `MEMORY.md` is not shown.
            max_chars: The most characters of one file. Default: `config.journal.bootstrap_chars`.
            name: The name of the block.
            options: `description`, `priority` and `accept_short_term_memory`.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError, InvalidInputError: at the first message, where an argument has a wrong type or value; and in a
                run that has no value for the template of its memory.
        """
        options |= {"memory": memory_choice(memory), "session_key": session_key, "max_chars": max_chars}
        options |= {"tool_names": tuple(tool.metadata.get_name() for tool in tools)}
        super().__init__(name=name, **options)

    def __deepcopy__(self, _memo: object = None) -> Self:
        return self  # like the memory, by frameworks that copy their parts

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep nothing: the files change by other ways."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:  # noqa: ARG002
        return await in_thread(self._text, block_kwargs.get("session_id"))

    def _text(self, session_id: str | None) -> str:
        key = next((key for key in (self.session_key, session_id) if key and key.strip()), None)
        try:
            with memory_of_run(self.memory) as memory:
                return session_start(memory, self.tool_names, session_key=session_of(key), max_chars=self.max_chars)
        except (ConfigError, InvalidInputError):  # wrong from the first message on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            if type(error) not in self._reported:
                self._reported.add(type(error))
                why = f"{type(error).__name__}: {error}"
                _log.warning(f"nothing of the memory is shown at the start, as it failed: {why}")
            return ""
