"""What middleware has in common that shows a model something of a memory, in its calls alone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import SystemMessage

from langchain_openclaw_memory._session import WarnOnce, memory_of_run, run_config, session_of
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import FLUSH_TAG
from openclaw_memory.runs import MemoryChoice, read_memory_choice

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse

    from openclaw_memory import Memory

T = TypeVar("T")


class ShowingMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Changes what a model is shown, and not the conversation; a memory that fails costs that, never the turn.

    A class of it says in `_shown` what a call shows, which runs in a thread where the agent is awaited, and in
    `nothing` what a failure costs.

    Args:
        memory: The memory, or what chooses that of each run.
        session_key: The session that says what may be shown; that of the run where None.
        memory_name: Distinguishes this middleware from that of another memory in the same agent.
    """

    nothing = "nothing of the memory is shown"

    def __init__(self, memory: MemoryChoice, session_key: str | None, memory_name: str | None) -> None:
        super().__init__()
        self.memory, self.session_key, self.memory_name = read_memory_choice(memory), session_key, memory_name
        self._log = logging.getLogger(type(self).__module__)
        self._warn_once = WarnOnce(self._log)

    @property
    def name(self) -> str:
        """The name of the class, with that of its memory: an agent takes no two middleware of one name."""
        kind = super().name
        return kind if self.memory_name is None else f"{kind}-{self.memory_name}"

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # shared like its memory, by frameworks that copy their parts

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        if _is_flush():
            return handler(request)
        shown, turn = self._shown(request)
        response = handler(shown)
        self._answered(turn, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        if _is_flush():
            return await handler(request)
        shown, turn = await run_in_thread(self._shown, request)
        response = await handler(shown)
        self._answered(turn, response)
        return response

    def _shown(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Any]:
        """Return what the model is asked, and what `_answered` is called with."""
        raise NotImplementedError

    def _answered(self, turn: Any, response: ModelResponse[Any]) -> None:
        """Look at the response."""

    def _of_memory(self, read: Callable[[Memory, str | None], T]) -> T | None:
        """Return what `read` makes of the memory of this run and its session; None where the memory fails."""
        config = run_config()
        try:
            with memory_of_run(self.memory, config) as memory:
                return read(memory, session_of(self.session_key, config))
        except (ConfigError, InvalidInputError):  # wrong from the first call on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            why = f"{type(error).__name__}: {error}"
            self._warn_once(type(error), f"{self.nothing}, as the memory failed: {why}")
            self._log.debug(self.nothing, exc_info=error)
            return None


def ended(request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
    """Return a request whose system message ends with the text: what the program says comes first."""
    if not text:
        return request
    message = request.system_message
    if message is None:
        return request.override(system_message=SystemMessage(text))
    content: Any = message.content
    if isinstance(content, str):
        content = f"{content}\n\n{text}" if content else text
    else:
        content = [*content, {"type": "text", "text": text}]
    return request.override(system_message=message.model_copy(update={"content": content}))


def _is_flush() -> bool:
    return FLUSH_TAG in ((run_config() or {}).get("tags") or ())
