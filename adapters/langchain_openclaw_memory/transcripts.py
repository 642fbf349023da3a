"""The turns of an agent, written as a session of OpenClaw: its words are then found like notes."""

# No `from __future__ import annotations`: LangGraph reads the annotations of hooks at run time.

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.types import AgentMiddleware, AgentState
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from langchain_openclaw_memory._flushing import say
from langchain_openclaw_memory._messages import is_summary, openclaw_message
from langchain_openclaw_memory._session import run_config, thread_of
from openclaw_memory.errors import ConfigError, OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory import Memory

_SESSIONS = 256  # whose entries are kept in mind; those of others are read again from their logs


@dataclass(slots=True)
class _Written:
    """What a log has: the ids of its entries in their order, and its size; and what the model was shown at last."""

    places: dict[str, int]
    size: int
    shown: Sequence[BaseMessage] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)


class TranscriptMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Writes what an agent is told, says and does to `memory.session_log(...)`, each message once.

    The session is `session_id`, by default the thread of the run. Place it before the middleware that compacts: what
    that takes away is in the log then, and its summary becomes a compaction entry. A conversation that goes on from an
    earlier point of its thread is a branch of the log. The entries are found once the memory is synced. A log that
    cannot be written is told once, and never breaks the run.

    Raises:
        ConfigError: a run has no thread, and there is no `session_id`.
    """

    def __init__(self, memory: "Memory", *, session_id: str | None = None) -> None:
        super().__init__()
        self.memory, self.session_id = memory, session_id
        self._written: OrderedDict[str, _Written] = OrderedDict()
        self._lock = threading.Lock()
        self._told = False

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write what came since the latest call of the model: what the user said, what tools answered."""
        self._write(state["messages"], self._session())

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write what came since the latest call of the model, in a thread."""
        await asyncio.to_thread(self._write, state["messages"], self._session())

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write the reply."""
        self._write(state["messages"], self._session())

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write the reply, in a thread."""
        await asyncio.to_thread(self._write, state["messages"], self._session())

    def _session(self) -> str:
        session = self.session_id or thread_of(run_config())
        if session is None:
            raise ConfigError(
                "a transcript needs the name of its session: give TranscriptMiddleware(memory, session_id=...), or run "
                'the agent with {"configurable": {"thread_id": ...}}'
            )
        return session

    def _write(self, messages: Sequence[BaseMessage], session: str) -> None:
        try:
            log = self.memory.session_log(session)
            written = self._of(session)
            with written.lock:
                # Others write to it too: a flush that failed, another process.
                if (size := _size(log)) != written.size:
                    written.places, written.size = _places(log), size
                if _write_new(messages, log, written):
                    written.size = _size(log)
                written.shown = messages
        except OpenClawMemoryError as error:
            if not self._told:
                self._told = True
                say(f"the transcript of session {session!r} is not written: {error}")

    def _of(self, session: str) -> _Written:
        with self._lock:
            written = self._written.setdefault(session, _Written({}, 0))
            self._written.move_to_end(session)
            while len(self._written) > _SESSIONS:
                self._written.popitem(last=False)
            return written


def _write_new(messages: Sequence[BaseMessage], log: Any, written: _Written) -> bool:
    """Add what the log does not have; whether there was something."""
    places, before = written.places, len(written.places)
    above: str | None = None  # the entry that the next one follows
    for at, message in enumerate(messages):
        if message.id is None:
            continue
        if message.id not in places:
            if (entry := _entry(message, messages[at + 1 :], written)) is None:
                continue
            # The last entry is the parent by default; a conversation that goes on from an earlier one is a branch.
            branch = {"parentId": above} if above is not None and places[above] != len(places) - 1 else {}
            kind, fields = entry
            log.append_entry(kind, id=message.id, **branch, **fields)
            places[message.id] = len(places)
        if above is None or places[message.id] > places[above]:
            above = message.id
    return len(places) != before


def _entry(
    message: BaseMessage, following: Sequence[BaseMessage], written: _Written
) -> tuple[str, dict[str, Any]] | None:
    """The type and the fields of the entry for a message; None where there is nothing to write."""
    if is_summary(message):
        kept = next((known.id for known in following if known.id in written.places), None)
        tokens = count_tokens_approximately(written.shown)
        return "compaction", {"summary": message.text, "firstKeptEntryId": kept, "tokensBefore": tokens}
    if (converted := openclaw_message(message)) is None:
        return None
    return "message", {"message": {key: value for key, value in converted.items() if key != "id"}}


def _places(log: Any) -> dict[str, int]:
    ids = (entry["id"] for entry in log.entries() if entry.get("type") != "session" and "id" in entry)
    return {entry_id: at for at, entry_id in enumerate(dict.fromkeys(ids))}


def _size(log: Any) -> int:
    try:
        return Path(log.folder.base, *log.folder.parts, Path(log.path).name).stat().st_size
    except OSError:
        return 0
