"""`RecallMiddleware`: show an agent what its memory holds about the user's message, before the model is called."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool

from langchain_openclaw_memory._messages import is_summary, openclaw_messages
from langchain_openclaw_memory._session import WarnOnce, memory_of_run, remember, run_config, session_of, thread_of
from openclaw_memory.aio import in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import FLUSH_TAG
from openclaw_memory.runs import MemoryChoice, memory_choice
from openclaw_memory.tools import question_in, recall

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage

    from openclaw_memory import Memory
    from openclaw_memory.types import Source

_log = logging.getLogger(__name__)

# Blocks that are kept, so that all model calls of one turn show the same: turns that may be at work at the same time,
# or wait for a person's approval.
_TURNS = 64


class _Turn(NamedTuple):
    """A user message that is being answered: whose it is, its session, its id, and what to look up for it."""

    folder: Path
    thread: str | None
    session_key: str | None
    message_id: str | None
    question: str


class RecallMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Put one fenced, bounded block of relevant memory before the user's message, only in what the model is shown.

    The conversation in the agent's state is not changed, so that recalled text does not pile up in it. The block is
    made from the latest user message and stays the same until that is answered. It is left out if that message is blank
    or nothing is relevant, and without what transcripts hold of the conversation that the model is shown anyway. A
    memory that fails costs the block, never the turn: one warning is logged for each kind of failure.

    Args:
        memory: The memory to search, or what chooses that of each run: see `memory_tools`.
        max_chars: The most characters of the block, by default `config.recall.max_chars`.
        max_results: The most results, as for `Memory.search`.
        min_score: The lowest score, 0..1, as for `Memory.search`.
        session_key: The session that says what may be shown, by default that of the run; see `memory_tools`.
        source: As for `Memory.search`; with "memory", nothing from other conversations is shown.
        memory_name: Distinguishes this middleware, and its block, from that of another memory in the same agent.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError, InvalidInputError: At the first call, if one of the others has a wrong type or value, or if two
            tools of the agent have one name.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        max_chars: int | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        session_key: str | None = None,
        source: Source | None = None,
        memory_name: str | None = None,
    ) -> None:
        super().__init__()
        self.memory_name = memory_name
        self.memory, self.session_key = memory_choice(memory), session_key
        self._recall = partial(
            recall, max_chars=max_chars, max_results=max_results, min_score=min_score, source=source, name=memory_name
        )
        self._blocks: OrderedDict[_Turn, str] = OrderedDict()
        self._lock = threading.Lock()
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
        turn, shown = self._with_memories(request)
        return self._answered(turn, handler(shown))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        turn, shown = await in_thread(self._with_memories, request)
        return self._answered(turn, await handler(shown))

    def _with_memories(self, request: ModelRequest[Any]) -> tuple[_Turn | None, ModelRequest[Any]]:
        config = run_config()
        places = reversed(range(len(request.messages)))
        place = next((at for at in places if _is_from_user(request.messages[at])), None)
        names = [tool.name for tool in request.tools if isinstance(tool, BaseTool)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ConfigError(
                f"two tools of the agent are called {min(twice)!r}: give each memory a name, "
                "memory_tools(..., name='work')"
            )
        if place is None or FLUSH_TAG in ((config or {}).get("tags") or ()):
            return None, request
        message = request.messages[place]
        if not (query := question_in(str(message.text))):
            return None, request
        try:
            with memory_of_run(self.memory, config) as memory:
                folder, session = memory.workspace.root, session_of(self.session_key, config)
                turn = _Turn(folder, thread_of(config), session, message.id, query)
                block = self._block(memory, turn, request.messages)
        except (ConfigError, InvalidInputError):  # wrong from the first call on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            why = f"{type(error).__name__}: {error}"
            self._warn_once(type(error), f"nothing could be recalled, as the memory failed: {why}")
            _log.debug("nothing could be recalled for this turn", exc_info=error)
            return None, request
        if not block:
            return turn, request
        messages = [*request.messages]
        messages[place] = _below(block, message)
        return turn, request.override(messages=messages)

    def _block(self, memory: Memory, turn: _Turn, messages: Sequence[AnyMessage]) -> str:
        with self._lock:
            if (block := self._blocks.get(turn)) is not None:
                return block
        in_view = openclaw_messages(messages)  # read only when something of a transcript was found
        block = self._recall(memory, turn.question, session_key=turn.session_key, in_view=in_view)
        with self._lock:
            remember(self._blocks, turn, block, _TURNS)
        return block

    def _answered(self, turn: _Turn | None, response: ModelResponse[Any]) -> ModelResponse[Any]:
        """Return the response; if it ends the turn, the next one is shown what the memory holds then."""
        said = getattr(response, "result", [response])
        goes_on = any(getattr(message, "tool_calls", None) for message in said)
        if turn is not None and (not goes_on or getattr(response, "structured_response", None) is not None):
            with self._lock:
                self._blocks.pop(turn, None)
        return response


def _is_from_user(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage) and not is_summary(message)


def _below(block: str, message: AnyMessage) -> AnyMessage:
    """Return a copy of the message that begins with the block: a separate message would break alternating turns."""
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{block}\n\n{content}"})
    return message.model_copy(update={"content": [{"type": "text", "text": block}, *content]})
