"""Convert LangChain's messages to OpenClaw's, and prepare a conversation to be shown to a model again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

SUMMARY_SOURCE = "summarization"  # what SummarizationMiddleware writes into `lc_source` of its summaries


def is_summary(message: BaseMessage) -> bool:
    """Whether this is the summary of messages that the conversation no longer has."""
    return message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE


def last_reply(messages: Sequence[BaseMessage]) -> AIMessage | None:
    """Return the model's last reply; None if a summary came since."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message
        if is_summary(message):
            break
    return None


def reported_tokens(messages: Sequence[BaseMessage], *, outdated: str | None = None) -> int:
    """Return the tokens that the provider counted at the last reply; 0 if not reported, or if a summary came since.

    `outdated` is the id of a reply from before the summary: its count includes messages that are gone.
    """
    reply = last_reply(messages)
    if reply is None or not reply.usage_metadata or (outdated is not None and reply.id == outdated):
        return 0
    return reply.usage_metadata["total_tokens"]


def openclaw_messages(messages: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    """Return the messages as OpenClaw writes them, without system prompts and summaries."""
    found = (openclaw_message(message) for message in messages if not is_summary(message))
    return [message for message in found if message is not None]


def openclaw_message(message: BaseMessage) -> dict[str, Any] | None:
    """Return one message as OpenClaw writes it, with its id if any; None if it is not part of the conversation."""
    known = {"id": message.id} if message.id else {}
    if isinstance(message, HumanMessage):
        return {"role": "user", "content": _words(message), **known}
    if isinstance(message, ToolMessage):
        result = {"toolCallId": message.tool_call_id, "toolName": message.name or ""}
        failed = {"isError": True} if message.status == "error" else {}
        return {"role": "toolResult", "content": _blocks(_words(message)), **result, **failed, **known}
    if isinstance(message, AIMessage):
        calls = [
            {"type": "toolCall", "id": call["id"] or "", "name": call["name"], "arguments": call["args"]}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": [*_blocks(message.text), *calls], **known}
    return None


def without_loose_ends(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without system prompts, tool calls without an answer, and answers without a call.

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
            called |= ids & answered
            if ids <= answered:
                whole.append(message)
            elif message.text or ids & answered:
                whole.append(_with_calls(message, answered))
        else:
            whole.append(message)
    return whole


def _with_calls(message: AIMessage, ids: set[str]) -> AIMessage:
    # A new message: providers write calls into the content, too, and each in a way of its own.
    return AIMessage(
        message.text,
        tool_calls=[call for call in message.tool_calls if call["id"] in ids],
        invalid_tool_calls=[call for call in message.invalid_tool_calls if call["id"] in ids],
    )


def _words(message: BaseMessage) -> str:
    """Return the text of a message, and what it shows besides: the names of files, and without text anything else."""
    if isinstance(message.content, str):
        return message.content
    kinds = {"image", "audio", "video", "file", "text-plain"}
    attached = [block for block in message.content_blocks if block["type"] in kinds]
    shown = [_shown(block) for block in attached if not message.text or _file_name(block)]
    return "\n".join(([message.text] if message.text else []) + ([" ".join(shown)] if shown else []))


def _shown(block: Any) -> str:
    """Return the address of an attachment, or `[file]` with its name if it has one."""
    name, address = _file_name(block), block.get("url")
    if name or address is None or address.startswith("data:"):
        return f"[{block['type']} {name}]" if name else f"[{block['type']}]"
    return str(address)


def _file_name(block: Any) -> str:
    extras = block.get("extras") or {}
    said = {**block, **extras, **(extras.get("metadata") or {})}
    return next((" ".join(str(said[key]).split()) for key in ("filename", "name", "title") if said.get(key)), "")


def _blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []
