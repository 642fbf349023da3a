"""`SessionStartMiddleware`: an agent knows at once who it is, what stays true, and what the last two days brought."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool

from langchain_openclaw_memory._session import WarnOnce, memory_of_run, run_config, session_of
from openclaw_memory.aio import in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import FLUSH_TAG
from openclaw_memory.runs import MemoryChoice, memory_choice
from openclaw_memory.tools import session_start

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse

_log = logging.getLogger(__name__)


class SessionStartMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """End the system message with what a session starts with, in every call of the model; see `session_start`.

    That is how to use the memory's tools, `SOUL.md`, `MEMORY.md` where the user alone reads, and the notes of yesterday
    and today, all of them bounded and the memory fenced. The text stays the same until one of these files changes. The
    conversation in the agent's state is not changed. A memory that fails costs the text, never the turn: one warning
    is logged for each kind of failure.

    Args:
        memory: The memory, or what chooses that of each run: see `memory_tools`.
        session_key: The session that says what may be shown, by default that of the run; see `memory_tools`.
        max_chars: The most characters of one file, by default `config.journal.bootstrap_chars`.
        memory_name: Distinguishes this middleware, and its text, from that of another memory in the same agent.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError, InvalidInputError: At the first call, if one of the others has a wrong type or value, or if two
            tools of the agent have one name.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        session_key: str | None = None,
        max_chars: int | None = None,
        memory_name: str | None = None,
    ) -> None:
        super().__init__()
        self.memory, self.session_key = memory_choice(memory), session_key
        self.max_chars, self.memory_name = max_chars, memory_name
        self._warn_once = WarnOnce(_log)

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
        return handler(self._started(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(await in_thread(self._started, request))

    def _started(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        config = run_config()
        if FLUSH_TAG in ((config or {}).get("tags") or ()):
            return request
        names = [tool.name for tool in request.tools if isinstance(tool, BaseTool)]
        try:
            with memory_of_run(self.memory, config) as memory:
                session = session_of(self.session_key, config)
                text = session_start(
                    memory, names, session_key=session, max_chars=self.max_chars, name=self.memory_name
                )
        except (ConfigError, InvalidInputError):  # wrong from the first call on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            why = f"{type(error).__name__}: {error}"
            self._warn_once(type(error), f"nothing of the memory is shown at the start, as it failed: {why}")
            _log.debug("nothing of the memory is shown at the start", exc_info=error)
            return request
        return request.override(system_message=_ended(request.system_message, text)) if text else request


def _ended(message: SystemMessage | None, text: str) -> SystemMessage:
    """Return a copy of the message that ends with the text: what the program says comes first."""
    if message is None:
        return SystemMessage(text)
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{content}\n\n{text}" if content else text})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": text}]})
