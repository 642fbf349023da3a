"""Define a record: a fact with a type, a key and a value, its confidence, its source, and its expiry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

RecordType: TypeAlias = Literal["preference", "fact", "decision", "entity", "reminder", "other"]
Sensitivity: TypeAlias = Literal["low", "medium", "high"]
DECAYING: frozenset[RecordType] = frozenset({"preference"})  # their confidence falls until they are confirmed
HALF_LIFE_DAYS = 30.0  # of that confidence
# A message, a file of the user's, an agent's tool, the user; or text from outside: a page, a mail, a program.
SourceKind: TypeAlias = Literal["chat_turn", "file", "tool", "user", "external"]
# The result of an observation; see `openclaw_memory.records.settlement.settle`.
Outcome: TypeAlias = Literal["new", "same", "supported", "confirmed", "replaced", "waiting", "asks", "late"]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]
Confidence: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class RecordSource(Struct, frozen=True):
    """The source of a value.

    Attributes:
        kind: `chat_turn`, `file`, `tool`, `user`, or `external` for text from outside.
        ref: The message, the file, or the session of the tool.
        observed_at: When the value was observed (UTC).
    """

    kind: SourceKind
    ref: str
    observed_at: Moment


class Observation(Struct, frozen=True):
    """A value that was observed, with its confidence, 0 to 1, and its source."""

    value: Any
    confidence: Confidence
    source: RecordSource


class RecordVersion(Struct, frozen=True):
    """One value of a record.

    Attributes:
        version: The version of the record that brought it.
        since: When it became the value (UTC).
        value: The value.
        confidence: Its confidence at that time, 0 to 1.
        source: Its source.
    """

    version: int
    since: Moment
    value: Any
    confidence: Confidence
    source: RecordSource


class Record(Struct, frozen=True, kw_only=True):
    """A fact that an agent can rely on, correct and forget. `user_id`, `type` and `key` together name it.

    Attributes:
        memory_id: An id that never changes.
        user_id: The user whose record it is; None for everybody's.
        type: Its type.
        key: Its subject, such as `editor.theme`.
        value: Any JSON.
        confidence: The confidence now, 0 to 1: that of a preference falls until it is confirmed.
        source: The source of the value.
        sensitivity: low, medium or high.
        ttl: For how many seconds after `updated_at` it holds; None for ever.
        last_confirmed_at: When the value was last observed or confirmed.
        version: Rises by one with each change.
        created_at: When it was created. Times are UTC, in whole seconds.
        updated_at: When its value was last supported or replaced.
        is_confirmed: Whether this very value was confirmed.
        waiting: Observations that have not replaced the value.
        history: The latest values, each once, the present one last.
        path: Its file.
        digest: A hash of the content of the file.
        problem: Why the signature of the file does not vouch for it, in which case it is shown nowhere.
    """

    memory_id: str
    user_id: str | None
    type: RecordType
    key: str
    value: Any
    confidence: Confidence
    source: RecordSource
    sensitivity: Sensitivity
    ttl: int | None
    last_confirmed_at: Moment
    version: int
    created_at: Moment
    updated_at: Moment
    is_confirmed: bool = field(default=False, name="confirmed")
    waiting: tuple[Observation, ...] = ()
    history: tuple[RecordVersion, ...] = ()
    path: str = ""
    digest: str = ""
    problem: str | None = None

    @property
    def expires_at(self) -> datetime | None:
        """The moment when it stops to hold; None for never, and beyond the calendar, which ends with the year 9999."""
        if self.ttl is None:
            return None
        try:
            return self.updated_at + timedelta(seconds=self.ttl)
        except OverflowError:
            return None

    def to_dict(self) -> Mapping[str, Any]:
        """Return the fourteen fields as JSON values, as OpenClaw's documents spell them.

        `embedding_ref` names the vector of its text: equal texts have one.
        """
        from hashlib import sha256

        fields = [*msgspec.to_builtins(self).items()]
        text = make_sentence(self.key, self.value).encode("utf-8", "surrogatepass")
        return dict([*fields[:11], ("embedding_ref", f"vec_{sha256(text).hexdigest()[:16]}"), *fields[11:13]])


class Remembered(Struct, frozen=True):
    """The result of `remember`.

    Attributes:
        record: The record as it is now.
        outcome: The effect of the observation.
        reason: Why it did not become the value; None if it is the value.
    """

    record: Record
    outcome: Outcome
    reason: str | None = None


def make_sentence(key: str, value: Any) -> str:
    """Return the line of a record's file that searches find and people read."""
    line = f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
    return line.replace("\0", "\ufffd").strip()  # as a file with NUL is read


def format_timestamp(moment: datetime) -> str:
    """Format a moment in UTC as `2026-01-10T09:20:11Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
