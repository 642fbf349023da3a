"""Whatever happens to a conversation, each of its compactions comes after a flush, and no cycle has two."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.config.parts import Compaction
from openclaw_memory.sessions import Flush, compaction_threshold, flush_due, flush_threshold
from openclaw_memory.workspace import Workspace

RULES = Compaction(force_flush_bytes=3_000)
WINDOWS = st.sampled_from([200_000, 1_000_000, 32_000, 8_192, 100, 0, -1, None])
# What may happen next: so many tokens more, an overflow, a compaction by hand, a poll, a restart, a failing model, ...
EVENTS = st.one_of(
    st.tuples(st.just("said"), st.floats(0, 0.3)),
    st.sampled_from(
        [(name, 0.0) for name in ("overflow", "by hand", "heartbeat", "cli", "restart", "fails", "logged")]
    ),
)
HISTORIES = st.lists(EVENTS, max_size=30)
numbers = itertools.count()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("histories"))


class Life:
    """A program that asks for a flush before each call of its model; `done` is what it did, in order."""

    def __init__(self, workspace: Workspace, window: int | None) -> None:
        self.workspace, self.window = workspace, window
        self.room = window if window and window > 0 else 10_000
        self.tokens, self.fails = 0, False
        self.done: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.flush = Flush(self.workspace, "main", RULES, window=self.window)

    def happens(self, event: str, share: float) -> None:
        if event == "said":
            self.tokens += int(share * self.room)
        elif event == "restart":
            self.restart()
        elif event == "fails":
            self.fails = not self.fails
        elif event == "logged":
            self.flush.log.append("user", "x" * 1_500)
        self.flush_if_due(kind=event if event in {"heartbeat", "cli"} else "chat")
        limit = compaction_threshold(self.window, RULES)
        if event in {"overflow", "by hand"} or (limit is not None and self.tokens > limit):
            self.flush_if_due(compacting=True)
            self.tokens //= 10
            self.flush.compacted(self.tokens)
            self.done.append("compaction")

    def flush_if_due(self, compacting: bool = False, kind: str = "chat") -> None:
        lost = [{"role": "user", "content": f"turn {len(self.done)}"}]
        turn = self.flush.due(self.tokens, messages=lambda: lost, compacting=compacting, kind=kind)
        if turn is None:
            return
        assert kind == "chat"
        assert self.flush.due(self.tokens, compacting=True) is None, "a turn within a turn"
        while turn.open:
            if self.fails:
                turn.failed(RuntimeError("away"))
            else:
                turn.replied("NO_REPLY")
        assert turn.outcome == ("kept" if self.fails else "nothing")
        self.done.append("flush")


def another(workspace: Workspace) -> Workspace:
    root = workspace.root / str(next(numbers))
    root.mkdir()
    return Workspace(root)


def live(workspace: Workspace, window: int | None, history: list[tuple[str, float]]) -> list[str]:
    life = Life(another(workspace), window)
    for event, share in history:
        life.happens(event, share)
    return life.done


def check(done: list[str]) -> None:
    cycles = " ".join(done).split("compaction")
    assert [cycle.split() for cycle in cycles[:-1]] == [["flush"]] * (len(cycles) - 1)
    assert cycles[-1].split() in ([], ["flush"])


@settings(max_examples=100)
@given(window=WINDOWS, history=HISTORIES)
def test_every_compaction_comes_after_one_flush_of_its_cycle(workspace, window, history):
    check(live(workspace, window, history))


@pytest.mark.nightly
@settings(max_examples=2_000)
@given(window=WINDOWS, history=HISTORIES)
def test_every_compaction_comes_after_one_flush_of_its_cycle_in_2_000_histories(workspace, window, history):
    check(live(workspace, window, history))


@settings(max_examples=500)
@given(
    window=st.integers(-10, 2_000_000) | st.none(),
    tokens=st.integers(-10, 2_000_000) | st.none(),
    grown=st.integers(0, 6_000),
    rules=st.builds(
        Compaction,
        flush=st.booleans(),
        reserve_tokens=st.integers(0, 300_000),
        soft_threshold_tokens=st.integers(0, 300_000),
        force_flush_bytes=st.sampled_from([0, 3_000]),
    ),
    compacting=st.booleans(),
)
def test_a_decision_is_what_its_parts_say(window, tokens, grown, rules, compacting):
    threshold = flush_threshold(window, rules)
    full = threshold is not None and tokens is not None and tokens >= threshold
    grew = rules.force_flush_bytes != 0 and grown >= rules.force_flush_bytes
    given = {"window": window, "tokens": tokens, "transcript_bytes": grown, "compacting": compacting}

    assert (flush_due(rules, **given) is not None) == (rules.flush and (full or grew or compacting))
    assert flush_due(rules, **given, flushed=True) is None


FACTS = st.lists(st.sampled_from([f"- fact {number}" for number in range(8)]), min_size=1, max_size=5, unique=True).map(
    "\n".join
)


@settings(max_examples=60)
@given(texts=st.lists(FACTS, min_size=1, max_size=4), data=st.data())
def test_wherever_a_flush_dies_the_next_one_writes_no_line_twice(workspace, texts, data):
    workspace = another(workspace)
    died_after = data.draw(st.integers(0, len(texts)))
    for calls in (texts[:died_after], texts):
        turn = Flush(workspace, "main", RULES, window=200_000).due(176_000)
        for text in calls:
            turn.tool.run({"text": text})
    lines = workspace.read(turn.path).splitlines()[2:]

    assert sorted(lines) == sorted({line for text in texts for line in text.split("\n")})
