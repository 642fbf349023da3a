"""Check that an embedder or a store keeps its contract."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from openclaw_memory.errors import EmbedderError, StoreError, SyncBusyError
from openclaw_memory.types import Chunk, ChunkRow, Embedder, FileRecord, HitRequest, IndexMeta, Store
from openclaw_memory.types.conditions import FileRange
from openclaw_memory.types.files import SOURCES
from openclaw_memory.types.protocols import TokenEmbedder

if TYPE_CHECKING:
    from concurrent.futures import Future

    from openclaw_memory.types import Hit, Matrix, Source, Where

SAMPLE_TEXTS = (
    "The database index is rebuilt every night at three.",
    "Caroline went to the pottery class on Thursday.",
    "Het recept vraagt om twee eieren en een kop bloem.",
)
ODD_TEXTS = ("", " \n\t", "🦄🎉", "a\x00b", "\ud800 lone surrogate", "ab " * 3334, "x" * 10_000)
# How keys of well-known services begin, and the word before a key in a header.
SECRET = re.compile(r"(?:\bsk-|\bAIza|\bpa-|\bhf_|Bearer\s+)[\w-]{12,}")
# Terms that full-text syntax, SQL, UTF-8 or C strings would stumble over.
HOSTILE_TERMS = ('"', "'", "*", "AND", "OR NOT", "terms:x", "a\x00b", "\ud800", "-", "(", "x" * 5000)
DIMS = 8


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
    for name in ("provider", "model", "identity"):
        value = getattr(embedder, name)
        assert isinstance(value, str), f"{name} must be a string, not {value!r}"
        assert value, f"{name} must not be empty"
        assert not SECRET.search(value), f"{name} holds what looks like a key; leave secrets out of it"
    leaves = embedder.leaves_machine
    assert isinstance(leaves, bool), f"leaves_machine must be True or False, not {leaves!r}"
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
    assert documents[0] @ documents[1] < 0.999, "different texts have the same vector"
    empty = embedder.embed_documents([])
    assert empty.ndim == 2, f"no texts must give shape (0, dims), not {empty.shape}"
    assert len(empty) == 0, f"no texts must give no vectors, not {len(empty)}"
    odd = embedder.embed_documents(list(ODD_TEXTS))
    assert odd.shape == (len(ODD_TEXTS), documents.shape[1]), f"odd texts gave shape {odd.shape}"
    _check_rows(odd, ODD_TEXTS, may_be_zero=True)
    for text in ODD_TEXTS:
        _check_rows(embedder.embed_query(text)[None], [text], may_be_zero=True)
    if isinstance(embedder, TokenEmbedder):
        _check_tokens(embedder, documents)


def _check_rows(rows: Matrix, texts: Sequence[str], *, may_be_zero: bool = False) -> None:
    """Check shape (len(texts), dims), float32, and rows of length 1, or 0 if that is allowed."""
    assert rows.ndim == 2, f"vectors must have shape (n, dims), not {rows.shape}"
    assert len(rows) == len(texts), f"{len(texts)} texts gave {len(rows)} vectors"
    assert rows.dtype == "float32", f"vectors must be float32, not {rows.dtype}"
    for text, length in zip(texts, (rows.astype("float64") ** 2).sum(axis=1) ** 0.5, strict=True):
        is_unit = abs(length - 1) < 1e-3 or (may_be_zero and length == 0)
        assert is_unit, f"{text[:40]!r} has a vector of length {length}; normalise it"


def _check_tokens(embedder: TokenEmbedder, documents: Matrix) -> None:
    vectors, tokens = embedder.embed_document_tokens(list(SAMPLE_TEXTS))
    assert (vectors * documents).sum(axis=1).min() > 0.999, "embed_document_tokens must give the texts' vectors"
    for text, document in zip(SAMPLE_TEXTS, tokens, strict=True):
        query, query_tokens = embedder.embed_query_tokens(text)
        assert query @ embedder.embed_query(text) > 0.999, "embed_query_tokens must give the vector of the query"
        assert document is not None, f"{text!r} has no tokens"
        for rows, places in (document, query_tokens):
            assert places.shape == (len(rows), 2), f"{len(rows)} tokens have places of shape {places.shape}"
            is_inside = (places >= 0).all() and (places <= len(text)).all() and (places[:, 0] <= places[:, 1]).all()
            assert is_inside, f"the places of tokens must lie in the text: {places.tolist()}"
    embedder.embed_document_tokens(list(ODD_TEXTS))


def check_store(open_store: Callable[[], Store]) -> None:
    """Check that a store keeps the contract of `types.Store`.

    Args:
        open_store: Called for each check; returns a new, empty store each time, which is closed here.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    for check in STORE_CHECKS:
        store = open_store()
        try:
            assert isinstance(store, Store), f"{store!r} lacks a method of the Store protocol"
            check(store)
        finally:
            store.close()
            store.close()


