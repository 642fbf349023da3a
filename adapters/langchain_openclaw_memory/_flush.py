"""Run one flush of one conversation, for the middleware and the callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory._flush_model import Counter, Model, aflush, flush
from langchain_openclaw_memory._messages import first_of, openclaw_messages
from langchain_openclaw_memory._session import flushed_session, kind_of, run_config
from openclaw_memory import Memories, Memory
from openclaw_memory.aio import in_thread
from openclaw_memory.config import CompactionConfig
from openclaw_memory.conversation import compaction_threshold
from openclaw_memory.errors import ConfigError, InvalidInputError, OpenClawMemoryError
from openclaw_memory.flush import arun_flush, run_flush
from openclaw_memory.runs import MemoryChoice, memory_choice

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from openclaw_memory.flush import Flush, FlushTurn
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


def checked(memory: MemoryChoice, session_key: str | None) -> MemoryChoice:
    """Return what chooses the memory of a run.

    Raises:
        TypeError, ConfigError: As `memory_choice`.
        InvalidInputError: The session key is empty.
    """
    choice = memory_choice(memory)
    if session_key is not None and not (isinstance(session_key, str) and session_key.strip()):
        raise InvalidInputError(f"session_key must name a session, such as 'main', not {session_key!r}")
    return choice


def checked_window(window: Any) -> int | None:
    """Return a window in tokens as it was given.

    Raises:
        ConfigError: It is not a number of tokens.
    """
    if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window <= 0):
        raise ConfigError(f"window={window!r} is not a number of tokens: pass a whole number above 0, such as 200_000")
    return window


def rules_of(memory: MemoryChoice) -> CompactionConfig:
    """Return the settings that say when a flush is due; where a function chooses the memory, the default ones."""
    of = getattr(memory, "memories", memory)  # that of a template
    return of.config.compaction if isinstance(of, Memory | Memories) else CompactionConfig()


def wanted_before_cut(
    leased: Leased, session_key: str | None, model: Model, messages: Sequence[BaseMessage], count: Counter
) -> Wanted:
    """Return the flush of messages that a summary takes from the conversation of the current run."""
    key, thread = session_of_run(session_key, messages)
    return Wanted(leased, key, model, messages, None, 0, count, session_id=thread, cut=True)


def session_of_run(session_key: str | None, messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """Return the session of the current run and the id of its transcript; without a thread, by its first message."""
    key, thread = flushed_session(session_key, run_config())
    if thread or session_key or (first := first_of(messages)) is None:
        return key, thread
    text = f"{first.type}\n{first.text}".encode("utf-8", "surrogatepass")
    return f"{key}:{blake2b(text, digest_size=8).hexdigest()}", None


def save(wanted: Wanted) -> bool:
    """Let the model write down what should last. Return whether the turn was held, whatever its outcome; never raises.

    It is not held if the memory cannot be opened or written, or wants no flush. If the flush fails, the messages are
    kept verbatim.
    """
    held = False
    with _reported(wanted), wanted.leased as memory:

        def drive(turn: FlushTurn) -> None:
            flush(turn, wanted.model, wanted.messages, room=_room(wanted, memory), count=wanted.count)

        held = run_flush(wanted.key, partial(_begun, wanted, memory), drive)
        _ended(wanted, memory, held=held)
    return held


async def asave(wanted: Wanted) -> bool:
    """Do what `save` does with an awaited model; files are read and written in a thread."""
    held = False
    with _reported(wanted):
        async with wanted.leased as memory:

            async def drive(turn: FlushTurn) -> None:
                await aflush(turn, wanted.model, wanted.messages, room=_room(wanted, memory), count=wanted.count)

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


def _room(wanted: Wanted, memory: Memory) -> int | None:
    """Return how many tokens the model can be shown at once, by its profile or else by the given window."""
    return compaction_threshold(window_of(wanted.model) or wanted.window, memory.config.compaction)


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
    if not held and is_chat and memory.config.compaction.flush and not workspace.can_be_written:
        _log.warning(
            f"no memories of session {wanted.key!r} can be saved before a compaction: {workspace.root} is read-only; "
            "give this process the right to write to its folder memory/"
        )
    elif wanted.cut:
        try:
            _session(wanted, memory).compacted()
        except Exception as error:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
            _log.warning(f"the compaction of session {wanted.key!r} could not be noted: {error}")
