"""Flush a session: before a compaction, a model saves lasting memories in one silent turn.

No model is asked here. The caller drives the turn, or has `run_flush` do it; the conversation goes on in any case:

    turn = flush.begin(tokens, messages=lambda: about_to_be_lost)  # None: no flush is due
    if turn:
        try:
            reply = ask(turn.system_prompt, conversation, turn.prompt, tools=[turn.tool])
        except Exception as error:
            turn.fail(error)
        else:
            turn.finish(reply)

The turn marks the cycle as flushed, and `flush.record_compaction()` begins the next one. Notes, marks and logs are
written under locks: other threads and processes may flush too.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from openclaw_memory._safe import warn
from openclaw_memory.config.sections import CompactionConfig, JournalConfig
from openclaw_memory.conversation.messages import Message
from openclaw_memory.conversation.thresholds import Kind, Reason, check_window, find_flush_reason
from openclaw_memory.flush.note_writer import DESCRIPTION, NOTHING_TO_SAVE, SCHEMA, TOOL_NAME, append_new
from openclaw_memory.flush.session import Session
from openclaw_memory.flush.state import FlushRegistry, SessionState, format_time
from openclaw_memory.text.silent_reply import NO_REPLY, is_declining
from openclaw_memory.types import Tool, ToolAnswer
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.session_log import make_log_name

MAX_CALLS = 8  # of the model in one flush

Outcome: TypeAlias = Literal["saved", "nothing", "kept", "lost"]

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


class Flush:
    """The flush of one session, with its state in `sessions.json`, which outlives the process.

    Only the constructor raises: a state that cannot be read or written later causes one warning, and is kept in memory.

    Attributes:
        session: The session, with its id.
        log: Its transcript.
        rules: The compaction settings.
        window: The model's context window in tokens; None if unknown.
    """

    TAG = "openclaw:flush"  # marks the model calls of a flush for callbacks and traces

    def __init__(
        self,
        workspace: Workspace,
        session: Session | str = "main",
        rules: CompactionConfig | None = None,
        *,
        window: int | None = None,
        on_write: Callable[[], object] = lambda: None,
        clock: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        registry: FlushRegistry | None = None,
    ) -> None:
        """Open the flush of a session.

        Args:
            workspace: Where notes and transcripts are.
            session: The session, or its key. With a new id it begins without flushes and compactions. If another
                program has begun one under the key, this one goes on in memory.
            rules: The compaction settings, by default `CompactionConfig()`.
            window: The model's context window in tokens; None if unknown.
            on_write: Called after something was written.
            clock: Returns the current time.
            registry: Shared by all flushes of a program.

        Raises:
            InvalidInputError: The key or the id is empty.
            ConfigError: The window is not a number of tokens, or the time zone of the notes is unknown.
        """
        session = session if isinstance(session, Session) else Session(session)
        make_log_name(session.key)
        check_window(window)
        self.workspace, self.window = workspace, window
        self.rules = rules or CompactionConfig()
        self._on_write, self._clock = on_write, clock
        self.cycle = (registry or FlushRegistry()).open_cycle(workspace, session)
        self.session = self.cycle.session
        self.log = workspace.open_log(self.session.id or self.session.key)

    @staticmethod
    def make_prompt(workspace: Workspace, rules: CompactionConfig, day: datetime.date) -> str:
        """Return the prompt of a flush, with the date and the note of the day filled in.

        Args:
            workspace: Where the note is.
            rules: The compaction settings, which may hold a prompt of their own.
            day: The day of the note.
        """
        prompt = rules.prompt or f"{_PROMPT} {_LIMITS}"
        hint = "" if NO_REPLY in prompt else f" If nothing to store, reply with {NO_REPLY}."
        prompt = prompt.replace(JournalConfig().pattern, workspace.files.journal.make_path(day))
        return prompt.replace("YYYY-MM-DD", day.isoformat()) + hint

    @property
    def state(self) -> SessionState:
        """The state of the session: on disk, with the changes that could not be written there."""
        return self.cycle.state

    @property
    def can_be_written(self) -> bool:
        """True if notes and the state of the session can be written now; the state is written to find out."""
        return self.workspace.can_be_written and self.cycle.save()

    def begin(
        self,
        tokens: int | None,
        *,
        messages: Callable[[], Iterable[Message]] | None = None,
        compacting: bool = False,
        kind: Kind = "chat",
        flushed: bool | None = None,
    ) -> FlushTurn | None:
        """Begin a turn if a flush is due; None if not.

        While another turn of the session is under way in this program, none is due unless a compaction comes next.

        Args:
            tokens: The size of the conversation; None or 0 if unknown.
            messages: Returns the messages that are about to be lost; called only if the turn fails.
            compacting: Whether a compaction comes next.
            kind: Only turns of a `chat` are flushed.
            flushed: Whether this cycle was flushed, by default read from `sessions.json`.
        """
        with self.cycle.lock:
            if self.cycle.is_busy and not compacting:
                return None
            state, size = self.state, self.log.size
            reason = find_flush_reason(
                self.rules,
                window=self.window,
                tokens=tokens,
                transcript_bytes=size - state.compacted_bytes if size >= state.compacted_bytes else size,
                compacting=compacting,
                flushed=state.memory_flush_compaction_count == state.compaction_count if flushed is None else flushed,
                kind=kind,
            )
            if reason is None or not self.workspace.can_be_written:
                return None
            marks = {"memory_flush_compaction_count": state.compaction_count, "flushed_bytes": size}
            marks |= {"context_tokens": tokens} if tokens else {}
            turn = FlushTurn(self, reason, marks, messages)
            self.cycle.turns.add(turn)
            return turn

    def record_compaction(self, tokens: int | None = None, *, log_bytes: int | None = None) -> None:
        """Record that the conversation was compacted; a new cycle begins, with a flush of its own.

        Args:
            tokens: The size of the compacted conversation.
            log_bytes: The size of the transcript at the cut, by default its current size.
        """
        with self.cycle.lock:
            state, size = self.state, self.log.size
            if log_bytes is not None:  # another program may have come further, unless the transcript was made again
                size = max(log_bytes, state.compacted_bytes if state.compacted_bytes <= size else 0)
            changes = {"context_tokens": tokens} if tokens else {}
            self.cycle.save({"compaction_count": 1}, compacted_bytes=size, **changes)

    def add_tokens(self, input_tokens: int, output_tokens: int, context_tokens: int | None = None) -> None:
        """Add the tokens of calls of the model to the counts of the session in `sessions.json`.

        Args:
            input_tokens: The tokens that the model has read, at least 0.
            output_tokens: The tokens that it has written, at least 0.
            context_tokens: The size of the conversation with the latest call, by default that of the one call.
        """
        counts = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        self.cycle.save(counts, context_tokens=context_tokens or input_tokens + output_tokens)

    def notify(self) -> None:
        """Report to the owner of the flush that something was written."""
        try:
            self._on_write()
        except Exception as error:  # noqa: BLE001 - the text is written, whatever else fails
            warn(f"after the flush of session {self.session.key!r} had written: {type(error).__name__}: {error}")

    def get_time(self) -> datetime.datetime:
        """Return the current time in the time zone of the notes."""
        return self.workspace.get_time(self._clock())


class FlushTurn:
    """One silent turn, in one attempt. Its driver ends it with the last reply of the model, or with the error.

    Attributes:
        reason: Why the flush is due.
        is_first: Whether no flush of the session came before.
        outcome: `saved` (a note was written), `nothing` (there was nothing to write), `kept` (the turn failed, and the
            messages are in the transcript) or `lost` (that failed too); None until the turn ends.
        timeout: The seconds after which the driver gives up.
        max_calls: How often the driver asks the model at most.
    """

    def __init__(
        self, flush: Flush, reason: Reason, marks: Mapping[str, Any], messages: Callable[[], Iterable[Message]] | None
    ) -> None:
        """Begin the turn; `marks` are written at its end."""
        self.reason = reason
        self.outcome: Outcome | None = None
        self.is_first = flush.state.memory_flush_at is None
        self.timeout, self.max_calls = flush.rules.flush_timeout_seconds, MAX_CALLS
        self._flush, self._marks, self._messages = flush, marks, messages
        self._lock = threading.RLock()  # its driver may give it up while the model still writes
        self._has_written = False
        self._refused_lines: set[str] = set()  # of texts that were refused, and not written since
        self._refusal = ""  # why the latest of them was refused

    @property
    def tool(self) -> Tool:
        """The only tool of the turn: it adds to today's note, see `append_new`."""
        return Tool(TOOL_NAME, DESCRIPTION, SCHEMA, self._append)  # kept, it would keep a dropped turn alive

    @property
    def prompt(self) -> str:
        """The prompt that follows the conversation."""
        return Flush.make_prompt(self._flush.workspace, self._flush.rules, self._flush.get_time().date())

    @property
    def system_prompt(self) -> str:
        """The system prompt of the turn."""
        return self._flush.rules.system_prompt or _SYSTEM_PROMPT

    @property
    def unwritten(self) -> str:
        """The reason why a text of the model is not written; "" if all are."""
        return self._refusal if self._refused_lines else ""

    def refuse(self, error: str) -> ToolAnswer:
        """Refuse a call of the model, or a reply that was cut off. The turn fails unless a later call writes a text.

        Args:
            error: The reason, for the model and for the status: it must not quote the text, which may hold a secret.

        Returns:
            The answer to the call.
        """
        self._refused_lines.add("")
        self._refusal = error
        return ToolAnswer({"status": "invalid", "error": error})

    def finish(self, reply: str) -> None:
        """End the turn with the last reply of the model.

        The turn has failed if the model neither wrote a note nor replied `NO_REPLY`, or if a refused text was not
        written later, whole or in pieces. The messages are then kept.

        Args:
            reply: The text of the reply.
        """
        text = reply if isinstance(reply, str) else ""
        with self._lock:
            if self.outcome is not None:
                return
            if self.unwritten:
                self._keep_messages(f"the text that the model wanted to save was not written: {self.unwritten}")
            elif self._has_written or is_declining(text):
                self._end("saved" if self._has_written else "nothing")
            else:
                self._keep_messages(f"the model wrote nothing, and replied {text[:80]!r} instead of {NO_REPLY}")

    def fail(self, error: BaseException) -> None:
        """End a turn that broke off, and keep the messages.

        Args:
            error: The error.
        """
        with self._lock:
            if self.outcome is None:
                self._keep_messages(f"{type(error).__name__}: {error}")

    def _append(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        with self._lock:
            if self.outcome is not None:
                return ToolAnswer({"status": "not_allowed", "error": "the flush is over: nothing more is written"})
            answer = append_new(self._flush.workspace, arguments, self._flush.get_time())
            if answer.ok:
                self._has_written = True
                self._refused_lines -= _split_lines(arguments)
            elif answer.data["status"] != NOTHING_TO_SAVE:
                self._refused_lines |= _split_lines(arguments)
                self._refusal = answer.data["error"]
        if answer.artifact is not None:
            self._flush.notify()
        return answer

    def _keep_messages(self, reason: str) -> None:
        """End a failed turn: add the messages to the transcript of the session."""
        outcome: Outcome = "lost"
        log = self._flush.log
        if self._messages is None:
            result = "the caller passed no messages to keep"
        else:
            try:
                count, cuts = log.keep(self._messages())
                self._flush.notify()
            except Exception as error:  # noqa: BLE001 - the conversation goes on in any case
                result = f"not all messages could be kept in {log.path}: {error}"
            else:
                outcome = "kept"
                result = f"the messages are in {log.path}, {f'{count} of them new' if count else 'which had them'}"
                result += f"; of {len(cuts)} of them not all words ({cuts[0]})" if cuts else ""
        warn(f"the flush of session {self._flush.session.key!r} failed: {reason}; {result}")
        self._end(outcome, f"{reason}; {result}")

    def _end(self, outcome: Outcome, error: str | None = None) -> None:
        self.outcome = outcome
        time = format_time(self._flush.get_time())
        self._flush.cycle.save(memory_flush_at=time, flush_error=error, **self._marks)


def _split_lines(arguments: Any) -> set[str]:
    """Return the lines of the text in a call, and "", which stands for a refused call without a text."""
    text = arguments.get("text") if isinstance(arguments, Mapping) else None
    return {"", *(line.strip() for line in text.split("\n"))} if isinstance(text, str) else {""}