def verify(value: object, expected: object, rule: str) -> None:
    """Raise AssertionError with the rule if a value is not the expected one."""
    if value != expected:
        raise AssertionError(f"{rule}: {expected!r:.200} is expected, not {value!r:.200}")


def refuse(
    call: Callable[[], object],
    rule: str,
    errors: type[Exception] | tuple[type[Exception], ...] = (EmbedderError, StoreError),
) -> None:
    """Raise AssertionError with the rule unless a call raises one of the errors."""
    try:
        call()
    except errors:
        return
    raise AssertionError(rule)


def _check_empty(store: Store) -> None:
    """An empty store finds nothing."""
    verify(store.read_meta(), None, "a new store has no meta")
    verify(store.get_meta("name"), None, "a new store has no texts")
    verify((dict(store.get_files()), store.describe().chunks), ({}, 0), "a new store has no files and no chunks")
    query = make_vectors(1)[0]
    legs = (store.search_text(["word"], 5), store.search_vector(query, 5), dict(store.get_vectors([1])))
    verify(legs, ([], [], {}), "an empty store finds nothing")
    hits = store.find_hits(HitRequest(["word"], counted=["word"]))
    verify((dict(hits.frequencies), hits.chunk_count), ({"word": 0}, 0), "an unknown term occurs in no chunk")


def _check_meta(store: Store) -> None:
    """Meta and texts stay; a build forgets rows, and not vectors."""
    for text in ("one", "two"):
        store.set_meta("name", text)
        verify(store.get_meta("name"), text, "the latest text of a name comes back")
    verify(store.read_meta(), None, "set_meta makes no meta")
    rebuild(store, make_meta())
    stored = store.read_meta()
    assert stored is not None, "a build must remember meta"
    verify(dict(stored.chunking), dict(make_meta().chunking), "chunking comes back")
    verify(replace(stored, chunking={}), replace(make_meta(), chunking={}), "meta comes back")
    fill(store)
    rebuild(store, make_meta())
    verify((dict(store.get_files()), store.describe().chunks), ({}, 0), "a build forgets files and chunks")
    verify(store.find_keys([make_key(0)]), {make_key(0)}, "a build keeps vectors: they are a cache")
    verify(store.get_meta("name"), "two", "a build keeps texts")


def _check_files(store: Store) -> None:
    """Records of files come back, are updated, and are found by id and whole."""
    fill(store)
    verify(store.verify(), (), "a store that was just filled is sound")
    record = make_record("memory/0.md", content="0")
    verify((len(store.get_files()), store.get_files()["memory/0.md"]), (4, record), "the added files are listed")
    for reason in ("the service was down", None):
        touched = replace(record, mtime_ns=1, checked_ns=2, ctime_ns=3, vectors_missing=reason)
        store.replace_files([(touched, None), (make_record("memory/unknown.md"), None)])
        verify(store.get_files()["memory/0.md"], touched, "without rows, the record is updated")
    assert "memory/unknown.md" not in store.get_files(), "without rows, no file must be added"
    verify(len(read_ids(store, "memory/0.md")), 5, "without rows, the chunks stay")
    documents = [replace(make_record(f"memory/notes/{n}.md"), doc_id=f"d{n % 2}", part_of="whole") for n in range(3)]
    store.replace_files([(document, []) for document in documents])
    by_path = {document.path: document for document in documents}
    first, second, third = by_path
    verify(store.get_files([first]), {first: documents[0]}, "files are those of the paths")
    verify([*store.get_files(ids=["d0", "none"])], [first, third], "files are found by id")
    verify(store.get_files(part_of="whole"), by_path, "files are found by their whole")
    verify([*store.get_files(id_prefix="d1")], [second], "files are found by a prefix of the id")
    verify((dict(store.get_files([])), dict(store.get_files(ids=[]))), ({}, {}), "no names give no files")
    verify(store.remove_files([*by_path, "memory/0.md", "memory/unknown.md"]), 4, "remove_files counts the files")
    verify(store.describe().chunks, 15, "the chunks of a removed file go")
    verify(store.search_text(["file0"], 5), [], "the terms of a removed file go")
    verify(len(store.search_vector(make_vectors(1)[0], 100)), 15, "the vectors of a removed file are not found")


