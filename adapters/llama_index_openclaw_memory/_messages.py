"""Convert LlamaIndex's messages to OpenClaw's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, CitableBlock, CitationBlock, MessageRole, TextBlock

from openclaw_memory.conversation import read_calls, strip_recalled

# What a block is, it says itself: earlier versions of LlamaIndex do not have all of their classes.
_SHOWN_BY_ADDRESS = frozenset({"image", "audio", "video", "document"})
OF_THE_PROGRAM = frozenset({MessageRole.SYSTEM, MessageRole.DEVELOPER})
_OF_TOOLS = frozenset({MessageRole.TOOL, MessageRole.FUNCTION})


def convert_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Convert messages to OpenClaw's, without system prompts; an answer has the name of the tool called.

    One that cannot be read is replaced by the reason.
    """
    converted_messages: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        try:
            converted = convert_message(message)
        except Exception as error:  # noqa: BLE001 - what others put into a message raises what it likes
            why = f"[this message could not be read: {type(error).__name__}]"
            converted = {"role": "assistant", "content": _to_blocks(why)}
        if converted is None:
            continue
        names.update((call_id, name) for call_id, name, _ in read_calls(converted))
        if converted["role"] == "toolResult" and not converted["toolName"]:
            converted["toolName"] = names.get(converted["toolCallId"], "")
        converted_messages.append(converted)
    return converted_messages


def convert_message(message: ChatMessage) -> dict[str, Any] | None:
    """Convert a message to OpenClaw's, in plain JSON; None for a system prompt.

    Recalled text in fences is left out.
    """
    if message.role in OF_THE_PROGRAM:
        return None
    words = strip_recalled(render_text(message))
    if message.role == MessageRole.USER:
        return {"role": "user", "content": words}
    if message.role in _OF_TOOLS:
        details = message.additional_kwargs
        result = {"toolCallId": _to_str(details.get("tool_call_id")), "toolName": _to_str(details.get("name"))}
        return {"role": "toolResult", "content": _to_blocks(words), **result}
    calls = [
        {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        for call_id, name, arguments in list_calls(message)
    ]
    return {"role": "assistant", "content": [*_to_blocks(words), *calls]}


def list_calls(message: ChatMessage) -> list[tuple[str, str, dict[str, Any]]]:
    """List the tool calls of a message: the id, the tool's name and the arguments of each.

    They are in its blocks, or where older integrations put them, in `additional_kwargs` in OpenAI's shape; many write
    them into both.
    """
    blocks: list[Any] = [block for block in message.blocks if _get_kind(block) == "tool_call"]
    calls = [{"id": each.tool_call_id, "name": each.tool_name, "arguments": each.tool_kwargs} for each in blocks]
    written = json.dumps(calls or message.additional_kwargs.get("tool_calls"), default=_to_plain)
    # What is no number to JSON, such as NaN, is written as a word.
    plain = json.loads(written, parse_constant=str)
    return [
        (call_id, name, arguments if isinstance(arguments, dict) else {"text": str(arguments)})
        for call_id, name, arguments in read_calls({"tool_calls": plain})
        if name
    ]


def render_text(message: ChatMessage) -> str:
    """Return the text of a message, and below it the address or the kind of each attachment."""
    blocks = list(_flatten(message.blocks))
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    attachments = " ".join(filter(None, map(_name_block, blocks)))
    return "\n".join([*(texts if any(texts) or not attachments else []), *filter(None, [attachments])])


def _flatten(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the blocks, with nested ones in their place."""
    for block in blocks:
        if isinstance(block, CitableBlock):
            yield from _flatten(block.content)
        elif isinstance(block, CitationBlock):
            yield from _flatten([block.cited_content])
        else:
            yield block


def _name_block(block: Any) -> str:
    """Return the address or the kind of an attachment; "" for other blocks."""
    if (kind := _get_kind(block)) not in _SHOWN_BY_ADDRESS:
        return ""
    address = _to_str(block.url)
    return address if address and not address.startswith("data:") else f"[{kind}]"


def _get_kind(block: Any) -> str:
    return _to_str(getattr(block, "block_type", None))


def _to_plain(value: Any) -> Any:
    return vars(value) if hasattr(value, "__dict__") else str(value)


def _to_str(value: object) -> str:
    return "" if value is None else str(value)


def _to_blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text at four characters each, as OpenClaw does."""
    return -(-len(text) // 4)
