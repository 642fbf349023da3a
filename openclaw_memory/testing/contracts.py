"""The contracts of an embedder and of a store, as checks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from openclaw_memory.errors import EmbedderError, StoreError, SyncBusyError
from openclaw_memory.types import SOURCES, Chunk, ChunkRow, Embedder, FileRecord, HitRequest, IndexMeta, Store
from openclaw_memory.types.protocols import TokenEmbedder
from openclaw_memory.types.where import FileRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from openclaw_memory.types import Matrix, Source, Where
    from openclaw_memory.types.where import Scalar

SAMPLE_TEXTS = (
    "The database index is rebuilt every night at three.",
    "Caroline went to the pottery class on Thursday.",
    "Het recept vraagt om twee eieren en een kop bloem.",
)
ODD_TEXTS = ("", " \n\t", "🦄🎉", "a\x00b", "\ud800 lone surrogate", "ab " * 3334, "x" * 10_000)
# What keys of well-known services begin with, and what stands before one in a header.
SECRET = re.compile(r"(?:\bsk-|\bAIza|\bpa-|\bhf_|Bearer\s+)[\w-]{12,}")
_DIMS = 8

# What SQLite's full-text syntax, SQL, UTF-8 or C strings would stumble over.
_HOSTILE_TERMS = ('"', "'", "*", "AND", "OR NOT", "terms:x", "a\x00b", "\ud800", "-", "(", "x" * 5000)


def check_embedder(embedder: Embedder) -> None:
    """Check that an embedder keeps the contract of `types.Embedder`. About twenty texts are embedded.

    Vectors are float32 of one length for questions and documents alike, of unit length (a text without words may have
    the zero vector), the same for the same text in any company, and different for different texts.

    Args:
        embedder: The embedder.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    assert isinstance(embedder, Embedder), f"{embedder!r} lacks a name or a method of the Embedder protocol"
    _check_names(embedder)
    documents = embedder.embed_documents(list(SAMPLE_TEXTS))
    _check_rows(documents, SAMPLE_TEXTS)
    for text, row in zip(SAMPLE_TEXTS, documents, strict=True):
        query = embedder.embed_query(text)
        assert query.shape == row.shape, f"a question has shape {query.shape}, a document {row.shape}; they must agree"
        _check_rows(query[None], [text])
        alone, again = embedder.embed_documents([text])[0], embedder.embed_documents(list(SAMPLE_TEXTS))
        assert alone @ row > 0.999, f"{text!r} has another vector alone than in company"
        assert (again * documents).sum(axis=1).min() > 0.999, "the same texts had other vectors the second time"
        nearest = int((documents @ query).argmax())
        assert SAMPLE_TEXTS[nearest] == text, f"{text!r} as a question is nearer to {SAMPLE_TEXTS[nearest]!r}"
    likeness = documents @ documents.T
    assert likeness[0, 1] < 0.999, "different texts have the same vector"
    nothing = embedder.embed_documents([])
    assert nothing.ndim == 2, f"no texts must give shape (0, dims), not {nothing.shape}"
    assert len(nothing) == 0, f"no texts must give no vectors, not {len(nothing)}"
    odd = embedder.embed_documents(list(ODD_TEXTS))
    assert odd.shape == (len(ODD_TEXTS), documents.shape[1]), f"odd texts gave shape {odd.shape}"
    _check_rows(odd, ODD_TEXTS, may_be_zero=True)
    for text in ODD_TEXTS:
        _check_rows(embedder.embed_query(text)[None], [text], may_be_zero=True)
    if isinstance(embedder, TokenEmbedder):
        _check_token_vectors(embedder, documents)


def _check_token_vectors(embedder: TokenEmbedder, documents: Matrix) -> None:
    vectors, found = embedder.embed_document_tokens(list(SAMPLE_TEXTS))
    assert (vectors * documents).sum(axis=1).min() > 0.999, "embed_document_tokens must give the texts' vectors"
    assert len(found) == len(SAMPLE_TEXTS), f"{len(SAMPLE_TEXTS)} texts gave the tokens of {len(found)}"
    for text, document, tokens in zip(SAMPLE_TEXTS, documents, found, strict=True):
        query, asked = embedder.embed_query_tokens(text)
        assert query @ embedder.embed_query(text) > 0.999, "embed_query_tokens must give the vector of the query"
        assert query.shape == document.shape, f"a query has shape {query.shape}, a document {document.shape}"
        assert tokens is not None, f"{text!r} has no tokens"
        for rows, places in (tokens, asked):
            assert places.shape == (len(rows), 2), f"{len(rows)} tokens have places of shape {places.shape}"
            inside = (places >= 0).all() and (places <= len(text)).all() and (places[:, 0] <= places[:, 1]).all()
            assert inside, f"the places of tokens must lie in the text: {places.tolist()}"
            assert rows.shape[1] == tokens[0].shape[1], "tokens of queries and texts must have the same dims"
            assert (places[:, 0] < places[:, 1]).any(), f"no token of {text!r} has a place in it"
    assert not embedder.embed_document_tokens([])[1], "no texts must give no tokens"
    embedder.embed_document_tokens(list(ODD_TEXTS))


def _check_names(embedder: Embedder) -> None:
    for name in ("provider", "model", "identity"):
        value = getattr(embedder, name)
        assert isinstance(value, str), f"{name} must be a string, not {value!r}"
        assert value, f"{name} must not be empty"
        assert not SECRET.search(value), f"{name} holds what looks like a key; leave secrets out of it"
    leaves = embedder.leaves_machine
    assert isinstance(leaves, bool), f"leaves_machine must be True or False, not {leaves!r}"


