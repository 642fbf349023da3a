"""A file that grows in the index: what is there already stays, and what comes after it is replaced."""

from dataclasses import replace

import pytest

from openclaw_memory.types import CandidateRequest

PATH = "sessions/talk.jsonl"


@pytest.fixture
def grown(store, build):
    """A store with a transcript of ten chunks, one a line from 1 to 10, and a note that came after it."""
    store.begin_build(build.META).publish()
    store.add_vectors([build.key(number) for number in range(1, 31)], build.units(30))
    talk = build.record(PATH, "sessions")
    store.replace_files([(talk, [build.row(number) for number in range(1, 11)])])
    store.replace_files([(build.record("MEMORY.md"), [build.row(1)])])
    return store


def ids(store):
    return [stored.id for stored in store.file_chunks(PATH)]


def lines(store):
    return [stored.chunk.start_line for stored in store.file_chunks(PATH)]


@pytest.mark.parametrize(
    ("from_line", "numbers", "kept", "left"),
    [
        (11, [11, 12], 10, [*range(1, 13)]),
        (6, [6, 7, 8, 9, 10, 11], 10, [*range(1, 12)]),
        (6, [6, 7, 9], 7, [1, 2, 3, 4, 5, 6, 7, 9]),
        (6, [12], 5, [1, 2, 3, 4, 5, 12]),
        (6, [], 5, [1, 2, 3, 4, 5]),
        (1, [*range(1, 11)], 10, [*range(1, 11)]),
        (1, [], 0, []),
    ],
    ids=["after all", "the same and more", "the same and others", "others", "fewer", "all the same", "none"],
)
def test_chunks_that_are_there_already_keep_their_ids(grown, build, from_line, numbers, kept, left):
    before, used = ids(grown), 11
    grown.extend_file(build.record(PATH, "sessions"), [build.row(number) for number in numbers], from_line)
    after = ids(grown)
    assert lines(grown) == left
    assert after[:kept] == before[:kept]
    assert all(chunk_id > used for chunk_id in after[kept:])
    near = grown.search_vector(build.units(30)[0], 100, source="sessions")
    assert sorted(hit.chunk_id for hit in near) == after
    assert sorted(hit.chunk_id for hit in grown.search_text(["term"], 100, source="sessions")) == after
    assert grown.verify() == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda row: replace(row, vector_key=None),
        lambda row: replace(row, chunk=replace(row.chunk, text="other")),
        lambda row: replace(row, chunk=replace(row.chunk, context="2026-11-21")),
        lambda row: replace(row, chunk=replace(row.chunk, start_char=7)),
    ],
    ids=["vector", "text", "context", "offset"],
)
def test_a_chunk_that_differs_in_anything_is_replaced_with_all_after_it(grown, build, change):
    before = ids(grown)
    rows = [build.row(6), change(build.row(7)), build.row(8)]
    grown.extend_file(build.record(PATH, "sessions"), rows, 6)
    assert ids(grown)[:6] == before[:6]
    assert not set(ids(grown)[6:]) & set(before)
    assert [stored.chunk for stored in grown.file_chunks(PATH)][5:] == [row.chunk for row in rows]


def test_the_terms_of_a_chunk_that_stays_may_change(grown, build):
    before = ids(grown)
    grown.extend_file(build.record(PATH, "sessions"), [replace(build.row(10), context_terms="2026-11-21")], 10)
    assert [hit.chunk_id for hit in grown.search_text(["2026-11-21"], 9)] == before[-1:]
    assert ids(grown) == before
    found = grown.candidates(CandidateRequest(["term"], counted=["2026-11-21", "term"]))
    assert dict(found.frequencies) == {"2026-11-21": 1, "term": 11}
