"""Run one flush of one conversation, for the middleware and the callback."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory._flush_model import Counter, Model, bind_flush_model
from langchain_openclaw_memory._messages import drop_system
from langchain_openclaw_memory._session import find_session, get_run_config, get_run_kind, lease_run_memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import InvalidInputError, OpenClawMemoryError
from openclaw_memory.flush import Session, arun_flush, run_flush
from openclaw_memory.runs import MemoryChoice, RunMemory

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from openclaw_memory import Memory
    from openclaw_memory.flush import Flush

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """A flush that is due: its memory and session, model, and messages as OpenClaw has them. `window` is in tokens.

    `cut` says that the messages are taken from the conversation next, which then begins a new cycle and has `tokens`
    left; `may_wait`, that the cut is postponed if they cannot be saved.
    """

    leased: RunMemory
    model: Model
    messages: Sequence[Mapping[str, Any]]
    count: Counter
    window: int | None = None
    tokens: int = 0
    cut: bool = False
    may_wait: bool = False

    @property
    def session(self) -> Session:
        return self.leased.session or Session()


def check_memory(memory: MemoryChoice, session_key: str | None) -> MemoryChoice:
    """Check the memory and the session key that a part is made with; return the memory.

    Raises:
        TypeError, ConfigError: As `RunMemory.read_choice`.
        InvalidInputError: The session key is empty.
    """
    choice = RunMemory.read_choice(memory)
    if session_key is not None and not (isinstance(session_key, str) and session_key.strip()):
        raise InvalidInputError(f"session_key must name a session, such as 'main', not {session_key!r}")
    return choice


def lease_chat(
    memory: MemoryChoice, session_key: str | None, config: RunnableConfig | None, messages: Sequence[BaseMessage] = ()
) -> RunMemory:
    """Return the memory of a run with its session under the name of the conversation."""
    session = find_session(session_key, config, drop_system(messages))
    return lease_run_memory(memory, config, session.conversation if session else Session())


def save(flush: PendingFlush) -> str | None:
    """Hold the turn of a flush; return its outcome, or None if no flush is wanted. Never raises.

    If the flush fails, the messages are kept verbatim. They are "lost" if the memory cannot be opened or written.
    """
    outcome: str | None = "lost"
    with _report_failure(flush), flush.leased as memory:
        turn = run_flush(_open_flush(flush, memory), **_prepare(flush, memory))
        outcome = _end(flush, memory, turn)
    return outcome  # noqa: RET504 - "lost" if an error was reported


async def asave(flush: PendingFlush) -> str | None:
    """Hold the turn of a flush as `save` does, awaiting the model; files are read and written in a thread."""
    outcome: str | None = "lost"
    with _report_failure(flush):
        async with flush.leased as memory:
            opened = await run_in_thread(_open_flush, flush, memory)
            turn = await arun_flush(opened, **_prepare(flush, memory, is_async=True))
            outcome = await run_in_thread(_end, flush, memory, turn)
    return outcome


def can_save(leased: RunMemory) -> bool:
    """Return whether the memory of a conversation can be written now, by trying it."""
    try:
        with leased as memory:
            return memory.sessions.flush(leased.session or Session()).can_be_written
    except OpenClawMemoryError:
        return False


@contextmanager
def _report_failure(flush: PendingFlush) -> Iterator[None]:
    """Log why a memory cannot be opened; nothing else in the block raises."""
    try:
        yield
    except OpenClawMemoryError as error:
        _log.warning(f"no memories of session {flush.session.key!r} can be saved before a compaction: {error}")


def get_window(model: Any) -> int | None:
    """Return a model's context window in tokens, from its profile; None if unknown."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def _prepare(flush: PendingFlush, memory: Memory, *, is_async: bool = False) -> dict[str, Any]:
    # The model can be shown as much as its profile says, or else the given window.
    room = memory.config.compaction.get_compaction_threshold(get_window(flush.model) or flush.window)
    return {
        "messages": flush.messages,
        "bind": bind_flush_model(flush.model, room=room, count=flush.count, is_async=is_async),
        "tokens": flush.tokens,
        "compacting": True,  # the caller has decided that a flush is due, and knows whether this cycle had one
        "flushed": False,
        "kind": get_run_kind(get_run_config()),
    }


def _open_flush(flush: PendingFlush, memory: Memory) -> Flush:
    return memory.sessions.flush(flush.session, window=flush.window)


def _end(flush: PendingFlush, memory: Memory, turn: Any) -> str | None:
    """Record a flush that ended: a new cycle begins, or the cut waits for a memory that can be written."""
    workspace, outcome = memory.workspace, turn.outcome if turn else None
    error = ""
    if turn is None and get_run_kind(get_run_config()) == "chat" and memory.config.compaction.flushes:
        outcome = "lost"
        error = "" if workspace.can_be_written else _name_obstacle(workspace.root)
    if error:
        _log.warning(f"no memories of session {flush.session.key!r} can be saved before a compaction: {error}")
        _open_flush(flush, memory).cycle.save(flush_error=error)
    if outcome == "lost" and flush.may_wait:
        _log.warning(f"a summary of session {flush.session.key!r} waits for its messages to be saved or a full window")
    elif flush.cut and not error:
        try:
            _open_flush(flush, memory).record_compaction(flush.tokens)
        except Exception as failure:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
            _log.warning(f"the compaction of session {flush.session.key!r} could not be noted: {failure}")
    return outcome


def _name_obstacle(root: Path) -> str:
    if not root.is_dir():
        return f"{root} is not a folder any more: bring it back"
    return f"{root} is read-only: give this process the right to write to its folder memory/"
