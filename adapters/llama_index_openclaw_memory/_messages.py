"""LlamaIndex's messages as those of OpenClaw, and as the text that a model is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, CitableBlock, CitationBlock, MessageRole, TextBlock

from openclaw_memory.conversation import Message, get_text, strip_recalled

# What a block is, it says itself: earlier versions of LlamaIndex do not have all of their classes.
_SHOWN_BY_ADDRESS = frozenset({"image", "audio", "video", "document"})
OF_THE_PROGRAM = frozenset({MessageRole.SYSTEM, MessageRole.DEVELOPER})
_OF_TOOLS = frozenset({MessageRole.TOOL, MessageRole.FUNCTION})
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def openclaw_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """The messages as OpenClaw writes them, without those of the program; an answer has the name of the tool called.

    One that cannot be read is replaced by the reason.
    """
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        try:
            converted = openclaw_message(message)
        except Exception as error:  # noqa: BLE001 - what others put into a message raises what it likes
            why = f"[this message could not be read: {type(error).__name__}]"
            converted = {"role": "assistant", "content": _blocks(why)}
        if converted is None:
            continue
        names.update((call["id"], call["name"]) for call in _calls_in(converted))
        if converted["role"] == "toolResult" and not converted["toolName"]:
            converted["toolName"] = names.get(converted["toolCallId"], "")
        found.append(converted)
    return found


def openclaw_message(message: ChatMessage) -> dict[str, Any] | None:
    """Return a message as OpenClaw writes it, in plain JSON; None if it is not part of the conversation.

    What was recalled into it, and fenced, is left out.
    """
    if message.role in OF_THE_PROGRAM:
        return None
    words = strip_recalled(words_of(message))
    if message.role == MessageRole.USER:
        return {"role": "user", "content": words}
    if message.role in _OF_TOOLS:
        known = message.additional_kwargs
        result = {"toolCallId": _text(known.get("tool_call_id")), "toolName": _text(known.get("name"))}
        return {"role": "toolResult", "content": _blocks(words), **result}
    calls = [
        {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        for call_id, name, arguments in calls_of(message)
    ]
    return {"role": "assistant", "content": [*_blocks(words), *calls]}


def calls_of(message: ChatMessage) -> list[tuple[str, str, dict[str, Any]]]:
    """The tool calls of a message: the id, the tool's name and the arguments of each.

    They are in its blocks, or where older integrations put them, in `additional_kwargs` in OpenAI's shape; many write
    them into both.
    """
    blocks: list[Any] = [block for block in message.blocks if _kind(block) == "tool_call"]
    if blocks:
        return [(_text(block.tool_call_id), block.tool_name, _arguments(block.tool_kwargs)) for block in blocks]
    older = message.additional_kwargs.get("tool_calls")
    return [call for each in older if (call := _older(each))] if isinstance(older, list | tuple) else []


def is_whole(messages: Iterable[ChatMessage]) -> bool:
    """Whether every tool call has an answer behind it, and every answer a call before it."""
    waiting: list[str] = []
    for message in messages:
        if message.role in _OF_TOOLS:
            call_id = _text(message.additional_kwargs.get("tool_call_id"))
            if call_id not in waiting:
                return False
            waiting.remove(call_id)
        else:
            waiting += [call_id for call_id, _, _ in calls_of(message)]
    return not waiting


def as_text(messages: Iterable[Message]) -> str:
    """OpenClaw's messages as a model reads them: one after the other, with who said it, what was called and found."""
    return "\n".join(line for message in messages if (line := _line(message)))


def _line(message: Message) -> str:
    said = get_text(message)
    if message.get("role") == "toolResult":
        return f"Tool {message.get('toolName') or ''}".rstrip() + f": {said}"
    calls = [
        f"[calls {call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}]" for call in _calls_in(message)
    ]
    words = " ".join(filter(None, [said, *calls]))
    return f"{_SPEAKERS.get(str(message.get('role')), 'Other')}: {words}" if words else ""


def _calls_in(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "toolCall"]


def words_of(message: ChatMessage) -> str:
    """The text of a message, and below it what represents the rest that it shows: an address, or `[image]`."""
    blocks = list(_flat(message.blocks))
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    shown = " ".join(filter(None, map(_shown, blocks)))
    return "\n".join([*(texts if any(texts) or not shown else []), *filter(None, [shown])])


def _flat(blocks: Iterable[Any]) -> Iterator[Any]:
    """The blocks, and those within them in their place."""
    for block in blocks:
        if isinstance(block, CitableBlock):
            yield from _flat(block.content)
        elif isinstance(block, CitationBlock):
            yield from _flat([block.cited_content])
        else:
            yield block


def _shown(block: Any) -> str:
    """What represents a block without words: its address, its kind, or "" where it is not part of what was said."""
    if (kind := _kind(block)) not in _SHOWN_BY_ADDRESS:
        return ""
    address = _text(block.url)
    return address if address and not address.startswith("data:") else f"[{kind}]"


def _kind(block: Any) -> str:
    return _text(getattr(block, "block_type", None))


def _older(call: Any) -> tuple[str, str, dict[str, Any]] | None:
    """A tool call in OpenAI's shape, an object or a dictionary; None for anything else."""
    function = _of(call, "function")
    name = _of(function, "name") or _of(call, "name")
    if not name:
        return None
    return _text(_of(call, "id")), str(name), _arguments(_of(function, "arguments") or _of(call, "input") or {})


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _arguments(arguments: Any) -> dict[str, Any]:
    """Arguments as JSON holds them; text that is no object of JSON is kept as it is, under `text`."""
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else arguments
        # What is no number to JSON, such as NaN, is written as a word.
        found = json.loads(json.dumps(found, default=str), parse_constant=str)
    except (ValueError, TypeError, RecursionError):
        found = str(arguments)
    return found if isinstance(found, dict) else {"text": str(arguments)} if arguments else {}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def estimated(text: str) -> int:
    """The tokens of a text by OpenClaw's estimate: four characters are one."""
    return -(-len(text) // 4)
