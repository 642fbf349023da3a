"""Decide what an observation does to a record: nothing, support it, replace it, or wait (pure)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from openclaw_memory.config import RecordsConfig
from openclaw_memory.types.records import Observation, Outcome, Record, RecordSource, RecordVersion, Sensitivity

DAY = timedelta(days=1)
# Independent observations never make a fact certain: they may share a mistake.
MOST_CONFIDENCE = 0.99
MOST_VERSIONS = 2  # values that the file of a record keeps; with more, files still grow when a year is over
MOST_WAITING = 5  # observations that wait, of which the file keeps the latest


_FROM_OUTSIDE = "what comes from outside replaces no value that someone has said: a person has to confirm it"


class Settled(NamedTuple):
    """What becomes of a record.

    `confidence` is that of its value from now on, 0..1, `waiting` what has been observed besides, and `reason` says in
    words why the observed value is not that of the record.
    """

    outcome: Outcome
    confidence: float
    waiting: tuple[Observation, ...] = ()
    reason: str | None = None


def settle(stored: Record | None, seen: Observation, rules: RecordsConfig, now: datetime) -> Settled:
    """Decide what an observation does.

    An observed value that is the record's supports it, and what waited is dropped. Another value replaces one that is
    not yet stable and no more certain than it. A stable value, which was confirmed or is older than `stable_days`, is
    replaced after `observations` independent observations of one other value, with none of its own between them. One of
    high impact is only replaced by `confirm`. What comes from outside neither supports nor replaces a value that does
    not, and does not wait; it is replaced by any that does not.

    Args:
        stored: The record as it is, its confidence decayed up to `now`; None if there is none.
        seen: What was observed.
        rules: The numbers.
        now: The moment, in UTC.
    """
    if stored is None:
        return Settled("new", seen.confidence)
    if (one_outside := _from_outside(stored, seen, rules)) is not None:
        return one_outside
    if same_value(seen.value, stored.value):
        if not are_independent(seen.source, stored.source):
            return Settled("same", stored.confidence, stored.waiting)
        return Settled("supported", together(stored.confidence, seen.confidence))
    if seen.source.observed_at < stored.source.observed_at:
        return Settled("late", stored.confidence, stored.waiting, "what is remembered was observed later")
    return _rival(stored, seen, rules, now)


def _from_outside(stored: Record, seen: Observation, rules: RecordsConfig) -> Settled | None:
    """Decide where one of the two comes from outside, and the other does not; None where neither or both do.

    A page may say anything, and as often as it likes: any word of someone's goes before it.
    """
    if "external" not in (stored.source.kind, seen.source.kind) or stored.source.kind == seen.source.kind:
        return None
    if stored.source.kind == "external":
        needs_a_person = is_high_impact(stored.key, stored.sensitivity, rules)
        return None if needs_a_person else Settled("replaced", seen.confidence)
    if same_value(seen.value, stored.value):
        return Settled("same", stored.confidence, stored.waiting)
    return Settled("asks", stored.confidence, stored.waiting, _FROM_OUTSIDE)


def _rival(stored: Record, seen: Observation, rules: RecordsConfig, now: datetime) -> Settled:
    """Decide what an observation of another value does."""
    rivals = [one for one in stored.waiting if same_value(one.value, seen.value)]
    confidence = together(*(one.confidence for one in rivals), seen.confidence)
    missing = rules.observations - len(rivals) - 1
    if not all(are_independent(one.source, seen.source) for one in rivals):
        return Settled("same", stored.confidence, stored.waiting, "this observation waits already")
    outcome: Outcome = "waiting"
    if is_high_impact(stored.key, stored.sensitivity, rules):
        outcome, reason = "asks", f"{stored.key} is of high impact: a person has to confirm the new value"
    elif is_stable(stored, rules, now):
        reason = f"{stored.key} is stable: {missing} more from another source, or a confirmation, replaces it"
        outcome = "waiting" if missing > 0 else "replaced"
    else:
        reason = f"{stored.key} is more certain as it is ({stored.confidence:.2f}, not {confidence:.2f})"
        outcome = "waiting" if confidence < stored.confidence else "replaced"
    if outcome == "replaced":
        return Settled(outcome, confidence)
    most = max(MOST_WAITING, rules.observations)  # fewer could never replace a value
    return Settled(outcome, stored.confidence, (*stored.waiting, seen)[-most:], reason)


def are_independent(one: RecordSource, other: RecordSource) -> bool:
    """Whether two observations are more than one person or model repeating itself.

    They are where their sources differ. A message or a file says a thing once, however often it is read. A tool's
    source is its session, which may live for months: what it observes a day or more apart is independent.

    Args:
        one: The source of one observation.
        other: That of another.
    """
    if one.ref != other.ref:
        return True
    return one.kind == other.kind == "tool" and abs(one.observed_at - other.observed_at) >= DAY


def with_value(history: tuple[RecordVersion, ...], newest: RecordVersion) -> tuple[RecordVersion, ...]:
    """Return a history with one more value at its end: a value that comes back is counted, and not kept twice.

    Args:
        history: The values until now.
        newest: The value from now on.
    """
    same = [one for one in history if same_value(one.seen.value, newest.seen.value)]
    if same:
        first = min(one.first or one.since for one in same)
        newest = replace(newest, times=newest.times + sum(one.times for one in same), first=first)
    others = [one for one in history if one not in same]
    return (*others, newest)[-MOST_VERSIONS:]


def is_stable(record: Record, rules: RecordsConfig, now: datetime) -> bool:
    """Whether a value is confirmed, or older than `stable_days`.

    Args:
        record: The record.
        rules: The numbers.
        now: The moment, in UTC.
    """
    since = record.history[-1].since if record.history else record.created_at
    return record.is_confirmed or now - since >= rules.stable_days * DAY


def is_high_impact(key: str, sensitivity: Sensitivity, rules: RecordsConfig) -> bool:
    """Whether a new value has to be confirmed.

    Args:
        key: The key of the record.
        sensitivity: Its sensitivity.
        rules: `high_impact` are globs of keys.
    """
    return sensitivity == "high" or any(fnmatchcase(key, glob) for glob in rules.high_impact)


def decayed(confidence: float, since: datetime, now: datetime, half_life_days: float) -> float:
    """Return `confidence * 2^(-days / half_life_days)`.

    Args:
        confidence: What it was, 0..1.
        since: When it was that, in UTC.
        now: The moment, in UTC.
        half_life_days: After how many days it is half.
    """
    days = max(0.0, (now - since) / DAY)
    return float(confidence * 2 ** (-days / half_life_days))


def together(*confidences: float) -> float:
    """Return the confidence in what independent observations say: one less the product of their doubts.

    Args:
        confidences: That of each, 0..1.
    """
    doubt = 1.0
    for one in confidences:
        doubt *= 1 - one
    return max(min(1 - doubt, MOST_CONFIDENCE), *confidences)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: `True` is not 1, and the order of keys does not matter.

    Args:
        one: A value of JSON.
        other: Another one.
    """
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
