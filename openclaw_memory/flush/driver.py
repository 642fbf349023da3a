"""Drive the turn of a flush: show a model the conversation, in parts where needed, and run its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory._log import warn
from openclaw_memory.conversation.silent_reply import SILENT, is_silent
from openclaw_memory.conversation.window import is_overflow
from openclaw_memory.types import ToolAnswer

if TYPE_CHECKING:
    from openclaw_memory.flush.flush import FlushTurn


# One turn of a model at a conversation: yields requests, in the form its driver knows, is sent the replies, and returns
# what the model said last.
ModelTurn: TypeAlias = Generator[Any, Any, str]

MAX_STEPS = 8  # replies of a model in one turn; more calls than that save nothing new
# A conversation is not cut into parts of fewer tokens: no model that takes less can save anything.
SMALLEST_PART = 256
_PART = "This is the conversation, or a part of it, as text:"
_WITHOUT_TOOLS = (
    "You have no tools here. Reply with the notes themselves, as Markdown, and nothing else: they will be saved. "
    f"If there is nothing to store, reply with {SILENT}."
)


def drive_flush(
    turn: FlushTurn,
    shown: Any,
    model_turn: Callable[[Any], ModelTurn],
    ask: Callable[[Any], Any],
    *,
    room: int | None,
    size: Callable[[Any], int],
    text: Callable[[Any], str],
) -> None:
    """Run all attempts of a flush. What `ask` raises fails an attempt, unless it ends the program.

    A conversation of more than `room` tokens is shown in parts, as text. So is one that the model finds too long, and
    one at which an attempt failed. A part that is done is not shown again.

    Args:
        turn: The turn to run to its end.
        shown: The conversation: messages of a framework, or its text.
        model_turn: Begins one turn of the model at a conversation or a part of it.
        ask: Answers a request of such a turn.
        room: How many tokens the model can be shown at once; None if unknown.
        size: Counts the tokens of a conversation or a part of it.
        text: Returns a conversation as text.
    """
    work = _attempts(turn, shown, model_turn, room, size, text)
    step: Callable[[], Any] = partial(next, work)
    while (request := _request(step)) is not None:
        try:
            reply = ask(request)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - reported to the turn, also where a model's task was cancelled
            why = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            step = partial(work.throw, why)
        else:
            step = partial(work.send, reply)


async def adrive_flush(
    turn: FlushTurn,
    shown: Any,
    model_turn: Callable[[Any], ModelTurn],
    ask: Callable[[Any], Awaitable[Any]],
    *,
    room: int | None,
    size: Callable[[Any], int],
    text: Callable[[Any], str],
) -> None:
    """Run all attempts of a flush like `drive_flush`, with an awaited model, and files read and written in a thread.

    Args:
        turn: The turn to run to its end.
        shown: The conversation: messages of a framework, or its text.
        model_turn: Begins one turn of the model at a conversation or a part of it.
        ask: Answers a request of such a turn, awaited.
        room: How many tokens the model can be shown at once; None if unknown.
        size: Counts the tokens of a conversation or a part of it.
        text: Returns a conversation as text.
    """
    work = _attempts(turn, shown, model_turn, room, size, text)
    step: Callable[[], Any] = partial(next, work)
    while (request := await asyncio.to_thread(_request, step)) is not None:
        try:
            reply = await ask(request)
        except Exception as error:  # noqa: BLE001 - as in drive_flush
            step = partial(work.throw, error)
        else:
            step = partial(work.send, reply)


def _request(step: Callable[[], Any]) -> Any:
    """Return the next request, or None at the end: a StopIteration cannot leave a thread that is awaited."""
    try:
        return step()
    except StopIteration:
        return None


def _attempts(
    turn: FlushTurn,
    shown: Any,
    model_turn: Callable[[Any], ModelTurn],
    room: int | None,
    size: Callable[[Any], int],
    text: Callable[[Any], str],
) -> Generator[Any, Any, None]:
    left: list[Any] = []
    is_first = True
    while turn.open:
        try:
            left = left or ([shown] if room is None or size(shown) <= room else parts(text(shown), room, size))
            if not is_first:
                left = [part if isinstance(part, str) else text(part) for part in left]
            reply = yield from _parts_in_turn(left, model_turn, size, text)
        except Exception as error:  # noqa: BLE001 - whatever a model, its tool or a counter raises fails the attempt
            turn.failed(error)
        else:
            turn.replied(reply)
        is_first = False


def _parts_in_turn(
    left: list[Any], model_turn: Callable[[Any], ModelTurn], size: Callable[[Any], int], text: Callable[[Any], str]
) -> ModelTurn:
    """Hold a turn of the model at each part; remove those that are done from `left`, except for the last one."""
    while True:
        part = left[0]
        try:
            reply = yield from model_turn(part)
        except Exception as error:
            if not (is_overflow(error) and (tokens := size(part)) > SMALLEST_PART):
                raise
            left[:1] = parts(part if isinstance(part, str) else text(part), tokens // 2, size)
            continue
        if len(left) == 1:
            return reply
        if not is_silent(reply):
            # Notes of another part would make the turn accept this reply.
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
        left.pop(0)


def prompt_of(turn: FlushTurn, *, can_call: bool) -> str:
    """Return what to ask a model after the conversation.

    Args:
        turn: The turn of the flush.
        can_call: Whether the model can call tools; without them it is asked for the notes themselves.
    """
    return turn.prompt if can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"


def as_single_prompt(turn: FlushTurn, text: str, *, can_call: bool) -> str:
    """Return a conversation with the prompts of its flush, as the text of a single user message.

    Every provider accepts that: some want roles to alternate, no user after a tool, no system prompt, or no call of a
    tool that they do not know.

    Args:
        turn: The turn of the flush.
        text: The conversation as text.
        can_call: Whether the model can call tools.
    """
    return f"{turn.system_prompt}\n\n{_PART}\n\n{text}\n\n{prompt_of(turn, can_call=can_call)}"


def answer_tool_call(turn: FlushTurn, name: str | None, arguments: object) -> ToolAnswer:
    """Run a tool call of the model; the answer is `ok` if something was written.

    Args:
        turn: The turn of the flush.
        name: The name of the tool that the model called.
        arguments: What the model sent.
    """
    if name == turn.tool.name and isinstance(arguments, dict):
        return turn.tool.run(arguments)
    error = f"the arguments are not a JSON object: {arguments}"
    if name != turn.tool.name:
        error = f"there is no tool {name!r} here: {turn.tool.name} is the only one"
    return ToolAnswer({"status": "invalid", "error": error})


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
        return abort_flush(key, turn, error)
    return turn is not None


def abort_flush(key: str, turn: FlushTurn | None, error: BaseException) -> bool:
    """End a turn that its driver broke off.

    Args:
        key: The session.
        turn: The turn; if None, the error is logged.
        error: Why the driver broke off.

    Returns:
        Whether there was a turn.
    """
    if turn is None:
        warn(f"the flush of session {key!r} failed: {error}")
        return False
    while turn.open:  # what fails outside of the model fails again: the messages are kept
        turn.failed(error)
    return True