def _check_rows(rows: Matrix, texts: Sequence[str], *, may_be_zero: bool = False) -> None:
    """Assert shape (len(texts), dims), float32, and rows of length 1 (or 0 where that is allowed)."""
    assert rows.ndim == 2, f"vectors must have shape (n, dims), not {rows.shape}"
    assert len(rows) == len(texts), f"{len(texts)} texts gave {len(rows)} vectors"
    assert rows.dtype == "float32", f"vectors must be float32, not {rows.dtype}"
    for text, length in zip(texts, (rows.astype("float64") ** 2).sum(axis=1) ** 0.5, strict=True):
        unit_or_zero = abs(length - 1) < 1e-3 or (may_be_zero and length == 0)
        assert unit_or_zero, f"{text[:40]!r} has a vector of length {length}; normalise it"


def check_store(open_store: Callable[[], Store]) -> None:
    """Check that a store keeps the contract of `types.Store`.

    Args:
        open_store: Called for each check; returns a new, empty store each time, which is closed here.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    for check in _CHECKS:
        store = open_store()
        try:
            assert isinstance(store, Store), f"{store!r} lacks a method of the Store protocol"
            check(store)
        finally:
            store.close()
            store.close()


def _check_store_empty(store: Store) -> None:
    vector, key = _made_vectors(1)[0], _made_key(0)
    assert store.meta() is None, "a new store must have no meta"
    assert (dict(store.files()), store.describe().chunks) == ({}, 0), "a new store must have no files and no chunks"
    found = (store.search_text(["word"], 5), store.search_vector(vector, 5), dict(store.vectors([1])))
    assert found == ([], [], {}), f"an empty store must find nothing, not {found}"
    assert store.known_vectors([key]) == set(), "an empty store knows no vectors"
    assert store.remove_files(["memory/none.md"]) == 0, "removing an unknown file must count 0"
    hits = store.find_hits(HitRequest(["word"], counted=["word"]))
    counts = (dict(hits.frequencies), hits.chunk_count)
    assert counts == ({"word": 0}, 0), f"an unknown term occurs in none of 0 chunks, not {counts}"


def _check_store_meta(store: Store) -> None:
    _rebuilt(store, _made_meta())
    stored = store.meta()
    assert stored is not None, "meta must be remembered by a build"
    assert dict(stored.chunking) == dict(_made_meta().chunking), f"chunking came back as {stored.chunking}"
    assert replace(stored, chunking={}) == replace(_made_meta(), chunking={}), f"meta came back as {stored}"
    _filled(store)
    _rebuilt(store, _made_meta())
    assert store.describe().chunks == 0, "a build must forget all chunks"
    assert dict(store.files()) == {}, "a build must forget all files"
    assert store.search_text(["every"], 5) == [], "a build must forget all terms"
    assert store.search_vector(_made_vectors(1)[0], 5) == [], "after a build no chunk has a vector"
    assert store.known_vectors([_made_key(0)]) == {_made_key(0)}, "a build must keep the vectors: they are a cache"


def _check_store_files(store: Store) -> None:
    _filled(store)
    assert store.verify() == (), "a store that was just _filled must be sound"
    files = store.files()
    record = _made_record("memory/0.md", content="0")
    assert len(files) == 4, f"4 files were added, {len(files)} are listed"
    assert files["memory/0.md"] == record, f"a record came back as {files['memory/0.md']}"
    for reason in ("the service was down", None):
        touched = replace(record, mtime_ns=1, checked_ns=2, ctime_ns=3, vectors_missing=reason)
        store.replace_files([(touched, None), (_made_record("memory/unknown.md"), None)])
        assert store.files()["memory/0.md"] == touched, "without rows, the record must be updated"
    without = replace(_made_record("memory/without.md"), vectors_missing="the service was down")
    store.replace_files([(without, [_made_row(1, "keyless")])])
    assert store.files()["memory/without.md"] == without, "replace_files must keep what a file lacks"
    documents = [replace(_made_record(f"memory/notes/{n}.md"), doc_id=f"d{n % 2}", part_of="whole") for n in range(3)]
    store.replace_files([(record, []) for record in documents])
    named = {record.path: record for record in documents}
    assert store.files(list(named)[:1]) == {documents[0].path: documents[0]}, "files must name the paths asked for"
    assert [*store.files(ids=["d0", "none"])] == [documents[0].path, documents[2].path], "files must be found by id"
    assert store.files(part_of="whole") == named, "files must be found by what they are a part of"
    assert [*store.files(id_prefix="d0")] == [documents[0].path, documents[2].path], "files must be found by a prefix"
    assert dict(store.files(id_prefix="d")) == named, "a prefix must find all ids that begin with it"
    assert (dict(store.files([])), dict(store.files(ids=[]))) == ({}, {}), "none is named: none must be returned"
    marked = replace(documents[0], left_out="0123abcd")
    store.replace_files([(marked, []), (replace(documents[1], left_out=None), [])])
    store.replace_files([(replace(marked, left_out=None), None)])
    assert store.files(["memory/notes/0.md"]) == {marked.path: marked}, "marks must stay until rows are replaced"
    assert store.remove_files(named) == 3, "documents are removed as any other file"
    assert store.remove_files(["memory/without.md"]) == 1, "a file that lacks vectors is removed as any other"
    assert "memory/unknown.md" not in store.files(), "without rows, no file must be added"
    assert len(_ids_of(store, "memory/0.md")) == 5, "without rows, the chunks must stay"
    assert store.remove_files(["memory/0.md", "memory/unknown.md"]) == 1, "remove_files must count the files there were"
    assert store.describe().chunks == 15, "the chunks of a removed file must go"
    assert store.search_text(["file0"], 5) == [], "the terms of a removed file must go"
    assert len(store.search_vector(_made_vectors(1)[0], 100)) == 15, "the vectors of a removed file must not be found"


def _check_store_replace(store: Store) -> None:
    vectors = _filled(store)
    before = _ids_of(store, "memory/0.md")
    rows = [_made_row(1, "every fresh", key=_made_key(19)), _made_row(2, "every keyless")]
    store.replace_files([(_made_record("memory/0.md", content="new"), rows)])
    assert store.describe().chunks == 17, f"2 chunks must take the place of 5: 17, not {store.describe().chunks}"
    assert store.search_text(["file0"], 5) == [], "the old terms of a replaced file must go"
    ids = _ids_of(store, "memory/0.md")
    found = [stored.chunk for stored in store.chunks(ids)]
    assert found == [row.chunk for row in rows], f"the new chunks came back as {found}"
    assert set(store.vectors(ids)) == {ids[0]}, f"a chunk without a vector must be left out: {store.vectors(ids)}"
    nearest = store.search_vector(vectors[19], 2)
    assert all(hit.score > 0.999 for hit in nearest), f"two chunks share one vector, both must be found: {nearest}"
    stale = set(before) & {hit.chunk_id for hit in store.search_vector(vectors[0], 100)} - set(ids)
    assert not stale, f"the vector search still finds the replaced chunks {stale}"


def _check_store_refusals(store: Store) -> None:
    _filled(store)
    good = (_made_record("memory/good.md"), [_made_row(1, "good")])
    bad = (_made_record("memory/0.md"), [_made_row(1, "bad", key=_made_key("bad"))])
    assert _refuses(lambda: store.replace_files([good, bad])), "a vector_key that was never added must raise StoreError"
    assert "memory/good.md" not in store.files(), "a failed replace_files must change nothing"
    assert len(_ids_of(store, "memory/0.md")) == 5, "a failed replace_files must keep the old rows"
    nan = _made_vectors(1) * float("nan")
    cases = [(nan, "NaN"), (_made_vectors(1, dims=3), "other dimensions"), (_made_vectors(2), "a row more")]
    for matrix, what in cases:
        assert _refuses(partial(store.add_vectors, [_made_key("bad")], matrix)), f"add_vectors must refuse {what}"
        assert store.known_vectors([_made_key("bad")]) == set(), f"vectors with {what} must not be stored"


def _check_store_chunks(store: Store) -> None:
    _filled(store)
    ids = [chunk_id for path in store.files() for chunk_id in _ids_of(store, path)]
    assert store.file_chunks("memory/unknown.md") == [], "an unknown file has no chunks"
    for path in store.files():
        own = _ids_of(store, path)
        assert [found.id for found in store.file_chunks(path)] == own, "file_chunks must keep their order"
        places = [found.ordinal for found in store.chunks(own)]
        assert places == [0, 1, 2, 3, 4], f"ordinals must be positions in the file, from 0, not {places}"
    stored = store.chunks([*reversed(ids), max(ids) + 1000, ids[0]])
    assert [chunk.id for chunk in stored] == sorted(ids), "chunks must come once each, by id, the unknown left out"
    first = stored[0]
    assert (first.path, first.source) == ("memory/0.md", "memory"), f"a chunk came back as {first}"
    assert first.chunk == _made_row(1, "every file0 n0").chunk, f"a chunk came back as {first.chunk}"
    assert store.chunks([]) == [], "no ids must give no chunks"


def _check_store_hits(store: Store) -> None:
    vectors = _filled(store)
    counted = ["every", "file1", "n3", "none"]
    request = HitRequest(["n7", "n12"], vectors[7], vector_hits=3, all_cosines=True, counted=counted)
    hits = store.find_hits(request)
    counts = (dict(hits.frequencies), hits.chunk_count)
    assert counts == ({"every": 20, "file1": 5, "n3": 1, "none": 0}, 20), f"frequencies and count came as {counts}"
    assert len(hits.by_source) == 2, f"without a source, each must be searched on its own, not {len(hits.by_source)}"
    for own, source in zip(hits.by_source, SOURCES, strict=True):
        text = {hit.chunk_id: hit.score for hit in store.search_text(["n7", "n12"], 60, source=source)}
        near = {hit.chunk_id: hit.score for hit in store.search_vector(vectors[7], 3, source=source)}
        assert dict(own.text) == text, f"keyword search in {source} must find what search_text finds"
        assert dict(own.vector or {}) == near, f"vector search in {source} must find what search_vector finds"
        assert set(own.cosines) == {*text, *near}, "with all_cosines, every hit must have its cosine"
    alone = store.find_hits(replace(request, vector=None, source=SOURCES[1])).by_source
    assert [own.vector for own in alone] == [None], "one source and no vector: one entry, without a vector search"
    assert dict(alone[0].text) == dict(hits.by_source[1].text), "a source that is named must be searched as before"
    every = replace(request, terms=["file1", "n7"], vector=None, match="all")
    assert [len(own.text) for own in store.find_hits(every).by_source] == [0, 1], "match='all' must want all terms"
    filled = store.find_hits(replace(every, enough=2)).by_source
    assert [len(own.text) for own in filled] == [0, 5], "fewer than `enough` must be filled up with any"
    assert not store.find_hits(replace(request, terms=[])).by_source, "without terms nothing is searched"
    store.remove_files([path for path in store.files() if path.startswith("sessions/")])
    for _ in range(5):  # a store may answer from memory from some search on
        assert len(store.find_hits(request).by_source) == 1, "a source without files is not searched"
    store.remove_files(list(store.files()))
    emptied = store.find_hits(request).by_source
    assert not any(own.text or own.vector for own in emptied), f"an emptied store must find nothing: {emptied}"


_RANGES = (
    FileRange("path", "memory/dated.md"),
    FileRange("path", "memory/dat", is_prefix=True),
    FileRange("doc_id", "years"),
    FileRange("doc_id", "ye", is_prefix=True),
    FileRange("part_of", "calendar"),
)


@dataclass(frozen=True)
class _InFiles:
    """Let the chunks of a file pass, and name the ranges that hold it."""

    path: str
    files: tuple[FileRange, ...]

    def __call__(self, path: str, metadata: Mapping[str, object]) -> bool:  # noqa: ARG002
        return path == self.path


def _check_store_where(store: Store) -> None:
    vectors = _filled(store)
    years: list[Scalar | None] = [1999, 2000.5, True, "2001", None]
    rows = [_made_row(at, f"every y{at}", key=_made_key(at)) for at in range(5)]
    dated: list[dict[str, Scalar]] = [{} if year is None else {"year": year, "kind": "note"} for year in years]
    rows = [replace(row, chunk=replace(row.chunk, metadata=one)) for row, one in zip(rows, dated, strict=True)]
    dated_record = replace(_made_record("memory/dated.md"), doc_id="years", part_of="calendar")
    store.replace_files([(dated_record, rows)])
    cases: list[tuple[Where, list[int]]] = [
        ({"year": 1999}, [0]),
        ({"year": (">", 1999)}, [1]),
        ({"year": ("<=", 2000.5)}, [0, 1]),
        ({"year": True}, [2]),
        ({"year": ("in", ["2001", "2002"])}, [3]),
        ({"year": ("!=", 1999)}, [1]),
        ({"kind": "note"}, [0, 1, 2, 3]),
        ({"kind": "note", "year": "2001"}, [3]),
        ({"other": 1}, []),
        (lambda path, metadata: path == "memory/dated.md" and metadata.get("year") in {"2001", None}, [3, 4]),
    ]
    cases += [(_InFiles("memory/dated.md", (files,)), [*range(5)]) for files in _RANGES]
    both = (FileRange("path", "/"), FileRange("path", "memory/0", is_prefix=True))
    cases.append((_InFiles("memory/0.md", both), [*range(5)]))
    for where, places in cases:
        by_source = store.find_hits(HitRequest(["every"], vectors[0], where=where)).by_source
        ids = {chunk_id for own in by_source for chunk_id in own.text}
        assert sorted(chunk.ordinal for chunk in store.chunks(ids)) == places, f"where={where} must find {places}"
        hits = (store.search_text(["every"], 99, where=where), store.search_vector(vectors[0], 99, where=where))
        assert [{hit.chunk_id for hit in leg} for leg in hits] == [ids, ids], f"where={where} must filter both searches"
    store.add_vectors([_made_key(9)], vectors[:1], "other")
    without = replace(_made_row(9, "", key=_made_key(9)), identity="other")
    store.replace_files([(_made_record("memory/dated.md"), [rows[0], without])])
    store.replace_files([(_made_record("memory/bare.md"), [without])])
    by_rows = [store.search_vector(vectors[0], 99, identity="other", where={"year": year}) for year in (1999, 2001)]
    paths = [{stored.path for stored in store.chunks(hit.chunk_id for hit in hits)} for hits in by_rows]
    assert paths[0] == {"memory/dated.md", "memory/bare.md"}, "a row must pass if its file's first chunk does"
    assert paths[1] == {"memory/bare.md"}, "a row must pass if its file has no chunks"


def _check_store_text(store: Store) -> None:
    _filled(store)
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


def _check_store_terms(store: Store) -> None:
    _rebuilt(store, _made_meta())
    terms = "geo-1000 snake_case c++ a.b/c 数据 ça it's #tag x=1 [1] a:b (p) q* ^r".split()
    rows = [_made_row(at, term) for at, term in enumerate(terms, start=1)]
    context = _made_row(len(rows) + 1, "other", context_terms="heading")
    store.replace_files([(_made_record("memory/terms.md"), [*rows, context])])
    for at, term in enumerate(terms, start=1):
        lines = [found.chunk.start_line for found in store.chunks(hit.chunk_id for hit in store.search_text([term], 9))]
        assert lines == [at], f"the term {term!r} of line {at} was found in lines {lines}"
    assert len(store.search_text(["heading"], 9)) == 1, "terms of the context must be found"
    for term in _HOSTILE_TERMS:
        assert store.search_text([term], 9) == [], f"the term {term!r} must be taken as text and match nothing"
    assert store.search_text(["other", *_HOSTILE_TERMS], 9), "hostile terms must not keep others from matching"


def _check_store_cosine(store: Store) -> None:
    vectors = _filled(store)
    query = _made_vectors(1, seed=1)[0]
    exact = vectors @ query
    ids = sorted(hit.chunk_id for hit in store.search_vector(query, 100))
    assert len(ids) == 20, f"20 chunks have vectors, {len(ids)} were found"
    expected = {ids[number]: float(exact[number]) for number in range(20)}
    hits = store.search_vector(query, 6)
    wanted = sorted(expected, key=lambda chunk_id: -expected[chunk_id])[:6]
    assert [hit.chunk_id for hit in hits] == wanted, "the vector search must find the nearest chunks, nearest first"
    own = store.vectors([*ids[:3], ids[0], max(ids) + 1000])
    assert set(own) == set(ids[:3]), f"vectors must name the known ids alone: {sorted(own)}"
    assert all(abs(float(own[at] @ query) - expected[at]) < 1e-5 for at in own), "vectors must be those of the chunks"
    for hit in hits:
        exact_score = expected[hit.chunk_id]
        assert abs(hit.score - exact_score) < 1e-5, f"a score must be the cosine {exact_score}, not {hit.score}"
    assert store.search_vector(query, 0) == [], "k=0 must find nothing"


def _check_store_sources(store: Store) -> None:
    vectors = _filled(store)
    for source in SOURCES:
        both = (store.search_text(["every"], 99, source=source), store.search_vector(vectors[0], 99, source=source))
        for hits in both:
            assert len(hits) == 10, f"10 chunks come from {source}, {len(hits)} were found"
            found = {chunk.source for chunk in store.chunks(hit.chunk_id for hit in hits)}
            assert found == {source}, f"source={source!r} found chunks of {found}"
    counted = store.describe()
    assert dict(counted.sources) == {"memory": (2, 10), "sessions": (2, 10)}, f"sources count {counted.sources}"
    assert (counted.files, counted.chunks, counted.vectors) == (4, 20, 20), f"stats count {counted}"
    store.remove_files(path for path in store.files() if path.startswith("sessions/"))
    assert len(store.search_text(["every"], 100, source="memory")) == 10, "the one source left must be found by name"
    assert store.search_text(["every"], 100, source="sessions") == [], "a source without files must find nothing"


def _check_store_threads(store: Store) -> None:
    """Two readers and a writer: each search sees a file's old chunks or its new ones, never a mixture."""
    from concurrent.futures import ThreadPoolExecutor

    vectors = _filled(store)
    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(_rewrite, store, 20)
        readers = [pool.submit(_read_while, store, vectors, writer) for _ in range(2)]
        writer.result()
        seen = [reader.result() for reader in readers]
    assert all(counts <= {5} for counts in seen), f"a search saw {seen} chunks of a file that always has 5"


