"""Write the turns of an agent as a session of OpenClaw, so that they are found like notes."""

# No `from __future__ import annotations`: LangGraph reads the annotations of hooks at run time.

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from uuid import uuid4
from zlib import crc32

from langchain.agents.middleware.types import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from langchain_openclaw_memory._flush import check_memory
from langchain_openclaw_memory._messages import RESUMED, convert_message, is_summary, make_message
from langchain_openclaw_memory._session import WarnOnce, find_session, get_run_config, lease_run_memory
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import estimate_tokens, load_conversation
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, PolicyError
from openclaw_memory.flush import Session
from openclaw_memory.runs import MemoryChoice, RunMemory, keep_recent

_log = logging.getLogger(__name__)

_SESSIONS = 64  # whose entries are kept in mind; those of others are read again from their logs


class _Entry(NamedTuple):
    """The latest entry of a message: its place in the log, its id, and the CRC-32 of the text, None where unknown."""

    place: int
    id: str
    crc: int | None


@dataclass(slots=True)
class _Log:
    """The state of a log: the entry of each message by the message's id, the number of entries, and its size."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    count: int = 0
    size: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenClawTranscriptMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Write all messages of an agent to `memory.sessions.log(...)`, each once.

    Place it before the middleware that compacts: what that removes is then in the log, and its summary becomes a
    compaction entry. What the provider says that each reply has read and said is added to `inputTokens` and
    `outputTokens` of the session in `sessions.json`. A conversation that goes on from an earlier point of its thread is
    a branch of the log. The entries are found once the memory is synced.

    A log is never changed. If the text of a message has changed since it was written, the new text is a further entry,
    whose `corrects` names the message: on a branch in place of the old one if that was the last entry, else at the end.
    Of a message that no log can hold (over 8 MiB, arguments that are not JSON) the words are written, the first and
    last of very many. That, a log that cannot be written, and a run without a thread, of which nothing is written, is
    reported once, and never breaks the run.

    With `resume`, a run whose state has no message of the session begins with those of its transcript, or else of its
    latest snapshot, so that a conversation goes on after its process has ended; see `Memory.sessions.resume`. The
    messages have the ids of their entries, and are not written again.

    Args:
        memory: Where to write, or a selector of one for each run: see `memory_tools`.
        session_key: The session to write, by default the thread of the run.
        resume: Whether to go on with what was kept of the session.

    Raises:
        TypeError: `memory` is not a memory.
    """

    def __init__(self, memory: MemoryChoice, *, session_key: str | None = None, resume: bool = False) -> None:
        super().__init__()
        self.memory, self.session_key, self.resume = check_memory(memory, session_key), session_key, resume
        self._known: OrderedDict[RunMemory, _Log] = OrderedDict()
        self._lock = threading.Lock()
        self._warn_once = WarnOnce(_log)

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # shared like its memory, by frameworks that copy their parts

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Resume the session if the state has no message of a resumed one."""
        return self._resume(state["messages"])

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Resume the session as `before_agent` does, in a thread."""
        return await run_in_thread(self._resume, state["messages"])

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write the messages since the latest call of the model."""
        self._write(state["messages"])

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Write the messages since the latest call of the model, in a thread."""
        await run_in_thread(self._write, state["messages"])

    after_agent, aafter_agent = before_model, abefore_model  # then the reply

    def _resume(self, messages: Sequence[BaseMessage]) -> dict[str, Any] | None:
        session = self._find_session()
        if not self.resume or session is None or any(message.additional_kwargs.get(RESUMED) for message in messages):
            return None
        try:
            with lease_run_memory(self.memory, get_run_config()) as memory:
                earlier = [make_message(message) for message in memory.sessions.resume(_find_id(memory, session))]
        except NotFoundError:
            return None
        except OpenClawMemoryError as error:
            self._warn_once("not resumed", f"session {session.key!r} begins anew: {error}")
            return None
        ids = {message.id for message in earlier if message.id}
        if any(message.id in ids for message in messages):
            return None
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *earlier, *messages]}

    def _find_session(self) -> Session | None:
        session = find_session(self.session_key, get_run_config())
        return session.conversation if session and (self.session_key or session.id) else None

    def _write(self, messages: Sequence[BaseMessage]) -> None:
        session = self._find_session()
        if session is None:
            self._warn_once(
                "no session",
                "no transcript is written of a run without a thread: give OpenClawTranscriptMiddleware(memory, "
                'session_key=...), or run the agent with {"configurable": {"thread_id": ...}}',
            )
            return
        leased = lease_run_memory(self.memory, get_run_config(), session)
        seen_log = self._get_log(leased)
        try:
            with leased as memory, seen_log.lock:
                log = memory.sessions.log(_find_id(memory, session))
                # Others write to it too: a flush that failed, another process.
                if (size := log.size) != seen_log.size:
                    _read_log(log, seen_log)
                seen_log.size = -1  # where writing fails, what was noted is not true
                if entries := _make_entries(messages, log, seen_log):
                    fitted = [log.fit_entry(entry) for entry in entries]
                    ids, refused = _append(log, [entry for entry, _ in fitted])
                    if any(usage := _count_tokens(messages, [entry for entry in entries if entry["id"] in ids])):
                        memory.sessions.flush(session).add_tokens(*usage)
                    if refused is not None:
                        words = f"not all messages of session {session.key!r} are in its transcript: {refused}"
                        self._warn_once("never stored", words)
                        return  # what the transcript has of them is read from it
                    if why := next((why for _, why in fitted if why), ""):
                        words = f"not all of a message of session {session.key!r} is in its transcript: {why}"
                        self._warn_once("left out", words)
                    size = log.size
                seen_log.size = size
        except OpenClawMemoryError as error:
            self._warn_once("failed", f"the transcript of session {session.key!r} is not written: {error}")

    def _get_log(self, leased: RunMemory) -> _Log:
        with self._lock:
            seen_log = self._known.get(leased) or _Log()
            keep_recent(self._known, leased, seen_log, _SESSIONS)
            return seen_log


