"""What a record is: a fact with a type, a key and a value, and how sure it is, who says so, and until when it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

RecordType: TypeAlias = Literal["preference", "fact", "decision", "entity", "reminder", "other"]
Sensitivity: TypeAlias = Literal["low", "medium", "high"]
# A message, a file of the user's, an agent's tool, the user; or what comes from outside: a page, a mail, a program.
SourceKind: TypeAlias = Literal["chat_turn", "file", "tool", "user", "external"]
# What came of an observation; see `openclaw_memory.records.settling.settle`.
Outcome: TypeAlias = Literal["new", "same", "supported", "confirmed", "replaced", "waiting", "asks", "late"]


@dataclass(frozen=True, slots=True)
class RecordSource:
    """Who says so: `kind`, and `ref`, the message, file, or session of a tool; `observed_at` in UTC."""

    kind: SourceKind
    ref: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Observation:
    """A value that was seen: how sure it is (0..1), and where it comes from."""

    value: Any
    confidence: float
    source: RecordSource

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: value, confidence, source."""
        return {"value": self.value, "confidence": self.confidence, "source": source_dict(self.source)}


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """One value of a record: the version with it, what was seen, and when it became the value (UTC).

    A value that comes back is one of these still: `times` says how often it became the value, `first` when it first
    did, where that is not `since`.
    """

    version: int
    seen: Observation
    since: datetime
    times: int = 1
    first: datetime | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A fact that an agent can rely on, correct and forget. `user_id`, `type` and `key` together name it.

    `value` is any JSON. `confidence`, 0..1, is what it is now: that of a preference falls until it is confirmed.
    It holds for `ttl` seconds after `updated_at`, for ever where None. Times are UTC, in whole seconds. `version` rises
    by one with each change. `embedding_ref` names what its text is embedded as: equal texts have one vector.

    Besides these fields: `path`, its file; `digest`, a hash of what the file says; `is_confirmed`, whether this
    very value was confirmed; `waiting`, what was observed and has not replaced it; `history`, the latest values, each
    once, the present one last; `problem`, why the signature of its file does not vouch for it, in which case it is
    shown nowhere.
    """

    memory_id: str
    user_id: str | None
    type: RecordType
    key: str
    value: Any
    confidence: float
    source: RecordSource
    sensitivity: Sensitivity
    ttl: int | None
    last_confirmed_at: datetime
    version: int
    embedding_ref: str
    created_at: datetime
    updated_at: datetime
    path: str
    digest: str
    is_confirmed: bool = False
    waiting: tuple[Observation, ...] = ()
    history: tuple[RecordVersion, ...] = ()
    problem: str | None = None

    @property
    def expires_at(self) -> datetime | None:
        """When it stops to hold; None for never, and for what the calendar ends before, with the year 9999."""
        if self.ttl is None:
            return None
        try:
            return self.updated_at + timedelta(seconds=self.ttl)
        except OverflowError:
            return None

    def to_dict(self) -> Mapping[str, Any]:
        """Return the fourteen fields as JSON values, as OpenClaw's documents spell them."""
        return {
            "memory_id": self.memory_id,
            "user_id": self.user_id,
            "type": self.type,
            "key": self.key,
            "value": self.value,
            "confidence": self.confidence,
            "source": source_dict(self.source),
            "sensitivity": self.sensitivity,
            "ttl": self.ttl,
            "last_confirmed_at": timestamp(self.last_confirmed_at),
            "version": self.version,
            "embedding_ref": self.embedding_ref,
            "created_at": timestamp(self.created_at),
            "updated_at": timestamp(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class Remembered:
    """What `remember` did: the record as it is now, the outcome, and in words why it is not the value, if it is not."""

    record: Record
    outcome: Outcome
    reason: str | None = None


def sentence(key: str, value: Any) -> str:
    """Return the line of a record's file that searches find and people read.

    Args:
        key: The key of the record.
        value: Its value.
    """
    line = f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
    return line.replace("\0", "\ufffd").strip()  # as a file with NUL is read


def source_dict(source: RecordSource) -> dict[str, str]:
    """Return a source as JSON.

    Args:
        source: The source.
    """
    return {"kind": source.kind, "ref": source.ref, "observed_at": timestamp(source.observed_at)}


def timestamp(moment: datetime) -> str:
    """Return a moment in UTC as `2026-01-10T09:20:11Z`.

    Args:
        moment: The moment, with its time zone.
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
