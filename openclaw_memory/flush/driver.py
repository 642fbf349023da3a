"""Drive the turn of a flush: show a model the conversation, in parts if needed, and run its calls."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from openclaw_memory._log import warn
from openclaw_memory.conversation.thresholds import is_overflow
from openclaw_memory.text.silent_reply import NO_REPLY, is_silent
from openclaw_memory.types import ToolAnswer

if TYPE_CHECKING:
    from openclaw_memory.flush.flush import FlushTurn

M = TypeVar("M")
T = TypeVar("T")

SMALLEST_PART = 256  # tokens: a model that can take less saves nothing
_PART = "This is the conversation, or a part of it, as text:"
_WITHOUT_TOOLS = (
    "You have no tools here. Reply with the notes themselves, as Markdown, and nothing else: they will be saved. "
    f"If there is nothing to store, reply with {NO_REPLY}."
)
# The field of the finish reason: OpenAI and most others, Anthropic, Amazon Bedrock, Ollama, Google.
_REASON_FIELDS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")
_CUT_OFF = re.compile(
    r"length|max.*token|exceeded|incomplete"  # a limit of tokens, or of the window
    r"|filter|safety|refusal|guardrail|blocklist|prohibited|recitation|spii|toxic"  # a filter
    r"|malformed|error",
    re.IGNORECASE,
)


class ModelReply(Struct, frozen=True):
    """A reply of a model.

    Attributes:
        message: The framework's message.
        text: Its text.
        calls: Its tool calls: id, name and arguments.
        about: The provider's mappings or objects about it, such as `{"finish_reason": "length"}`.
    """

    message: Any
    text: str
    calls: Sequence[tuple[str, str | None, object]] = ()
    about: Sequence[object] = ()


class FlushModel(Struct, Generic[M], frozen=True, kw_only=True):
    """A framework's model with the tool of the turn bound to it, and how the framework's messages are made and read.

    Attributes:
        ask: Asks the model with messages; awaited by `arun_flush`.
        system: Makes a system prompt of a text.
        user: Makes a message of the user of a text.
        answer: Makes the answer to a tool call of the call's id, its name, and the text.
        size: Counts the tokens of messages.
        text: Writes messages as text.
        can_call: Whether the model can call tools; if not, its reply is the note.
        room: How many tokens the model can be shown at once; None if unknown.
    """

    ask: Callable[[list[M]], ModelReply | Awaitable[ModelReply]]
    system: Callable[[str], M]
    user: Callable[[str], M]
    answer: Callable[[str, str, str], M]
    size: Callable[[Sequence[M]], int]
    text: Callable[[Sequence[M]], str]
    can_call: bool = True
    room: int | None = None


Conversation: TypeAlias = Sequence[Any] | str  # messages of a framework without system prompts, or text
Begin: TypeAlias = "Callable[[], FlushTurn | None]"
Prepare: TypeAlias = "Callable[[FlushTurn], tuple[Conversation, FlushModel[Any]]]"
Ask: TypeAlias = Callable[[Callable[[list[Any]], Any], list[Any]], Future[Any]]
# Yields the messages to ask with, is sent the replies, and returns the last text of the model.
_Steps: TypeAlias = Generator[list[Any], ModelReply, str]
_Turn: TypeAlias = Generator[list[Any], ModelReply, None]


def run_flush(key: str, begin: Begin, prepare: Prepare) -> FlushTurn | None:
    """Begin a turn and drive it to its end; errors end up in the turn, or in the log.

    A conversation of more than `model.room` tokens is shown in parts, as text; so is one that the model finds too long.
    One whose messages make the model fail is shown once more, as text. The model is asked in a thread of its own,
    `turn.max_calls` times at most; after `turn.timeout` seconds the turn fails, and a later reply is dropped. If the
    turn fails, its messages are kept verbatim.

    Args:
        key: The key of the session, for the log.
        begin: Returns the turn, or None if no flush is due.
        prepare: Returns the conversation and the model of a turn.

    Returns:
        The turn, with its outcome; None if none began. An error before that is logged.

    Raises:
        KeyboardInterrupt, SystemExit: The program ends.
    """
    return _run(key, begin, prepare, lambda ask, request: _run_in_thread(partial(ask, request)))


async def arun_flush(key: str, begin: Begin, prepare: Prepare) -> FlushTurn | None:
    """Run a flush like `run_flush` in a thread, with a model that is awaited in this event loop.

    Args:
        key: The key of the session, for the log.
        begin: Returns the turn, or None if no flush is due.
        prepare: Returns the conversation and the model of a turn.

    Returns:
        The turn, with its outcome; None if none began. An error before that is logged.

    Raises:
        CancelledError: The task was cancelled; the turn stays open.
    """
    loop = asyncio.get_running_loop()
    replies: list[Future[Any]] = []
    is_cancelled = False

    def ask(ask_model: Callable[[list[Any]], Any], request: list[Any]) -> Future[Any]:
        replies.append(asyncio.run_coroutine_threadsafe(ask_model(request), loop))
        return replies[-1]

    try:
        work = partial(_run, key, begin, prepare, ask, lambda: is_cancelled)
        return await asyncio.wrap_future(_run_in_thread(work))  # the executor has few threads, which models need
    except asyncio.CancelledError:
        is_cancelled = True
        for reply in replies:
            reply.cancel()
        raise


def _run(
    key: str, begin: Begin, prepare: Prepare, ask: Ask, is_cancelled: Callable[[], bool] = lambda: False
) -> FlushTurn | None:
    turn: FlushTurn | None = None
    try:
        if (turn := begin()) is None:
            return None
        conversation, model = prepare(turn)
        deadline, steps = time.monotonic() + turn.timeout, _show(turn, conversation, model)
        request = next(steps, None)
        while request is not None and not is_cancelled():
            reply = ask(model.ask, request)
            if not wait([reply], max(0.0, deadline - time.monotonic())).done:
                reply.cancel()
                seconds = f"{turn.timeout:g} s of compaction.flush_timeout_seconds"
                turn.fail(TimeoutError(f"the model took more than the {seconds}"))
                break
            if is_cancelled():
                break
            request = _advance(steps, reply)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a failed flush, or a model that cancels its task, breaks nothing
        if turn is None:
            warn(f"the flush of session {key!r} failed: {error}")
        else:
            turn.fail(error)
    return turn


def _run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a function in a thread of its own, since one that hangs cannot be stopped."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # it cannot be cancelled

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised or reported where the result is waited for
            result.set_exception(error)

    try:
        Thread(target=copy_context().run, args=(run,), name="openclaw-memory-flush", daemon=True).start()
    except RuntimeError:  # the program ends, and begins no more threads
        run()
    return result


def _advance(steps: _Turn, reply: Future[Any]) -> list[Any] | None:
    """Return the next request after the model has replied or raised; None at the end."""
    error = RuntimeError("CancelledError: the model gave up") if reply.cancelled() else reply.exception()
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    if error is not None and not isinstance(error, Exception):
        error = RuntimeError(f"{type(error).__name__}: {error}")
    try:
        return steps.send(reply.result()) if error is None else steps.throw(error)
    except StopIteration:
        return None


def _show(turn: FlushTurn, conversation: Conversation, model: FlushModel[Any]) -> _Turn:
    """Show the model each part of a conversation, the ones it finds too long in halves; finish with its last text."""
    fits = model.room is None or _measure(model, conversation) <= model.room
    parts = [conversation] if fits else _split(model, conversation, model.room or 0)
    calls = iter(range(turn.max_calls))
    while True:
        part = parts[0]
        try:
            reply = yield from _show_part(turn, part, model, calls)
        except Exception as error:
            if is_overflow(error) and (tokens := _measure(model, part)) > SMALLEST_PART:
                parts[:1] = _split(model, part, tokens // 2)
            elif not isinstance(part, str):  # the provider may refuse the roles, their order or a block
                parts[0] = model.text(part)
            else:
                raise
            continue
        if len(parts) == 1:
            turn.finish(reply)
            return
        # A note about the next part would hide that this one was not saved.
        if turn.unwritten:
            raise RuntimeError(f"the text that the model wanted to save was not written: {turn.unwritten}")
        if not is_silent(reply):
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
        parts.pop(0)


def _show_part(turn: FlushTurn, part: Conversation, model: FlushModel[Any], calls: Iterator[int]) -> _Steps:
    """Show the model one part and run its calls; return its last text, or `NO_REPLY` once it has written."""
    prompt = turn.prompt if model.can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"
    if isinstance(part, str):  # in one message, which every provider accepts: some refuse roles that do not alternate
        request = [model.user(f"{turn.system_prompt}\n\n{_PART}\n\n{part}\n\n{prompt}")]
    else:  # unchanged, so that the provider's cache applies
        request = [model.system(turn.system_prompt), *part, model.user(prompt)]
    has_written = False
    for _ in calls:
        reply = yield list(request)
        reason = read_finish_reason(reply.about)
        is_cut_off = _CUT_OFF.search(reason) is not None
        if is_cut_off and not (model.can_call and reply.calls):
            turn.refuse(f"the model's reply was cut off ({reason})")
            return NO_REPLY
        if not model.can_call and not is_silent(reply.text):
            return NO_REPLY if turn.tool.run({"text": reply.text}).ok else reply.text
        if not reply.calls:
            return NO_REPLY if has_written else reply.text
        request.append(reply.message)
        answers = _answer_calls(turn, reply, reason if is_cut_off else "")
        has_written = has_written or any(answer.ok for answer in answers)
        for (call_id, name, _arguments), answer in zip(reply.calls, answers, strict=True):
            request.append(model.answer(call_id, name or "", answer.text))
    if not has_written:
        raise RuntimeError(f"the model was asked {turn.max_calls} times, the most of a flush")
    return NO_REPLY


def _answer_calls(turn: FlushTurn, reply: ModelReply, cut_off: str) -> list[ToolAnswer]:
    """Answer the calls of a reply; `cut_off` is the reason if it was cut off.

    Calls that write run first, so that none hides that another one beside it was refused.
    """
    answers: dict[int, ToolAnswer] = {}
    refusals: dict[int, str] = {}
    for at, (_, name, arguments) in enumerate(reply.calls):
        if cut_off:  # frameworks mend arguments that end early
            refusals[at] = f"the reply was cut off ({cut_off}), and nothing of it written: send less text at once"
        elif name != turn.tool.name:
            refusals[at] = f"there is no tool {name!r:.80} here: {turn.tool.name} is the only one"
        elif not isinstance(arguments, dict):
            refusals[at] = 'the arguments are not a JSON object, or end early: send {"text": ...}'
        elif isinstance(arguments.get("text"), str):
            answers[at] = turn.tool.run(arguments)
    for at, (_, _, arguments) in enumerate(reply.calls):
        if at in refusals:
            answers[at] = turn.refuse(refusals[at])
        elif at not in answers and isinstance(arguments, dict):
            answers[at] = turn.tool.run(arguments)  # without a text: the tool says so
    return [answers[at] for at in range(len(reply.calls))]


def _measure(model: FlushModel[Any], conversation: Conversation) -> int:
    return model.size([model.user(conversation)] if isinstance(conversation, str) else conversation)


def _split(model: FlushModel[Any], conversation: Conversation, room: int) -> list[Conversation]:
    """Split a conversation into texts of at most about `room` tokens, at line ends if there are any."""
    text = conversation if isinstance(conversation, str) else model.text(conversation)
    length = max(1, len(text) * max(room, SMALLEST_PART) // max(1, _measure(model, text)))
    parts: list[Conversation] = []
    at = 0
    while at < len(text):
        end = min(len(text), at + length)
        if end < len(text) and (line := text.rfind("\n", at + length // 2, end)) >= 0:
            end = line + 1
        parts.append(text[at:end])
        at = end
    return parts or [text]


def read_finish_reason(about: Sequence[object]) -> str:
    """Return the finish reason of a reply; "" if there is none.

    Args:
        about: Mappings or objects as providers and frameworks return them. The first reason counts.
    """
    for report in about:
        values = [_get_field(report, name) for name in _REASON_FIELDS]
        values.append(_get_field(_get_field(report, "incomplete_details"), "reason"))  # OpenAI's Responses API
        for value in values:
            name = value if isinstance(value, str) else getattr(value, "name", "")  # packages have enumerations too
            if isinstance(name, str) and name:
                return name
        for field in ("choices", "candidates"):
            choices = _get_field(report, field)
            if isinstance(choices, list | tuple) and (reason := read_finish_reason(choices[:1])):
                return reason
    return ""


def _get_field(report: object, name: str) -> object:
    return report.get(name) if isinstance(report, Mapping) else getattr(report, name, None)