def _check_replace(store: Store) -> None:
    """New rows take the place of the old ones, or none do."""
    vectors = fill(store)
    before = read_ids(store, "memory/0.md")
    rows = [make_row(1, "every fresh", key=make_key(19)), make_row(2, "every keyless")]
    store.replace_files([(make_record("memory/0.md", content="new"), rows)])
    verify(store.describe().chunks, 17, "2 chunks take the place of 5 among 20")
    verify(store.search_text(["file0"], 5), [], "the old terms of a replaced file go")
    ids = read_ids(store, "memory/0.md")
    verify([stored.chunk for stored in store.get_chunks(ids)], [row.chunk for row in rows], "the new chunks come back")
    verify(set(store.get_vectors(ids)), {ids[0]}, "a chunk without a vector is left out")
    shared = store.search_vector(vectors[19], 2)
    assert all(hit.score > 0.999 for hit in shared), f"two chunks share one vector, both must be found: {shared}"
    stale = set(before) & {hit.chunk_id for hit in store.search_vector(vectors[0], 100)} - set(ids)
    verify(stale, set(), "the vector search finds no replaced chunk")
    good = (make_record("memory/good.md"), [make_row(1, "good")])
    bad = (make_record("memory/0.md"), [make_row(1, "bad", key=make_key("bad"))])
    refuse(lambda: store.replace_files([good, bad]), "a vector_key that was never added must raise StoreError")
    assert "memory/good.md" not in store.get_files(), "a failed replace_files must change nothing"
    verify(read_ids(store, "memory/0.md"), ids, "a failed replace_files keeps the old rows")
    nan = make_vectors(1) * float("nan")
    for matrix, problem in ((nan, "NaN"), (make_vectors(1, dims=3), "dimensions"), (make_vectors(2), "a row more")):
        refuse(partial(store.add_vectors, [make_key("bad")], matrix), f"add_vectors must refuse other {problem}")
    verify(store.find_keys([make_key("bad")]), set(), "refused vectors are not stored")


def _check_extend(store: Store) -> None:
    """A file that grows keeps its first chunks."""
    fill(store)
    path = "sessions/1.jsonl"
    before, last = read_ids(store, path), max(read_ids(store, "sessions/3.jsonl"))
    rows = [make_row(4, "every longer", key=make_key(19)), make_row(6, "every more")]
    longer = make_record(path, SOURCES[1], content="longer")
    store.extend_file(longer, rows, 4)
    after = read_ids(store, path)
    verify((store.get_files()[path], after[:3], len(after)), (longer, before[:3], 5), "the chunks before the line stay")
    assert min(after[3:]) > last, "new chunks must have ids above all others"
    verify([stored.chunk for stored in store.get_chunks(after[3:])], [row.chunk for row in rows], "new chunks come")
    bad = [make_row(7, "every bad", key=make_key("bad"))]
    refuse(lambda: store.extend_file(make_record(path, SOURCES[1]), bad, 4), "an unknown vector must be refused")
    verify((store.get_files()[path], read_ids(store, path)), (longer, after), "a refused extend_file changes nothing")
    unknown = make_record("sessions/unknown.jsonl", SOURCES[1])
    refuse(lambda: store.extend_file(unknown, rows, 4), "a file that is not indexed must be refused")
    store.extend_file(longer, [], 1)
    verify((read_ids(store, path), len(read_ids(store, "sessions/3.jsonl"))), ([], 5), "from line 1 on all rows go")


