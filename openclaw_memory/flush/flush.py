"""The flush: before a conversation is compacted, one silent turn in which a model writes down what should last.

No model is asked here. Whoever has one drives the turn, and the conversation goes on whatever comes of it:

    turn = flush.due(tokens, messages=lambda: about_to_be_lost)     # None: nothing to do
    while turn and turn.open:
        try:
            reply = ask(turn.system_prompt, conversation, turn.prompt, tools=[turn.tool])
        except Exception as error:
            turn.failed(error)
        else:
            turn.replied(reply)

A turn ends as `saved` (something was written), `nothing` (there was nothing to write), `kept` (it failed, and the
messages are in the session's log) or `lost` (that failed too). Then the cycle is marked as flushed; `flush.compacted()`
begins the next one. Notes, marks and logs are written under locks: other threads and processes may do the same.
"""

from __future__ import annotations

import datetime
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openclaw_memory._log import warn
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.messages import Message
from openclaw_memory.conversation.session_key import ChatType, chat_type
from openclaw_memory.conversation.silent_reply import SILENT, declines
from openclaw_memory.conversation.thresholds import Kind, Reason, flush_due
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.flush.note_writer import DESCRIPTION, NOTHING_TO_SAVE, SCHEMA, TOOL_NAME, append_new
from openclaw_memory.flush.state import SessionState, change_state, failed_flushes, iso, moment_of, read_states
from openclaw_memory.flush.verbatim import keep
from openclaw_memory.types import Tool, ToolAnswer
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.journal import day_path, local_now
from openclaw_memory.workspace.paths import Place, transcripts_place
from openclaw_memory.workspace.transcripts.writer import log_name

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace


Outcome: TypeAlias = Literal["saved", "nothing", "kept", "lost"]

FLUSH_TAG = "openclaw:flush"  # by this, callbacks and traces know the model calls of a flush
ATTEMPTS = 3  # as in OpenClaw

# OpenClaw's words.
_PROMPT = (
    "Pre-compaction memory flush. Store durable memories now (use memory/YYYY-MM-DD.md; create memory/ if needed). "
    "If nothing to store, reply with NO_REPLY."
)
_SYSTEM_PROMPT = "Session nearing compaction. Store durable memories now."
_LIMITS = (
    f"Write with the tool {TOOL_NAME} alone: it adds to memory/YYYY-MM-DD.md, and to no other file. MEMORY.md, "
    "USER.md, SOUL.md, AGENTS.md and DREAMS.md are read-only now, and no files of other names are made. Add what is "
    "new: decisions, facts, preferences, dates, open tasks. Nobody reads your reply: when all is stored, say NO_REPLY."
)
_HINT = f"If nothing to store, reply with {SILENT}."


