"""Hold the turn of a flush: show a model the conversation as text, in parts if needed, and run its calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from openclaw_memory._limited import run_in_own_thread
from openclaw_memory._safe import warn
from openclaw_memory.conversation.messages import Message, drop_recalled, estimate_tokens, format_messages
from openclaw_memory.conversation.thresholds import Kind, is_overflow
from openclaw_memory.flush.flush import MAX_CALLS, Flush, FlushTurn
from openclaw_memory.text.silent_reply import NO_REPLY, is_silent
from openclaw_memory.types import Tool, ToolAnswer

SMALLEST_PART = 256  # tokens: a model that can take less saves nothing
_PART = "This is the conversation, or a part of it, as text:"
_EARLIER = "(Earlier messages of it were saved before, and are left out.)"
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
        message: The framework's message, which the next request has again.
        text: Its text.
        calls: Its tool calls: id, name and arguments.
        about: The provider's mappings or objects about it, such as `{"finish_reason": "length"}`.
    """

    message: Any
    text: str
    calls: Sequence[tuple[str, str | None, object]] = ()
    about: Sequence[object] = ()


class FlushModel(Struct, frozen=True, kw_only=True):
    """A framework's model with the tool of the turn bound to it.

    Attributes:
        ask: Asks the model with messages: in OpenAI's shape, apart from its own replies. Awaited by `arun_flush`.
        can_call: Whether the model can call tools; if not, its reply is the note.
        room: How many tokens the model can be shown at once; None if unknown.
        count: Counts the tokens of a text.
    """

    ask: Callable[[list[Any]], Any]
    can_call: bool = True
    room: int | None = None
    count: Callable[[str], int] = lambda text: estimate_tokens([{"content": text}])


Bind: TypeAlias = Callable[[Tool], FlushModel]


