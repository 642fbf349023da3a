"""The contract of a store, as a check."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openclaw_memory.testing import _keeping
from openclaw_memory.testing._rows import (
    filled,
    ids_of,
    made_key,
    made_meta,
    made_record,
    made_row,
    made_vectors,
    refuses,
)
from openclaw_memory.types import SOURCES, Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from openclaw_memory.types import Matrix


def check_store(open_store: Callable[[], Store]) -> None:
    """Check that a store keeps the contract of `types.Store`.

    `open_store` is called for each check and gives a new, empty store each time; each is closed here.

    Raises:
        AssertionError: it does not; the message says in what.
    """
    for check in _CHECKS:
        store = open_store()
        try:
            assert isinstance(store, Store), f"{store!r} lacks a method of the Store protocol"
            check(store)
        finally:
            store.close()
            store.close()


def _check_empty(store: Store) -> None:
    vector, key = made_vectors(1)[0], made_key(0)
    assert store.meta() is None, "a new store must have no meta"
    assert (dict(store.files()), store.chunk_count()) == ({}, 0), "a new store must have no files and no chunks"
    found = (store.search_text(["word"], 5), store.search_vector(vector, 5), dict(store.similarities(vector, [1])))
    assert found == ([], [], {}), f"an empty store must find nothing, not {found}"
    assert store.known_vectors([key]) == set(), "an empty store knows no vectors"
    assert store.remove_files(["memory/none.md"]) == 0, "removing an unknown file must count 0"
    assert dict(store.document_frequencies(["word"])) == {"word": 0}, "an unknown term occurs in 0 chunks"
    assert store.stats().chunks == 0, "stats of a new store must count no chunks"


def _check_meta(store: Store) -> None:
    store.reset(made_meta())
    stored = store.meta()
    assert stored is not None, "meta must be remembered by reset"
    assert dict(stored.chunking) == dict(made_meta().chunking), f"chunking came back as {stored.chunking}"
    assert replace(stored, chunking={}) == replace(made_meta(), chunking={}), f"meta came back as {stored}"
    store.reset(replace(made_meta(), building="b"))
    for build, left in (("a", "b"), ("b", None)):
        store.finish(build)
        assert getattr(store.meta(), "building", "") == left, f"after build b and finish({build!r}): building {left!r}"
    filled(store)
    store.reset(made_meta())
    assert store.chunk_count() == 0, "reset must forget all chunks"
    assert dict(store.files()) == {}, "reset must forget all files"
    assert store.search_text(["every"], 5) == [], "reset must forget all terms"
    assert store.search_vector(made_vectors(1)[0], 5) == [], "after reset no chunk has a vector"
    assert store.known_vectors([made_key(0)]) == {made_key(0)}, "reset must keep the vectors: they are a cache"


def _check_files(store: Store) -> None:
    filled(store)
    assert store.problems() == (), "a store that was just filled must be sound"
    assert sorted(store.paths()) == sorted(store.files()), "paths must name every file"
    files = store.files()
    record = made_record("memory/0.md", content="0")
    assert len(files) == 4, f"4 files were added, {len(files)} are listed"
    assert [store.holds(source) for source in SOURCES] == [True, True], "holds must tell of both sources"
    store.remove_files(path for path in files if path.startswith("sessions/"))
    assert [store.holds(source) for source in SOURCES] == [True, False], "holds must tell when a source is gone"
    filled(store)
    assert files["memory/0.md"] == record, f"a record came back as {files['memory/0.md']}"
    for lacks in ("the service was down", None):
        touched = replace(record, mtime_ns=1, checked_ns=2, lacks=lacks)
        store.touch_files([touched, made_record("memory/unknown.md")])
        assert store.files()["memory/0.md"] == touched, "touch_files must update the stamps and what a file lacks"
    without = replace(made_record("memory/without.md"), lacks="the service was down")
    store.replace_files([(without, [made_row(1, "keyless")])])
    assert store.files()["memory/without.md"] == without, "replace_files must keep what a file lacks"
    assert dict(store.lacking()) == {"the service was down": 1}, f"lacking must count by reason, not {store.lacking()}"
    assert store.remove_files(["memory/without.md"]) == 1, "a file that lacks vectors is removed as any other"
    assert "memory/unknown.md" not in store.files(), "touch_files must not add files"
    assert len(ids_of(store, "memory/0.md")) == 5, "touch_files must keep the chunks"
    assert store.remove_files(["memory/0.md", "memory/unknown.md"]) == 1, "remove_files must count the files there were"
    assert store.chunk_count() == 15, "the chunks of a removed file must go"
    assert store.search_text(["file0"], 5) == [], "the terms of a removed file must go"
    assert len(store.search_vector(made_vectors(1)[0], 100)) == 15, "the vectors of a removed file must not be found"


def _check_replace(store: Store) -> None:
    vectors = filled(store)
    before = ids_of(store, "memory/0.md")
    rows = [made_row(1, "every fresh", key=made_key(19)), made_row(2, "every keyless")]
    store.replace_files([(made_record("memory/0.md", content="new"), rows)])
    assert store.chunk_count() == 17, f"2 chunks must take the place of 5: 17, not {store.chunk_count()}"
    assert store.search_text(["file0"], 5) == [], "the old terms of a replaced file must go"
    ids = ids_of(store, "memory/0.md")
    found = [stored.chunk for stored in store.chunks(ids)]
    assert found == [row.chunk for row in rows], f"the new chunks came back as {found}"
    likeness = store.similarities(vectors[19], ids)
    assert set(likeness) == {ids[0]}, f"a chunk without a vector must be left out of similarities: {dict(likeness)}"
    assert set(store.vectors(ids)) == {ids[0]}, f"a chunk without a vector must be left out: {store.vectors(ids)}"
    nearest = store.search_vector(vectors[19], 2)
    assert all(hit.score > 0.999 for hit in nearest), f"two chunks share one vector, both must be found: {nearest}"
    stale = set(before) & {hit.chunk_id for hit in store.search_vector(vectors[0], 100)} - set(ids)
    assert not stale, f"the vector search still finds the replaced chunks {stale}"


def _check_refusals(store: Store) -> None:
    filled(store)
    good = (made_record("memory/good.md"), [made_row(1, "good")])
    bad = (made_record("memory/0.md"), [made_row(1, "bad", key=made_key("bad"))])
    assert refuses(lambda: store.replace_files([good, bad])), "a vector_key that was never added must raise StoreError"
    assert "memory/good.md" not in store.files(), "a failed replace_files must change nothing"
    assert len(ids_of(store, "memory/0.md")) == 5, "a failed replace_files must keep the old rows"
    nan = made_vectors(1) * float("nan")
    cases = [(nan, "NaN"), (made_vectors(1, dims=3), "other dimensions"), (made_vectors(2), "a row more")]
    for matrix, what in cases:
        assert refuses(partial(store.add_vectors, [made_key("bad")], matrix)), f"add_vectors must refuse {what}"
        assert store.known_vectors([made_key("bad")]) == set(), f"vectors with {what} must not be stored"


def _check_chunks(store: Store) -> None:
    filled(store)
    ids = [chunk_id for path in store.files() for chunk_id in ids_of(store, path)]
    assert store.chunks_of("memory/unknown.md") == [], "an unknown file has no chunks"
    for path in store.files():
        assert [found.id for found in store.chunks_of(path)] == ids_of(store, path), "chunks_of must keep their order"
        own = ids_of(store, path)
        assert own == list(range(own[0], own[0] + 5)), f"ids of one file must be consecutive, not {own}"
    stored = store.chunks([*reversed(ids), max(ids) + 1000, ids[0]])
    assert [chunk.id for chunk in stored] == sorted(ids), "chunks must come once each, by id, the unknown left out"
    first = stored[0]
    assert (first.path, first.source) == ("memory/0.md", "memory"), f"a chunk came back as {first}"
    assert first.chunk == made_row(1, "every file0 n0").chunk, f"a chunk came back as {first.chunk}"
    assert store.chunks([]) == [], "no ids must give no chunks"


def _check_text(store: Store) -> None:
    filled(store)
    assert [hit.score > 0 for hit in store.search_text(["n7"], 5)] == [True], "a text score must be above 0"
    best = store.chunks([store.search_text(["every", "n7"], 1)[0].chunk_id])[0]
    assert best.chunk.text.endswith("n7"), f"the rarer term must decide: {best.chunk.text!r} came first"
    assert len(store.search_text(["n1", "n2", "none"], 9)) == 2, "match='any' must take chunks with any of the terms"
    assert len(store.search_text(["file1", "n7"], 9, match="all")) == 1, "match='all' must take chunks with all terms"
    assert store.search_text(["n1", "n2"], 9, match="all") == [], "match='all' must want all terms"
    scores = [hit.score for hit in store.search_text(["file1", "n7", "n9"], 9)]
    assert scores == sorted(scores, reverse=True), f"hits must come best first: {scores}"
    assert len(store.search_text(["every"], 3)) == 3, "k must bound the hits"
    assert store.search_text(["every"], 0) == [], "k=0 must find nothing"
    assert store.search_text([], 5) == [], "no terms must find nothing"
    counts = dict(store.document_frequencies(["every", "file1", "n3", "none"]))
    assert counts == {"every": 20, "file1": 5, "n3": 1, "none": 0}, f"document frequencies are {counts}"


def _check_terms(store: Store) -> None:
    store.reset(made_meta())
    terms = [
        "geo-1000",
        "snake_case",
        "c++",
        "a.b/c",
        "数据",
        "ça",
        "it's",
        "#tag",
        "x=1",
        "[1]",
        "a:b",
        "(p)",
        "q*",
        "^r",
    ]
    rows = [made_row(at, term) for at, term in enumerate(terms, start=1)]
    context = made_row(len(rows) + 1, "other", context_terms="heading")
    store.replace_files([(made_record("memory/terms.md"), [*rows, context])])
    for at, term in enumerate(terms, start=1):
        lines = [found.chunk.start_line for found in store.chunks(hit.chunk_id for hit in store.search_text([term], 9))]
        assert lines == [at], f"the term {term!r} of line {at} was found in lines {lines}"
    assert len(store.search_text(["heading"], 9)) == 1, "terms of the context must be found"
    for term in _HOSTILE_TERMS:
        assert store.search_text([term], 9) == [], f"the term {term!r} must be taken as text and match nothing"
    assert store.search_text(["other", *_HOSTILE_TERMS], 9), "hostile terms must not keep others from matching"


def _check_cosine(store: Store) -> None:
    vectors = filled(store)
    query = made_vectors(1, seed=1)[0]
    exact = vectors @ query
    ids = sorted(hit.chunk_id for hit in store.search_vector(query, 100))
    assert len(ids) == 20, f"20 chunks have vectors, {len(ids)} were found"
    expected = {ids[number]: float(exact[number]) for number in range(20)}
    hits = store.search_vector(query, 6)
    wanted = sorted(expected, key=lambda chunk_id: -expected[chunk_id])[:6]
    assert [hit.chunk_id for hit in hits] == wanted, "the vector search must find the nearest chunks, nearest first"
    likeness = store.similarities(query, [*ids[:3], ids[0], max(ids) + 1000])
    assert set(likeness) == set(ids[:3]), f"similarities must name the known ids alone: {dict(likeness)}"
    own = store.vectors([*ids[:3], ids[0], max(ids) + 1000])
    assert set(own) == set(ids[:3]), f"vectors must name the known ids alone: {sorted(own)}"
    assert all(abs(float(own[at] @ query) - expected[at]) < 1e-5 for at in own), "vectors must be those of the chunks"
    for chunk_id, score in [*((hit.chunk_id, hit.score) for hit in hits), *likeness.items()]:
        assert abs(score - expected[chunk_id]) < 1e-5, f"a score must be the cosine {expected[chunk_id]}, not {score}"
    assert store.search_vector(query, 0) == [], "k=0 must find nothing"


def _check_sources(store: Store) -> None:
    vectors = filled(store)
    for source in SOURCES:
        for hits in (
            store.search_text(["every"], 100, source=source),
            store.search_vector(vectors[0], 100, source=source),
        ):
            assert len(hits) == 10, f"10 chunks come from {source}, {len(hits)} were found"
            found = {chunk.source for chunk in store.chunks(hit.chunk_id for hit in hits)}
            assert found == {source}, f"source={source!r} found chunks of {found}"
    counted = store.stats()
    assert dict(counted.sources) == {"memory": (2, 10), "sessions": (2, 10)}, f"sources count {counted.sources}"
    assert (counted.files, counted.chunks, counted.vectors) == (4, 20, 20), f"stats count {counted}"
    store.remove_files(path for path in store.files() if path.startswith("sessions/"))
    assert len(store.search_text(["every"], 100, source="memory")) == 10, "the one source left must be found by name"
    assert store.search_text(["every"], 100, source="sessions") == [], "a source without files must find nothing"


def _check_threads(store: Store) -> None:
    """Two readers beside a writer: each search sees a file's old chunks or its new ones, never a mixture."""
    from concurrent.futures import ThreadPoolExecutor

    vectors = filled(store)
    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(_rewrite, store, 20)
        readers = [pool.submit(_read_while, store, vectors, writer) for _ in range(2)]
        writer.result()
        seen = [reader.result() for reader in readers]
    assert all(counts <= {5} for counts in seen), f"a search saw {seen} chunks of a file that always has 5"


def _rewrite(store: Store, times: int) -> None:
    rows = [made_row(1 + at, f"every file0 n{at}", key=made_key(at)) for at in range(5)]
    for turn in range(times):
        store.replace_files([(made_record("memory/0.md", content=f"turn {turn}"), rows)])


def _read_while(store: Store, vectors: Matrix, writer: Future[None]) -> set[int]:
    counts = set()
    while True:
        last_look = writer.done()
        counts.add(len(store.search_text(["file0"], 100)))
        assert len(store.search_vector(vectors[0], 100)) == 20, "a search beside a writer lost chunks"
        if last_look:
            return counts


# What SQLite's full-text syntax, SQL, UTF-8 or C strings would stumble over.
_HOSTILE_TERMS = ('"', "'", "*", "AND", "OR NOT", "terms:x", "a\x00b", "\ud800", "-", "(", "x" * 5000)
_CHECKS: tuple[Callable[[Store], None], ...] = (
    *_keeping.CHECKS,
    _check_empty,
    _check_meta,
    _check_files,
    _check_replace,
    _check_refusals,
    _check_chunks,
    _check_text,
    _check_terms,
    _check_cosine,
    _check_sources,
    _check_threads,
)
