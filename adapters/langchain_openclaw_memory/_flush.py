"""Run one flush of one conversation, for the middleware and the callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory._flush_model import Counter, Model, asking
from langchain_openclaw_memory._messages import first_of, openclaw_messages
from langchain_openclaw_memory._session import kind_of, run_config, thread_of
from openclaw_memory.aio import in_thread
from openclaw_memory.conversation import compaction_threshold
from openclaw_memory.errors import ConfigError, InvalidInputError, OpenClawMemoryError
from openclaw_memory.flush import adrive_flush, arun_flush, drive_flush, run_flush
from openclaw_memory.runs import MemoryChoice, memory_choice

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from openclaw_memory import Memory
    from openclaw_memory.flush import Flush, FlushModel, FlushTurn
    from openclaw_memory.runs import Leased

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A flush that is due: its memory, session, model and messages. `window` and `tokens` are in tokens.

    `cut` says that the messages are taken from the conversation next, which then begins a new cycle. `held` is called
    with whether a turn was held.
    """

    leased: Leased
    key: str
    model: Model
    messages: Sequence[BaseMessage]
    window: int | None
    tokens: int
    count: Counter
    session_id: str | None = None
    cut: bool = False
    held: Callable[[bool], object] = bool


def checked(memory: MemoryChoice, session_key: str | None, window: Any = None) -> MemoryChoice:
    """Return what chooses the memory of a run.

    Raises:
        TypeError, ConfigError: As `memory_choice`; or the window is not a number of tokens.
        InvalidInputError: The session key is empty.
    """
    choice = memory_choice(memory)
    if session_key is not None and not (isinstance(session_key, str) and session_key.strip()):
        raise InvalidInputError(f"session_key must name a session, such as 'main', not {session_key!r}")
    if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window <= 0):
        raise ConfigError(f"window={window!r} is not a number of tokens: pass a whole number above 0, such as 200_000")
    return choice


def wanted_before_cut(
    leased: Leased, session_key: str | None, model: Model, messages: Sequence[BaseMessage], count: Counter
) -> Wanted:
    """Return the flush of messages that a summary takes from the conversation of the current run."""
    key, thread = session_of_run(session_key, messages)
    return Wanted(leased, key, model, messages, None, 0, count, session_id=thread, cut=True)


def session_of_run(session_key: str | None, messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """Return the session whose memories a run saves, and the id of its transcript; None if `sessions.json` has that.

    It is the one that is given, else the thread, else one by the first message. The `session_key` of a run says who
    reads along, and does not name the run's own conversation.
    """
    thread = None if session_key else thread_of(run_config())
    if session_key or thread or (first := first_of(messages)) is None:
        return session_key or thread or "main", thread
    text = f"{first.type}\n{first.text}".encode("utf-8", "surrogatepass")
    return f"main:{blake2b(text, digest_size=8).hexdigest()}", None


def save(wanted: Wanted) -> bool:
    """Let the model write down what should last. Return whether the turn was held, whatever its outcome; never raises.

    It is not held if the memory cannot be opened or written, or wants no flush. If the flush fails, the messages are
    kept verbatim.
    """
    held = False
    with _reported(wanted), wanted.leased as memory:
        begin = partial(_begun, wanted, memory)
        held = run_flush(wanted.key, begin, lambda turn: drive_flush(turn, *_asking(wanted, memory, turn)))
        _ended(wanted, memory, held=held)
    return held


async def asave(wanted: Wanted) -> bool:
    """Do what `save` does with an awaited model; files are read and written in a thread."""
    held = False
    with _reported(wanted):
        async with wanted.leased as memory:

            async def drive(turn: FlushTurn) -> None:
                await adrive_flush(turn, *_asking(wanted, memory, turn, is_async=True))

            held = await arun_flush(wanted.key, partial(_begun, wanted, memory), drive)
            await in_thread(_ended, wanted, memory, held=held)
    return held


@contextmanager
def _reported(wanted: Wanted) -> Iterator[None]:
    """Log why a memory cannot be opened; nothing else in the block raises."""
    try:
        yield
    except OpenClawMemoryError as error:
        _log.warning(f"no memories of session {wanted.key!r} can be saved before a compaction: {error}")
        wanted.held(False)
    except BaseException:  # a run that is cancelled leaves its flush to the next one
        wanted.held(False)
        raise


def window_of(model: Any) -> int | None:
    """Return a model's context window in tokens, as its profile says; None if it does not."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def _asking(
    wanted: Wanted, memory: Memory, turn: FlushTurn, *, is_async: bool = False
) -> tuple[list[BaseMessage] | str, FlushModel[BaseMessage]]:
    # The model can be shown as much as its profile says, or else the given window.
    room = compaction_threshold(window_of(wanted.model) or wanted.window, memory.config.compaction)
    return asking(turn, wanted.model, wanted.messages, room=room, count=wanted.count, is_async=is_async)


def _session(wanted: Wanted, memory: Memory) -> Flush:
    return memory.flush(wanted.key, window=wanted.window, session_id=wanted.session_id)


def _begun(wanted: Wanted, memory: Memory) -> FlushTurn | None:
    return _session(wanted, memory).due(
        wanted.tokens,
        compacting=True,  # the caller has decided that a flush is due, and knows whether this cycle had one
        flushed=False,
        kind=kind_of(run_config()),
        messages=lambda: openclaw_messages(wanted.messages),
    )


def _ended(wanted: Wanted, memory: Memory, *, held: bool) -> None:
    """Note that the conversation begins a new cycle, and report what could not be saved before."""
    wanted.held(held)
    workspace, is_chat = memory.workspace, kind_of(run_config()) == "chat"
    if not held and is_chat and memory.config.compaction.flushes and not workspace.can_be_written:
        _log.warning(
            f"no memories of session {wanted.key!r} can be saved before a compaction: {workspace.root} is read-only; "
            "give this process the right to write to its folder memory/"
        )
    elif wanted.cut:
        try:
            _session(wanted, memory).compacted()
        except Exception as error:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
            _log.warning(f"the compaction of session {wanted.key!r} could not be noted: {error}")
