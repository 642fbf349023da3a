"""Drive the turn of a flush: show a model the conversation, in parts where needed, and run its calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from openclaw_memory._log import warn
from openclaw_memory.conversation.window import is_overflow
from openclaw_memory.flush.finish_reason import is_cut_off, read_finish_reason
from openclaw_memory.text.silent_reply import SILENT, is_silent
from openclaw_memory.types import ToolAnswer

if TYPE_CHECKING:
    from openclaw_memory.flush.flush import FlushTurn

M = TypeVar("M")

# A conversation is not cut into parts of fewer tokens: no model that takes less can save anything.
SMALLEST_PART = 256
_PART = "This is the conversation, or a part of it, as text:"
_WITHOUT_TOOLS = (
    "You have no tools here. Reply with the notes themselves, as Markdown, and nothing else: they will be saved. "
    f"If there is nothing to store, reply with {SILENT}."
)


class ModelReply(NamedTuple):
    """What a model replied: the framework's message, its text, and its tool calls as ids, names and arguments.

    `about` are the provider's mappings or objects about it, such as `{"finish_reason": "length"}`.
    """

    message: Any
    text: str
    calls: Sequence[tuple[str, str | None, object]] = ()
    about: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class FlushModel(Generic[M]):
    """A framework's model, with the turn's tool bound to it, and how to make and read the framework's messages.

    Args:
        ask: Asks the model with messages; for `adrive_flush`, awaited.
        system: Makes a system prompt of a text.
        user: Makes a message of the user of a text.
        answer: Makes the answer to a tool call from the call's id, its name, and the text.
        size: Counts the tokens of messages.
        text: Returns messages as text.
        can_call: Whether the model can call tools; if not, its reply is what it wants to save.
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


Shown: TypeAlias = Sequence[Any] | str  # messages of a framework, or the text of a conversation or of a part of it
# Yields the messages to ask with, is sent the replies, and returns what the model said last.
_ModelTurn: TypeAlias = Generator[list[Any], ModelReply, str]


def drive_flush(turn: FlushTurn, shown: Shown, model: FlushModel[Any]) -> None:
    """Run a flush to its end. What `ask` raises fails it, unless it ends the program.

    A conversation of more than `model.room` tokens is shown in parts, as text. So is one that the model finds too long.
    One whose messages make the model's provider fail is shown once more, as text.

    The model is asked in a thread of its own, `turn.max_calls` times at most. After `turn.timeout` seconds the turn is
    given up, and a reply that comes later is dropped.

    Args:
        turn: The turn to run to its end.
        shown: The conversation: messages of a framework without system prompts, or its text.
        model: The model, whose `ask` is not awaited.
    """
    until = time.monotonic() + turn.timeout
    work = _work(turn, shown, model)
    step: Callable[[], Any] = partial(next, work)
    while (request := _request(step)) is not None:
        asked = _asked_in_thread(model.ask, request)
        if not wait([asked], until - time.monotonic()).done:
            _give_up(turn)
            return
        step = _answered(work, asked)


async def adrive_flush(turn: FlushTurn, shown: Shown, model: FlushModel[Any]) -> None:
    """Run a flush to its end like `drive_flush`, with an awaited model, and files read and written in a thread.

    Args:
        turn: The turn to run to its end.
        shown: The conversation: messages of a framework without system prompts, or its text.
        model: The model, whose `ask` is awaited.
    """
    until = time.monotonic() + turn.timeout
    work = _work(turn, shown, model)
    step: Callable[[], Any] = partial(next, work)
    while (request := await asyncio.to_thread(_request, step)) is not None:
        asked: asyncio.Future[Any] = asyncio.ensure_future(_awaited(model.ask, request))
        try:
            # Unlike `asyncio.timeout`, this does not wait for a model that does not let itself be cancelled.
            done, _ = await asyncio.wait([asked], timeout=max(0.0, until - time.monotonic()))
        finally:
            asked.cancel()
        if not done:
            await asyncio.to_thread(_give_up, turn)
            return
        step = _answered(work, asked)


def _asked_in_thread(ask: Callable[[list[Any]], Any], request: list[Any]) -> Future[Any]:
    """Ask in a thread, since what hangs cannot be stopped; at a program's end there are no more threads: then here."""
    asked: Future[Any] = Future()

    def work() -> None:
        try:
            asked.set_result(ask(request))
        except BaseException as error:  # noqa: BLE001 - raised or reported by who waits for it
            asked.set_exception(error)

    try:
        Thread(target=copy_context().run, args=(work,), name="openclaw-memory-flush", daemon=True).start()
    except RuntimeError:
        work()
    return asked


async def _awaited(ask: Callable[[list[Any]], Any], request: list[Any]) -> Any:
    return await ask(request)


def _answered(work: _Work, asked: Future[Any] | asyncio.Future[Any]) -> Callable[[], Any]:
    """Return the next step of a flush whose model replied, raised, or cancelled its task."""
    error = asyncio.CancelledError() if asked.cancelled() else asked.exception()
    if error is None:
        return partial(work.send, asked.result())
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    return partial(
        work.throw, error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
    )


def _give_up(turn: FlushTurn) -> None:
    turn.failed(TimeoutError(f"the model took more than the {turn.timeout:g} s of compaction.flush_timeout_seconds"))


def _request(step: Callable[[], Any]) -> Any:
    """Return the next request, or None at the end: a StopIteration cannot leave a thread that is awaited."""
    try:
        return step()
    except StopIteration:
        return None


_Work: TypeAlias = Generator[list[Any], ModelReply, None]


def _work(turn: FlushTurn, shown: Shown, model: FlushModel[Any]) -> _Work:
    try:
        fits = model.room is None or _size(model, shown) <= model.room
        reply = yield from _parts_in_turn(turn, [shown] if fits else _split(model, shown, model.room or 0), model)
    except Exception as error:  # noqa: BLE001 - whatever a model, its tool or a counter raises fails the turn
        turn.failed(error)
    else:
        turn.replied(reply)


