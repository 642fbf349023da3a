"""Keep in memory the parts of an index that a search reads, so that it does not walk the tables.

That is a coarse code of each vector, the length of each chunk, and the chunks of each term that was asked for. Hits and
scores are those of FTS5 and of exact cosines. A row of meta names the last writes: following one costs what it wrote.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakSet

import apsw
import numpy as np

from openclaw_memory.store import fts, integrity, rows, vector_rows, vectors
from openclaw_memory.store.connection import fetch
from openclaw_memory.store.vector_rows import as_json
from openclaw_memory.types import Hit, Source, StoredChunk
from openclaw_memory.types.files import SOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector

K1, B, LEAST_IDF = 1.2, 0.75, 1e-6  # FTS5's own
PAGE_ROWS = 4096
MAX_FREQUENCIES = 50_000  # that are kept, 5 MB
FEW = 4  # chunks that pass a filter are few if there are more than so many times as many others
WAIT_SECONDS = 0.5  # for another thread's search, or for what it reads; then the tables are walked

ADDED = """
SELECT chunks.id, files.source, sizes.sz, vectors.id, vectors.embedding FROM chunks
CROSS JOIN files ON files.id = chunks.file_id CROSS JOIN chunk_terms_docsize AS sizes ON sizes.id = chunks.id
LEFT JOIN vectors ON vectors.id = chunks.vector_id WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?
"""
LENGTHS = "SELECT id, sz FROM chunk_terms_docsize WHERE id IN (SELECT value FROM json_each(?))"
TERM_PLACES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.term_places USING fts5vocab (main, chunk_terms, instance)"
# Of each place of a term the id of the chunk, negative for a word of the context.
PLACES = "SELECT group_concat(iif(col = 'terms', doc, -doc)) FROM temp.term_places WHERE term = ? AND doc > ?"
LATER = "SELECT 1 FROM chunk_terms WHERE chunk_terms MATCH ? AND rowid > ? LIMIT 1"


@dataclass(slots=True)
class Posting:
    """The places of the chunks that hold a term, ascending, and how often; a word of the context counts half.

    `last` is the id of the last chunk that was there when it was read, `gains` what the term adds to the scores of the
    chunks in the state of the index that `state` counts.
    """

    slots: NDArray[np.int32]
    counts: NDArray[np.float32]
    last: int
    gains: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    state: int = -1

    @property
    def size(self) -> int:
        return 16 * len(self.slots) + 400


_RESIDENTS: WeakSet[Resident] = WeakSet()  # of this process
_TURNS = count()


class Resident:
    """One state of an index in memory, followed from write to write. Chunks have a slot each, by ascending id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = self._state = 0
        self._clear()

    def _clear(self) -> None:
        self._written: object = None  # the row of changes
        self._tokens: list[int] = []
        self.count = self.chunk_count = self._last = 0  # slots, and chunks in them
        self.sources: list[Source] = []  # that hold chunks
        self._ids = np.empty(0, np.int64)
        self._alive = np.empty(0, bool)
        self._lengths = np.empty(0, np.float64)
        self._norms = np.empty(0, np.float64)
        self._sources = np.empty(0, np.int8)
        self._codes = np.empty((0, 0), np.int8)  # of no dimensions until the model has some
        self._vector_ids = np.empty(0, np.int64)  # of each slot, 0 for none
        self._exact: Matrix | None = None
        self._exact_rows = np.empty(0, np.int32)  # of each slot, -1 for none
        self._exact_used = 0
        self._postings: dict[str, Posting] = {}
        self._posting_bytes = 0
        self._frequencies: dict[str, int] = {}
        self._chunks: dict[int, StoredChunk] = {}
        self._last_mask: tuple[frozenset[int] | None, int, NDArray[np.bool_]] = None, 0, np.empty(0, bool)

    @contextmanager
    def follow(self, db: apsw.Connection, max_bytes: int | None = None) -> Iterator[Resident | None]:
        """Yield this in the state of a transaction, for one thread; None where it is not worth it, or too large.

        Without `max_bytes` it is yielded if it is in that state already.
        """
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            yield None
            return
        try:
            if max_bytes is None:
                is_current = self._written is not None and rows.read_value(db, rows.CHANGES) == self._written
            else:
                is_current = self._update(db, max_bytes)
            yield self if is_current else None
        finally:
            self._lock.release()

    def _count_bytes(self) -> int:
        dims = self._codes.shape[1]
        of_chunks = len(self._ids) * (dims + integrity.BYTES_OF_CHUNK) + self._posting_bytes
        return of_chunks + self._exact_used * 4 * dims + len(self._chunks) * integrity.BYTES_OF_TEXT

    def _update(self, db: apsw.Connection, max_bytes: int) -> bool:
        written = rows.read_value(db, rows.CHANGES)
        if written is None or written != self._written:
            log = rows.read_log(written)
            tokens = [token for token, _, _ in log]
            if not tokens or (tokens[-1] in self._tokens and tokens[-1] != self._tokens[-1]):
                return False  # of an earlier version of this library, or an older state than this one
            if self._tokens and self._tokens[-1] in tokens:
                new = log[tokens.index(self._tokens[-1]) + 1 :]
                self._remove({chunk_id for _, removed, _ in new for chunk_id in removed})
                self._renew(db, {chunk_id for _, _, renewed in new for chunk_id in renewed})
            else:
                self._clear()
            model = vector_rows.read_model(db)
            dims = 0 if model is None else model[1] or 0
            if not self._has_room(db, dims, max_bytes):
                self._clear()
                return False
            self._add(db, dims)
            self._written, self._tokens = written, tokens
        self._turn = next(_TURNS)
        return True

    def _has_room(self, db: apsw.Connection, dims: int, max_bytes: int) -> bool:
        """Return whether this index fits; others of this process, those used longest ago first, make room for it."""
        ((chunks,),) = fetch(db, "SELECT count(*) FROM chunks")
        size = integrity.estimate_bytes(int(chunks), dims)
        if size > max_bytes:
            return False
        _RESIDENTS.add(self)
        total = size
        for resident in sorted(set(_RESIDENTS) - {self}, key=lambda resident: resident._turn, reverse=True):
            total += resident._count_bytes()
            if total > max_bytes and resident._lock.acquire(blocking=False):  # no search is under way there
                resident._clear()
                resident._lock.release()
        return True

    # --- following writes ----------------------------------------------------------------------------------------

    def _remove(self, ids: Iterable[int]) -> None:
        slots = self._find_slots(ids)
        self._alive[slots] = False
        for chunk_id in self._ids[slots].tolist():
            self._chunks.pop(chunk_id, None)
        if 2 * int(self._alive[: self.count].sum()) < self.count:
            self._clear()

    def _renew(self, db: apsw.Connection, ids: Collection[int]) -> None:
        if ids:
            sizes = dict(fetch(db, LENGTHS, (as_json(ids),)))
            slots = self._find_slots(sizes)
            self._lengths[slots] = [_count_terms(sizes[chunk_id]) for chunk_id in self._ids[slots].tolist()]
            self._postings, self._posting_bytes = {}, 0

    def _find_slots(self, ids: Iterable[int]) -> NDArray[np.intp]:
        """Return the slots of these chunks; unknown ids are left out."""
        order = np.array(sorted(ids), np.int64)
        slots = np.searchsorted(self._ids[: self.count], order)
        slots, order = slots[slots < self.count], order[slots < self.count]
        matches: NDArray[np.intp] = slots[self._ids[slots] == order]
        return matches

    def _add(self, db: apsw.Connection, dims: int) -> None:
        """Read the chunks that came since."""
        while added := fetch(db, ADDED, (self._last, PAGE_ROWS)):
            first, last = self.count, self.count + len(added)
            self._grow(last, dims)
            self._ids[first:last] = [row[0] for row in added]
            self._sources[first:last] = [SOURCES.index(row[1]) for row in added]
            self._lengths[first:last] = [_count_terms(row[2]) for row in added]
            self._alive[first:last] = True
            self._exact_rows[first:last] = -1
            self._vector_ids[first:last] = [row[3] or 0 for row in added]
            coded = np.flatnonzero(self._vector_ids[first:last])
            if dims and len(coded):
                _, matrix = vectors.decode_rows([row[3:] for row in added if row[3]], dims)
                self._codes[first:last][coded] = vectors.quantize(matrix)
            self.count, self._last = last, added[-1][0]
        self._frequencies = {}
        lengths, alive = self._lengths[: self.count], self._alive[: self.count]
        self.chunk_count = int(alive.sum())
        mean = float(lengths[alive].sum()) / max(1, self.chunk_count)
        counts = np.bincount(self._sources[: self.count][alive], minlength=len(SOURCES)).tolist()
        self.sources = [source for source, number in zip(SOURCES, counts, strict=True) if number]
        self._norms = K1 * (1 - B + B * lengths / max(mean, 1e-9))
        self._state += 1

    def _grow(self, count: int, dims: int) -> None:
        if count > len(self._ids):
            room = count + max(count // 8, 64)
            for name in ("_ids", "_alive", "_lengths", "_sources", "_vector_ids", "_exact_rows"):
                old = getattr(self, name)
                setattr(self, name, np.resize(old, room) if len(old) else np.empty(room, old.dtype))
            self._codes = np.pad(self._codes, ((0, room - len(self._codes)), (0, 0)))
        if dims and not self._codes.shape[1]:
            self._codes = np.zeros((len(self._ids), dims), np.int8)

    # --- keywords ------------------------------------------------------------------------------------------------

    def count_documents(self, db: apsw.Connection, terms: Sequence[str]) -> dict[str, int]:
        """Count the chunks that hold each term, in text or context."""
        if new := [term for term in terms if term not in self._frequencies]:
            if len(self._frequencies) > MAX_FREQUENCIES:
                self._frequencies, new = {}, list(terms)
            self._frequencies |= fts.count_documents(db, new)
        return {term: self._frequencies[term] for term in terms}

    def rank(
        self, db: apsw.Connection, terms: Sequence[str], k: int, source: Source | None, passing: frozenset[int] | None
    ) -> list[Hit]:
        """Return the k best chunks by BM25, of those `passing` if a set is given; equal scores in order of id."""
        scores = np.zeros(self.count, np.float64)
        for term in terms:
            posting = self._load_posting(db, term)
            if posting.state != self._state:
                posting.gains, posting.state = self._compute_gains(posting), self._state
            scores[posting.slots] += posting.gains
        slots = np.flatnonzero((scores > 0) & self._select(source, passing))
        scores = scores[slots]
        best = vectors.select_largest(scores, k)
        best = best[np.argsort(-scores[best], kind="stable")[:k]]
        return list(map(Hit, self._ids[slots[best]].tolist(), scores[best].tolist()))

    def _compute_gains(self, posting: Posting) -> NDArray[np.float64]:
        frequency = int(np.count_nonzero(self._alive[posting.slots]))
        idf = max(math.log((self.chunk_count - frequency + 0.5) / (frequency + 0.5)), 0.0) or LEAST_IDF
        counts = posting.counts.astype(np.float64)  # as FTS5 computes, to the last bit
        gains: NDArray[np.float64] = idf * (counts * (K1 + 1) / (counts + self._norms[posting.slots]))
        return gains

    def _load_posting(self, db: apsw.Connection, term: str) -> Posting:
        old = self._postings.pop(term, None)
        posting = old or Posting(np.empty(0, np.int32), np.empty(0, np.float32), 0)
        if old is None or (old.last < self._last and fetch(db, LATER, (fts.quote(term), old.last))):
            posting = self._extend(db, term, posting)
            self._posting_bytes += posting.size - (old.size if old else 0)
            while self._posting_bytes > self.count * integrity.POSTING_BYTES and self._postings:
                self._posting_bytes -= self._postings.pop(next(iter(self._postings))).size
        posting.last = self._last
        self._postings[term] = posting
        return posting

    def _extend(self, db: apsw.Connection, term: str, old: Posting) -> Posting:
        """Return the posting of a term with the chunks that came since."""
        fetch(db, TERM_PLACES)
        ((places,),) = fetch(db, PLACES, (term, old.last))
        if places is None:
            return old
        columns = np.fromstring(places, np.int64, sep=",")
        weights = np.where(columns > 0, np.float32(1), np.float32(fts.CONTEXT_WEIGHT))
        all_ids = np.abs(columns)
        first = np.flatnonzero(np.diff(all_ids, prepend=0))
        ids = all_ids[first]
        slots = np.searchsorted(self._ids[: self.count], ids)
        if slots.max() >= self.count or (self._ids[slots] != ids).any():
            raise apsw.CorruptError(f"the term {term!r} is said to be in chunks that do not exist")
        counts = np.concatenate([old.counts, np.add.reduceat(weights, first)])
        return Posting(np.concatenate([old.slots, slots.astype(np.int32)]), counts, self._last)

    # --- vectors -------------------------------------------------------------------------------------------------

    def find_nearest(
        self, db: apsw.Connection, vector: Vector, k: int, source: Source | None, passing: frozenset[int] | None = None
    ) -> list[Hit]:
        """Return the k chunks of the highest cosine, of those `passing` if a set is given; equal scores by id."""
        if not self._codes.shape[1]:
            return []
        query = vectors.check_vector(vector, self._codes.shape[1])
        if k < 1 or not query.any():
            return []
        limit = k + vectors.choose_slack(self.chunk_count)
        slots = self._find_near(query, limit, self._select(source, passing))
        scores = np.clip(vectors.score(self._load_vectors(db, slots), query), -1, 1)
        order = np.lexsort((slots, -scores))[:k]
        return list(map(Hit, self._ids[slots[order]].tolist(), scores[order].tolist()))

    def _find_near(self, query: Vector, k: int, counted: NDArray[np.bool_]) -> NDArray[np.intp]:
        code = vectors.quantize(query[np.newaxis, :])
        counted = counted & (self._vector_ids[: self.count] > 0)
        if FEW * np.count_nonzero(counted) < self.count:  # their codes alone are multiplied
            slots = np.flatnonzero(counted)
            return slots[vectors.select_largest(score_codes(code, self._codes[slots]), k)] if len(slots) else slots
        products = score_codes(code, self._codes[: self.count])
        products[~counted] = -np.inf
        best = vectors.select_largest(products, k)
        return best[counted[best]]

    def get_vectors(self, db: apsw.Connection, ids: Iterable[int]) -> dict[int, Vector]:
        """Return the vector of each of these chunks; chunks without a vector are left out."""
        slots = self._find_slots(ids)
        slots = slots[(self._vector_ids[slots] > 0) & self._alive[slots]]
        return dict(zip(self._ids[slots].tolist(), self._load_vectors(db, slots), strict=True))

    def _load_vectors(self, db: apsw.Connection, slots: NDArray[np.intp]) -> Matrix:
        """Return the exact vectors of these slots, which ascend; shape (slots, dims).

        Raises:
            apsw.CorruptError: One of them has none.
        """
        dims = self._codes.shape[1]
        if not len(slots):
            return np.empty((0, dims), np.float32)
        room = integrity.EXACT_BYTES // (4 * dims)
        if len(slots) > room:
            return self._read_vectors(db, slots, dims)
        if self._exact is None:
            self._exact = np.empty((room, dims), np.float32)
        missing = slots[self._exact_rows[slots] < 0]
        if self._exact_used + len(missing) > room:
            self._exact_rows[:] = -1
            self._exact_used, missing = 0, slots
        if len(missing):
            rows_of = np.arange(self._exact_used, self._exact_used + len(missing))
            self._exact[rows_of] = self._read_vectors(db, missing, dims)
            self._exact_rows[missing] = rows_of
            self._exact_used += len(missing)
        return self._exact[self._exact_rows[slots]]

    def _read_vectors(self, db: apsw.Connection, slots: NDArray[np.intp], dims: int) -> Matrix:
        ids, matrix = vectors.read_rows(db, self._vector_ids[slots].tolist(), dims)
        if len(ids) < len(slots):
            raise apsw.CorruptError("a chunk has lost its vector")
        return matrix

    # --- chunks --------------------------------------------------------------------------------------------------

    def get_chunks(self, db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
        """Return these chunks, in ascending order of id; unknown ids are left out."""
        order, cache = sorted(set(ids)), self._chunks
        chunks = {chunk_id: cache[chunk_id] for chunk_id in order if chunk_id in cache}
        if len(chunks) < len(order):
            new = {chunk.id: chunk for chunk in rows.read_chunks(db, set(order) - chunks.keys())}
            if len(cache) + len(new) > integrity.MAX_CHUNKS:
                cache.clear()
            cache |= new
            chunks |= new
        return [chunks[chunk_id] for chunk_id in order if chunk_id in chunks]

    def _select(self, source: Source | None, passing: frozenset[int] | None = None) -> NDArray[np.bool_]:
        counted = self._alive[: self.count]
        if source is not None:
            counted = counted & (self._sources[: self.count] == SOURCES.index(source))
        return counted if passing is None else counted & self._mask(passing)

    def _mask(self, passing: frozenset[int]) -> NDArray[np.bool_]:
        """Return for each slot whether its chunk is among these; that of the last set is kept."""
        ids, state, mask = self._last_mask
        if ids is not passing or state != self._state:
            mask = np.zeros(self.count, bool)
            mask[self._find_slots(passing)] = True
            self._last_mask = passing, self._state, mask
        return mask


def score_codes(code: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Multiply a code with each of many."""
    import numkong

    products: NDArray[np.float32] = np.asarray(numkong.cdist(code, codes, metric="dot", out_dtype="float32"))[0]
    return products


def _count_terms(sizes: bytes) -> int:
    """Count the terms of both columns; FTS5 writes the two numbers with variable length."""
    total = number = 0
    for byte in sizes:
        number = number << 7 | byte & 127
        if byte < 128:
            total, number = total + number, 0
    return total