def _rewrite(store: Store, times: int) -> None:
    rows = [_made_row(1 + at, f"every file0 n{at}", key=_made_key(at)) for at in range(5)]
    for turn in range(times):
        store.replace_files([(_made_record("memory/0.md", content=f"turn {turn}"), rows)])


def _read_while(store: Store, vectors: Matrix, writer: Future[None]) -> set[int]:
    counts = set()
    while True:
        last_look = writer.done()
        counts.add(len(store.search_text(["file0"], 100)))
        assert len(store.search_vector(vectors[0], 100)) == 20, "a search beside a writer lost chunks"
        if last_look:
            return counts


def _check_store_identities(store: Store) -> None:
    """Vectors of different models never meet."""
    _filled(store)
    _rebuilt(store, _made_meta("check/another"))
    assert store.known_vectors([_made_key(0)]) == set(), "vectors of another identity must stay unknown"
    store.add_vectors([_made_key(0)], _made_vectors(1, dims=_DIMS * 2))
    store.replace_files([(_made_record("memory/0.md"), [_made_row(1, "one", key=_made_key(0))])])
    hits = store.search_vector(_made_vectors(1, dims=_DIMS * 2)[0], 5)
    assert len(hits) == 1, f"an identity of other dimensions must find its one vector, not {hits}"
    _rebuilt(store, _made_meta())
    assert store.known_vectors([_made_key(1)]) == {_made_key(1)}, "vectors of the first identity must still be there"