class Flush:
    """The flush of one session, known by its `key`. Its state is in `sessions.json`, and so outlives the process.

    `window` is what the model can read, in tokens, None where nobody knows. `session_id` names the transcript, by
    default the one that `sessions.json` has for the key, else the key. One that is given and new there begins a new
    session, without flushes and compactions; where somebody else has begun one, this one goes on in memory alone.
    `chat_type` is by default what `sessions.json` says, else what the key does.
    `wrote` is called after something was written, `clock` says what time it is. All `Flush` objects of a program that
    get the same dictionary as `shared` hold one turn of a session at a time, and know what the disk did not take; it
    is their own, and holds the latest sessions alone. After the constructor nothing raises: a state that cannot be
    read or written is told once, and goes on in memory.
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
        shared: dict[Any, Any] | None = None,
    ) -> None:
        """Raises InvalidInputError for an empty key or id, ConfigError for a time zone that nobody knows."""
        log_name(key)
        local_now(workspace.journal.timezone)
        self.workspace, self.key, self.window = workspace, key, window
        self.rules = rules or CompactionConfig()
        self._wrote = wrote
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        folder = transcripts_place(workspace.root, workspace.sessions)
        self._cycle = cycle_of(folder, key, session_id, chat_type, {} if shared is None else shared)
        self.session_id = self._cycle.session_id
        self.log = workspace.session_log(self.session_id)

    @property
    def state(self) -> SessionState:
        """The state of the session: that on the disk, and what could not be written there."""
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
        """The turn to be held now; None where no flush is due, or another turn of this session is still held.

        `tokens` is the size of the conversation, None or 0 where it is not known; `compacting` says that a compaction
        comes next, for whatever reason. `messages` gives what it is about to take: asked for only where all attempts
        fail. `transcript_bytes` is how much the transcript has grown since the last compaction, by default that of the
        session's log; `flushed` whether this cycle had its flush, by default as `sessions.json` says.

        Another process that holds a turn has ten minutes for it, unless a compaction comes next: rather is something
        saved twice than lost.
        """
        size = self.log.size if transcript_bytes is None else transcript_bytes
        tokens = _whole(tokens)
        decide = partial(flush_due, self.rules, window=self.window, tokens=tokens, compacting=compacting, kind=kind)
        if decide(transcript_bytes=size) is None:
            return None
        with self._cycle.lock:
            if self._cycle.is_held():
                return None
            state = self.state
            grown = size - state.compacted_bytes if transcript_bytes is None and size >= state.compacted_bytes else size
            done = state.flushed if flushed is None else flushed
            reason = decide(transcript_bytes=grown, flushed=done, writable=self.workspace.can_be_written)
            if reason is None:
                return None
            begun = self._cycle.claim(self.now(), once=flushed is None, at_any_rate=compacting)
            if begun is None:
                return None
            turn = FlushTurn(self, reason, tokens, state.compaction_count, messages, begun)
            # A driver that was broken off lets go of its turn, which then holds up no other.
            self._cycle.hold(turn)
            return turn

    @property
    def is_held(self) -> bool:
        """Whether a turn of this session is held in this program now: `due` gives no other one meanwhile."""
        with self._cycle.lock:
            return self._cycle.is_held()

    def compacted(self, tokens: int | None = None, *, log_bytes: int | None = None) -> None:
        """Say that the conversation was compacted, to so many tokens: a new cycle begins, with a flush of its own.

        `log_bytes` is how large the transcript was when that was cut off which is now gone, by default its size now:
        what was written since belongs to the new cycle.
        """
        with self._cycle.lock:
            size, before = self.log.size, self.state.compacted_bytes
            # Another program may have come further meanwhile.
            at = size if log_bytes is None else max(log_bytes, before if before <= size else 0)
            done = {"compaction_count": self.state.compaction_count + 1, "compacted_bytes": at}
            # A flush that was begun before and never ended is none of the new cycle.
            self.save(**done, memory_flush_started_at=None, **_context(_whole(tokens)))

    def save(self, **changes: Any) -> None:
        """Write fields of the state; what the disk does not take is kept in memory, and tried again with the next."""
        self._cycle.save(**changes)

    def wrote(self) -> None:
        """Tell that something was written."""
        try:
            self._wrote()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was written
            warn(f"after the flush of session {self.key!r} had written: {type(error).__name__}: {error}")

    def now(self, moment: datetime.datetime | None = None) -> datetime.datetime:
        """A moment, by default this one, in the time zone of the notes."""
        return local_now(self.workspace.journal.timezone, moment or self._clock())


class FlushTurn:
    """One silent turn, in up to three attempts: whoever drives it tells each reply, or error, until it is not `open`.

    `reason` says why the turn is held, `outcome` how it ended.
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
        self._flush, self._tokens, self._count, self._messages = flush, tokens, compaction_count, messages
        self._first_day = flush.now(begun).date()
        self._failures = 0
        self._wrote = self._wrote_ever = False  # in this attempt; in any
        self._owed: set[str] = set()  # the lines of texts that were refused, and not written since
        self._refused = ""  # why the latest of them was not written

    @property
    def open(self) -> bool:
        """Whether the turn goes on: the model is to be asked, once more."""
        return self.outcome is None

    @property
    def path(self) -> str:
        """The note that the turn writes to: that of today, also once midnight has passed."""
        return day_path(self._flush.now().date())

    @property
    def prompt(self) -> str:
        """What to ask the model after the conversation."""
        asked = self._flush.rules.prompt or f"{_PROMPT} {_LIMITS}"
        hint = "" if SILENT in asked else f" {_HINT}"
        return asked.replace("YYYY-MM-DD", self._flush.now().date().isoformat()) + hint

    @property
    def system_prompt(self) -> str:
        """What to tell the model before the conversation."""
        return self._flush.rules.system_prompt or _SYSTEM_PROMPT

    @property
    def tool(self) -> Tool:
        """The one tool of the turn: it adds to today's note. See `append_new` for its answers."""
        return Tool(TOOL_NAME, DESCRIPTION, SCHEMA, self._append)

    def replied(self, text: str) -> None:
        """Tell what the model said last. Without a note it must be `NO_REPLY`, else the attempt has failed.

        It has failed also where a text that could not be written was not written later on, whole or in pieces.
        """
        if not self.open:
            return
        said = text if isinstance(text, str) else ""
        if self._owed:
            self._missed(f"what the model wanted to save was not written: {self._refused}")
        elif self._wrote or declines(said):
            self._end("saved" if self._wrote_ever else "nothing")
        else:
            self._missed(f"the model wrote nothing, and replied {said[:80]!r} instead of {SILENT}")

    def failed(self, error: BaseException) -> None:
        """Tell that the model could not be asked, or broke off."""
        if self.open:
            self._missed(f"{type(error).__name__}: {error}")

    def _append(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        if not self.open:
            return ToolAnswer({"status": "not_allowed", "error": "the flush is over: nothing is written any more"})
        today = self._flush.now().date()
        others = {self._first_day} - {today}  # what was written before midnight is not written again
        answer = append_new(self._flush.workspace, arguments, day=today, other_days=others)
        lines = _lines_of(arguments)
        if answer.ok:
            self._wrote = self._wrote_ever = True
            self._owed -= lines
            if answer.artifact is not None:
                self._flush.wrote()
        elif answer.data["status"] != NOTHING_TO_SAVE:
            self._owed |= lines
            self._refused = answer.data["error"]
        return answer

    def _missed(self, why: str) -> None:
        self._failures += 1
        self._wrote = False
        if self._failures < ATTEMPTS:
            return
        outcome, fate = self._kept()
        error = f"{why} ({ATTEMPTS} attempts); {fate}"
        warn(f"the flush of session {self._flush.key!r} failed: {error}")
        self._end(outcome, error)

    def _kept(self) -> tuple[Outcome, str]:
        """Put what is about to be lost into the session's log; how that ended, in words too."""
        if self._messages is None:
            return "lost", "nobody handed over the messages that were to be kept"
        try:
            added = keep(self._messages(), self._flush.log)
            self._flush.wrote()
        except Exception as error:  # noqa: BLE001 - whatever it is, the user's turn goes on
            return "lost", f"not all messages could be kept in {self._flush.log.path}: {error}"
        when = f"{added} of them since now" if added else "which had them"
        return "kept", f"the messages are in {self._flush.log.path}, {when}"

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
    """The field for the size of a conversation, where it is known."""
    return {"context_tokens": tokens} if tokens else {}


def _whole(tokens: Any) -> int | None:
    """A number of tokens as JSON holds it; None for what is none, as some counters give numbers of numpy, or NaN."""
    try:
        return None if tokens is None else int(tokens)
    except (TypeError, ValueError, OverflowError):
        return None


def _lines_of(arguments: Any) -> set[str]:
    """The lines of the text in a call, one that any text makes good where there is none."""
    text = arguments.get("text") if isinstance(arguments, Mapping) else None
    return {"", *(line.strip() for line in text.split("\n"))} if isinstance(text, str) else {""}


# Longer than three attempts of a slow model take; after that its process is taken for dead.
CLAIM_LASTS = datetime.timedelta(minutes=10)
_MAX_SESSIONS = 1_000


@dataclass(slots=True, eq=False)
class Cycle:
    """One session under its key. `lock` is held while it is decided who holds its turn."""

    folder: Place
    key: str
    session_id: str
    shared: dict[Any, Any]
    begins: bool  # whether the session may take the key from another one; it does so once
    chat_type: ChatType | None
    lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: SessionState = field(default_factory=SessionState)  # on the disk, while the key was this session's
    _unsaved: dict[str, Any] = field(default_factory=dict)
    _turn: Callable[[], FlushTurn | None] = lambda: None
    _claim: str | None = None  # the mark of this program, by which it knows its own again
    _told: bool = False

    @property
    def state(self) -> SessionState:
        """The state on the disk, with what could not be written there."""
        with self.lock:
            try:
                self._see(read_states(self.folder, self.shared).get(self.key, SessionState()))
            except OpenClawMemoryError as error:
                self.tell(error)
            return replace(self._seen, **self._unsaved)

    def is_held(self) -> bool:
        """Whether a turn of the session is held in this program."""
        turn = self._turn()
        return turn is not None and turn.open

    def hold(self, turn: FlushTurn) -> None:
        """Let the turn be the one that is held, until it is over or nobody knows it any more."""
        self._turn = weakref.ref(turn)

    def claim(self, now: datetime.datetime, *, once: bool, at_any_rate: bool) -> datetime.datetime | None:
        """Mark on the disk that the session is flushed from `now` on; None where another program does so.

        Returns when the flush was begun: before, where the program that did so has not ended it for ten minutes, or
        `at_any_rate`. With `once` a cycle that was flushed meanwhile is none.
        """
        now = now.astimezone(datetime.UTC)
        since: datetime.datetime | None = now

        def mark(state: SessionState) -> Mapping[str, Any] | None:
            nonlocal since
            begun = moment_of(state.memory_flush_started_at)
            is_own = state.memory_flush_started_at == self._claim
            lasts = begun is not None and not is_own and abs(now - begun) < CLAIM_LASTS
            if (once and state.flushed) or (lasts and not at_any_rate):
                since = None
                return None
            since = min(begun or now, now)
            return {"memory_flush_started_at": iso(now)}

        if self._write(mark):
            self._claim = iso(now)
        return since

    def save(self, **changes: Any) -> None:
        """Write fields of the state; what the disk does not take is kept in memory, and tried again with the next."""
        with self.lock:
            self._unsaved |= changes
            self._write(lambda _: {})

    @property
    def unsaved_error(self) -> str | None:
        """What went wrong with the latest flush, where that could not be written."""
        return self._unsaved.get("flush_error")

    def tell(self, error: OpenClawMemoryError) -> None:
        """Say once that the state is kept in memory."""
        if not self._told:
            self._told = True
            warn(f"the state of session {self.key!r} is kept in memory alone: {error}")

    def _write(self, changes: Callable[[SessionState], Mapping[str, Any] | None]) -> bool:
        """Write what is unsaved and what `changes` says, unless the key is another session's; whether it was."""
        written = False

        def changed(disk: SessionState) -> Mapping[str, Any] | None:
            nonlocal written
            is_ours = disk.session_id in {None, self.session_id}
            others = {} if is_ours else asdict(SessionState())
            more = changes(replace(disk, **(others | self._unsaved))) if is_ours or self.begins else None
            written = more is not None
            kind = self.chat_type or disk.chat_type or chat_type(self.key)
            named = {"session_id": self.session_id, "chat_type": kind}
            return {**others, **self._unsaved, **more, **named} if more is not None else None

        try:
            self._see(change_state(self.folder, self.key, changed))
        except OpenClawMemoryError as error:
            self.tell(error)
            return False
        if written:
            self._unsaved = {}
        return written

    def _see(self, disk: SessionState) -> None:
        if disk.session_id in {None, self.session_id}:
            self._seen = disk
            self.begins = self.begins and disk.session_id is None


def failures(workspace: Workspace, shared: dict[Any, Any]) -> dict[str, str]:
    """What went wrong with the latest flush of each session, by its key, also where that could not be written."""
    cycles = [cycle for cycle in list(shared.values()) if isinstance(cycle, Cycle)]
    return failed_flushes(workspace) | {cycle.key: error for cycle in cycles if (error := cycle.unsaved_error)}


def cycle_of(folder: Place, key: str, session_id: str | None, kind: ChatType | None, shared: dict[Any, Any]) -> Cycle:
    """That of a session; `shared` holds those of the latest 1,000, of which none is dropped while its turn is held.

    `session_id` is by default the one that the disk has for the key, else the key.
    """
    disk, error = SessionState(), None
    try:
        disk = read_states(folder, shared).get(key, disk)
    except OpenClawMemoryError as caught:
        error = caught
    found = session_id or disk.session_id or key
    fresh = Cycle(folder, key, found, shared, bool(session_id), kind, _seen=SessionState(chat_type=disk.chat_type))
    cycle: Cycle = shared.setdefault((folder, key, found), fresh)
    cycle.chat_type = kind or cycle.chat_type
    if error:
        cycle.tell(error)
    others = [name for name, other in list(shared.items()) if isinstance(other, Cycle) and not other.is_held()]
    for name in others[:-_MAX_SESSIONS]:
        shared.pop(name, None)
    return cycle
