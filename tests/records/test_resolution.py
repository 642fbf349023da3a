"""What an observation does to a record: the table of cases, and how often answers change in noisy streams."""

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from openclaw_memory.records.resolution import settle
from openclaw_memory.types.records import Observation, Record, RecordSource, RecordVersion

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def seen(value, ref="m2", confidence=0.8, days_ago=0.0, kind="chat_turn"):
    moment = NOW - timedelta(days=days_ago)
    return Observation(value, confidence, RecordSource(kind, ref, moment))


def version_of(number, one, since):
    return RecordVersion(version=number, since=since, value=one.value, confidence=one.confidence, source=one.source)


def stored(value="dark", *, days_old=0.0, confidence=0.8, key="editor.theme", **changes):
    first = seen(value, "m1", confidence, days_old)
    moment = first.source.observed_at
    return replace(
        Record(
            memory_id="mem_1",
            user_id=None,
            type="preference",
            key=key,
            value=value,
            confidence=confidence,
            source=first.source,
            sensitivity="low",
            ttl=None,
            last_confirmed_at=moment,
            version=1,
            embedding_ref="vec_1",
            created_at=moment,
            updated_at=moment,
            path="memory/records/preference/editor.theme.md",
            digest="",
            history=(version_of(1, first, moment),),
        ),
        **changes,
    )


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


def changes(stream: list[tuple[str, datetime]]) -> int:
    """How often the answer changes over a stream of observations."""
    record, count = None, 0
    for number, (value, moment) in enumerate(stream):
        one = Observation(value, 0.8, RecordSource("chat_turn", f"m{number}", moment))
        settled = settle(record, one, moment)
        if record is None or settled.outcome == "replaced":
            count += record is not None
            since = version_of(number, one, moment)
            record = stored(
                value, source=one.source, confidence=settled.confidence, created_at=moment, history=(since,)
            )
        else:
            record = replace(record, confidence=settled.confidence, waiting=settled.waiting)
            if settled.outcome == "supported":
                record = replace(record, source=one.source)
    return count


def test_noise_does_not_make_the_answer_flip():
    """One observation a day for 60 days, one in ten wrong: settled answers change far less often than the latest one."""
    random.seed(7)
    naive = settled = 0
    for _ in range(60):
        values = ["light" if random.random() < 0.1 else "dark" for _ in range(60)]
        stream = [(value, NOW + timedelta(days=day)) for day, value in enumerate(values)]
        naive += sum(one != other for one, other in itertools.pairwise(values))
        settled += changes(stream)
    assert settled < naive / 5
