"""The silent turn: a model is shown a conversation and writes down what should last, and nobody else hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Sequence
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import get_buffer_string
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import var_child_runnable_config

from langchain_openclaw_memory._messages import without_loose_ends
from openclaw_memory.sessions import FLUSH_TAG, SILENT, is_overflow, is_silent

if TYPE_CHECKING:
    from openclaw_memory.sessions import FlushTurn

Model = Runnable[Any, Any]
Counter = Callable[[Sequence[BaseMessage]], int]
# What the work of a turn asks for, a model and what it is shown, and what it is given for that.
Request = tuple[Model, list[BaseMessage]]
Reply = BaseMessage | str
Asking = Generator[Request, Reply, None]
Talk = list[BaseMessage] | str  # messages, or a part of a conversation that is too long to be shown at once

MAX_STEPS = 8
# Below so many tokens a conversation is not cut again: a model that takes no more than this is not to be helped.
_SMALLEST_PART = 256
# "nostream" is LangGraph's own word for a call whose tokens its streams leave out.
_CONFIG: RunnableConfig = {"run_name": "memory_flush", "tags": [FLUSH_TAG, "nostream"], "callbacks": []}
_PART = "This is a part of the conversation, as text:"
_WITHOUT_TOOLS = (
    "You have no tools here. Reply with the notes themselves, as Markdown, and nothing else: they will be saved. "
    f"If there is nothing to store, reply with {SILENT}."
)


def flush(turn: FlushTurn, model: Model, messages: Iterable[BaseMessage], *, room: int | None, count: Counter) -> None:
    """Have `model` write down what should last of `messages`, until `turn` is done.

    The model runs outside of the run that this is called in: its callbacks and streams see nothing. What does not fit
    into `room` tokens, None for no limit that is known, is shown in parts. An error of the model ends up in `turn`.
    """
    work = _work(turn, model, messages, room, count)
    step: Callable[[], Any] = lambda: next(work)  # noqa: E731 - the next step differs from case to case
    while (request := _next(step)) is not None:
        asked, shown = request
        try:
            reply = _alone().run(asked.invoke, shown, _CONFIG)
        except Exception as error:  # noqa: BLE001 - it is told to the turn
            step = _throwing(work, error)
        else:
            step = _sending(work, reply)


async def aflush(
    turn: FlushTurn, model: Model, messages: Iterable[BaseMessage], *, room: int | None, count: Counter
) -> None:
    """`flush` that waits for the model; files are written in a thread."""
    work = _work(turn, model, messages, room, count)
    step: Callable[[], Any] = lambda: next(work)  # noqa: E731 - as in flush
    while (request := await asyncio.to_thread(_next, step)) is not None:
        asked, shown = request
        try:
            reply = await asyncio.create_task(_asked(asked, shown), context=_alone())
        except Exception as error:  # noqa: BLE001 - it is told to the turn
            step = _throwing(work, error)
        else:
            step = _sending(work, reply)


async def _asked(model: Model, shown: list[BaseMessage]) -> Any:
    return await model.ainvoke(shown, _CONFIG)


def _next(step: Callable[[], Any]) -> Any:
    # A StopIteration cannot leave a thread that somebody awaits.
    try:
        return step()
    except StopIteration:
        return None


def _sending(work: Asking, reply: BaseMessage | str) -> Callable[[], Any]:
    return lambda: work.send(reply)


def _throwing(work: Asking, error: Exception) -> Callable[[], Any]:
    return lambda: work.throw(error)


def _alone() -> Context:
    """The current context, but for the run that is under way in it."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    return context


def _work(turn: FlushTurn, model: Model, messages: Iterable[BaseMessage], room: int | None, count: Counter) -> Asking:
    """All attempts of a flush. A part that is done is not shown again by the next attempt."""
    talk = without_loose_ends(messages)
    left: list[Talk] = [talk]
    if room is not None and count(talk) > room:
        left = _parts(talk, room, count)
    while turn.open:
        try:
            reply = yield from _parts_in_turn(turn, quiet(model), left)
        except Exception as error:  # noqa: BLE001 - whatever a model or its tool raises is told to the turn
            size = count(_shown(left[0]))
            if is_overflow(error) and size > _SMALLEST_PART:
                left[:1] = _parts(left[0], size // 2, count)
            else:
                turn.failed(error)
        else:
            turn.replied(reply)


def _parts_in_turn(turn: FlushTurn, model: Model, left: list[Talk]) -> Generator[Request, Reply, str]:
    """A look at each part; those that came to something are taken from `left`, but for the last one."""
    while True:
        reply = yield from _silent_turn(turn, model, _shown(left[0]))
        if len(left) == 1:
            return reply
        if not is_silent(reply):
            # Told as an error: notes of another part would make the turn take this reply for a good one.
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
        left.pop(0)


def _shown(talk: Talk) -> list[BaseMessage]:
    return [HumanMessage(f"{_PART}\n\n{talk}")] if isinstance(talk, str) else talk


def _silent_turn(turn: FlushTurn, model: Model, talk: list[BaseMessage]) -> Generator[Request, Reply, str]:
    """One look at a conversation: what the model said last, or that it is silent once it has written something."""
    bound, can_call = _with_tool(model, turn)
    prompt = turn.prompt if can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"
    shown: list[BaseMessage] = [SystemMessage(turn.system_prompt), *talk, HumanMessage(prompt)]
    wrote, said = False, ""
    for _ in range(MAX_STEPS):
        reply = yield bound, list(shown)
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply if isinstance(reply, str) else reply.text)
        said = message.text
        if not can_call and not is_silent(said):
            return SILENT if _saved(turn, {"text": said}) else said
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        if not calls:
            break
        shown.append(message)
        for call in calls:
            answer, was_ok = _answer(turn, call)
            wrote = wrote or was_ok
            shown.append(ToolMessage(answer, tool_call_id=call["id"] or "", name=call["name"] or ""))
    return SILENT if wrote else said


def _answer(turn: FlushTurn, call: Any) -> tuple[str, bool]:
    """What a call of a tool is answered with, and whether it wrote."""
    if call["name"] != turn.tool.name:
        known = f"there is no tool {call['name']!r} here: {turn.tool.name} is the only one"
        return f'{{"status":"invalid","error":{_quoted(known)}}}', False
    if not isinstance(call["args"], dict):
        return (
            f'{{"status":"invalid","error":{_quoted("the arguments are no JSON object: " + str(call["args"]))}}}',
            False,
        )
    answer = turn.tool.run(call["args"])
    return answer.text, answer.ok


def _saved(turn: FlushTurn, arguments: dict[str, Any]) -> bool:
    return turn.tool.run(arguments).ok


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _with_tool(model: Model, turn: FlushTurn) -> tuple[Model, bool]:
    """The model with the tool of the turn, and whether it can call tools at all."""
    schema = {"name": turn.tool.name, "description": turn.tool.description, "parameters": dict(turn.tool.parameters)}
    try:
        bind: Callable[..., Model] = model.bind_tools  # type: ignore[attr-defined]
        return bind([{"type": "function", "function": schema}]), True
    except (NotImplementedError, AttributeError):
        return model, False


def quiet(model: Model) -> Model:
    """The model without the callbacks that were given to itself: they belong to the talk with the user."""
    if isinstance(model, BaseChatModel):
        return model.model_copy(update={"callbacks": None}) if model.callbacks else model
    if isinstance(model, RunnableBindingBase):
        config = {key: value for key, value in model.config.items() if key != "callbacks"}
        return model.model_copy(update={"bound": quiet(model.bound), "config": config, "config_factories": []})
    return model


def _parts(talk: Talk, room: int, count: Counter) -> list[Talk]:
    """The conversation as text, cut into parts of at most about `room` tokens, at ends of lines where there are any."""
    text = talk if isinstance(talk, str) else get_buffer_string(talk)
    tokens = max(1, count([HumanMessage(text)]))
    size = max(1, len(text) * max(room, _SMALLEST_PART) // tokens)
    parts: list[Talk] = []
    at = 0
    while at < len(text):
        end = min(len(text), at + size)
        if end < len(text) and (line := text.rfind("\n", at + size // 2, end)) >= 0:
            end = line + 1
        parts.append(text[at:end])
        at = end
    return parts or [text]
