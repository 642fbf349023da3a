"""One flush of one conversation, as the middleware, the callback and the summarizer call for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory import _flush_model
from langchain_openclaw_memory._flush_model import Counter, Model
from langchain_openclaw_memory._messages import openclaw_messages
from openclaw_memory.aio import in_thread
from openclaw_memory.conversation import compaction_threshold
from openclaw_memory.flush import abort_flush, run_flush

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from openclaw_memory import Memory
    from openclaw_memory.flush import FlushTurn


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A flush that is due: of which session, by which model, and of what. `window` and `tokens` are in tokens."""

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
        """What the model can be shown at once: its own window says so, or else the one that was given."""
        return compaction_threshold(window_of(self.model) or self.window, self.memory.config.compaction)


def save(wanted: Wanted) -> bool:
    """Have what should last written down. True where the turn was held, whatever came of it; it raises nothing.

    False where the memory cannot be written, wants no flush, or another one of this session is under way. Where the
    flush fails, the messages are kept verbatim.
    """
    return run_flush(wanted.key, partial(_begun, wanted), partial(_drive, wanted))


async def asave(wanted: Wanted) -> bool:
    """`save` that waits for the model; files are read and written in a thread."""
    turn: FlushTurn | None = None
    try:
        turn = await in_thread(_begun, wanted)
        if turn is not None:
            await _flush_model.aflush(turn, wanted.model, wanted.messages, room=wanted.room, count=wanted.count)
    except Exception as error:  # noqa: BLE001 - as in save
        return await in_thread(abort_flush, wanted.key, turn, error)
    return turn is not None


def compacted(memory: Memory, key: str, session_id: str | None = None) -> None:
    """Note in the state of the session that it was compacted. It raises nothing."""
    try:
        memory.flush(key, session_id=session_id).compacted()
    except Exception as error:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
        _log.warning(f"the compaction of session {key!r} could not be noted: {error}")


def transcript_growth(memory: Memory, key: str, session_id: str | None) -> int:
    """How many bytes the transcript of a session has grown by since its latest compaction.

    Below `compaction.force_flush_bytes`, where it does not matter yet, since it began.
    """
    log = memory.session_log(session_id) if session_id else memory.flush(key).log
    size = log.size
    if size < memory.config.compaction.force_flush_bytes:
        return size
    return max(0, size - memory.flush(key, session_id=session_id).state.compacted_bytes)


def window_of(model: Any) -> int | None:
    """The tokens that a model can read, as its profile says; None where it does not."""
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