def _check_store_gathered(store: Store) -> None:
    """Vectors of a model that is not the current one, or not yet."""
    keys, identity = [_made_key(number) for number in range(900)], "check/next"
    assert store.known_vectors(keys, identity) == set(), "nothing is known of an identity without vectors"
    assert _refuses(lambda: store.add_vectors(keys, _made_vectors(900))), "without meta the identity must be named"
    store.add_vectors(keys, _made_vectors(900, dims=_DIMS * 2), identity)
    assert store.meta() is None, "vectors of a named identity need no meta, and make none"
    assert store.known_vectors([*keys, _made_key("no")], identity) == set(keys), "vectors must be known by identity"
    _filled(store)
    assert store.known_vectors(keys) == set(keys[:20]), "identities must be told apart, also where meta names one"
    assert store.known_vectors(keys, _made_meta().identity) == set(keys[:20]), "the identity in meta may also be named"
    assert len(store.search_vector(_made_vectors(1)[0], 100)) == 20, "vectors of another identity must not be found"
    for named in (identity, None):
        wrong = partial(store.add_vectors, [_made_key("bad")], _made_vectors(1, dims=3), named)
        assert _refuses(wrong), f"add_vectors must hold identity {named!r} to its dimensions"
        assert store.known_vectors([_made_key("bad")], named) == set(), "vectors of other dimensions must not be stored"
    _rebuilt(store, _made_meta(identity))
    store.replace_files([(_made_record("memory/0.md"), [_made_row(1, "one", key=keys[7])])])
    hits = store.search_vector(_made_vectors(900, dims=_DIMS * 2)[7], 5)
    assert [round(hit.score, 5) for hit in hits] == [1], f"a gathered vector must be found once it is current: {hits}"


def _check_store_prune(store: Store) -> None:
    """Vectors that no row uses are removed, and no others."""
    _filled(store)
    store.add_vectors([_made_key("next")], _made_vectors(1, dims=3), "check/next")
    assert store.prune(keep_unused=True) == 0, "with keep_unused no vector must go"
    assert store.prune() == 1, "a vector in use must stay, one that is not must go"
    assert store.known_vectors([_made_key("next")], "check/next") == set(), "a pruned vector must be unknown"
    store.add_vectors([_made_key("next")], _made_vectors(1, dims=4), "check/next")
    assert store.describe().vectors == 21, "an identity whose vectors are all gone may come back with other dimensions"
    shared = _made_row(1, "every shared", key=_made_key(5))
    store.replace_files([(_made_record("memory/shared.md"), [shared])])
    for path in ("sessions/3.jsonl", "sessions/1.jsonl"):  # the vectors 15 to 19, then 5 to 9 without the shared one
        store.remove_files([path])
    store.replace_files([(_made_record("memory/again.md"), [_made_row(1, "every again", key=_made_key(16))])])
    assert store.prune() == 9, "those that are in no use any more must go"
    left = store.known_vectors(_made_key(number) for number in range(20))
    gone = [number for number in range(20) if _made_key(number) not in left]
    assert gone == [6, 7, 8, 9, 15, 17, 18, 19], f"shared vectors must stay, and these must not: {gone}"
    assert len(store.search_vector(_made_vectors(1)[0], 100)) == 12, "all chunks must keep their vectors"
    _rebuilt(store, _made_meta("check/another"))
    assert store.describe().vectors == 12, "a build must keep the vectors"
    assert store.prune() == 12, "after a build no vector is in use"