def _check_chunks(store: Store) -> None:
    """Chunks come back in order, whole, and once each."""
    fill(store)
    ids = [chunk_id for path in store.get_files() for chunk_id in read_ids(store, path)]
    verify(store.get_file_chunks("memory/unknown.md"), [], "an unknown file has no chunks")
    for path in store.get_files():
        own = read_ids(store, path)
        verify([stored.id for stored in store.get_file_chunks(path)], own, "file_chunks are in order")
        verify([stored.ordinal for stored in store.get_chunks(own)], [0, 1, 2, 3, 4], "ordinals are positions")
    stored = store.get_chunks([*reversed(ids), max(ids) + 1000, ids[0]])
    verify([chunk.id for chunk in stored], sorted(ids), "chunks come once each, by id, the unknown left out")
    first = make_row(1, "every file0 n0").chunk
    verify((stored[0].path, stored[0].source, stored[0].chunk), ("memory/0.md", "memory", first), "a chunk comes back")


def _check_text(store: Store) -> None:
    """The keyword search ranks by rare terms."""
    fill(store)
    best = store.get_chunks([store.search_text(["every", "n7"], 1)[0].chunk_id])[0]
    assert best.chunk.text.endswith("n7"), f"the rarer term must decide: {best.chunk.text!r} came first"
    verify(len(store.search_text(["n1", "n2", "none"], 9)), 2, "match='any' takes chunks with any of the terms")
    verify(len(store.search_text(["file1", "n7"], 9, match="all")), 1, "match='all' takes chunks with all terms")
    verify(store.search_text(["n1", "n2"], 9, match="all"), [], "match='all' wants all terms")
    scores = [hit.score for hit in store.search_text(["file1", "n7", "n9"], 9)]
    verify(scores, sorted(scores, reverse=True), "hits come best first")
    assert min(scores) > 0, f"a text score must be above 0: {scores}"
    verify(len(store.search_text(["every"], 3)), 3, "k bounds the hits")
    verify((store.search_text(["every"], 0), store.search_text([], 5)), ([], []), "k=0 and no terms find nothing")


def _check_terms(store: Store) -> None:
    """Terms are text, with whatever characters."""
    rebuild(store, make_meta())
    terms = "geo-1000 snake_case c++ a.b/c 数据 ça it's #tag x=1 [1] a:b (p) q* ^r".split()
    rows = [make_row(at, term) for at, term in enumerate(terms, start=1)]
    context = make_row(len(rows) + 1, "other", context_terms="heading")
    store.replace_files([(make_record("memory/terms.md"), [*rows, context])])
    for at, term in enumerate(terms, start=1):
        lines = [stored.chunk.start_line for stored in read_chunks(store, store.search_text([term], 9))]
        verify(lines, [at], f"the term {term!r} is found in its line")
    verify(len(store.search_text(["heading"], 9)), 1, "terms of the context are found")
    for term in HOSTILE_TERMS:
        verify(store.search_text([term], 9), [], f"the term {term!r} is taken as text")
    assert store.search_text(["other", *HOSTILE_TERMS], 9), "hostile terms must not keep others from matching"


def _check_cosine(store: Store) -> None:
    """The vector search finds the nearest chunks by their cosine."""
    vectors = fill(store)
    query = make_vectors(1, seed=1)[0]
    exact = vectors @ query
    ids = sorted(hit.chunk_id for hit in store.search_vector(query, 100))
    verify(len(ids), 20, "all chunks with vectors are found")
    cosines = {chunk_id: float(exact[at]) for at, chunk_id in enumerate(ids)}
    hits = store.search_vector(query, 6)
    nearest = sorted(cosines, key=lambda chunk_id: -cosines[chunk_id])[:6]
    verify([hit.chunk_id for hit in hits], nearest, "the vector search finds the nearest chunks, nearest first")
    assert all(abs(hit.score - cosines[hit.chunk_id]) < 1e-5 for hit in hits), f"a score must be the cosine: {hits}"
    own = store.get_vectors([*ids[:3], ids[0], max(ids) + 1000])
    verify(set(own), set(ids[:3]), "vectors name the known ids alone")
    assert all(abs(float(own[at] @ query) - cosines[at]) < 1e-5 for at in own), "vectors must be those of the chunks"
    verify(store.search_vector(query, 0), [], "k=0 finds nothing")