def _parts_in_turn(turn: FlushTurn, left: list[Shown], model: FlushModel[Any]) -> _ModelTurn:
    """Hold a turn of the model at each part; return what it said last."""
    calls = iter(range(turn.max_calls))
    while True:
        part = left[0]
        try:
            reply = yield from _model_turn(turn, part, model, calls)
        except Exception as error:
            if is_overflow(error) and (tokens := _size(model, part)) > SMALLEST_PART:
                left[:1] = _split(model, part, tokens // 2)
            elif not isinstance(part, str):  # it may be the roles, their order or a block that is refused
                left[0] = _text(model, part)
            else:
                raise
            continue
        if len(left) == 1:
            return reply
        if turn.unwritten:  # a text of another part would make it good
            raise RuntimeError(f"what the model wanted to save was not written: {turn.unwritten}")
        if not is_silent(reply):
            # Notes of another part would make the turn accept this reply.
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
        left.pop(0)


def _model_turn(turn: FlushTurn, part: Shown, model: FlushModel[Any], calls: Iterator[int]) -> _ModelTurn:
    """Hold one turn at a conversation; return what the model said last, or `NO_REPLY` once it has written something."""
    asked = turn.prompt if model.can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"
    if isinstance(part, str):
        # A single message, which every provider accepts: some want roles to alternate, no user after a tool, no system
        # prompt, or no call of a tool that they do not know.
        shown = [model.user(f"{turn.system_prompt}\n\n{_PART}\n\n{part}\n\n{asked}")]
    else:  # unchanged, so that the provider's cache applies
        shown = [model.system(turn.system_prompt), *part, model.user(asked)]
    wrote = False
    for _ in calls:
        reply = yield list(shown)
        reason = read_finish_reason(reply.about)
        if is_cut_off(reason) and not (model.can_call and reply.calls):
            turn.refuse(f"the model's reply was cut off ({reason})")
            return SILENT
        if not model.can_call and not is_silent(reply.text):
            return SILENT if turn.tool.run({"text": reply.text}).ok else reply.text
        if not reply.calls:
            return SILENT if wrote else reply.text
        shown.append(reply.message)
        answers = _answer_calls(turn, reply, reason)
        wrote = wrote or any(answer.ok for answer in answers)
        called = zip(reply.calls, answers, strict=True)
        shown.extend(model.answer(call_id, name or "", answer.text) for (call_id, name, _), answer in called)
    if not wrote:
        raise RuntimeError(f"the model was asked {turn.max_calls} times, as compaction.flush_max_calls allows")
    return SILENT


def _answer_calls(turn: FlushTurn, reply: ModelReply, reason: str) -> list[ToolAnswer]:
    """Answer the calls of a reply. Calls with a text run first, so that none makes good a refused one beside it."""
    answers: dict[int, ToolAnswer] = {}
    for at in sorted(range(len(reply.calls)), key=lambda at: not _has_text(turn, reply, at)):
        _, name, arguments = reply.calls[at]
        if is_cut_off(reason):  # frameworks mend arguments that end early
            error = f"the reply was cut off ({reason}), and nothing of it written: send less text at once"
            answers[at] = turn.refuse(error)
        elif name != turn.tool.name:
            answers[at] = turn.refuse(f"there is no tool {name!r:.80} here: {turn.tool.name} is the only one")
        elif not isinstance(arguments, dict):
            answers[at] = turn.refuse('the arguments are not a JSON object, or end early: send {"text": ...}')
        else:
            answers[at] = turn.tool.run(arguments)
    return [answers[at] for at in range(len(reply.calls))]


def _has_text(turn: FlushTurn, reply: ModelReply, at: int) -> bool:
    _, name, arguments = reply.calls[at]
    return name == turn.tool.name and isinstance(arguments, dict) and isinstance(arguments.get("text"), str)


def _text(model: FlushModel[Any], shown: Shown) -> str:
    return shown if isinstance(shown, str) else model.text(shown)


def _size(model: FlushModel[Any], shown: Shown) -> int:
    return model.size([model.user(shown)] if isinstance(shown, str) else shown)


def _split(model: FlushModel[Any], shown: Shown, room: int) -> list[Shown]:
    return [*parts(_text(model, shown), room, partial(_size, model))]


def parts(text: str, room: int, size: Callable[[str], int]) -> list[str]:
    """Split a text into parts of at most about `room` tokens, at line ends if there are any."""
    tokens = max(1, size(text))
    length = max(1, len(text) * max(room, SMALLEST_PART) // tokens)
    cut: list[str] = []
    at = 0
    while at < len(text):
        end = min(len(text), at + length)
        if end < len(text) and (line := text.rfind("\n", at + length // 2, end)) >= 0:
            end = line + 1
        cut.append(text[at:end])
        at = end
    return cut or [text]


def run_flush(key: str, begin: Callable[[], FlushTurn | None], drive: Callable[[FlushTurn], object]) -> bool:
    """Run one flush of session `key`. Nothing is raised but what ends the program.

    If the turn fails, its messages are kept verbatim.

    Args:
        key: The session.
        begin: Returns the turn, or None if there is none to hold.
        drive: Runs the turn to its end.

    Returns:
        Whether a turn was held, whatever its outcome. An error before that is logged.
    """
    turn: FlushTurn | None = None
    try:
        turn = begin()
        if turn is not None:
            drive(turn)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a failed flush, or a model that cancels its task, breaks nothing
        _broken_off(key, turn, error)
    return turn is not None


async def arun_flush(
    key: str, begin: Callable[[], FlushTurn | None], drive: Callable[[FlushTurn], Awaitable[object]]
) -> bool:
    """Run one flush like `run_flush`, with files read and written in a thread. A cancelled task is cancelled.

    Args:
        key: The session.
        begin: Returns the turn, or None if there is none to hold; called in a thread.
        drive: Runs the turn to its end, awaited.

    Returns:
        Whether a turn was held, whatever its outcome. An error before that is logged.
    """
    turn: FlushTurn | None = None
    try:
        turn = await asyncio.to_thread(begin)
        if turn is not None:
            await drive(turn)
    except Exception as error:  # noqa: BLE001 - as in run_flush
        await asyncio.to_thread(_broken_off, key, turn, error)
    return turn is not None


def _broken_off(key: str, turn: FlushTurn | None, error: BaseException) -> None:
    if turn is None:
        warn(f"the flush of session {key!r} failed: {error}")
    else:
        turn.failed(error)
