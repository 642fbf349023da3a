"""Filters of chunks: what they are asked about, and in which files."""

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory.store import SqliteStore
from openclaw_memory.types import HitRequest
from openclaw_memory.types.conditions import FileRange

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-2, 2)
FIELDS = st.sampled_from(["a", "b", 'q"uote', "b\\s", "ä.b", "$", ""]) | TEXT
METADATA = st.dictionaries(FIELDS, TEXT | NUMBER | st.booleans(), max_size=4)


@settings(max_examples=10)
@given(st.lists(METADATA, min_size=1, max_size=6))
def test_a_filter_is_asked_about_each_chunk_with_its_metadata_as_they_were_written(build, held):
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder, "index.sqlite"))
        vectors = build.units(len(held))
        store.begin_build(build.META).publish()
        store.add_vectors([build.key(at) for at in range(len(held))], vectors)
        rows = [build.row(at) for at in range(len(held))]
        rows = [replace(row, chunk=replace(row.chunk, metadata=one)) for row, one in zip(rows, held, strict=True)]
        store.replace_files([(build.record("memory/a.md"), rows)])
        assert [dict(stored.chunk.metadata) for stored in store.get_chunks(range(9))] == held
        for wanted in held:
            right = {at for at, one in enumerate(held, 1) if one == wanted}
            where = partial(is_equal, wanted)
            assert {hit.chunk_id for hit in store.search_text(["term"], 9, where=where)} == right, where
            assert {hit.chunk_id for hit in store.search_vector(vectors[0], 9, where=where)} == right, where
            (hits,) = store.find_hits(HitRequest(["term"], vectors[0], where=where)).by_source
            assert set(hits.cosines) == right
        assert store.verify() == ()
        store.close()


def is_equal(wanted, path, metadata):
    return path == "memory/a.md" and metadata == wanted


RANGES = [
    FileRange("path", "memory/notes/own/", is_prefix=True),
    FileRange("path", "memory/notes/own/1.md"),
    FileRange("doc_id", "\x1fown\x1f", is_prefix=True),
    FileRange("doc_id", "\x1fown\x1f1"),
    FileRange("part_of", "whole 1"),
]


@pytest.fixture
def many(build, tmp_path):
    """A store with a chunk in each of many documents, three of which are in the collection `own`."""
    store = SqliteStore.open(tmp_path / "index.sqlite")
    store.begin_build(build.META).publish()
    store.add_vectors([build.key(0)], build.units(1))
    names = [*(("own", at) for at in range(3)), *(("others", at) for at in range(300))]
    records = [
        replace(build.record(f"memory/notes/{name}/{at}.md"), doc_id=f"\x1f{name}\x1f{at}", part_of=f"whole {at}")
        for name, at in names
    ]
    store.replace_files([(record, [build.row(0)]) for record in records])
    yield store
    store.close()


class Counting:
    """A test of chunks that notes which ones it is asked about."""

    def __init__(self, *files):
        self.files, self.asked = files, []

    def __call__(self, path, _metadata):
        self.asked.append(path)
        return True


@pytest.mark.parametrize("one", RANGES, ids=str)
@pytest.mark.sampled(3)
def test_of_a_filter_with_ranges_only_the_chunks_in_them_are_looked_at_and_once(many, one):
    wanted = [
        record.path
        for record in many.get_files().values()
        if (value := getattr(record, one.column)) == one.text or (one.is_prefix and value.startswith(one.text))
    ]
    test = Counting(one)
    for _ in range(5):  # from the fourth search on the index is kept in memory
        hits = many.find_hits(HitRequest(["term"], None, where=test, memory_bytes=1 << 30))
        assert len(hits.by_source[0].text) == len(wanted)
    assert set(test.asked) == set(wanted)
    assert len(test.asked) <= 2 * len(wanted) * 5


def test_ranges_are_joined_and_one_that_holds_nothing_finds_nothing(many):
    ranges = [FileRange("path", f"memory/notes/others/{at}.md") for at in range(40)]
    ranges += [FileRange("doc_id", "\x1fown\x1f", is_prefix=True), FileRange("part_of", "none")]
    assert len(many.search_text(["term"], 999, where=Counting(*ranges))) == 43
    for text in ("/", "\ud800", chr(0x10FFFF)):
        for is_prefix in (False, True):
            assert many.search_text(["term"], 999, where=Counting(FileRange("path", text, is_prefix))) == []
