"""`RecallMiddleware`: shows an agent what its memory holds on the user's message, before the model is called."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import HumanMessage
from langchain_core.runnables.config import run_in_executor

from langchain_openclaw_memory._messages import is_summary
from langchain_openclaw_memory._session import run_config, session_of
from openclaw_memory.errors import QueryError
from openclaw_memory.sessions import FLUSH_TAG
from openclaw_memory.tools import recall

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage

    from openclaw_memory import Memory

_log = logging.getLogger(__name__)

# Blocks that are kept, so that all model calls of one turn show the same: turns that may be at work at the same time.
TURNS = 64
# Longer messages hold something pasted, with the question above or below it: the rest would drown that.
LONGEST_QUESTION = 1000


class RecallMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Puts one fenced, bounded block of relevant memory before the user's message, in what the model is shown alone.

    The conversation in the agent's state stays as it is, so that nothing recalled piles up in it. The block is made
    from the latest message of the user's, stays the same for all model calls of that turn, and is left out where that
    message is blank or nothing is relevant. A memory that fails costs the block, never the turn: a warning is logged.

    `max_chars` bounds the block, by default `config.recall.max_chars`; `max_results` and `min_score` (0..1) are those
    of `Memory.search`. Without `session_key`, that of the run counts: see `memory_tools`.

    Raises:
        QueryError: at the first call, where one of these has a wrong type or value.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        max_chars: int | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        session_key: str | None = None,
    ) -> None:
        super().__init__()
        self.session_key = session_key

        def block(query: str, key: str | None, message_id: str) -> str:  # noqa: ARG001 - a part of the cache's key
            return recall(
                memory, query, max_chars=max_chars, max_results=max_results, min_score=min_score, session_key=key
            )

        self._block = lru_cache(maxsize=TURNS)(block)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._with_memories(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(await run_in_executor(None, self._with_memories, request))

    def _with_memories(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        config = run_config()
        place = _latest_of_the_user(request.messages)
        if place is None or FLUSH_TAG in ((config or {}).get("tags") or ()):
            return request
        message = request.messages[place]
        if not (query := _question(message)):
            return request
        try:
            block = self._block(query, session_of(self.session_key, config), message.id or "")
        except QueryError:  # wrong from the first call on, whatever the memory holds
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            _log.warning("nothing could be recalled for this turn: the memory failed", exc_info=True)
            return request
        if not block:
            return request
        messages = [*request.messages]
        messages[place] = _below(block, message)
        return request.override(messages=messages)


def _latest_of_the_user(messages: list[AnyMessage]) -> int | None:
    """The place of the latest message that a person wrote, or None."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, HumanMessage) and not is_summary(message):
            return place
    return None


def _question(message: AnyMessage) -> str:
    """What to look up for a message, "" where it has no words: of a long one, the shorter of its two outer parts."""
    text = str(message.text).strip()
    if len(text) <= LONGEST_QUESTION:
        return text
    parts = re.split(r"\n\s*\n", text)
    return min(parts[-1], parts[0], key=len)


def _below(block: str, message: AnyMessage) -> AnyMessage:
    """A copy of the message that begins with the block; the same message, as some models want turns to alternate."""
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{block}\n\n{content}"})
    return message.model_copy(update={"content": [{"type": "text", "text": block}, *content]})
