"""Vectors as a cache: gathered ahead for a model, pruned by last use, never written by a read."""

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openclaw_memory.errors import EmbedderError, IndexLockedError
from openclaw_memory.store import SqliteStore, connection
from openclaw_memory.types import Chunk, ChunkRow

NUMBERS = st.integers(0, 4)
PATHS = st.sampled_from(["memory/a.md", "memory/b.md"])
STEPS = st.one_of(
    st.tuples(st.just("add"), NUMBERS),
    st.tuples(st.just("write"), PATHS, st.lists(NUMBERS, max_size=4)),
    st.tuples(st.just("remove"), st.lists(PATHS, max_size=2, unique=True)),
    st.tuples(st.just("reset")),
    st.tuples(st.just("prune"), st.integers(0, 5)),
)
USED_TWICE = [("write", "memory/a.md", [0]), ("reset",)] * 2


class Model:
    """What pruning promises, in plain Python: `used` says when each vector was last used, or added, in that order."""

    def __init__(self):
        self.now = 0
        self.used = {}
        self.files = {}

    def in_use(self):
        return {number for numbers in self.files.values() for number in numbers}

    def step(self, kind, *values):
        self.now += 1
        before = self.in_use()
        if kind == "add":
            self.used.setdefault(values[0], (self.now, self.now))
        elif kind == "write":
            self.files[values[0]] = [number for number in values[1] if number in self.used]
        elif kind == "remove":
            self.files = {path: numbers for path, numbers in self.files.items() if path not in values[0]}
        elif kind == "reset":
            self.files = {}
        elif kind == "prune":
            idle = sorted((when, number) for number, when in self.used.items() if number not in before)
            for _, number in idle[: max(0, len(self.used) - values[0])]:
                del self.used[number]
        for number in before - self.in_use():
            self.used[number] = (self.now, self.used[number][1])


def apply(store, build, model, kind, *values):
    """The same step in a store."""
    if kind == "add":
        store.add_vectors([build.key(values[0])], build.units(1, seed=values[0]))
    elif kind == "write":
        rows = [build.row(number) for number in values[1] if number in model.used]
        store.replace_files([(build.record(values[0]), rows)])
    elif kind == "remove":
        store.remove_files(values[0])
    elif kind == "reset":
        store.begin_build(build.META).publish()
    elif kind == "prune":
        store.prune(values[0])


@settings(max_examples=25, deadline=None)
@example(steps=[("add", 0), ("add", 1), *USED_TWICE[:2], ("write", "memory/a.md", [1]), ("reset",), *USED_TWICE])
@example(steps=[("add", 0), *USED_TWICE, ("add", 1)])
@example(steps=[("add", 0), *USED_TWICE, ("reset",), ("add", 1)])
@given(steps=st.lists(STEPS, max_size=30))
def test_pruning_takes_what_went_unused_longest_whatever_came_before(tmp_path_factory, build, steps):
    store = SqliteStore.open(tmp_path_factory.mktemp("prune") / "index.sqlite")
    store.begin_build(build.META).publish()
    model = Model()
    for step in [*steps, *(("prune", limit) for limit in range(5, -1, -1))]:
        apply(store, build, model, *step)
        model.step(*step)
        left = store.known_vectors(build.key(number) for number in range(5))
        assert left == {build.key(number) for number in model.used}, step
    store.close()


def test_reading_writes_nothing(store, path, build):
    vectors = build.units(20)
    build.fill(store, vectors)
    store.prune(20)
    watcher = apsw.Connection(str(path))
    before = watcher.execute("PRAGMA data_version").fetchall()
    store.known_vectors([build.key(3), build.key("other")])
    store.known_vectors([build.key(3)], "check/other")
    store.search_vector(vectors[3], 5)
    store.search_text(["all"], 5)
    store.vectors([1, 2])
    store.prune(20)
    assert watcher.execute("PRAGMA data_version").fetchall() == before
    store.remove_files(["memory/0.md"])
    assert watcher.execute("PRAGMA data_version").fetchall() != before
    watcher.close()


def test_within_its_limit_pruning_waits_for_no_writer(path, monkeypatch, build):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 50)
    store = SqliteStore.open(path)
    build.fill(store, build.units(20))
    store.prune(20)
    db = apsw.Connection(str(path))
    db.execute("BEGIN IMMEDIATE")
    assert store.prune(20) == 0
    with pytest.raises(IndexLockedError):
        store.prune(19)
    db.close()
    store.close()


def test_a_vector_that_a_file_keeps_is_not_written_down_as_unused(store, path, build):
    build.fill(store, build.units(20), per_file=20)
    rows = [build.row(number) for number in range(19)]
    store.replace_files([(build.record("memory/0.md"), rows)])
    db = apsw.Connection(str(path))
    assert db.execute("SELECT vector_id FROM last_used").fetchall() == [(20,)]
    db.close()


def test_pruning_forgets_models_without_vectors_but_never_the_current_one(store, path, build):
    store.add_vectors([build.key(1)], build.units(1), "check/old")
    store.add_vectors([build.key(1)], build.units(1), "check/kept")
    store.begin_build(build.META).publish()
    store.replace_files([(build.record("memory/0.md"), [build.row(1, with_vector=False)])])
    assert store.prune(1) == 1
    db = apsw.Connection(str(path))
    assert db.execute("SELECT identity FROM models ORDER BY id").fetchall() == [("check/kept",), ("check/model",)]
    db.close()


def test_what_was_pruned_leaves_nothing_behind_and_can_be_added_again(store, path, build):
    vectors = build.units(20)
    build.fill(store, vectors, per_file=20)
    store.remove_files(["memory/0.md"])
    assert store.prune(0) == 20
    assert store.describe().vectors == 0
    db = apsw.Connection(str(path))
    assert db.execute("SELECT count(*) FROM last_used").fetchall() == [(0,)]
    db.close()
    build.fill(store, vectors, per_file=20)
    best = store.search_vector(vectors[4], 1)[0]
    assert store.chunks([best.chunk_id])[0].chunk == build.row(4).chunk


def test_a_vector_without_direction_may_go_and_its_chunk_stays(store, build):
    store.begin_build(build.META).publish()
    store.add_vectors([build.key(1)], build.units(1) * 0)
    rows = [ChunkRow(Chunk(1, 1, 0, "text"), "term", "", build.key(1))]
    store.replace_files([(build.record("memory/0.md"), rows)])
    assert store.prune(0) == 1
    assert len(store.search_text(["term"], 5)) == 1


def test_dimensions_that_do_not_fit_name_both_numbers_and_the_identity(store, build):
    store.add_vectors([build.key(1)], build.units(1, dims=8), "check/next")
    with pytest.raises(EmbedderError, match=r"have 16 dimensions, .* some of 8 .* 'check/next'; name the dimensions"):
        store.add_vectors([build.key(2)], build.units(1, dims=16), "check/next")


def test_meta_learns_the_dimensions_of_its_own_vectors_alone(store, build):
    store.begin_build(build.META).publish()
    store.add_vectors([build.key(1)], build.units(1, dims=8), "check/next")
    assert store.meta().dims is None
    store.add_vectors([build.key(1)], build.units(1, dims=16), build.META.identity)
    assert store.meta().dims == 16
