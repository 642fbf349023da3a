"""Run one flush of one conversation, for the middleware, the callback and the summarizer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory import _flush_model
from langchain_openclaw_memory._flush_model import Counter, Model
from langchain_openclaw_memory._messages import openclaw_messages
from openclaw_memory.conversation import compaction_threshold
from openclaw_memory.flush import arun_flush, run_flush

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from openclaw_memory import Memory
    from openclaw_memory.flush import FlushTurn


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A flush that is due: its session, model and messages. `window` and `tokens` are in tokens."""

    memory: Memory
    key: str
    model: Model
    messages: Sequence[BaseMessage]
    window: int | None
    tokens: int
    count: Counter
    compacting: bool = True
    session_id: str | None = None

    @property
    def room(self) -> int | None:
        """Return how many tokens the model can be shown at once, by its own profile or else by the given window."""
        return compaction_threshold(window_of(self.model) or self.window, self.memory.config.compaction)


def save(wanted: Wanted) -> bool:
    """Let the model write down what should last. Return whether the turn was held, whatever its outcome; never raises.

    It is not held if the memory cannot be written, wants no flush, or another turn of this session is under way. If the
    flush fails, the messages are kept verbatim.
    """
    return run_flush(wanted.key, partial(_begun, wanted), partial(_drive, wanted))


async def asave(wanted: Wanted) -> bool:
    """Do what `save` does with an awaited model; files are read and written in a thread."""
    return await arun_flush(wanted.key, partial(_begun, wanted), partial(_adrive, wanted))


def compacted(memory: Memory, key: str, session_id: str | None = None) -> None:
    """Note in the state of the session that it was compacted; never raises."""
    try:
        memory.flush(key, session_id=session_id).compacted()
    except Exception as error:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
        _log.warning(f"the compaction of session {key!r} could not be noted: {error}")


def transcript_growth(memory: Memory, key: str, session_id: str | None) -> int:
    """Return by how many bytes the transcript of a session has grown since its latest compaction.

    Below `compaction.force_flush_bytes`, where it does not matter yet, return its growth since it began.
    """
    log = memory.session_log(session_id) if session_id else memory.flush(key).log
    size = log.size
    if size < memory.config.compaction.force_flush_bytes:
        return size
    return max(0, size - memory.flush(key, session_id=session_id).state.compacted_bytes)


def window_of(model: Any) -> int | None:
    """Return a model's context window in tokens, as its profile says; None if it does not."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def _begun(wanted: Wanted) -> FlushTurn | None:
    session = wanted.memory.flush(wanted.key, window=wanted.window, session_id=wanted.session_id)
    return session.due(
        wanted.tokens,
        compacting=wanted.compacting,
        flushed=False,  # whether this cycle had its flush is known to the caller
        messages=lambda: openclaw_messages(wanted.messages),
    )


def _drive(wanted: Wanted, turn: FlushTurn) -> None:
    _flush_model.flush(turn, wanted.model, wanted.messages, room=wanted.room, count=wanted.count)


async def _adrive(wanted: Wanted, turn: FlushTurn) -> None:
    await _flush_model.aflush(turn, wanted.model, wanted.messages, room=wanted.room, count=wanted.count)
