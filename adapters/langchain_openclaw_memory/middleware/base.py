"""Share between middleware how a model's prompt is extended from a memory."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool

from langchain_openclaw_memory._session import WarnOnce, find_session, get_run_config, lease_run_memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.runs import MemoryChoice, RunMemory

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse

    from openclaw_memory import Memory
    from openclaw_memory.flush import Session

T = TypeVar("T")


class PromptMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Extend the prompt of each model call; the conversation stays as it is, and a memory that fails breaks no turn.

    A class of it says in `_extend_request` what a call shows, which runs in a thread where the agent is awaited, and in
    `failure` the cost of a failure.

    Args:
        memory: The memory, or a selector of one for each run.
        session_key: The session whose readers may see results; by default that of the run.
        name: Distinguishes this middleware from that of another memory in the same agent.
    """

    failure = "nothing of the memory is shown"

    def __init__(self, memory: MemoryChoice, session_key: str | None, name: str | None) -> None:
        super().__init__()
        self.memory, self.session_key, self.memory_name = RunMemory.read_choice(memory), session_key, name
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
        changed, turn = self._extend_request(request)
        response = handler(changed)
        self._handle_response(turn, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        changed, turn = await run_in_thread(self._extend_request, request)
        response = await handler(changed)
        self._handle_response(turn, response)
        return response

    def _extend_request(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Any]:
        """Return the extended request, and the turn to call `_handle_response` with."""
        raise NotImplementedError

    def _handle_response(self, turn: Any, response: ModelResponse[Any]) -> None:
        """Look at the response."""

    def _read_memory(self, read: Callable[[Memory, Session | None], T]) -> T | None:
        """Call `read` with the memory of this run and its session; None if the memory fails."""
        config = get_run_config()
        try:
            with lease_run_memory(self.memory, config) as memory:
                return read(memory, find_session(self.session_key, config))
        except (ConfigError, InvalidInputError):  # wrong from the first call on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            why = f"{type(error).__name__}: {error}"
            self._warn_once(type(error), f"{self.failure}, as the memory failed: {why}")
            self._log.debug(self.failure, exc_info=error)
            return None


def list_tools(request: ModelRequest[Any]) -> list[str]:
    """List the names of the tools that a request offers."""
    return [tool.name for tool in request.tools if isinstance(tool, BaseTool)]


def append_to_system(request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
    """Append a text to the system message of a request."""
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