def _check_sources(store: Store) -> None:
    """A search may be confined to notes or transcripts."""
    vectors = fill(store)
    for source in SOURCES:
        text, near = store.search_text(["every"], 99, source=source), store.search_vector(vectors[0], 99, source=source)
        sources = [[chunk.source for chunk in read_chunks(store, hits)] for hits in (text, near)]
        verify(sources, [[source] * 10] * 2, f"source={source!r} finds its 10 chunks")
    info = store.describe()
    verify(dict(info.sources), {"memory": (2, 10), "sessions": (2, 10)}, "sources are counted")
    verify((info.files, info.chunks, info.vectors), (4, 20, 20), "files, chunks and vectors are counted")
    store.remove_files(path for path in store.get_files() if path.startswith("sessions/"))
    verify(len(store.search_text(["every"], 100, source="memory")), 10, "the source that is left is found by name")
    verify(store.search_text(["every"], 100, source="sessions"), [], "a source without files finds nothing")


def _check_hits(store: Store) -> None:
    """One request finds the hits of both searches, of each source."""
    vectors = fill(store)
    counted = ["every", "file1", "n3", "none"]
    request = HitRequest(["n7", "n12"], vectors[7], vector_hits=3, all_cosines=True, counted=counted)
    hits = store.find_hits(request)
    counts = (dict(hits.frequencies), hits.chunk_count)
    verify(counts, ({"every": 20, "file1": 5, "n3": 1, "none": 0}, 20), "frequencies and chunks are counted")
    verify(len(hits.by_source), 2, "without a source, each source is searched on its own")
    for own, source in zip(hits.by_source, SOURCES, strict=True):
        text = {hit.chunk_id: hit.score for hit in store.search_text(["n7", "n12"], 60, source=source)}
        near = {hit.chunk_id: hit.score for hit in store.search_vector(vectors[7], 3, source=source)}
        verify(dict(own.text), text, f"keyword search in {source} finds the same as search_text")
        verify(dict(own.vector or {}), near, f"vector search in {source} finds the same as search_vector")
        verify(set(own.cosines), {*text, *near}, "with all_cosines, every hit has its cosine")
    every = replace(request, terms=["file1", "n7"], vector=None, match="all")
    verify([len(own.text) for own in store.find_hits(every).by_source], [0, 1], "match='all' wants all terms")
    more = store.find_hits(replace(every, enough=2)).by_source
    verify([len(own.text) for own in more], [0, 5], "fewer than `enough` are filled up with any")
    store.remove_files([path for path in store.get_files() if path.startswith("sessions/")])
    for _ in range(5):  # a store may answer from memory from some search on
        verify(len(store.find_hits(request).by_source), 1, "a source without files is not searched")


@dataclass(frozen=True)
class _InFiles:
    """Let the chunks of a file pass, and name the ranges that hold it."""

    path: str
    files: tuple[FileRange, ...]

    def __call__(self, path: str, metadata: Mapping[str, object]) -> bool:  # noqa: ARG002
        return path == self.path


def _check_where(store: Store) -> None:
    """A filter by metadata, paths and ranges of files holds in every search."""
    vectors = fill(store)
    rows = []
    for at, year in enumerate((1999, 2000.5, True, "2001", None)):
        row = make_row(at, f"every y{at}", key=make_key(at))
        fields: dict[str, Any] = {} if year is None else {"year": year, "kind": "note"}
        rows.append(replace(row, chunk=replace(row.chunk, metadata=fields)))
    dated = replace(make_record("memory/dated.md"), doc_id="years", part_of="calendar")
    store.replace_files([(dated, rows)])
    cases: list[tuple[Where, list[int]]] = [
        (lambda _, fields: fields.get("year") in {1999, 2000.5}, [0, 1]),
        (lambda _, fields: fields.get("year") is True, [2]),
        (lambda path, fields: path == "memory/dated.md" and fields.get("year") in {"2001", None}, [3, 4]),
        (_InFiles("memory/dated.md", (FileRange("path", "memory/dat", is_prefix=True),)), [*range(5)]),
        (_InFiles("memory/dated.md", (FileRange("doc_id", "years"),)), [*range(5)]),
        (_InFiles("memory/dated.md", (FileRange("part_of", "calendar"),)), [*range(5)]),
    ]
    for where, ordinals in cases:
        by_source = store.find_hits(HitRequest(["every"], vectors[0], where=where)).by_source
        ids = {chunk_id for own in by_source for chunk_id in own.text}
        verify(sorted(chunk.ordinal for chunk in store.get_chunks(ids)), ordinals, f"where={where} filters candidates")
        legs = (store.search_text(["every"], 99, where=where), store.search_vector(vectors[0], 99, where=where))
        verify([{hit.chunk_id for hit in leg} for leg in legs], [ids, ids], f"where={where} filters both searches")


