"""Ask a model in the silent turn of a flush, or for an intent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags

from llama_index_openclaw_memory.tools import MemoryTool
from openclaw_memory.errors import StoreError
from openclaw_memory.flush import Flush, FlushModel, ModelReply, Session, run_flush

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from openclaw_memory import Memory
    from openclaw_memory.types import Tool


Counter: TypeAlias = Callable[[str], int]


def flush(
    opened: Flush, llm: LLM, messages: Sequence[Mapping[str, Any]], *, room: int | None, count: Counter, **options: Any
) -> Any:
    """Have `llm` write lasting memories down if a flush is due; its errors end up in the turn.

    What does not fit into `room` tokens (None: unknown) is shown in parts; `count` counts the tokens of a text. Event
    handlers know the calls by the tag `Flush.TAG`. The model is asked without `await` where it can be: many
    integrations keep a client that belongs to the loop in which it was made.
    """

    def bind(tool: Tool) -> FlushModel:
        can_call = llm.metadata.is_function_calling_model and hasattr(llm, "chat_with_tools")
        tools, model = [MemoryTool(tool)], cast("Any", llm)

        def ask(request: list[Any]) -> ModelReply:
            messages, calls = [_to_chat_message(message) for message in request], []
            if can_call:
                reply = _ask(llm, "chat_with_tools", tools, chat_history=messages)
                calls = model.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
            else:
                reply = _ask(llm, "chat", messages)
            about = [reply.raw, reply.additional_kwargs, reply.message.additional_kwargs]
            called = [(call.tool_id, call.tool_name, call.tool_kwargs) for call in calls]
            return ModelReply(reply.message, reply.message.content or "", called, about)

        return FlushModel(ask=ask, can_call=can_call, room=room, count=count)

    with instrument_tags({**active_instrument_tags.get(), Flush.TAG: True}):
        return run_flush(opened, messages, bind, **options)


def ask_model(llm: LLM, prompt: str) -> str:
    """Ask `llm` something that no user asked for, which event handlers know by the tag `Flush.TAG`; return its text."""
    with instrument_tags({**active_instrument_tags.get(), Flush.TAG: True}):
        return _ask(llm, "chat", [ChatMessage(prompt)]).message.content or ""


def open_flush(memory: Memory, session: Session, window: int | None = None) -> Flush:
    """Return the flush of a session, also if the memory was closed meanwhile."""
    try:
        return memory.sessions.flush(session, window=window)
    except StoreError:
        return Flush(memory.workspace, session, memory.config.compaction, window=window)


def get_window(llm: LLM) -> int | None:
    """Return the context window of a model in tokens; None if its integration does not know the model."""
    try:
        size = llm.metadata.context_window
    except Exception:  # noqa: BLE001 - each raises its own for a name that it does not know
        return None
    return size if size > 0 else None


def _to_chat_message(message: Any) -> ChatMessage:
    if isinstance(message, ChatMessage):
        return message
    more = {name: message[name] for name in ("tool_call_id", "name") if name in message}
    return ChatMessage(message["content"], role=MessageRole(message["role"]), additional_kwargs=more)


def _ask(llm: Any, name: str, *arguments: Any, **options: Any) -> ChatResponse:
    """Ask a model; by a stream or with `await` if its integration has no other way."""
    reply: ChatResponse
    with suppress(NotImplementedError):
        reply = getattr(llm, name)(*arguments, **options)
        return reply
    with suppress(NotImplementedError):
        *_, reply = getattr(llm, f"stream_{name}")(*arguments, **options)
        return reply
    reply = asyncio_run(getattr(llm, f"a{name}")(*arguments, **options))
    return reply
