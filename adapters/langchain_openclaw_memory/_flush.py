"""Run one flush of one conversation, for the middleware and the callback."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from langchain_openclaw_memory import _flush_model
from langchain_openclaw_memory._flush_model import Counter, Model
from langchain_openclaw_memory._messages import openclaw_messages, without_system
from langchain_openclaw_memory._session import RunKind, flushed_session, kind_of, run_config
from openclaw_memory.aio import in_thread
from openclaw_memory.conversation import compaction_threshold
from openclaw_memory.flush import arun_flush, run_flush

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from openclaw_memory import Memory
    from openclaw_memory.flush import Flush, FlushTurn

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A flush that is due: its session, model and messages. `window` and `tokens` are in tokens.

    `cut` says that the messages are taken from the conversation next, which then begins a new cycle.
    """

    memory: Memory
    key: str
    model: Model
    messages: Sequence[BaseMessage]
    window: int | None
    tokens: int
    count: Counter
    session_id: str | None = None
    kind: RunKind = "chat"
    cut: bool = False

    @property
    def room(self) -> int | None:
        """Return how many tokens the model can be shown at once, by its own profile or else by the given window."""
        return compaction_threshold(window_of(self.model) or self.window, self.memory.config.compaction)


def wanted_before_cut(
    memory: Memory, session_key: str | None, model: Model, messages: Sequence[BaseMessage], count: Counter
) -> Wanted:
    """Return the flush of messages that a summary takes from the conversation of the current run."""
    config = run_config()
    key, thread = session_of_run(session_key, messages)
    return Wanted(memory, key, model, messages, None, 0, count, session_id=thread, kind=kind_of(config), cut=True)


def session_of_run(session_key: str | None, messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """Return the session of the current run and the id of its transcript; without a thread, by its first message."""
    key, thread = flushed_session(session_key, run_config())
    if thread or session_key or not (said := without_system(messages)):
        return key, thread
    text = f"{said[0].type}\n{said[0].text}".encode("utf-8", "surrogatepass")
    return f"{key}:{blake2b(text, digest_size=8).hexdigest()}", None


def save(wanted: Wanted) -> bool:
    """Let the model write down what should last. Return whether the turn was held, whatever its outcome; never raises.

    It is not held if the memory cannot be written, or wants no flush. If the flush fails, the messages are kept
    verbatim.
    """
    held = run_flush(wanted.key, partial(_begun, wanted), partial(_drive, wanted))
    _ended(wanted, held=held)
    return held


async def asave(wanted: Wanted) -> bool:
    """Do what `save` does with an awaited model; files are read and written in a thread."""
    held = await arun_flush(wanted.key, partial(_begun, wanted), partial(_adrive, wanted))
    await in_thread(_ended, wanted, held=held)
    return held


def window_of(model: Any) -> int | None:
    """Return a model's context window in tokens, as its profile says; None if it does not."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def _session(wanted: Wanted) -> Flush:
    return wanted.memory.flush(wanted.key, window=wanted.window, session_id=wanted.session_id)


def _begun(wanted: Wanted) -> FlushTurn | None:
    return _session(wanted).due(
        wanted.tokens,
        compacting=True,  # the caller has decided that a flush is due, and knows whether this cycle had one
        flushed=False,
        kind=wanted.kind,
        messages=lambda: openclaw_messages(wanted.messages),
    )


def _ended(wanted: Wanted, *, held: bool) -> None:
    """Note that the conversation begins a new cycle, and report what could not be saved before."""
    rules, workspace = wanted.memory.config.compaction, wanted.memory.workspace
    if not held and rules.flush and wanted.kind == "chat" and not workspace.can_be_written:
        _log.warning(
            f"no memories of session {wanted.key!r} can be saved before a compaction: {workspace.root} is read-only; "
            "give this process the right to write to its folder memory/"
        )
    elif wanted.cut:
        try:
            _session(wanted).compacted()
        except Exception as error:  # noqa: BLE001 - what is shown by status alone never breaks the turn of the user
            _log.warning(f"the compaction of session {wanted.key!r} could not be noted: {error}")


def _drive(wanted: Wanted, turn: FlushTurn) -> None:
    _flush_model.flush(turn, wanted.model, wanted.messages, room=wanted.room, count=wanted.count)


async def _adrive(wanted: Wanted, turn: FlushTurn) -> None:
    await _flush_model.aflush(turn, wanted.model, wanted.messages, room=wanted.room, count=wanted.count)
