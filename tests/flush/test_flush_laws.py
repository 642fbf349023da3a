"""Whatever happens to a conversation, each of its compactions comes after a flush, and no cycle has two."""

import datetime
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_files import read_days

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.flush import Flush
from openclaw_memory.flush.state import FlushRegistry
from openclaw_memory.workspace import Workspace

RULES = CompactionConfig(force_flush_bytes=3_000)
WINDOWS = [200_000, 1_000_000, 32_000, 8_192, 100, 4, 1, None]
# What may happen next, beside so many tokens more: an overflow, a compaction by hand, a poll, a restart, ...
EVENTS = ["overflow", "by hand", "heartbeat", "cli", "restart", "fails", "logged", "another", "crash", "damaged"]
# The first byte is the window. Of the others each is an event, or so many tokens: one draw for a history is fast.
HISTORIES = st.binary(min_size=12, max_size=40)
NOON = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
numbers = itertools.count()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace.open(tmp_path_factory.mktemp("histories"))


class Driving:
    """A session on a disk, whose program asks for turns and drives them; two of its flushes live at once."""

    def __init__(self, workspace: Workspace, window: int | None) -> None:
        self.workspace, self.window, self.fails, self.now = workspace, window, False, NOON
        self.restart()

    def restart(self) -> None:
        self.registry = FlushRegistry()
        self.flush, self.other = self.made(), self.made()

    def made(self) -> Flush:
        clock = lambda: self.now  # noqa: E731
        return Flush(self.workspace, "main", RULES, window=self.window, clock=clock, registry=self.registry)

    def happens(self, event: str) -> None:
        if event == "restart" and self.state_is_sound():  # what only the memory knows does not outlive a process
            self.restart()
        elif event == "fails":
            self.fails = not self.fails
        elif event == "logged":
            self.flush.log.append("user", "x" * 1_500)
        elif event == "another":
            self.flush, self.other = self.other, self.made()
        elif event == "crash" and self.state_is_sound():
            self.flush.begin(10**9)
            self.restart()
            self.now += datetime.timedelta(minutes=11)
        elif event == "damaged":
            (self.workspace.root / "sessions").mkdir(exist_ok=True)
            (self.workspace.root / "sessions/sessions.json").write_text("{")

    def state_is_sound(self) -> bool:
        file = self.workspace.root / "sessions/sessions.json"
        return not file.exists() or file.read_text() != "{"

    def flush_if_due(self, tokens: int, kind: str, compacting: bool) -> bool:
        lost = [{"role": "user", "content": "a turn"}]
        turn = self.flush.begin(tokens, messages=lambda: lost, compacting=compacting, kind=kind)
        if turn is None:
            return False
        assert self.other.begin(tokens) is None, "a turn within a turn"
        if self.fails:
            turn.fail(RuntimeError("away"))
        else:
            turn.finish("NO_REPLY")
        assert turn.outcome == ("kept" if self.fails else "nothing")
        return True

    def record_compaction(self) -> None:
        self.flush.record_compaction()


def another(workspace: Workspace) -> Workspace:
    root = workspace.root / str(next(numbers))
    root.mkdir()
    return Workspace.open(root)


def lived(session: Driving, history: bytes) -> list[str]:
    """What happened in a session, in order."""
    window, done, tokens = session.window, [], 0
    room = window if window and window > 0 else 10_000
    limit = RULES.get_compaction_threshold(window)

    def flush(compacting: bool = False, kind: str = "chat") -> None:
        if session.flush_if_due(tokens, kind, compacting):
            assert kind == "chat"
            done.append("flush")

    for byte in history:
        event = dict(enumerate(EVENTS)).get(byte % 20, "")
        tokens += 0 if event else byte * room // 800
        session.happens(event)
        flush(kind=event if event in {"heartbeat", "cli"} else "chat")
        if event in {"overflow", "by hand"} or (limit is not None and tokens > limit):
            flush(compacting=True)
            tokens //= 10
            session.record_compaction()
            done.append("compaction")
    return done


@pytest.mark.fault(27)
@given(HISTORIES)
def test_every_compaction_comes_after_one_flush_of_its_cycle(workspace, history):
    done = lived(Driving(another(workspace), WINDOWS[history[0] % len(WINDOWS)]), history[1:])
    cycles = " ".join(done).split("compaction")
    assert [cycle.split() for cycle in cycles[:-1]] == [["flush"]] * (len(cycles) - 1)
    assert cycles[-1].split() in ([], ["flush"])


LINES = st.sampled_from(
    [*(f"- fact {number}" for number in range(6)), "## Anna", "## Bob", "### Plans", "- ", "Said at noon:", ""]
)
TEXTS = st.lists(LINES, min_size=1, max_size=6).map("\n".join)


@pytest.mark.fault(30)
@settings(max_examples=15)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), data=st.data())
def test_wherever_a_flush_dies_the_next_one_writes_no_line_twice(workspace, texts, data):
    def written(*lives: list[str]) -> str:
        place = another(workspace)
        for calls in lives:
            turn = Flush(place, "main", RULES, window=200_000, clock=lambda: NOON).begin(176_000)
            for text in calls:
                turn.tool.run({"text": text})
        return read_days(place.root)

    died_after = data.draw(st.integers(0, len(texts)))
    assert written(texts[:died_after], texts) == written(texts)
