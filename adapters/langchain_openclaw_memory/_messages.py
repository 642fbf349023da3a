"""Read LangChain's messages, and convert them to OpenClaw's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from openclaw_memory.conversation import get_text, read_calls

SUMMARY_SOURCE = "summarization"  # what SummarizationMiddleware writes into `lc_source` of its summaries

RESUMED = "openclaw_resumed"  # marks messages that were resumed: what is masked in them is no edit


def is_summary(message: BaseMessage) -> bool:
    """Tell whether this is the summary of messages that were removed from the conversation."""
    return message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE


def is_from_user(message: BaseMessage) -> bool:
    """Tell whether the user wrote this: a summary takes the user's place."""
    return isinstance(message, HumanMessage) and not is_summary(message)


def get_reported_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return the tokens that the provider counted at the last reply; 0 if not reported, or if a summary came since."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.usage_metadata:
            return message.usage_metadata["total_tokens"]
        if isinstance(message, AIMessage) or is_summary(message):
            break
    return 0


def convert_messages(messages: Iterable[BaseMessage]) -> Iterator[dict[str, Any]]:
    """Yield the messages as OpenClaw writes them, without system prompts and summaries."""
    for message in messages:
        if not is_summary(message) and (written := convert_message(message)) is not None:
            yield written


def convert_message(message: BaseMessage) -> dict[str, Any] | None:
    """Return one message as OpenClaw writes it, with its id if any; None if it is not part of the conversation."""
    identity = {"id": message.id} if message.id else {}
    if isinstance(message, HumanMessage):
        return {"role": "user", "content": _render_text(message), **identity}
    if isinstance(message, ToolMessage):
        result = {"toolCallId": message.tool_call_id, "toolName": message.name or ""}
        failed = {"isError": True} if message.status == "error" else {}
        return {"role": "toolResult", "content": _to_blocks(_render_text(message)), **result, **failed, **identity}
    if isinstance(message, AIMessage):
        calls = [
            {"type": "toolCall", "id": call["id"] or "", "name": call["name"], "arguments": call["args"]}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": [*_to_blocks(message.text), *calls], **identity}
    return None


def make_message(message: Mapping[str, Any]) -> BaseMessage:
    """Return a message as OpenClaw writes it as one of LangChain's, marked as resumed."""
    text, role = get_text(message), message.get("role")
    marks = {RESUMED: True} | ({"lc_source": SUMMARY_SOURCE} if message.get("type") == "compaction" else {})
    fields: dict[str, Any] = {"additional_kwargs": marks} | ({"id": str(message["id"])} if message.get("id") else {})
    if role == "system":
        return SystemMessage(text, **fields)
    if role in {"toolResult", "tool"}:
        call = message.get("toolCallId") or message.get("tool_call_id") or message.get("toolUseId")
        status = "error" if message.get("isError") else "success"
        return ToolMessage(text, tool_call_id=str(call), name=message.get("toolName") or None, status=status, **fields)
    if role == "assistant":
        calls = [
            {
                "id": call_id,
                "name": name,
                "args": arguments if isinstance(arguments, dict) else {"text": str(arguments)},
            }
            for call_id, name, arguments in read_calls(message)
        ]
        return AIMessage(text, tool_calls=calls, **fields)
    return HumanMessage(text, **fields)


def drop_system(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that are not system prompts."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def _render_text(message: BaseMessage) -> str:
    """Return the text of a message and the names of its files; without text, any attachment."""
    if isinstance(message.content, str):
        return message.content
    kinds = {"image", "audio", "video", "file", "text-plain"}
    attached = [block for block in message.content_blocks if block["type"] in kinds]
    names = [_name_attachment(block) for block in attached if not message.text or _get_file_name(block)]
    return "\n".join(([message.text] if message.text else []) + ([" ".join(names)] if names else []))


def _name_attachment(block: Any) -> str:
    """Return the address of an attachment, or `[file]` with its name if it has one."""
    name, address = _get_file_name(block), block.get("url")
    if name or address is None or address.startswith("data:"):
        return f"[{block['type']} {name}]" if name else f"[{block['type']}]"
    return str(address)


def _get_file_name(block: Any) -> str:
    extras = block.get("extras") or {}
    fields = {**block, **extras, **(extras.get("metadata") or {})}
    return next((" ".join(str(fields[key]).split()) for key in ("filename", "name", "title") if fields.get(key)), "")


def _to_blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []
