"""Drive the turn of a flush: show a model the conversation, in parts where needed, and run its calls."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory._log import warn
from openclaw_memory.conversation.overflow import is_overflow
from openclaw_memory.conversation.silent_reply import SILENT, is_silent
from openclaw_memory.types import ToolAnswer

if TYPE_CHECKING:
    from openclaw_memory.flush.flush import FlushTurn


# One turn of a model at a conversation: yields requests for replies, in the form its driver knows, and returns what the
# model said last.
ModelTurn: TypeAlias = Generator[Any, Any, str]

MAX_STEPS = 8  # replies of a model in one look; more calls than that save nothing new
# Below so many tokens a conversation is not cut again: a model that takes no more than this is not to be helped.
SMALLEST_PART = 256
_PART = "This is the conversation, or a part of it, as text:"
_WITHOUT_TOOLS = (
    "You have no tools here. Reply with the notes themselves, as Markdown, and nothing else: they will be saved. "
    f"If there is nothing to store, reply with {SILENT}."
)


def drive_flush(
    turn: FlushTurn,
    talk: Any,
    look: Callable[[Any], ModelTurn],
    *,
    room: int | None,
    size: Callable[[Any], int],
    text: Callable[[Any], str],
) -> Generator[Any, Any, None]:
    """All attempts of a flush; whatever a look asks for is yielded, and its reply sent or its error thrown in.

    `talk` is the conversation: messages of a framework, or its text. What has more than `room` tokens (None: no limit
    that is known) is looked at in parts, as text; so is what a model finds too long, and what an attempt failed at. A
    part that is done is not shown again by the next attempt. `size` counts the tokens of a talk, `text` writes it out.
    """
    left: list[Any] = []
    is_first = True
    while turn.open:
        try:
            left = left or ([talk] if room is None or size(talk) <= room else parts(text(talk), room, size))
            if not is_first:
                left = [part if isinstance(part, str) else text(part) for part in left]
            reply = yield from _parts_in_turn(left, look, size, text)
        except Exception as error:  # noqa: BLE001 - whatever a model, its tool or a counter raises is told to the turn
            turn.failed(error)
        else:
            turn.replied(reply)
        is_first = False


def _parts_in_turn(
    left: list[Any], look: Callable[[Any], ModelTurn], size: Callable[[Any], int], text: Callable[[Any], str]
) -> ModelTurn:
    """A look at each part; those that came to something are taken from `left`, but for the last one."""
    while True:
        part = left[0]
        try:
            reply = yield from look(part)
        except Exception as error:
            if not (is_overflow(error) and (tokens := size(part)) > SMALLEST_PART):
                raise
            left[:1] = parts(part if isinstance(part, str) else text(part), tokens // 2, size)
            continue
        if len(left) == 1:
            return reply
        if not is_silent(reply):
            # Told as an error: notes of another part would make the turn take this reply for a good one.
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
        left.pop(0)


def prompt_of(turn: FlushTurn, *, can_call: bool) -> str:
    """What to ask a model after the conversation; one that cannot call tools is asked for the notes themselves."""
    return turn.prompt if can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"


def as_single_prompt(turn: FlushTurn, text: str, *, can_call: bool) -> str:
    """A conversation as text, with what is said before and after it, for one message of the user's.

    Every provider takes that: some want roles to alternate, no user after a tool, no system prompt, or no call of a
    tool that is not theirs.
    """
    return f"{turn.system_prompt}\n\n{_PART}\n\n{text}\n\n{prompt_of(turn, can_call=can_call)}"


def answer_tool_call(turn: FlushTurn, name: str | None, arguments: object) -> ToolAnswer:
    """What a call of a tool in the turn of a flush is answered with; it has written then, where that is `ok`."""
    if name != turn.tool.name:
        return _invalid(f"there is no tool {name!r} here: {turn.tool.name} is the only one")
    if not isinstance(arguments, dict):
        return _invalid(f"the arguments are no JSON object: {arguments}")
    return turn.tool.run(arguments)


def parts(text: str, room: int, size: Callable[[str], int]) -> list[str]:
    """The text cut into parts of at most about `room` tokens, at ends of lines where there are any."""
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


def _invalid(error: str) -> ToolAnswer:
    return ToolAnswer({"status": "invalid", "error": error})


def run_flush(key: str, begin: Callable[[], FlushTurn | None], drive: Callable[[FlushTurn], object]) -> bool:
    """Have the turn driven that `begin` gives for session `key`; True where one was held, whatever came of it.

    False where there is none to be held, or it could not begin: that is said. It raises nothing but what ends the
    program; where the turn fails, its messages are kept verbatim.
    """
    turn: FlushTurn | None = None
    try:
        turn = begin()
        if turn is not None:
            drive(turn)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a flush that fails, or a model that gives up its task, breaks nothing
        return abort_flush(key, turn, error)
    return turn is not None


def abort_flush(key: str, turn: FlushTurn | None, error: BaseException) -> bool:
    """End a turn that whoever drove it broke off with `error`; False where there is none, and that is said."""
    if turn is None:
        warn(f"the flush of session {key!r} failed: {error}")
        return False
    while turn.open:  # what fails outside of the model fails again: the messages are kept
        turn.failed(error)
    return True
