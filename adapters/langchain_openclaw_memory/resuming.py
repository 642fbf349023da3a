"""Keep the end of a LangChain conversation, and go on with it later, in another process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from langchain_openclaw_memory._messages import RESUMED, SUMMARY_SOURCE, convert_messages, is_summary
from langchain_openclaw_memory._session import DOOR
from openclaw_memory.conversation import get_text, read_calls
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.runs import RunMemory

if TYPE_CHECKING:
    from openclaw_memory import Memory
    from openclaw_memory.types import Snapshot

__all__ = ["resume_messages", "save_snapshot"]

_SUMMARISED = "Here is a summary of the conversation to date:\n\n"  # as SummarizationMiddleware begins its messages


def save_snapshot(
    memory: Memory, session_id: str, messages: Iterable[MessageLikeRepresentation], summary: str | None = None
) -> Snapshot | None:
    """Keep the last messages of a session, for `resume_messages`. See `Memory.sessions.snapshot`.

    Args:
        memory: Where to.
        session_id: The session, such as the thread.
        messages: The conversation, as in the state of the agent, `agent.get_state(config).values["messages"]`, or as
            a model takes it.
        summary: Its subject; None for what LangChain's summarization has put in place of older messages, if it
            did.

    Raises:
        InvalidInputError: They are no list, or one of them is not a message.
    """
    if isinstance(messages, str | Mapping):
        raise InvalidInputError(f'messages must be a list of messages, such as state["messages"], not {messages!r:.80}')
    try:
        conversation = convert_to_messages(list(messages))
    except Exception as error:  # LangChain's are of many kinds
        raise InvalidInputError(f"messages must be a list of messages as LangChain takes them: {error}") from error
    about = _find_summary(conversation) if summary is None else summary
    with RunMemory.lease(memory, door=DOOR, session=session_id) as opened:
        return opened.sessions.snapshot(session_id, list(convert_messages(conversation)), about)


def resume_messages(memory: Memory, session_id: str) -> list[BaseMessage]:
    """Load the messages of a session, to put the next question behind them. See `Memory.sessions.resume`.

    Those of a transcript have the ids of their entries: `OpenClawTranscriptMiddleware` does not write them again.

    Args:
        memory: Where from.
        session_id: The session.

    Raises:
        NotFoundError: Nothing was kept of it.
    """
    with RunMemory.lease(memory, door=DOOR, session=session_id) as opened:
        return [_to_message(message) for message in opened.sessions.resume(session_id)]


def _find_summary(messages: Iterable[BaseMessage]) -> str | None:
    """Return LangChain's latest summary; the one that `resume_messages` puts first is in an earlier snapshot."""
    texts = [message.text for message in messages if is_summary(message) and message.text.startswith(_SUMMARISED)]
    return texts[-1].removeprefix(_SUMMARISED) if texts else None


def _to_message(message: Mapping[str, Any]) -> BaseMessage:
    text, role = get_text(message), message.get("role")
    comes_first = message.get("type") == "compaction"
    marks = {"lc_source": SUMMARY_SOURCE} if comes_first else {RESUMED: True}
    fields: dict[str, Any] = {"additional_kwargs": marks} | ({"id": str(message["id"])} if message.get("id") else {})
    if role == "system":
        return SystemMessage(text, **fields)
    if role in {"toolResult", "tool"}:
        call = message.get("toolCallId") or message.get("tool_call_id") or message.get("toolUseId")
        status = "error" if message.get("isError") else "success"
        return ToolMessage(text, tool_call_id=str(call), name=message.get("toolName") or None, status=status, **fields)
    if role == "assistant":
        calls = [{"id": one_id, "name": name, "args": arguments} for one_id, name, arguments in read_calls(message)]
        return AIMessage(text, tool_calls=calls, **fields)
    return HumanMessage(text, **fields)