def _check_threads(store: Store) -> None:
    """Each search beside a writer sees a file's old chunks or its new ones, never a mixture."""
    from concurrent.futures import ThreadPoolExecutor

    vectors = fill(store)
    rows = [make_row(1 + at, f"every file0 n{at}", key=make_key(at)) for at in range(5)]

    def write() -> None:
        for turn in range(20):
            store.replace_files([(make_record("memory/0.md", content=f"turn {turn}"), rows)])

    def read(writer: Future[None]) -> set[tuple[int, int]]:
        counts, is_last = set[tuple[int, int]](), False
        while not is_last:
            is_last = writer.done()
            counts.add((len(store.search_text(["file0"], 100)), len(store.search_vector(vectors[0], 100))))
        return counts

    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write)
        readers = [pool.submit(read, writer) for _ in range(2)]
        writer.result()
        for reader in readers:
            verify(reader.result(), {(5, 20)}, "a search beside a writer finds all chunks of a file")


def _check_identities(store: Store) -> None:
    """Vectors of different models never meet, and may be added before their build."""
    keys, identity = [make_key(number) for number in range(900)], "check/next"
    refuse(lambda: store.add_vectors(keys, make_vectors(900)), "without meta the identity must be named")
    store.add_vectors(keys, make_vectors(900, dims=DIMS * 2), identity)
    verify(store.read_meta(), None, "vectors of a named identity make no meta")
    verify(store.find_keys([*keys, make_key("no")], identity), set(keys), "vectors are known by identity")
    fill(store)
    verify(store.find_keys(keys), set(keys[:20]), "identities are told apart")
    verify(len(store.search_vector(make_vectors(1)[0], 100)), 20, "vectors of another identity are not found")
    rebuild(store, make_meta(identity))
    store.replace_files([(make_record("memory/0.md"), [make_row(1, "one", key=keys[7])])])
    hits = store.search_vector(make_vectors(900, dims=DIMS * 2)[7], 5)
    verify([round(hit.score, 5) for hit in hits], [1], "a vector is found once its identity is current")


def _check_prune(store: Store) -> None:
    """Vectors that no row uses are removed, and no others."""
    fill(store)
    store.add_vectors([make_key("next")], make_vectors(1, dims=3), "check/next")
    verify(store.prune(keep_unused=True), 0, "with keep_unused no vector goes")
    verify(store.prune(), 1, "a vector in use stays, an unused one goes")
    store.replace_files([(make_record("memory/shared.md"), [make_row(1, "every shared", key=make_key(5))])])
    store.remove_files(["sessions/1.jsonl"])  # the vectors 5 to 9, of which one is shared
    verify(store.prune(), 4, "unused vectors go")
    missing = {make_key(number) for number in range(20)} - store.find_keys(make_key(n) for n in range(20))
    verify(missing, {make_key(number) for number in range(6, 10)}, "shared vectors stay")
    verify(len(store.search_vector(make_vectors(1)[0], 100)), 16, "all chunks keep their vectors")


def _check_token_codes(store: Store) -> None:
    """The codes of tokens are stored with vectors, found by chunks, and removed with the vectors."""
    vectors, keys = fill(store), [make_key(number) for number in range(20)]

    def read_codes() -> dict[int, bytes]:
        chunks = store.get_chunks(read_ids(store, "memory/0.md"), token_codes=True)
        return {chunk.id: chunk.token_codes for chunk in chunks if chunk.token_codes}

    verify((store.find_keys(keys, with_token_codes=True), read_codes()), (set(), {}), "vectors without codes have none")
    verify(store.describe().without_tokens, 20, "chunks whose vectors have no codes are counted")
    store.add_vectors(keys[:2], vectors[:2], token_codes=[b"first", b""])
    store.add_vectors(keys[:1], vectors[:1], token_codes=[b"second"])
    verify(store.find_keys(keys, with_token_codes=True), set(keys[:2]), "stored vectors get codes")
    first = read_ids(store, "memory/0.md")[0]
    verify(read_codes(), {first: b"first"}, "stored codes stay")
    rebuild(store, make_meta())
    store.prune()
    verify(store.find_keys(keys, with_token_codes=True), set(), "codes go with their vectors")


