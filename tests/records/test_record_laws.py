"""Whatever is done to records, in whatever order, they are what a model in a dictionary says, one version a change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openclaw_memory import Memory

KEYS = st.sampled_from(["a", "b.c", "billing.x"])
VALUES = st.sampled_from(["x", "y", 3])
# Values are replaced at once (nothing is stable for a thousand days), so that the model stays one line a rule.


class RecordLaws(RuleBasedStateMachine):
    """Remember, edit by hand, confirm, forget, expire and open again, beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.known: dict[str, tuple[object, int, bool, float]] = {}  # value, version, confirmed, confidence
        self.expires: dict[str, datetime] = {}
        self.open()

    def open(self) -> None:
        self.memory = Memory.open(self.folder.name, embedder=None)
        self.memory.records._clock = lambda: self.now

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    def at(self, key: str) -> tuple[object, int, bool, float] | None:
        return self.known.get(key) if self.expires.get(key, self.now) >= self.now else None

    @rule(key=KEYS, value=VALUES, confidence=st.sampled_from([0.5, 0.9]))
    def remember(self, key: str, value: object, confidence: float) -> None:
        before = self.at(key)
        done = self.memory.records.remember("fact", key, value, confidence=confidence, ttl=1000)
        if before is None:
            after, renewed = (value, 1, False, confidence), True
        elif before[0] == value:
            after, renewed = (value, before[1] + 1, before[2], done.record.confidence), True
            assert done.record.confidence >= before[3]
        elif done.outcome == "replaced":  # one that was confirmed, by a second observation
            assert before[2] or done.record.confidence >= before[3]
            after, renewed = (value, before[1] + 1, False, done.record.confidence), True
        else:
            assert key.startswith("billing") or before[2] or confidence < before[3]
            after, renewed = (before[0], before[1] + 1, before[2], before[3]), False
        self.known[key] = after
        if renewed:
            self.expires[key] = self.now + timedelta(seconds=1000)

    @rule(key=KEYS)
    def confirm(self, key: str) -> None:
        if (before := self.at(key)) is not None:
            self.memory.records.confirm("fact", key)
            self.known[key] = (before[0], before[1] + 1, True, 1.0)
            self.expires[key] = self.now + timedelta(seconds=1000)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        assert self.memory.records.forget("fact", key) == (key in self.known)
        self.known.pop(key, None)
        self.expires.pop(key, None)

    @rule(key=KEYS, confidence=st.sampled_from(["0.25", "0.75"]))
    def edit_by_hand(self, key: str, confidence: str) -> None:
        before = self.at(key)
        if before is None or before[3] == float(confidence):
            return
        record = self.memory.records.get("fact", key)
        file = Path(self.folder.name, record.path)
        lines = file.read_text().split("\n")
        at = next(number for number, line in enumerate(lines) if line.startswith("confidence: "))
        lines[at] = f"confidence: {confidence}"
        file.write_text("\n".join(lines))
        edited = self.memory.records.get("fact", key)
        assert edited is not None
        assert (edited.value, edited.confidence) == (before[0], float(confidence))
        # It counts as one version until the next change writes it down.
        again = self.memory.records.confirm("fact", key)
        assert again.version == edited.version + 1
        self.known[key] = (before[0], again.version, True, 1.0)
        self.expires[key] = self.now + timedelta(seconds=1000)

    @rule(seconds=st.sampled_from([1, 400, 1100]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def open_again(self) -> None:
        self.memory.close()
        self.open()

    @invariant()
    def records_are_those_of_the_model(self) -> None:
        there = {one.key: (one.value, one.version, one.is_confirmed) for one in self.memory.records}
        assert there == {key: known[:3] for key in self.known if (known := self.at(key)) is not None}
        assert self.memory.records.list_problems() == []


RecordLaws.TestCase.settings = settings(max_examples=15)
TestRecordLaws = RecordLaws.TestCase
