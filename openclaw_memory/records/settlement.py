"""Decide whether an observation supports a record, replaces it, waits, or does nothing (pure)."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from openclaw_memory.types.records import (
    HALF_LIFE_DAYS,
    Observation,
    Outcome,
    Record,
    RecordSource,
    RecordVersion,
    Sensitivity,
)

DAY = timedelta(days=1)
STABLE_DAYS = 7  # after which a value counts as stable, as one that was confirmed does
OBSERVATIONS = 2  # of another value that replace a stable one
LEAST_CONFIDENCE = 0.3  # of an observation that is taken
MAX_CONFIDENCE = 0.99  # of observations without a confirmation: they may share a mistake
MAX_VERSIONS = 2  # values that the file of a record keeps; with more, files still grow when a year is over
HIGH_IMPACT = ("billing.*", "credential.*", "*.scope")  # globs of keys
MAX_WAITING = 5  # observations that wait, of which the file keeps the latest


class Settlement(Struct, frozen=True):
    """The effect of an observation on a record.

    Attributes:
        outcome: Its name.
        confidence: The confidence in the value from now on, 0 to 1.
        waiting: The observations that wait.
        reason: Why the observed value is not that of the record.
    """

    outcome: Outcome
    confidence: float
    waiting: tuple[Observation, ...] = ()
    reason: str | None = None


def settle(record: Record | None, observation: Observation, now: datetime) -> Settlement:
    """Decide the effect of an observation.

    The value of the record supports it, and drops the observations that waited. Another value replaces one that is not
    yet stable and no more certain. A stable value, which was confirmed or is older than `STABLE_DAYS`, is replaced
    after `OBSERVATIONS` independent observations of one other value, with none of its own between them. One of high
    impact is only replaced by `confirm`. A value from outside neither supports nor replaces another, and does not wait;
    any other replaces it.

    Args:
        record: The record, its confidence decayed up to `now`; None if there is none.
        observation: The observation.
        now: The moment, in UTC.
    """
    if record is None:
        return Settlement("new", observation.confidence)
    unchanged = Settlement("same", record.confidence, record.waiting)
    source, is_equal = observation.source, is_same(observation.value, record.value)
    if source.kind == "external" != record.source.kind:  # a page may repeat itself as often as it likes
        reason = "a value from outside replaces none that someone has said: a person has to confirm it"
        return unchanged if is_equal else replace(unchanged, outcome="asks", reason=reason)
    is_from_outside = record.source.kind == "external" != source.kind
    if is_from_outside and not is_high_impact(record.key, record.sensitivity):
        return Settlement("replaced", observation.confidence)
    if is_equal:
        is_support = is_independent(source, record.source)
        return Settlement("supported", combine(record.confidence, observation.confidence)) if is_support else unchanged
    if source.observed_at < record.source.observed_at:
        return replace(unchanged, outcome="late", reason="the value of the record was observed later")
    return _settle_rival(record, observation, now)


def _settle_rival(record: Record, observation: Observation, now: datetime) -> Settlement:
    """Decide the effect of another value."""
    rivals = [rival for rival in record.waiting if is_same(rival.value, observation.value)]
    if not all(is_independent(rival.source, observation.source) for rival in rivals):
        return Settlement("same", record.confidence, record.waiting, "this observation waits already")
    confidence = combine(*(rival.confidence for rival in rivals), observation.confidence)
    missing = OBSERVATIONS - len(rivals) - 1
    outcome: Outcome = "waiting"
    if is_high_impact(record.key, record.sensitivity):
        outcome, reason = "asks", f"{record.key} is of high impact: a person has to confirm the new value"
    elif is_stable(record, now):
        outcome = "waiting" if missing > 0 else "replaced"
        reason = f"{record.key} is stable: {missing} more from another source, or a confirmation, replaces it"
    else:
        outcome = "waiting" if confidence < record.confidence else "replaced"
        reason = f"{record.key} is more certain as it is ({record.confidence:.2f}, not {confidence:.2f})"
    if outcome == "replaced":
        return Settlement(outcome, confidence)
    return Settlement(outcome, record.confidence, (*record.waiting, observation)[-MAX_WAITING:], reason)


def is_independent(source: RecordSource, second: RecordSource) -> bool:
    """Return whether two sources are more than one person or model that repeats itself.

    A message or a file says a thing once, however often it is read. The source of a tool is its session, which may
    live for months: its observations a day or more apart are independent.
    """
    if source.ref != second.ref:
        return True
    return source.kind == second.kind == "tool" and abs(source.observed_at - second.observed_at) >= DAY


def add_value(history: tuple[RecordVersion, ...], newest: RecordVersion) -> tuple[RecordVersion, ...]:
    """Return a history with a value at its end; one that comes back is not kept twice."""
    return (*(version for version in history if not is_same(version.value, newest.value)), newest)[-MAX_VERSIONS:]


def is_stable(record: Record, now: datetime) -> bool:
    """Return whether a value is confirmed, or older than `STABLE_DAYS`."""
    since = record.history[-1].since if record.history else record.created_at
    return record.is_confirmed or now - since >= STABLE_DAYS * DAY


def is_high_impact(key: str, sensitivity: Sensitivity) -> bool:
    """Return whether a new value has to be confirmed."""
    return sensitivity == "high" or any(fnmatchcase(key, glob) for glob in HIGH_IMPACT)


def decay(confidence: float, since: datetime, now: datetime) -> float:
    """Return `confidence * 2^(-days / HALF_LIFE_DAYS)`.

    Args:
        confidence: The confidence, 0 to 1.
        since: The moment of that confidence, in UTC.
        now: The moment, in UTC.
    """
    return float(confidence * 2 ** (-max(0.0, (now - since) / DAY) / HALF_LIFE_DAYS))


def combine(*confidences: float) -> float:
    """Return the confidence in independent observations: one less the product of their doubts.

    Args:
        confidences: The confidence of each, 0 to 1.
    """
    return max(min(1 - math.prod(1 - confidence for confidence in confidences), MAX_CONFIDENCE), *confidences)


def is_same(value: Any, second: Any) -> bool:
    """Return whether two values are the same JSON: `True` is not 1, and the order of keys does not matter."""
    return json.dumps(value, sort_keys=True) == json.dumps(second, sort_keys=True)
