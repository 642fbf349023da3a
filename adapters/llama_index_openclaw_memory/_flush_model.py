"""Run the silent turn: show a model a conversation, and have it write down what should last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags

from llama_index_openclaw_memory._messages import as_text, is_whole, openclaw_messages
from llama_index_openclaw_memory.tools import MemoryTool
from openclaw_memory.conversation import SILENT, is_silent, own_words
from openclaw_memory.flush import (
    FLUSH_TAG,
    MAX_STEPS,
    ModelTurn,
    answer_tool_call,
    as_single_prompt,
    drive_flush,
    prompt_of,
)

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from openclaw_memory.flush import FlushTurn

Conversation: TypeAlias = Sequence[ChatMessage] | str  # messages, or the text of a conversation or of a part of it
Counter: TypeAlias = Callable[[str], int]

_OF_THE_PROGRAM = frozenset({MessageRole.SYSTEM, MessageRole.DEVELOPER})


def flush(turn: FlushTurn, llm: LLM, conversation: Conversation, *, room: int | None, count: Counter) -> None:
    """Have `llm` write down what should last, until `turn` is done; an error of the model ends up in `turn`.

    What does not fit into `room` tokens (None: no limit that is known) is shown in parts; `count` counts the tokens of
    a text. The instrumentation's events of these calls have the tag `FLUSH_TAG`, by which handlers know them.

    The model is asked without `await` where it can be, in a thread where a loop must go on: many
    integrations keep a client that belongs to the loop in which it was made, and `Memory.put` has a new loop for each
    call.
    """
    if not isinstance(conversation, str) and not (is_whole(conversation) and _is_all_said(conversation)):
        conversation = _text(
            conversation
        )  # providers refuse calls without an answer, and answers to calls that are not there
    with instrument_tags({**active_instrument_tags.get(), FLUSH_TAG: True}):
        drive_flush(
            turn,
            conversation,
            partial(_model_turn, turn, llm),
            lambda ask: ask(),
            room=room,
            size=lambda part: count(_text(part)),
            text=_text,
        )


def window_of(llm: LLM) -> int | None:
    """The tokens that a model can read; None where its integration does not know the model."""
    try:
        size = llm.metadata.context_window
    except Exception:  # noqa: BLE001 - each raises its own for a name that it does not know
        return None
    return size if size > 0 else None


def _model_turn(turn: FlushTurn, llm: Any, conversation: Conversation) -> ModelTurn:
    """One turn at a conversation: returns what the model said last, or `NO_REPLY` once it has written something."""
    if not (llm.metadata.is_function_calling_model and hasattr(llm, "chat_with_tools")):
        return (yield from _turn_without_tools(turn, llm, conversation))
    tool = MemoryTool(lambda _key: turn.tool, "")
    shown = _shown(turn, conversation, can_call=True)
    wrote, said = False, ""
    for _ in range(MAX_STEPS):
        reply: ChatResponse = yield partial(_asked, llm, "chat_with_tools", [tool], chat_history=list(shown))
        said = reply.message.content or ""
        calls = llm.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        if not calls:
            break
        shown.append(reply.message)
        for call in calls:
            answer = answer_tool_call(turn, call.tool_name, call.tool_kwargs)
            wrote = wrote or answer.ok
            known = {"tool_call_id": call.tool_id, "name": call.tool_name}
            shown.append(ChatMessage(answer.text, role=MessageRole.TOOL, additional_kwargs=known))
    return SILENT if wrote else said


def _asked(llm: Any, name: str, *arguments: Any, **options: Any) -> ChatResponse:
    """A model's reply: from a stream, or with `await`, where its integration has no other way to ask."""
    try:
        reply: ChatResponse = getattr(llm, name)(*arguments, **options)
    except NotImplementedError:
        pass
    else:
        return reply
    try:
        *_, reply = getattr(llm, f"stream_{name}")(*arguments, **options)
    except NotImplementedError:
        pass
    else:
        return reply

    async def asked() -> ChatResponse:
        answer: ChatResponse = await getattr(llm, f"a{name}")(*arguments, **options)
        return answer

    waited: ChatResponse = asyncio_run(asked())
    return waited


def _turn_without_tools(turn: FlushTurn, llm: LLM, conversation: Conversation) -> ModelTurn:
    """The look of a model that cannot call tools: what it says is what it wants to save."""
    reply: ChatResponse = yield partial(_asked, llm, "chat", _shown(turn, conversation, can_call=False))
    said = reply.message.content or ""
    if is_silent(said):
        return said
    return SILENT if turn.tool.run({"text": said}).ok else said


def _shown(turn: FlushTurn, conversation: Conversation, *, can_call: bool) -> list[ChatMessage]:
    """What a model is asked. The messages as they were are what providers have in their caches."""
    if isinstance(conversation, str):
        return [ChatMessage(as_single_prompt(turn, conversation, can_call=can_call))]
    said = [message for message in conversation if message.role not in _OF_THE_PROGRAM]
    before = ChatMessage(turn.system_prompt, role=MessageRole.SYSTEM)
    return [before, *said, ChatMessage(prompt_of(turn, can_call=can_call))]


def _is_all_said(conversation: Sequence[ChatMessage]) -> bool:
    """Whether nothing was recalled into the messages: what the memory has is nothing new to it."""
    said = (message.content or "" for message in conversation if message.role not in _OF_THE_PROGRAM)
    return all(own_words(text) == text for text in said)


def _text(conversation: Conversation) -> str:
    return conversation if isinstance(conversation, str) else as_text(openclaw_messages(conversation))