def run_flush(
    flush: Flush,
    messages: Sequence[Message],
    bind: Bind,
    *,
    tokens: int | None = None,
    compacting: bool = False,
    flushed: bool | None = None,
    kind: Kind = "chat",
) -> FlushTurn | None:
    """Hold a turn to its end if a flush is due; errors end up in the turn, or in the log.

    What the memory itself answered or recalled is not shown, and no summary. A conversation of more than `model.room`
    tokens is shown in parts; so is one that the model finds too long. The model is asked in a thread, `turn.max_calls`
    times at most; after `turn.timeout` seconds the turn fails, and a later reply is dropped. If the turn fails, the
    messages are kept verbatim.

    Args:
        flush: The flush of the session.
        messages: The messages to save: those that no flush has seen.
        bind: Returns the model with the tool of the turn.
        tokens: The size of the conversation; None or 0 if unknown.
        compacting: As for `Flush.begin`.
        flushed: Likewise.
        kind: Likewise.

    Returns:
        The turn, with its outcome; None if none began. An error before that is logged.

    Raises:
        KeyboardInterrupt, SystemExit: The program ends.
    """
    turn: FlushTurn | None = None
    try:
        turn = flush.begin(tokens, messages=lambda: messages, compacting=compacting, flushed=flushed, kind=kind)
        if turn is None:
            return None
        work = run_in_own_thread(partial(_run_turn, turn, messages, bind))
        if wait([work], turn.timeout).done:
            work.result()
        else:
            turn.fail(TimeoutError(f"the model took more than {turn.timeout:g} s: compaction.flush_timeout_seconds"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a failed flush, or a model that cancels its task, breaks nothing
        if turn is None:
            warn(f"the flush of session {flush.session.key!r} failed: {error}")
        else:
            turn.fail(error)
    return turn


async def arun_flush(flush: Flush, messages: Sequence[Message], bind: Bind, **options: Any) -> FlushTurn | None:
    """Run a flush like `run_flush` in a thread, with a model that is awaited in this event loop.

    Args:
        flush: The flush of the session.
        messages: The messages to save.
        bind: Returns the model with the tool of the turn.
        **options: The others of `run_flush`.

    Returns:
        The turn, with its outcome; None if none began. An error before that is logged.

    Raises:
        CancelledError: The task was cancelled; the turn stays open.
    """
    loop = asyncio.get_running_loop()
    replies: list[Future[Any]] = []
    is_cancelled = False

    def wait_for(reply: Coroutine[Any, Any, Any]) -> Any:
        replies.append(asyncio.run_coroutine_threadsafe(reply, loop))
        try:
            return replies[-1].result()
        except CancelledError:
            raise SystemExit if is_cancelled else RuntimeError("CancelledError: the model gave up") from None

    def bind_to_loop(tool: Tool) -> FlushModel:
        model = bind(tool)
        return msgspec.structs.replace(model, ask=lambda request: wait_for(model.ask(request)))

    try:
        work = run_in_own_thread(partial(run_flush, flush, messages, bind_to_loop, **options))
        return await asyncio.wrap_future(work)  # the executor has few threads, which models need
    except asyncio.CancelledError:
        is_cancelled = True
        raise
    finally:
        for reply in replies:
            reply.cancel()


def _run_turn(turn: FlushTurn, messages: Sequence[Message], bind: Bind) -> None:
    """Show the model each part of a conversation, the ones it finds too long in halves; finish with its last text."""
    text, model = format_messages(drop_recalled(messages)), bind(turn.tool)
    text = f"{_EARLIER}\n{text}" if text and not turn.is_first else text
    parts = _split(text, model, model.room) if model.room else [text]
    reply = NO_REPLY
    while any(parts):
        try:
            reply = _show(turn, parts[0], model)
        except Exception as error:
            if not is_overflow(error) or (tokens := model.count(parts[0])) <= SMALLEST_PART:
                raise
            parts[:1] = _split(parts[0], model, tokens // 2)
            continue
        parts.pop(0)
        if not parts:
            break
        # A note about the next part would hide that this one was not saved.
        if turn.unwritten:
            raise RuntimeError(f"the text that the model wanted to save was not written: {turn.unwritten}")
        if not is_silent(reply):
            raise RuntimeError(f"the model answered a part of the conversation with {reply[:80]!r}, and wrote no note")
    turn.finish(reply)


def _show(turn: FlushTurn, part: str, model: FlushModel) -> str:
    """Show the model one part and run its calls; return its last text, or `NO_REPLY` once it has written."""
    prompt = turn.prompt if model.can_call else f"{turn.prompt}\n\n{_WITHOUT_TOOLS}"
    # In one message, which every provider accepts: some refuse roles that do not alternate, or calls without answers.
    request: list[Any] = [{"role": "user", "content": f"{turn.system_prompt}\n\n{_PART}\n\n{part}\n\n{prompt}"}]
    has_written = False
    while turn.max_calls > 0:
        turn.max_calls -= 1
        reply: ModelReply = model.ask(list(request))
        reason = read_finish_reason(reply.about)
        is_cut_off = _CUT_OFF.search(reason) is not None
        if is_cut_off and not (model.can_call and reply.calls):
            turn.refuse(f"the model's reply was cut off ({reason})")
            return NO_REPLY
        if not model.can_call and not is_silent(reply.text):
            return NO_REPLY if turn.tool.run({"text": reply.text}).ok else reply.text
        if not reply.calls:
            return NO_REPLY if has_written else reply.text
        answers = _answer_calls(turn, reply, reason if is_cut_off else "")
        has_written = has_written or any(answer.ok for answer in answers)
        request.append(reply.message)
        for (call_id, name, _), answer in zip(reply.calls, answers, strict=True):
            request.append({"role": "tool", "tool_call_id": call_id, "name": name or "", "content": answer.text})
    if not has_written:
        raise RuntimeError(f"the model was asked {MAX_CALLS} times, the most of a flush")
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
        elif not isinstance(arguments, Mapping) or not isinstance(arguments.get("text"), str):
            refusals[at] = 'the arguments are no JSON object with a text, or end early: send {"text": ...}'
        else:
            answers[at] = turn.tool.run(arguments)
    answers |= {at: turn.refuse(error) for at, error in refusals.items()}
    return [answers[at] for at in range(len(reply.calls))]


def _split(text: str, model: FlushModel, room: int) -> list[str]:
    """Split a text into parts of at most about `room` tokens, at line ends if there are any."""
    if (tokens := model.count(text)) <= room:
        return [text]
    length = max(1, len(text) * max(room, SMALLEST_PART) // max(1, tokens))
    parts: list[str] = []
    at = 0
    while at < len(text):
        end = min(len(text), at + length)
        if end < len(text) and (line := text.rfind("\n", at + length // 2, end)) >= 0:
            end = line + 1
        parts.append(text[at:end])
        at = end
    return parts


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
