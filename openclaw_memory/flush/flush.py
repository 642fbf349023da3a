"""The flush: before a conversation is compacted, one silent turn in which a model writes down what should last.

No model is asked here. The caller drives the turn, and the conversation goes on whatever the outcome:

    turn = flush.due(tokens, messages=lambda: about_to_be_lost)  # None: nothing to do
    if turn:
        try:
            reply = ask(turn.system_prompt, conversation, turn.prompt, tools=[turn.tool])
        except Exception as error:
            turn.failed(error)
        else:
            turn.replied(reply)

A turn ends as `saved` (something was written), `nothing` (there was nothing to write), `kept` (it failed, and the
messages are in the session's log) or `lost` (that failed too). Then the cycle is marked as flushed; `flush.compacted()`
begins the next one. Notes, marks and logs are written under locks: other threads and processes may do the same. Several
conversations of one session may be compacted at once, each after a turn of its own.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

from openclaw_memory._log import warn
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.messages import Message
from openclaw_memory.conversation.window import Kind, Reason, check_window, find_flush_reason
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.flush.note_writer import DESCRIPTION, NOTHING_TO_SAVE, SCHEMA, TOOL_NAME, append_new
from openclaw_memory.flush.state import ChatType, FlushRegistry, SessionState, change_state, iso
from openclaw_memory.flush.verbatim import keep
from openclaw_memory.text.silent_reply import SILENT, is_declining
from openclaw_memory.types import Tool, ToolAnswer
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.days import get_local_now
from openclaw_memory.workspace.journal import make_day_path
from openclaw_memory.workspace.paths import locate_transcripts
from openclaw_memory.workspace.session_log import make_log_name

Outcome: TypeAlias = Literal["saved", "nothing", "kept", "lost"]

FLUSH_TAG = "openclaw:flush"  # marks the model calls of a flush for callbacks and traces

# OpenClaw's words.
_PROMPT = (
    "Pre-compaction memory flush. Store durable memories now (use memory/YYYY-MM-DD.md; create memory/ if needed). "
    "If nothing to store, reply with NO_REPLY."
)
_SYSTEM_PROMPT = "Session nearing compaction. Store durable memories now."
_LIMITS = (
    f"Write with the tool {TOOL_NAME} alone: it adds to memory/YYYY-MM-DD.md, and to no other file. MEMORY.md, "
    "USER.md, SOUL.md, AGENTS.md and DREAMS.md are read-only now, and no files of other names are made. Add what is "
    "new: decisions, facts, preferences, dates, open tasks. Your reply is not read: when all is stored, say NO_REPLY."
)
_HINT = f"If nothing to store, reply with {SILENT}."


def flush_prompt(rules: CompactionConfig, day: datetime.date) -> str:
    """Return what a model is asked in a flush, with the date filled in.

    Args:
        rules: The compaction settings, which may hold a prompt of their own.
        day: Whose note is written to.
    """
    asked = rules.prompt or f"{_PROMPT} {_LIMITS}"
    hint = "" if SILENT in asked else f" {_HINT}"
    return asked.replace("YYYY-MM-DD", day.isoformat()) + hint


class Flush:
    """The flush of one session. Its state is in `sessions.json`, and so outlives the process.

    Only the constructor raises: a state that cannot be read or written later causes one warning and is kept in memory.

    Args:
        workspace: Where notes and transcripts are.
        key: The key of the session.
        rules: The compaction settings.
        window: The model's context window in tokens; None if unknown.
        session_id: Names the transcript, by default the one that `sessions.json` has for the key, else the key. A new
            id begins a new session without flushes and compactions. If another program has begun one under the key,
            this one goes on in memory alone.
        chat_type: The kind of chat, by default what `sessions.json` says, else what the key says.
        wrote: Called after something was written.
        clock: Returns the current time.
        registry: Shared by all flushes of a program.

    Raises:
        InvalidInputError: The key or the id is empty.
        ConfigError: The window is not a number of tokens, or the time zone of the notes is unknown.
    """

    def __init__(
        self,
        workspace: Workspace,
        key: str,
        rules: CompactionConfig | None = None,
        *,
        window: int | None = None,
        session_id: str | None = None,
        chat_type: ChatType | None = None,
        wrote: Callable[[], object] = lambda: None,
        clock: Callable[[], datetime.datetime] | None = None,
        registry: FlushRegistry | None = None,
    ) -> None:
        make_log_name(key)
        check_window(window)
        get_local_now(workspace.journal.timezone)
        self.workspace, self.key, self.window = workspace, key, window
        self.rules = rules or CompactionConfig()
        self._wrote = wrote
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        folder = locate_transcripts(workspace.root, workspace.sessions)
        self._cycle = (registry or FlushRegistry()).cycle(folder, key, session_id, chat_type)
        self.session_id = self._cycle.session_id
        self.log = workspace.open_log(self.session_id)

    @property
    def state(self) -> SessionState:
        """The state of the session: what is on disk, and what could not be written there."""
        return self._cycle.state

    def due(
        self,
        tokens: int | None,
        *,
        messages: Callable[[], Iterable[Message]] | None = None,
        transcript_bytes: int | None = None,
        compacting: bool = False,
        kind: Kind = "chat",
        flushed: bool | None = None,
    ) -> FlushTurn | None:
        """Return the turn to drive now, or None if no flush is due.

        Unless a compaction comes next, no flush is due while another turn of this session is under way; that of another
        process is given ten minutes. A conversation that is about to be compacted has a turn of its own: saving twice
        is better than losing something.

        Args:
            tokens: The size of the conversation; None or 0 if unknown.
            messages: Returns what is about to be lost; called only if the turn fails.
            transcript_bytes: How much the transcript has grown since the last compaction, by default that of the
                session's log.
            compacting: Whether a compaction comes next, for whatever reason.
            kind: Turns other than those of a `chat` are not flushed.
            flushed: Whether this cycle had its flush, by default what `sessions.json` says.
        """
        size = self.log.size if transcript_bytes is None else transcript_bytes
        tokens = _whole(tokens)
        decide = partial(
            find_flush_reason, self.rules, window=self.window, tokens=tokens, compacting=compacting, kind=kind
        )
        if decide(transcript_bytes=size) is None:
            return None
        with self._cycle.lock:
            if self._cycle.is_held and not compacting:
                return None
            state = self.state
            grown = size - state.compacted_bytes if transcript_bytes is None and size >= state.compacted_bytes else size
            done = state.flushed if flushed is None else flushed
            reason = decide(transcript_bytes=grown, flushed=done, writable=self.workspace.can_be_written)
            if reason is None:
                return None
            begun = self._cycle.claim(self.now(), once=flushed is None, force=compacting)
            if begun is None:
                return None
            turn = FlushTurn(self, reason, tokens, state.compaction_count, messages, begun)
            # A driver that was broken off lets go of its turn, which then holds up no other.
            self._cycle.turns.add(turn)
            return turn

    @property
    def can_be_written(self) -> bool:
        """True if notes and the state of the session can be written now: writes the state to find out."""
        if not self.workspace.can_be_written:
            return False
        try:
            change_state(self._cycle.folder, self.key, lambda _: {})
        except OpenClawMemoryError:
            return False
        return True

    @property
    def is_held(self) -> bool:
        """Whether a turn of this session is under way in this program."""
        with self._cycle.lock:
            return self._cycle.is_held

    def compacted(self, tokens: int | None = None, *, log_bytes: int | None = None) -> None:
        """Record that the conversation was compacted; a new cycle begins, with a flush of its own.

        Args:
            tokens: The size of the compacted conversation.
            log_bytes: The size of the transcript at the cut-off, by default its current size. Later entries belong to
                the new cycle.
        """
        with self._cycle.lock:
            size, before = self.log.size, self.state.compacted_bytes
            # Another program may have come further meanwhile.
            at = size if log_bytes is None else max(log_bytes, before if before <= size else 0)
            done = {"compaction_count": self.state.compaction_count + 1, "compacted_bytes": at}
            # A flush that began before and never ended is not part of the new cycle.
            self.save(**done, memory_flush_started_at=None, **_context(_whole(tokens)))

    def counted(self, input_tokens: int, output_tokens: int) -> None:
        """Add what a call of the model has read and said to the counts of the session in `sessions.json`.

        Threads and programs may count at once. A session that does not have the key any more is not counted.

        Args:
            input_tokens: How many tokens the model has read, at least 0.
            output_tokens: How many it has said, at least 0.
        """

        def add(state: SessionState) -> Mapping[str, Any] | None:
            if state.session_id not in {None, self.session_id}:
                return None
            read, said = (state.input_tokens or 0) + input_tokens, (state.output_tokens or 0) + output_tokens
            return {"input_tokens": read, "output_tokens": said}

        try:
            change_state(self._cycle.folder, self.key, add)
        except OpenClawMemoryError as error:
            self._cycle.warn_once(error)

    def save(self, **changes: Any) -> None:
        """Write fields of the state; what cannot be written is kept in memory and tried again with the next.

        Args:
            **changes: Fields of `SessionState` with their new values.
        """
        self._cycle.save(**changes)

    def wrote(self) -> None:
        """Report to the caller that something was written."""
        try:
            self._wrote()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was written
            warn(f"after the flush of session {self.key!r} had written: {type(error).__name__}: {error}")

    def now(self, moment: datetime.datetime | None = None) -> datetime.datetime:
        """Return a moment in the time zone of the notes.

        Args:
            moment: The moment; None means now.
        """
        return get_local_now(self.workspace.journal.timezone, moment or self._clock())


class FlushTurn:
    """One silent turn, in one attempt. Its driver reports the model's last reply, or the error, which ends it.

    `reason` is why the flush is due, `outcome` how it ended. The driver gives up after `timeout` seconds, and asks the
    model `max_calls` times at most.
    """

    def __init__(
        self,
        flush: Flush,
        reason: Reason,
        tokens: int | None,
        compaction_count: int,
        messages: Callable[[], Iterable[Message]] | None,
        begun: datetime.datetime,
    ) -> None:
        self.reason = reason
        self.outcome: Outcome | None = None
        self.timeout, self.max_calls = flush.rules.flush_timeout_seconds, flush.rules.flush_max_calls
        self._flush, self._tokens, self._count, self._messages = flush, tokens, compaction_count, messages
        self._first_day = flush.now(begun).date()
        self._wrote = False
        self._owed: set[str] = set()  # the lines of texts that were refused, and not written since
        self._refused = ""  # why the latest of them was not written

    @property
    def open(self) -> bool:
        """Whether the turn has not ended yet."""
        return self.outcome is None

    @property
    def path(self) -> str:
        """The note that the turn writes to: that of today, also after midnight."""
        return self._flush.workspace.files.find(make_day_path(self._flush.now().date()))

    @property
    def prompt(self) -> str:
        """What to ask the model after the conversation, with the date filled in."""
        return flush_prompt(self._flush.rules, self._flush.now().date())

    @property
    def system_prompt(self) -> str:
        """The system prompt of the turn."""
        return self._flush.rules.system_prompt or _SYSTEM_PROMPT

    @property
    def tool(self) -> Tool:
        """The one tool of the turn: it adds to today's note. See `append_new` for its answers."""
        return Tool(TOOL_NAME, DESCRIPTION, SCHEMA, self._append)

    @property
    def unwritten(self) -> str:
        """The reason why a text of the model is not written; "" if all are."""
        return self._refused if self._owed else ""

    def refuse(self, error: str) -> ToolAnswer:
        """Refuse a call of the model, or a reply that was cut off. The turn fails unless a later call writes a text.

        Args:
            error: What is wrong with it, for the model and for the status: without what it says.

        Returns:
            The answer to the call.
        """
        self._owed.add("")
        self._refused = error
        return ToolAnswer({"status": "invalid", "error": error})

    def replied(self, text: str) -> None:
        """End the turn with the model's last reply.

        It has failed if the model neither wrote a note nor replied `NO_REPLY`, if a text that was refused was not
        written later, whole or in pieces, and if nothing was written after a call or a reply was refused. The messages
        are then kept.

        Args:
            text: The text of the reply.
        """
        if not self.open:
            return
        said = text if isinstance(text, str) else ""
        if self.unwritten:
            self._fail(f"what the model wanted to save was not written: {self.unwritten}")
        elif self._wrote or is_declining(said):
            self._end("saved" if self._wrote else "nothing")
        else:
            self._fail(f"the model wrote nothing, and replied {said[:80]!r} instead of {SILENT}")

    def failed(self, error: BaseException) -> None:
        """End a turn in which the model could not be asked, or broke off: the messages are kept.

        Args:
            error: What was raised.
        """
        if self.open:
            self._fail(f"{type(error).__name__}: {error}")

    def _append(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        if not self.open:
            return ToolAnswer({"status": "not_allowed", "error": "the flush is over: nothing more is written"})
        today = self._flush.now().date()
        others = {self._first_day} - {today}  # what was written before midnight is not written again
        answer = append_new(self._flush.workspace, arguments, day=today, other_days=others)
        lines = _lines_of(arguments)
        if answer.ok:
            self._wrote = True
            self._owed -= lines
            if answer.artifact is not None:
                self._flush.wrote()
        elif answer.data["status"] != NOTHING_TO_SAVE:
            self._owed |= lines
            self._refused = answer.data["error"]
        return answer

    def _fail(self, why: str) -> None:
        outcome, fate = self._kept()
        error = f"{why}; {fate}"
        warn(f"the flush of session {self._flush.key!r} failed: {error}")
        self._end(outcome, error)

    def _kept(self) -> tuple[Outcome, str]:
        """Keep the messages in the log of the session; return the outcome, and a message about it."""
        if self._messages is None:
            return "lost", "the caller passed no messages to keep"
        try:
            added, cut = keep(self._messages(), self._flush.log)
            self._flush.wrote()
        except Exception as error:  # noqa: BLE001 - whatever it is, the user's turn goes on
            return "lost", f"not all messages could be kept in {self._flush.log.path}: {error}"
        when = f"{added} of them since now" if added else "which had them"
        parted = f"; of {len(cut)} of them not all words ({cut[0]})" if cut else ""
        return "kept", f"the messages are in {self._flush.log.path}, {when}{parted}"

    def _end(self, outcome: Outcome, error: str | None = None) -> None:
        self.outcome = outcome
        self._flush.save(
            memory_flush_started_at=None,
            memory_flush_at=iso(self._flush.now()),
            memory_flush_compaction_count=self._count,
            **_context(self._tokens),
            flush_error=error,
        )


def _context(tokens: int | None) -> dict[str, int]:
    return {"context_tokens": tokens} if tokens else {}


def _whole(tokens: Any) -> int | None:
    """Return a number of tokens as JSON holds it; None for NaN and the like, which some counters return."""
    try:
        return None if tokens is None else int(tokens)
    except (TypeError, ValueError, OverflowError):
        return None


def _lines_of(arguments: Any) -> set[str]:
    """Return the lines of the text in a call; without a text, one line that any later text satisfies."""
    text = arguments.get("text") if isinstance(arguments, Mapping) else None
    return {"", *(line.strip() for line in text.split("\n"))} if isinstance(text, str) else {""}
