"""What a process keeps of an index in memory answers as the index does, whatever is written meanwhile, and by whom."""

import random
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace

from openclaw_memory.store import SqliteStore, integrity, resident, sqlite
from openclaw_memory.types import Chunk, ChunkRow, HitRequest

WORDS = [f"w{number}" for number in range(30)]
MEMORY = 64 << 20
VECTORS = 200  # different ones
QUERIES = np.random.default_rng(3).normal(size=(6, 32)).astype(np.float32)
QUERIES /= np.linalg.norm(QUERIES, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def from_the_first_search_on(monkeypatch):
    monkeypatch.setattr(sqlite, "SEARCHES_BEFORE", 0)


@pytest.fixture
def filled(store, build):
    build.fill(store, build.units(300))
    return store


def request(terms=("all", "n7"), vector=None, memory=MEMORY, **more):
    return HitRequest(
        terms, vector, text_hits=20, vector_hits=20, all_cosines=True, counted=terms, memory_bytes=memory, **more
    )


def is_kept(store):
    resident = store._residency.resident
    return bool(resident and resident.chunk_count)


def assert_same(one, other):
    assert (one.frequencies, one.chunk_count) == (other.frequencies, other.chunk_count)
    for mine, theirs in zip(one.by_source, other.by_source, strict=True):
        assert mine.text == pytest.approx(theirs.text, abs=1e-6)
        assert mine.cosines == pytest.approx(theirs.cosines, abs=1e-6)
        assert list(mine.text.values()) == sorted(mine.text.values(), reverse=True)
        assert (mine.vector is None) == (theirs.vector is None)
        assert mine.vector is None or mine.vector == pytest.approx(theirs.vector, abs=1e-6)


def assert_answers_are_those_of_the_tables(kept, rng, count):
    with closing(SqliteStore.open(kept.path)) as fresh:
        for _ in range(count):
            terms = tuple(rng.sample([*WORDS, "term", "context", "unknown"], 4))
            asked = request(terms, QUERIES[rng.randrange(len(QUERIES))], source=rng.choice([None, "memory"]))
            assert_same(kept.find_hits(asked), fresh.find_hits(replace(asked, memory_bytes=0)))


class Writer:
    """Writes random changes through a store of its own."""

    def __init__(self, path, build, rng):
        self.store, self.build, self.rng = SqliteStore.open(path), build, rng
        self.texts: dict[str, list[str]] = {}

    def begin(self):
        self.store.begin_build(self.build.META).publish()
        self.texts = {}
        self.add_vectors()
        for _ in range(12):
            self.add()

    def add_vectors(self):
        self.store.add_vectors([self.build.key(number) for number in range(VECTORS)], self.build.units(VECTORS))

    def rows(self, count, first_line=1):
        made = []
        for line in range(first_line, first_line + count):
            terms = " ".join(self.rng.choices([*WORDS, "term"], k=self.rng.choice([1, 5, 150])))
            key = self.build.key(self.rng.randrange(VECTORS)) if self.rng.random() < 0.9 else None
            context = " ".join(self.rng.choices(["context", *WORDS[:3]], k=self.rng.randrange(3)))
            made.append(ChunkRow(Chunk(line, line, 0, f"text {self.rng.random()}"), terms, context, key))
        return made

    def add(self):
        folder = self.rng.choice(["memory", "memory", "sessions"])
        path = f"{folder}/{self.rng.randrange(10_000)}.md"
        self.texts[path] = self.rows(self.rng.randint(1, 12))
        self.store.replace_files([(self.build.record(path, folder), self.texts[path])])

    def edit(self):
        path = self.rng.choice(list(self.texts))
        self.texts[path] = self.rows(self.rng.randint(0, 6))
        self.store.replace_files([(self.build.record(path, path.split("/")[0]), self.texts[path])])

    def append(self):
        """Add rows to a file, and give the last one that stays other terms."""
        path = self.rng.choice(list(self.texts))
        rows = self.texts[path]
        kept = [replace(one, terms=f"{one.terms} w1 renewed") for one in rows[-1:]]
        new = [*kept, *self.rows(2, len(rows) + 1)]
        self.texts[path] = [*rows[:-1], *new]
        self.store.extend_file(self.build.record(path, path.split("/")[0]), new, max(1, len(rows)))

    def delete(self):
        path = self.rng.choice(list(self.texts))
        del self.texts[path]
        self.store.remove_files([path])

    def delete_all(self):
        self.store.remove_files(list(self.texts))
        self.texts = {}

    def rebuild(self):
        built = self.store.begin_build(self.build.META)
        files = [(self.build.record(path, path.split("/")[0]), rows) for path, rows in self.texts.items()]
        built.store.replace_files(files[: len(files) // 2 + 1])
        self.texts = {record.path: rows for record, rows in files[: len(files) // 2 + 1]}
        built.publish()

    def prune(self):
        self.store.prune(keep_unused=True)

    def step(self):
        work = [self.add, self.add, self.edit, self.append, self.append, self.delete, self.prune]
        if self.rng.random() < 0.2:
            work += [self.rebuild, self.delete_all]
        self.rng.choice(work if self.texts else [self.add, self.prune])()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(1)
def test_answers_follow_what_this_store_and_another_append_edit_delete_and_rebuild(path, build, seed):
    rng = random.Random(seed)
    writer = Writer(path, build, rng)
    writer.begin()
    with closing(SqliteStore.open(path)) as kept, closing(writer.store) as other:
        for _ in range(40):
            writer.store = rng.choice([kept, other])
            writer.step()
            if rng.random() < 0.7:
                assert_answers_are_those_of_the_tables(kept, rng, 2)
                assert is_kept(kept) or not any(writer.texts.values())


def test_answers_are_the_same_where_little_is_kept_and_much_is_forgotten(path, build, monkeypatch):
    monkeypatch.setattr(integrity, "EXACT_BYTES", 30 * 4 * 32)
    monkeypatch.setattr(integrity, "MAX_CHUNKS", 10)
    monkeypatch.setattr(integrity, "POSTING_BYTES", 1)
    monkeypatch.setattr(resident, "PAGE_ROWS", 7)
    writer = Writer(path, build, random.Random(5))
    writer.begin()
    with closing(SqliteStore.open(path)) as kept:
        for _ in range(5):
            writer.step()
            assert_answers_are_those_of_the_tables(kept, random.Random(1), 8)
    writer.store.close()


@pytest.mark.parametrize("source", [None, "memory"])
def test_an_index_that_does_not_fit_is_read_from_the_file_with_the_same_answers(filled, source):
    asked = request(vector=QUERIES[0], source=source)
    needed = filled.describe().memory_bytes
    for memory, fits in ((0, False), (1, False), (needed - 1, False), (needed, True)):
        with closing(SqliteStore.open(filled.path)) as other:
            assert_same(other.find_hits(replace(asked, memory_bytes=memory)), filled.find_hits(asked))
            assert is_kept(other) is fits


def test_what_is_kept_takes_no_more_than_was_reckoned(path, build, monkeypatch):
    monkeypatch.setattr(integrity, "MAX_CHUNKS", 100)
    writer = Writer(path, build, random.Random(2))
    writer.begin()
    with closing(writer.store):
        for step in range(30):
            writer.add()
            writer.store.find_hits(request(tuple(writer.rng.sample(WORDS, 6)), QUERIES[step % 6]))
            assert writer.store._residency.resident._count_bytes() <= writer.store.describe().memory_bytes


def test_of_several_indexes_the_one_used_longest_ago_makes_room(tmp_path, build):
    stores = [SqliteStore.open(tmp_path / str(at) / "index.sqlite") for at in range(3)]
    memory = 0
    for store in stores:
        build.fill(store, build.units(300))
        store.find_hits(request(memory=memory or store.describe().memory_bytes))
        memory = memory or store.describe().memory_bytes + store._residency.resident._count_bytes() * 3 // 2
    assert [is_kept(store) for store in stores] == [False, True, True]
    for store in stores:
        store.close()


def test_without_sqlite_vec_what_is_kept_answers_too(path, build):
    with closing(SqliteStore.open(path, vector_extension=False)) as store:
        build.fill(store, build.units(300))
        asked = request(vector=QUERIES[0])
        assert_same(store.find_hits(asked), store.find_hits(replace(asked, memory_bytes=0)))
        assert is_kept(store)
