"""`SessionStartBlock`: long-term memory and the notes of two days, as a block of LlamaIndex's `Memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index_openclaw_memory._prompt import PromptBlock
from openclaw_memory.runs import MemoryChoice, RunMemory
from openclaw_memory.tools import compose_session_start

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.tools import BaseTool

    from openclaw_memory import Memory


class SessionStartBlock(PromptBlock):
    """Hold the notes that a session starts with, as a block of LlamaIndex's `Memory`; see `compose_session_start`.

    That is how to use the memory's tools, `SOUL.md`, `MEMORY.md` where the user alone reads, and the notes of yesterday
    and today, all of them bounded and the memory fenced. The text stays the same until one of these files changes.
    It keeps no ejected messages: that is for `OpenClawMemoryBlock`. A memory that fails costs the text,
    never the turn: one warning is logged for each kind of failure.

    An open memory is not pickled, nor is its block: to a `Context` that was restored, hand the `Memory` over again.
    """

    tool_names: tuple[str, ...] = ()
    max_chars: int | None = None

    failure = "nothing of the memory is shown at the start"

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
            memory: The memory, or a selector of one for each run; see `memory_tools`.
            tools: The agent's tools, which a block does not see: how to use those of a memory is said.
            session_key: The session. Default: the `session_id` of the `Memory`; where it names a group or a channel,
                `MEMORY.md` is not shown.
            max_chars: The most characters of one file. Default: `config.sessions.bootstrap_chars`.
            name: The name of the block.
            options: `description`, `priority` and `accept_short_term_memory`.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError, InvalidInputError: at the first message, where an argument has a wrong type or value; and in a
                run that has no value for the template of its memory.
        """
        options |= {"memory": RunMemory.read_choice(memory), "session_key": session_key, "max_chars": max_chars}
        options |= {"tool_names": tuple(tool.metadata.get_name() for tool in tools)}
        super().__init__(name=name, **options)

    def _compose(self, _messages: Sequence[ChatMessage], session_id: str | None) -> str:
        def start(memory: Memory, session: str | None) -> str:
            return compose_session_start(memory, self.tool_names, session_key=session, max_chars=self.max_chars)

        return self._read_memory(session_id, start) or ""