def _check_store_token_codes(store: Store) -> None:
    """The codes of tokens are stored with vectors, found by chunks, and removed with the vectors."""
    vectors, keys = _filled(store), [_made_key(number) for number in range(20)]
    assert store.known_vectors(keys, with_token_codes=True) == set(), "vectors stored without codes have none"
    assert _codes_of(store, _ids_of(store, "memory/0.md")) == {}, "chunks without codes must be left out"
    assert store.describe().without_tokens == 20, "chunks whose vectors have no codes must be counted"
    store.add_vectors(keys[:2], vectors[:2], token_codes=[b"first", b""])
    store.add_vectors(keys[:1], vectors[:1], token_codes=[b"second"])
    assert store.known_vectors(keys, with_token_codes=True) == set(keys[:2]), "stored vectors must get codes"
    first, *others = _ids_of(store, "memory/0.md")
    assert _codes_of(store, [first, *others, 10_000]) == {first: b"first"}, "codes that are stored must stay"
    assert store.describe().without_tokens == 19, "empty codes are none"
    for wanted, codes in ((True, b"first"), (False, b"")):
        (stored,) = store.chunks([first], token_codes=wanted)
        assert stored.token_codes == codes, f"with token_codes={wanted} a chunk must have {codes!r}"
    store.remove_files(["memory/0.md"])
    assert store.known_vectors(keys, with_token_codes=True) == set(keys[:2]), "codes must outlive their chunks"
    _rebuilt(store, _made_meta())
    assert store.known_vectors(keys, with_token_codes=True) == set(keys[:2]), "a build must keep the codes"
    store.prune()
    assert store.known_vectors(keys, with_token_codes=True) == set(), "codes must go with their vectors"
    store.add_vectors(keys[:1], vectors[:1], token_codes=[b"third"])
    store.replace_files([(_made_record("memory/0.md"), [_made_row(1, "every", key=keys[0])])])
    assert list(_codes_of(store, _ids_of(store, "memory/0.md")).values()) == [b"third"], "old codes must not come back"


def _check_store_first_build(store: Store) -> None:
    """A first index that is cut short is gone on with."""
    build = store.begin_build(_made_meta())
    build.store.add_vectors([_made_key(0)], _made_vectors(1), _made_meta().identity)
    build.store.replace_files([(_made_record("memory/0.md"), [_made_row(1, "every", key=_made_key(0))])])
    begun = build.store.meta()
    assert begun is not None, "meta must be remembered while an index is built"
    assert not begun.complete, "an index that is being built must not be called complete"
    build.abort()
    again = store.begin_build(_made_meta(), keep_rows=True)
    again.publish()
    stored = store.meta()
    assert stored is not None, "meta must be remembered by publish"
    assert stored.complete, "publish must make the index complete"
    assert store.known_vectors([_made_key(0)]) == {_made_key(0)}, "vectors of a build that was given up must stay"


def _check_store_builds(store: Store) -> None:
    """The next index is unseen until it is published, and then there is no other."""
    vectors = _filled(store)
    store.set_meta("name", "text")
    given_up = store.begin_build(_made_meta(), keep_rows=True)
    assert given_up.store.describe().chunks == 20, "with keep_rows a build must begin with all that the store holds"
    given_up.store.remove_files(list(given_up.store.files()))
    for _ in range(2):
        given_up.abort()
    assert store.describe().chunks == 20, "a build that was given up must not be seen"
    build = store.begin_build(_made_meta())
    assert build.store.describe().chunks == 0, "a build must begin without chunks"
    build.store.replace_files([(_made_record("memory/new.md"), [_made_row(1, "every next", key=_made_key(3))])])
    assert store.search_text(["next"], 5) == [], "the next index must not be seen before it is published"
    assert len(store.search_vector(vectors[0], 100)) == 20, "the old index must answer until then"
    store.set_meta("meanwhile", "text")
    old = {hit.chunk_id for hit in store.search_text(["every"], 100)}
    build.publish()
    assert [*store.files()] == ["memory/new.md"], "publish must put the next index in the place of the old one"
    found = {hit.chunk_id for hit in store.search_text(["every"], 100)}
    assert len(found) == 1, "publish must bring the terms"
    assert found.isdisjoint(old), "an id that named a chunk of the old index must not come to name another one"
    assert [hit.chunk_id for hit in store.search_vector(vectors[3], 5)] == [*found], "publish must bring the vectors"
    for name in ("name", "meanwhile"):
        assert store.get_meta(name) == "text", "what set_meta keeps must stay through a build"
    assert store.verify() == (), "a store must be sound after publish"