def _check_builds(store: Store) -> None:
    """The next index is unseen until it is published, and then there is no other."""
    first = store.begin_build(make_meta())
    first.store.add_vectors([make_key(0)], make_vectors(1), make_meta().identity)
    begun_meta = first.store.read_meta()
    assert begun_meta is not None, "meta must be remembered while an index is built"
    verify(begun_meta.complete, False, "an index that is being built is not complete")
    first.abort()
    store.begin_build(make_meta(), keep_rows=True).publish()
    verify(store.find_keys([make_key(0)]), {make_key(0)}, "vectors of an aborted build stay")
    vectors = fill(store)
    aborted = store.begin_build(make_meta(), keep_rows=True)
    verify(aborted.store.describe().chunks, 20, "with keep_rows a build begins with the rows of the store")
    aborted.store.remove_files(list(aborted.store.get_files()))
    aborted.abort()
    verify(store.describe().chunks, 20, "an aborted build is not seen")
    build = store.begin_build(make_meta())
    verify(build.store.describe().chunks, 0, "a build begins without chunks")
    build.store.replace_files([(make_record("memory/new.md"), [make_row(1, "every next", key=make_key(3))])])
    verify(store.search_text(["next"], 5), [], "the next index is not seen before it is published")
    verify(len(store.search_vector(vectors[0], 100)), 20, "the old index answers until then")
    store.set_meta("meanwhile", "text")
    old = {hit.chunk_id for hit in store.search_text(["every"], 100)}
    build.publish()
    verify([*store.get_files()], ["memory/new.md"], "publish puts the next index in the place of the old one")
    new = [hit.chunk_id for hit in store.search_text(["every"], 100)]
    assert old.isdisjoint(new), "an id of the old index must not name another chunk"
    verify([hit.chunk_id for hit in store.search_vector(vectors[3], 5)], new, "publish brings terms and vectors")
    verify((store.get_meta("meanwhile"), store.verify()), ("text", ()), "a published store is sound and keeps texts")


def _check_locks(store: Store) -> None:
    """A lock is held by one block at a time, by its name."""
    from concurrent.futures import ThreadPoolExecutor

    store.set_meta("name", "text")  # so that there is a place for the lock

    def lock(name: str) -> bool:
        with store.lock(name, 0) as is_locked:
            return is_locked

    with ThreadPoolExecutor(1) as thread, store.lock("sync") as is_locked:
        verify((is_locked, lock("sync")), (True, False), "a free lock is taken, and not waited for by its own thread")
        assert "sync" in store.describe(counts=False).locked, "describe must name a lock that is held"
        assert thread.submit(lock, "watch").result(), "locks of other names must not keep each other out"
        refuse(lambda: thread.submit(lock, "sync").result(), "a held lock must keep threads out", SyncBusyError)
    assert "sync" not in store.describe(counts=False).locked, "a released lock must not be named"
    assert lock("sync"), "a released lock must be free"


def _check_recovery(store: Store) -> None:
    """A damaged index is emptied, and filled again."""
    fill(store)
    assert store.delete_damaged("a test says so"), "delete_damaged must return a sentence on what it did"
    state = store.read_meta(), dict(store.get_files()), store.describe().chunks
    verify(state, (None, {}, 0), "delete_damaged leaves an empty index")
    fill(store)
    verify(store.describe().chunks, 20, "a store is filled again after delete_damaged")


def _check_document_vectors(store: Store) -> None:
    """A vector of a whole file is found under its own identity, and meets no other."""
    vectors = fill(store)
    wide = make_vectors(3, dims=DIMS * 2, seed=2)
    query, identity = 0.6 * wide[0] + 0.3 * wide[1], "documents/model"
    verify(store.search_vector(query, 5, identity=identity), [], "an identity without rows finds nothing")
    for number in range(3):
        row = ChunkRow(Chunk(1, 1, 0, ""), "", "", make_key(f"document {number}"), identity)
        store.replace_files([(make_record(f"memory/document{number}.md"), [make_row(1, "every document"), row])])
    verify(dict(store.count_identities()), {identity: (3, 0)}, "rows wait for their vectors")
    wide[2] = 0
    store.add_vectors([make_key(f"document {number}") for number in range(3)], wide, identity)
    verify(dict(store.count_identities()), {identity: (3, 3)}, "rows with vectors are counted")
    with store.snapshot() as snapshot:
        hits = snapshot.search_vector(query, 5, identity=identity)
        paths = {chunk.id: chunk.path for chunk in read_chunks(snapshot, hits)}
        own = snapshot.get_vectors([hit.chunk_id for hit in hits])
    in_order = [paths[hit.chunk_id] for hit in hits]
    verify(sorted(in_order), [f"memory/document{number}.md" for number in range(3)], "all documents are found")
    verify(in_order[2], "memory/document2.md", "a vector of zeros is found last")
    assert all(abs(float(own[hit.chunk_id] @ query) - hit.score) < 1e-5 for hit in hits), "a score must be the cosine"
    refuse(lambda: store.search_vector(vectors[0], 5, identity=identity), "other dimensions must be refused")
    verify((store.describe().chunks, len(store.search_vector(vectors[0], 100))), (23, 20), "such rows are no chunks")
    store.add_vectors([make_key("spare")], wide[:1], identity)
    verify(store.prune(), 1, "a vector that a row names is not pruned")
    store.replace_files([(make_record("memory/document0.md"), [])])
    store.remove_files(["memory/document1.md"])
    verify(dict(store.count_identities()), {identity: (1, 1)}, "rows go with their files")
    hits = store.search_vector(query, 5, identity=identity)
    verify((len(hits), store.verify()), (1, ()), "removed rows are not found")


def make_meta(identity: str = "check/model") -> IndexMeta:
    """Make the meta of an index."""
    return IndexMeta("check", "model", identity, None, {"style": "headings", "max_chars": 700}, schema_version=1)


def make_record(path: str, source: Source = "memory", *, content: str = "") -> FileRecord:
    """Make the record of a file."""
    key = make_key(content)
    return FileRecord(path, source, key, size=len(content), mtime_ns=1 << 60, inode=7, checked_ns=9, ctime_ns=1 << 61)


def make_row(line: int, terms: str, *, context_terms: str = "", key: str | None = None) -> ChunkRow:
    """Make the row of a chunk of one line; its text is its terms."""
    return ChunkRow(Chunk(line, line, line * 10, terms, context_terms), terms, context_terms, key)


def make_key(text: object) -> str:
    """Make the key of a vector."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def make_vectors(count: int, dims: int = DIMS, seed: int = 0) -> Matrix:
    """Make random vectors of unit length."""
    import numpy as np

    rows = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def rebuild(store: Store, meta: IndexMeta) -> None:
    """Publish an empty index."""
    store.begin_build(meta).publish()


def fill(store: Store) -> Matrix:
    """Fill a store with 4 files of 5 numbered chunks, two in transcripts; return their vectors, by id."""
    vectors = make_vectors(20)
    rebuild(store, make_meta())
    store.add_vectors([make_key(number) for number in range(20)], vectors)
    for file in range(4):
        rows = [make_row(1 + at, f"every file{file} n{file * 5 + at}", key=make_key(file * 5 + at)) for at in range(5)]
        path, source = (f"sessions/{file}.jsonl", SOURCES[1]) if file % 2 else (f"memory/{file}.md", SOURCES[0])
        store.replace_files([(make_record(path, source, content=f"{file}"), rows)])
    return vectors


def read_ids(store: Store, path: str) -> list[int]:
    """Return the ids of a file's chunks, by way of its terms."""
    return [chunk.id for chunk in read_chunks(store, store.search_text(["every"], 1000)) if chunk.path == path]


def read_chunks(store: Store, hits: Iterable[Hit]) -> list[Any]:
    """Return the chunks of hits."""
    return store.get_chunks(hit.chunk_id for hit in hits)


STORE_CHECKS: tuple[Callable[[Store], None], ...] = (
    _check_empty, _check_meta, _check_files, _check_replace, _check_extend, _check_chunks, _check_text, _check_terms,
    _check_cosine, _check_sources, _check_hits, _check_where, _check_threads, _check_identities, _check_prune,
    _check_token_codes, _check_builds, _check_locks, _check_recovery, _check_document_vectors,
)  # fmt: skip
