"""What an observation does to a record: the table of cases."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from openclaw_memory.records.settlement import settle
from openclaw_memory.types.records import Observation, Record, RecordSource, RecordVersion

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def seen(value, ref="m2", confidence=0.8, days_ago=0.0, kind="chat_turn"):
    moment = NOW - timedelta(days=days_ago)
    return Observation(value, confidence, RecordSource(kind, ref, moment))


def stored(value="dark", *, days_old=0.0, confidence=0.8, key="editor.theme", **changes):
    first = seen(value, "m1", confidence, days_old)
    moment = first.source.observed_at
    return replace(
        Record(
            memory_id="mem_1", user_id=None, type="preference", key=key, value=value, confidence=confidence,
            source=first.source, sensitivity="low", ttl=None, last_confirmed_at=moment, version=1, created_at=moment,
            updated_at=moment, history=(RecordVersion(1, moment, value, confidence, first.source),),
        ),
        **changes,
    )  # fmt: skip


OLD = {"days_old": 8}
CASES = {
    "nothing there": (None, seen("light"), "new", 0.8),
    "the same value from another source": (stored(), seen("dark"), "supported", 0.96),
    "the same observation again": (stored(), seen("dark", "m1"), "same", 0.8),
    "another value, as certain, of one that is not stable": (stored(), seen("light"), "replaced", 0.8),
    "another value, less certain": (stored(), seen("light", confidence=0.5), "waiting", 0.8),
    "another value of one that is a week old": (stored(**OLD), seen("light"), "waiting", 0.8),
    "another value of one that is confirmed": (stored(is_confirmed=True), seen("light"), "waiting", 0.8),
    "a second observation from another source": (
        stored(**OLD, waiting=(seen("light", "m2"),)), seen("light", "m3"), "replaced", 0.96,
    ),
    "a second observation from the same source": (
        stored(**OLD, waiting=(seen("light", "m2"),)), seen("light", "m2"), "same", 0.8,
    ),
    "a second observation from a session, a day later": (
        stored(**OLD, waiting=(seen("light", "s", days_ago=1, kind="tool"),)), seen("light", "s", kind="tool"),
        "replaced", 0.96,
    ),
    "a second observation from a session, on the same day": (
        stored(**OLD, waiting=(seen("light", "s", days_ago=0.9, kind="tool"),)), seen("light", "s", kind="tool"),
        "same", 0.8,
    ),
    "a third observation from a session, within a day of the second": (
        stored(**OLD, waiting=(seen("light", "s", days_ago=1.5, kind="tool"), seen("light", "s", days_ago=0.2, kind="tool"))),
        seen("light", "s", kind="tool"), "same", 0.8,
    ),
    "a message that is read again a day later": (
        stored(**OLD, waiting=(seen("light", "m2", days_ago=1),)), seen("light", "m2"), "same", 0.8,
    ),
    "a file that is read again a day later": (
        stored(**OLD, waiting=(seen("light", "f", days_ago=1, kind="file"),)), seen("light", "f", kind="file"),
        "same", 0.8,
    ),
    "the same value from the same session, a day later": (
        stored(source=seen("dark", "s", days_ago=1, kind="tool").source), seen("dark", "s", kind="tool"),
        "supported", 0.96,
    ),
    "a second observation of a third value": (
        stored(**OLD, waiting=(seen("light", "m2"),)), seen("sepia", "m3"), "waiting", 0.8,
    ),
    "a key of high impact": (stored(key="billing.plan"), seen("light"), "asks", 0.8),
    "a scope": (stored(key="github.scope"), seen("light"), "asks", 0.8),
    "high sensitivity": (stored(sensitivity="high"), seen("light"), "asks", 0.8),
    "the same value of high impact": (stored(key="billing.plan"), seen("dark"), "supported", 0.96),
    "an observation that arrives late": (stored(), seen("light", days_ago=1), "late", 0.8),
    "True is not 1": (stored(True), seen(1), "replaced", 0.8),
}  # fmt: skip


@pytest.mark.parametrize(("record", "observation", "outcome", "confidence"), CASES.values(), ids=CASES)
def test_what_an_observation_does(record, observation, outcome, confidence):
    settled = settle(record, observation, NOW)
    assert settled.outcome == outcome
    assert settled.confidence == pytest.approx(confidence)
    is_value = outcome in {"new", "supported", "replaced"} or observation.value == record.value
    assert (settled.reason is None) == is_value