def _find_id(memory: Memory, session: Session) -> str:
    """Return the id of a session: its own, or that of its key in `sessions.json`."""
    return session.id or memory.sessions.flush(session).session.id or session.key


def _append(log: Any, entries: Sequence[dict[str, Any]]) -> tuple[list[str], PolicyError | None]:
    """Write entries without those that are never to be stored; return their ids, and why one was refused."""
    try:
        return log.append_entries(entries), None
    except PolicyError as error:
        ids: list[str] = []
        for entry in entries:
            with suppress(PolicyError):
                ids += log.append_entries([entry])
        return ids, error


def _count_tokens(messages: Sequence[BaseMessage], entries: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Return how many tokens the model has read and said for the messages of new entries, as its provider reports."""
    new = {entry["id"] for entry in entries if "corrects" not in entry}
    reports = (message.usage_metadata for message in messages if message.id in new and isinstance(message, AIMessage))
    used = [usage for usage in reports if usage]
    return sum(usage["input_tokens"] for usage in used), sum(usage["output_tokens"] for usage in used)


def _make_entries(messages: Sequence[BaseMessage], log: Any, seen_log: _Log) -> list[dict[str, Any]]:
    """Return the entries that the log does not have yet, and note them in `seen_log`."""
    entries = seen_log.entries
    there = [at for at, message in enumerate(messages) if message.id in entries]
    tip = max((entries[messages[at].id or ""] for at in there), default=None)
    above: _Entry | None = None  # the latest entry of the messages before
    new: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        if message.id is None:
            continue
        before, is_last = entries.get(message.id), not there or at >= there[-1]
        if before is None or _is_edited(message, before):
            entry = _make_entry(message, messages[at + 1 :], log, seen_log)
            if entry is None:
                continue
            if before is not None:
                entry |= {"id": uuid4().hex, "corrects": message.id}
                if not is_last and isinstance(message, AIMessage):  # its calls were answered where they were made
                    entry["message"]["content"] = [{"type": "text", "text": message.text}]
            # The last message follows the one above it; one between others follows them all.
            parent = above if is_last else tip
            if parent is None and before is not None:
                entry["parentId"] = None
            elif parent is not None and parent.place != seen_log.count - 1:
                entry["parentId"] = parent.id
            new.append(entry)
            entries[message.id] = before = _Entry(seen_log.count, entry["id"], entry.get("crc"))
            tip = before
            seen_log.count += 1
        above = before if above is None else max(above, before)
    return new


def _make_entry(
    message: BaseMessage, following: Sequence[BaseMessage], log: Any, seen_log: _Log
) -> dict[str, Any] | None:
    """Return the entry for a message; None if there is nothing to write."""
    if is_summary(message):
        first_kept = next((later.id for later in following if later.id in seen_log.entries), None)
        first = {"firstKeptEntryId": first_kept and seen_log.entries[first_kept].id}
        tokens = estimate_tokens(load_conversation(log))
        return {"type": "compaction", "id": message.id, "summary": message.text, **first, "tokensBefore": tokens}
    if (converted := convert_message(message)) is None:
        return None
    spoken = {key: value for key, value in converted.items() if key != "id"}
    crc = {"crc": _hash_text(message.text)} if _can_be_edited(message) else {}
    return {"type": "message", "id": message.id, **crc, "message": spoken}


def _can_be_edited(message: BaseMessage) -> bool:
    # Answers of tools are often shortened later: they stay as the tools gave them.
    return isinstance(message, HumanMessage | AIMessage) and not is_summary(message)


def _is_edited(message: BaseMessage, entry: _Entry) -> bool:
    is_resumed = message.additional_kwargs.get(RESUMED)  # masked, and not edited
    return not is_resumed and entry.crc not in {None, _hash_text(message.text)}


def _hash_text(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))  # as checkpointers do with what is no text


def _read_log(log: Any, seen_log: _Log) -> None:
    seen_log.entries, seen_log.count = {}, 0
    for entry in log.read_entries():
        if entry.get("type") == "session" or not isinstance(entry.get("id"), str):
            continue
        crc = entry.get("crc")
        of = entry.get("corrects", entry["id"])
        entry_read = _Entry(seen_log.count, entry["id"], crc if isinstance(crc, int) else None)
        seen_log.entries |= {
            str(of): entry_read,
            entry["id"]: entry_read,
        }  # messages that are resumed have the ids of entries
        seen_log.count += 1
