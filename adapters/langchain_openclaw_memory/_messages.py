"""LangChain's messages as those of OpenClaw, and what a conversation needs before a model is shown it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

SUMMARY_SOURCE = "summarization"  # what SummarizationMiddleware writes into `lc_source` of its summaries
NO_SUMMARY = "none"


def is_summary(message: BaseMessage) -> bool:
    """Whether this is the summary of messages that the conversation no longer has."""
    return message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE


def cycle_of(messages: Iterable[BaseMessage]) -> str:
    """Which compaction cycle a conversation is in: the id of its summary, `none` before the first."""
    for message in messages:
        if is_summary(message):
            return message.id or f"summary:{message.text}"
    return NO_SUMMARY


def reported_tokens(messages: Sequence[BaseMessage]) -> int:
    """The tokens that the provider counted at the last reply; 0 where it did not say, or a summary came since."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message.usage_metadata["total_tokens"] if message.usage_metadata else 0
        if is_summary(message):
            break
    return 0


def openclaw_messages(messages: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    """The messages as OpenClaw writes them, without system prompts and summaries."""
    found = (openclaw_message(message) for message in messages if not is_summary(message))
    return [message for message in found if message is not None]


def openclaw_message(message: BaseMessage) -> dict[str, Any] | None:
    """One message as OpenClaw writes it, with its id where it has one; None for what is no part of the talk."""
    known = {"id": message.id} if message.id else {}
    if isinstance(message, HumanMessage):
        return {"role": "user", "content": message.text, **known}
    if isinstance(message, ToolMessage):
        result = {"toolCallId": message.tool_call_id, "toolName": message.name or ""}
        failed = {"isError": True} if message.status == "error" else {}
        return {"role": "toolResult", "content": _blocks(message.text), **result, **failed, **known}
    if isinstance(message, AIMessage):
        calls = [
            {"type": "toolCall", "id": call["id"] or "", "name": call["name"], "arguments": call["args"]}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": [*_blocks(message.text), *calls], **known}
    return None


def without_loose_ends(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The talk without system prompts, tool calls that nobody answered, and answers to calls that are not there.

    Providers refuse a request with either of the latter.
    """
    kept = [message for message in messages if not isinstance(message, SystemMessage)]
    answered = {message.tool_call_id for message in kept if isinstance(message, ToolMessage)}
    called: set[str] = set()
    whole: list[BaseMessage] = []
    for message in kept:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in called:
                whole.append(message)
        elif isinstance(message, AIMessage):
            ids = {call["id"] or "" for call in (*message.tool_calls, *message.invalid_tool_calls)}
            if ids <= answered:
                called |= ids
                whole.append(message)
            elif message.text:
                answered -= ids
                whole.append(AIMessage(message.text))
            else:
                answered -= ids
        else:
            whole.append(message)
    return whole


def _blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []
