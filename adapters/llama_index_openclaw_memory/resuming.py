"""Keep the end of a LlamaIndex conversation, and go on with it later, in another process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms import types as llm_types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from llama_index_openclaw_memory._messages import convert_messages
from llama_index_openclaw_memory._session import DOOR
from openclaw_memory.conversation import get_text, read_calls
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.runs import RunMemory

if TYPE_CHECKING:
    from openclaw_memory import Memory
    from openclaw_memory.types import Snapshot

__all__ = ["resume_messages", "save_snapshot"]

_ROLES = {"assistant": MessageRole.ASSISTANT, "system": MessageRole.SYSTEM}


def save_snapshot(
    memory: Memory, session_id: str, messages: Iterable[ChatMessage], summary: str | None = None
) -> Snapshot | None:
    """Keep the last messages of a session, for `resume_messages`. See `Memory.sessions.snapshot`.

    Args:
        memory: Where to.
        session_id: The session.
        messages: The conversation, such as `await chat_memory.aget_all()`.
        summary: Its subject.

    Raises:
        InvalidInputError: They are no list, or one of them is not a ChatMessage.
    """
    if not isinstance(messages, Iterable):
        raise InvalidInputError(f"messages must be a list of ChatMessage, not {messages!r:.80}")
    conversation = list(messages)
    if wrong := [message for message in conversation if not isinstance(message, ChatMessage)]:
        raise InvalidInputError(f"messages must be a list of ChatMessage; {wrong[0]!r:.80} is not one")
    with RunMemory.lease(memory, door=DOOR, session=session_id) as opened:
        return opened.sessions.snapshot(session_id, convert_messages(conversation), summary)


def resume_messages(memory: Memory, session_id: str) -> list[ChatMessage]:
    """Load the messages of a session, the chat history of the next question. See `Memory.sessions.resume`.

    Args:
        memory: Where from.
        session_id: The session.

    Raises:
        NotFoundError: Nothing was kept of it.
    """
    with RunMemory.lease(memory, door=DOOR, session=session_id) as opened:
        return [_to_message(message) for message in opened.sessions.resume(session_id)]


def _to_message(message: Mapping[str, Any]) -> ChatMessage:
    text, role = get_text(message), str(message.get("role"))
    if role in {"toolResult", "tool"}:
        call = message.get("toolCallId") or message.get("tool_call_id") or message.get("toolUseId")
        details = {"tool_call_id": call, "name": message.get("toolName") or ""}
        return ChatMessage(text, role=MessageRole.TOOL, additional_kwargs=details)
    if role != "assistant" or not (calls := read_calls(message)):
        return ChatMessage(text, role=_ROLES.get(role, MessageRole.USER))
    # Older versions of LlamaIndex have no blocks for calls.
    if (block_of := getattr(llm_types, "ToolCallBlock", None)) is None:
        older = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in calls
        ]
        return ChatMessage(text, role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": older})
    blocks = [block_of(tool_call_id=call_id, tool_name=name, tool_kwargs=kwargs) for call_id, name, kwargs in calls]
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[*([TextBlock(text=text)] if text else []), *blocks])
