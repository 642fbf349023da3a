"""`OpenClawSessionStartMiddleware`: begin a session with long-term memory and the notes of two days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory.middleware.base import PromptMiddleware, append_to_system, list_tools
from openclaw_memory.runs import MemoryChoice
from openclaw_memory.tools import compose_session_start

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest

    from openclaw_memory import Memory
    from openclaw_memory.flush import Session


class OpenClawSessionStartMiddleware(PromptMiddleware):
    """End the system message with the notes that a session starts with; see `compose_session_start`.

    That is how to use the memory's tools, `SOUL.md`, `MEMORY.md` where the user alone reads, and the notes of yesterday
    and today, all of them bounded and the memory fenced. The text stays the same until one of these files changes. The
    conversation in the agent's state is not changed. A memory that fails costs the text, never the turn: one warning
    is logged for each kind of failure.

    Args:
        memory: The memory, or a selector of one for each run: see `memory_tools`.
        session_key: The session whose readers may see results, by default that of the run; see `memory_tools`.
        max_chars: The most characters of one file, by default `config.sessions.bootstrap_chars`.
        name: Distinguishes this middleware, and its text, from that of another memory in the same agent.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError, InvalidInputError: At the first call, if one of the others has a wrong type or value, or if two
            tools of the agent have one name.
    """

    failure = "nothing of the memory is shown at the start"

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        session_key: str | None = None,
        max_chars: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(memory, session_key, name)
        self.max_chars = max_chars

    def _extend_request(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], None]:
        names, most, name = list_tools(request), self.max_chars, self.memory_name

        def start(memory: Memory, session: Session | None) -> str:
            return compose_session_start(memory, names, session_key=session, max_chars=most, name=name)

        return append_to_system(request, self._read_memory(start) or ""), None