def _check_store_locks(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store.set_meta("name", "text")  # so that there is a place for the lock

    def taken(name: str) -> bool:
        with store.lock(name, 0) as alone:
            return alone

    def notify(reason: str) -> None:
        raise ValueError(reason)

    def wait_for_long() -> None:
        with store.lock("sync", 10, notify):
            pass

    with ThreadPoolExecutor(1) as other, store.lock("sync") as alone:
        assert alone, "a lock that is free must be taken"
        assert "sync" in store.describe(counts=False).locked, "describe must name a lock that is held"
        assert not taken("sync"), "a thread must not wait for itself, and a second lock is none"
        assert other.submit(taken, "watch").result(), "locks of other names must not keep each other out"
        busy = _refuses(lambda: other.submit(taken, "sync").result(), SyncBusyError)
        assert busy, "a lock that is held must keep threads out"
        ended = _refuses(lambda: other.submit(wait_for_long).result(), ValueError)
        assert ended, "notify must be called, and what it raises end the waiting"
    assert "sync" not in store.describe(counts=False).locked, "a lock that was let go must not be named"
    assert taken("sync"), "a lock that was let go must be free"


def _check_store_recovery(store: Store) -> None:
    _filled(store)
    assert store.recover("a test says so"), "recover must say what it did"
    assert store.meta() is None, "after recover the index must be empty and new"
    assert (dict(store.files()), store.describe().chunks) == ({}, 0), "recover must leave no files and no chunks"
    _filled(store)
    assert store.describe().chunks == 20, "a store must be filled again after recover"


def _check_store_notes(store: Store) -> None:
    """Short texts stay through every build."""
    assert store.get_meta("name") is None, "there is no text before one was kept"
    for text in ("one", "two"):
        store.set_meta("name", text)
        assert store.get_meta("name") == text, "a text must come back, the latest one of its name"
    assert store.meta() is None, "set_meta must not make meta"
    _rebuilt(store, _made_meta())
    _rebuilt(store, _made_meta("check/another"))
    assert store.get_meta("name") == "two", "what set_meta keeps must stay through every build"


def _check_store_extend(store: Store) -> None:
    """A file that grows keeps its first chunks."""
    vectors = _filled(store)
    path = "sessions/1.jsonl"
    before, last = _ids_of(store, path), max(_ids_of(store, "sessions/3.jsonl"))
    rows = [_made_row(4, "every longer", key=_made_key(19)), _made_row(6, "every more")]
    longer = _made_record(path, SOURCES[1], content="longer")
    store.extend_file(longer, rows, 4)
    assert store.files()[path] == longer, "extend_file must update the record"
    after = _ids_of(store, path)
    assert after[:3] == before[:3], "the chunks before the line must stay"
    assert len(after) == 5, f"2 chunks must take the place of those from line 4 on: {after}"
    assert min(after[3:]) > last, "new chunks must have ids beyond all others"
    assert [found.chunk for found in store.chunks(after[3:])] == [row.chunk for row in rows], "new chunks must be there"
    assert store.search_text(["n8"], 5) == [], "the terms of the old chunks must go"
    assert after[3] in {hit.chunk_id for hit in store.search_vector(vectors[19], 2)}, "the new vectors must be found"
    assert store.describe().chunks == 20, f"20 - 2 + 2 chunks must be left, not {store.describe().chunks}"
    bad = [_made_row(7, "every bad", key=_made_key("bad"))]
    assert _refuses(lambda: store.extend_file(_made_record(path, SOURCES[1]), bad, 4)), "an unknown vector is refused"
    assert (store.files()[path], _ids_of(store, path)) == (longer, after), "a refused extend_file must change nothing"
    unknown = _made_record("sessions/unknown.jsonl", SOURCES[1])
    assert _refuses(lambda: store.extend_file(unknown, rows, 4)), "a file that is not indexed has nothing to go on from"
    assert "sessions/unknown.jsonl" not in store.files(), "a refused extend_file must add no file"
    store.extend_file(longer, [_made_row(7, "every last")], 7)
    assert _ids_of(store, path)[:5] == after, "rows that come after all others must take the place of none"
    store.extend_file(longer, [], 1)
    assert _ids_of(store, path) == [], "from line 1 on all rows must go"
    assert len(_ids_of(store, "sessions/3.jsonl")) == 5, "other files must keep their rows"


def _check_store_documents(store: Store) -> None:
    """A vector that came with a whole file is found under its own identity, and nothing else meets it."""
    vectors = _filled(store)
    wide = _made_vectors(3, dims=_DIMS * 2, seed=2)
    query, other = 0.6 * wide[0] + 0.3 * wide[1], "documents/model"
    assert dict(store.identities()) == {}, "no row has another identity yet"
    assert store.search_vector(query, 5, identity=other) == [], "an identity without rows must find nothing"
    for number in range(3):
        row = ChunkRow(Chunk(1, 1, 0, ""), "", "", _made_key(f"document {number}"), other)
        record = _made_record(f"memory/document{number}.md")
        store.replace_files([(record, [_made_row(1, "every document"), row])])
    assert dict(store.identities()) == {other: (3, 0)}, f"3 rows wait for their vectors, not {store.identities()}"
    assert store.search_vector(query, 5, identity=other) == [], "a row without its vector must not be found"
    store.add_vectors([_made_key("document 0"), _made_key("document 1")], wide[:2], other)
    assert dict(store.identities()) == {other: (3, 2)}, f"2 of 3 rows have vectors now, not {store.identities()}"
    store.add_vectors([_made_key("document 2")], wide[2:] * 0, other)
    with store.snapshot() as frozen:
        hits = frozen.search_vector(query, 5, identity=other)
        found = {stored.id: stored.path for stored in frozen.chunks(hit.chunk_id for hit in hits)}
        own = frozen.vectors([hit.chunk_id for hit in hits])
    assert [found[hit.chunk_id] for hit in hits][2] == "memory/document2.md", "a vector of zeros must be found last"
    assert sorted(found.values()) == [f"memory/document{number}.md" for number in range(3)], f"found were {found}"
    assert all(abs(float(own[hit.chunk_id] @ query) - hit.score) < 1e-5 for hit in hits), "a score must be the cosine"
    assert len(store.search_vector(query, 2, identity=other)) == 2, "k must bound the rows"
    assert store.search_vector(query, 5, identity=other, source="sessions") == [], "source must hold for rows as well"
    assert _refuses(lambda: store.search_vector(vectors[0], 5, identity=other)), "other dimensions must be refused"
    assert store.describe().chunks == 23, f"rows with an identity are no chunks: 23, not {store.describe().chunks}"
    assert len(store.search_vector(vectors[0], 100)) == 20, "rows with an identity must not be found among chunks"
    assert len(store.file_chunks("memory/document0.md")) == 1, "rows with an identity must not be among a file's chunks"
    (row_there,) = store.file_chunks("memory/document0.md", other)
    assert found[row_there.id] == "memory/document0.md", "a file's row must be found by its path and identity"
    assert store.file_chunks("memory/document0.md", "check/none") == [], "a file has no rows of an unknown identity"
    store.add_vectors([_made_key("spare")], wide[2:], other)
    assert store.prune() == 1, "a vector that a row names must not be pruned, another one must"
    store.replace_files([(_made_record("memory/document0.md"), [])])
    assert store.remove_files(["memory/document1.md"]) == 1, "a file with such a row is removed as any other"
    assert dict(store.identities()) == {other: (1, 1)}, f"rows go with their files: {store.identities()}"
    assert len(store.search_vector(query, 5, identity=other)) == 1, "rows that are gone must not be found"
    assert store.verify() == (), "a store with such rows must be sound"
    _rebuilt(store, _made_meta())
    assert dict(store.identities()) == {}, "a build must forget all rows"
    assert store.known_vectors([_made_key("document 2")], other), "a build must keep their vectors"


def _made_meta(identity: str = "check/model") -> IndexMeta:
    return IndexMeta("check", "model", identity, None, {"style": "headings", "max_chars": 700}, schema_version=1)


def _made_record(path: str, source: Source = "memory", *, content: str = "") -> FileRecord:
    key = _made_key(content)
    return FileRecord(path, source, key, size=len(content), mtime_ns=1 << 60, inode=7, checked_ns=9, ctime_ns=1 << 61)


def _made_row(line: int, terms: str, *, context_terms: str = "", key: str | None = None) -> ChunkRow:
    return ChunkRow(Chunk(line, line, line * 10, terms, context_terms), terms, context_terms, key)


def _made_key(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def _made_vectors(count: int, dims: int = _DIMS, seed: int = 0) -> Matrix:
    import numpy as np

    rows = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _rebuilt(store: Store, meta: IndexMeta) -> None:
    store.begin_build(meta).publish()


def _filled(store: Store, files: int = 4, chunks: int = 5) -> Matrix:
    """Give a store files of numbered chunks, every second file a transcript; returns their vectors, in order of id."""
    vectors = _made_vectors(files * chunks)
    keys = [_made_key(number) for number in range(files * chunks)]
    _rebuilt(store, _made_meta())
    store.add_vectors(keys, vectors)
    for file in range(files):
        numbers = range(file * chunks, (file + 1) * chunks)
        rows = [_made_row(1 + at, f"every file{file} n{n}", key=keys[n]) for at, n in enumerate(numbers)]
        path, source = (f"sessions/{file}.jsonl", SOURCES[1]) if file % 2 else (f"memory/{file}.md", SOURCES[0])
        store.replace_files([(_made_record(path, source, content=f"{file}"), rows)])
    return vectors


def _ids_of(store: Store, path: str) -> list[int]:
    """The ids of a file's chunks, asked by way of its terms: `_filled` numbers them by file."""
    found = store.chunks(hit.chunk_id for hit in store.search_text(["every"], 1000))
    return [chunk.id for chunk in found if chunk.path == path]


def _codes_of(store: Store, ids: Sequence[int]) -> dict[int, bytes]:
    return {one.id: one.token_codes for one in store.chunks(ids, token_codes=True) if one.token_codes}


def _refuses(
    call: Callable[[], object], errors: type[Exception] | tuple[type[Exception], ...] = (EmbedderError, StoreError)
) -> bool:
    try:
        call()
    except errors:
        return True
    return False


_CHECKS = [value for name, value in list(globals().items()) if name.startswith("_check_store_")]
