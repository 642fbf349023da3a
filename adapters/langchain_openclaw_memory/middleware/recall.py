"""`OpenClawRecallMiddleware`: search the memory for the user's message, before the model is called."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_openclaw_memory._messages import convert_messages, is_from_user
from langchain_openclaw_memory.middleware.base import PromptMiddleware, list_tools
from openclaw_memory.flush import Session
from openclaw_memory.runs import MemoryChoice, keep_recent
from openclaw_memory.tools import recall, recall_section

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage

    from openclaw_memory import Memory
    from openclaw_memory.types import Source

# Blocks that are kept, so that all model calls of one turn show the same: turns that may be at work at the same time,
# or wait for a person's approval.
_TURNS = 64


# A user message that is being answered: the folder of the memory, the session, the id of the message, and its text.
_Turn: TypeAlias = tuple[Path, Session | None, str | None, str]


class OpenClawRecallMiddleware(PromptMiddleware):
    """Put a fenced block of relevant memory before the user's message, only in the prompt.

    The conversation in the agent's state is not changed, so that recalled text does not pile up in it. The block is
    made from the latest user message and stays the same until that is answered. It is left out if that message is blank
    or nothing is relevant, and without what transcripts hold of the conversation that the model is shown anyway. A
    memory that fails costs the block, never the turn: one warning is logged for each kind of failure.

    Args:
        memory: The memory to search, or a selector of one for each run: see `memory_tools`.
        max_chars: The most characters of the block, by default `config.recall.max_chars`.
        max_results: The most results, as for `Memory.search`.
        min_score: The lowest score, 0..1, as for `Memory.search`.
        session_key: The session whose readers may see results, by default that of the run; see `memory_tools`.
        source: As for a `SearchFilter`; with "memory", nothing from other conversations is shown.
        name: Distinguishes this middleware, and its block, from that of another memory in the same agent.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError, InvalidInputError: At the first call, if one of the others has a wrong type or value, or if two
            tools of the agent have one name.
    """

    failure = "nothing could be recalled"

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        max_chars: int | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        session_key: str | None = None,
        source: Source | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(memory, session_key, name)
        self._recall = partial(
            recall, max_chars=max_chars, max_results=max_results, min_score=min_score, source=source, name=name
        )
        self._blocks: OrderedDict[_Turn, str] = OrderedDict()
        self._lock = threading.Lock()

    def _extend_request(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], _Turn | None]:
        places = reversed(range(len(request.messages)))
        place = next((at for at in places if is_from_user(request.messages[at])), None)
        recall_section(list_tools(request), citations=False)  # refuses two tools of one name
        if place is None:
            return request, None
        message = request.messages[place]
        if not (query := str(message.text).strip()):
            return request, None

        def recall_block(memory: Memory, session: Session | None) -> tuple[_Turn, str]:
            turn = memory.workspace.root, session, message.id, query
            return turn, self._get_block(memory, turn, request.messages)

        turn, block = self._read_memory(recall_block) or (None, "")
        if not block:
            return request, turn
        messages = [*request.messages]
        messages[place] = _prepend(block, message)
        return request.override(messages=messages), turn

    def _get_block(self, memory: Memory, turn: _Turn, messages: Sequence[AnyMessage]) -> str:
        with self._lock:
            if (block := self._blocks.get(turn)) is not None:
                return block
        in_view = convert_messages(messages)  # read only when something of a transcript was found
        _, session, _, question = turn
        block = self._recall(memory, question, session_key=session, in_view=in_view)
        with self._lock:
            keep_recent(self._blocks, turn, block, _TURNS)
        return block

    def _handle_response(self, turn: _Turn | None, response: ModelResponse[Any]) -> None:
        """Drop the block if a response ends the turn."""
        messages = getattr(response, "result", [response])
        goes_on = any(getattr(message, "tool_calls", None) for message in messages)
        if turn is not None and (not goes_on or getattr(response, "structured_response", None) is not None):
            with self._lock:
                self._blocks.pop(turn, None)


def _prepend(block: str, message: AnyMessage) -> AnyMessage:
    """Return a copy of the message that begins with the block: a separate message would break alternating turns."""
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{block}\n\n{content}"})
    return message.model_copy(update={"content": [{"type": "text", "text": block}, *content]})
