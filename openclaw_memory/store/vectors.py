"""Vector search: coarse int8 codes in sqlite-vec find candidates, the stored vectors score them.

The unit vectors of chunks are stored as directions: int16, in half the room of float32. A cosine differs by some 2e-6
at 256 dimensions. Those that came with documents are given back, and stay float32. Without sqlite-vec, or where its
codes do not match the chunks, every vector is scored, page by page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw
import numpy as np

from openclaw_memory.errors import EmbedderError
from openclaw_memory.store import vector_rows
from openclaw_memory.store.connection import fetch
from openclaw_memory.store.vector_rows import as_json
from openclaw_memory.types import Hit, Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector

    Page: TypeAlias = tuple[list[int], Matrix]  # chunk ids, and their vectors in the same order

# OpenBLAS leaves a product of this many numbers to one thread: others would go on spinning, and double the CPU time.
PRODUCT_SIZE = 1 << 17
SCAN_ROWS = 4096  # bounds the memory of a scan: 4 MiB at 256 dimensions, 24 MiB at 1,536
LARGEST = 1e18  # the product of two such components is beyond float32; those of a unit vector are within 1
VEC0_MAX_K = 4096  # sqlite-vec's own limit
# vec0 writes whole blocks, at least one for each source. With blocks of 1,024 a search among 400 chunks took 1.2 ms,
# and 0.6 ms with these; among 60,000 16 ms and 17 ms.
VEC0_CHUNK_ROWS = 256
# A component of a unit vector is about 1 / sqrt(dims): codes span eight times that, and clip the rare one beyond.
CODE_SPAN = 8.0
CODE_MAX = 127
DIRECTION_MAX = 32_767
NO_DIRECTION = 1e-10  # embedders do not scale up what is shorter: it stays a vector of zeros
# More candidates than asked for make up for the rounding: with 32, nothing was lost among 100,000 chunks (recall@50).
# vec0 chooses the k nearest in time rows x k, so that small indexes can afford a slack that leaves nothing to chance.
MIN_SLACK, MAX_SLACK, SLACK_ROWS = 32, 128, 300_000
# With a filter so many times as many codes are fetched as would be enough if the chunks that pass were spread evenly;
# or the vectors of these chunks alone are read, where that is sooner: among 10,000 chunks of 256 dimensions one vector
# took 2 us to read, and vec0 1.3 ms and 13 us for each code that was fetched.
EVEN, SHARE_READ, SHARE_READ_BY_CODE = 1.25, 0.07, 0.0007

MODELS = "SELECT id, dims FROM models"
SHRINK = "UPDATE vectors SET embedding = ? WHERE id = ?"
WIDE_PAGE = """
SELECT id, embedding FROM vectors WHERE +model_id = ? AND id > ? AND length(embedding) > ? ORDER BY id LIMIT ?
"""
# By the plus sign, SQLite reads them by their ids, and not by the index of keys.
VECTOR_PAGE = "SELECT id, embedding FROM vectors WHERE +model_id = ? AND id > ? ORDER BY id LIMIT ?"
CREATE_CODES = f"""
CREATE VIRTUAL TABLE chunk_vectors USING vec0 (
  source TEXT PARTITION KEY, code INT8[{{dims}}], chunk_size={VEC0_CHUNK_ROWS}
)
"""
IDS_WITH_VECTOR = "SELECT id FROM chunks WHERE vector_id IS NOT NULL ORDER BY id"
EMBEDDINGS = """
SELECT chunks.id, vectors.embedding FROM json_each(?) AS wanted
CROSS JOIN chunks ON chunks.id = wanted.value CROSS JOIN vectors ON vectors.id = chunks.vector_id
"""
OF_IDS = """
SELECT vectors.id, vectors.embedding FROM json_each(?) AS wanted CROSS JOIN vectors ON vectors.id = wanted.value
"""
EMBEDDINGS_WITH_SOURCE = """
SELECT chunks.id, vectors.embedding, files.source FROM json_each(?) AS wanted
CROSS JOIN chunks ON chunks.id = wanted.value CROSS JOIN vectors ON vectors.id = chunks.vector_id
CROSS JOIN files ON files.id = chunks.file_id
"""
EMBEDDING_PAGE = """
SELECT chunks.id, vectors.embedding, files.source FROM chunks
JOIN vectors ON vectors.id = chunks.vector_id JOIN files ON files.id = chunks.file_id
WHERE chunks.id > ? AND (? IS NULL OR files.source = ?) ORDER BY chunks.id LIMIT ?
"""


def find_nearest(
    db: apsw.Connection,
    vector: Vector,
    dims: int,
    k: int,
    source: Source | None,
    passing: frozenset[int] | None = None,
    *,
    use_codes: bool,
) -> list[Hit]:
    """Return the k chunks of the highest cosine, best first; equal scores in order of id.

    A zero vector has no neighbours. With a set of ids `passing` a filter, other chunks are left out.
    """
    query = check_vector(vector, dims)
    if k < 1 or not query.any():
        return []
    ((count,),) = fetch(db, "SELECT count(*) FROM chunks")
    limit = enough = k + choose_slack(count)
    if passing is not None:
        limit = int(EVEN * enough * max(1.0, count / max(1, len(passing))))
    reads_all = passing is not None and len(passing) <= count * (SHARE_READ + SHARE_READ_BY_CODE * limit)
    pages: Iterable[Page] | None = None
    if use_codes and not reads_all and limit <= VEC0_MAX_K and vector_rows.has_current_codes(db, dims):
        near = _find_candidates(db, query, limit, source)
        ids = near if passing is None else [chunk_id for chunk_id in near if chunk_id in passing][:enough]
        if passing is None or len(ids) == enough or len(near) < limit:
            pages = [_read_candidates(db, ids, dims)]
    if pages is None:
        batches = _scan_pages(db, source) if passing is None else _read_pages(db, passing, source)
        pages = (decode_rows(rows, dims) for rows in batches)
    best: list[Hit] = []
    for ids, matrix in pages:
        scores = np.clip(score(matrix, query), -1, 1)
        best += [Hit(ids[row], float(scores[row])) for row in np.argsort(-scores, kind="stable")[:k].tolist()]
        best = sorted(best, key=lambda hit: (-hit.score, hit.chunk_id))[:k]
    return best


def choose_slack(count: int) -> int:
    """Return the number of codes to look at beyond those needed, among `count`."""
    return int(min(MAX_SLACK, max(MIN_SLACK, SLACK_ROWS // max(1, count))))


def score(matrix: Matrix, vector: Vector) -> Vector:
    """Return the products of the rows of a matrix, shape (n, dims), with a vector, shape (dims,)."""
    step = max(1, PRODUCT_SIZE // max(1, len(vector)))
    parts = [matrix[at : at + step] @ vector for at in range(0, max(1, len(matrix)), step)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def select_largest(values: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Return the places of the k largest values, and of all that equal the k-th."""
    if k >= len(values):
        return np.arange(len(values))
    return np.flatnonzero(values >= np.partition(values, len(values) - k)[len(values) - k])


def read_vectors(db: apsw.Connection, dims: int, ids: Iterable[int]) -> Mapping[int, Vector]:
    """Return the vector of each of these chunks; chunks without a vector are left out."""
    chunk_ids, matrix = _read_chunks(db, ids, dims)
    return dict(zip(chunk_ids, matrix, strict=True))


def check_vector(vector: Vector, dims: int) -> Vector:
    """Return `vector` as float32 of shape (dims,).

    Raises:
        EmbedderError: It holds no numbers, has another shape, or holds a NaN or an infinity.
    """
    try:
        query: Vector = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(f"the query vector holds no numbers ({error}); check the embedder") from error
    if query.shape != (dims,):
        raise EmbedderError(f"the query vector has shape {query.shape}, the index holds vectors of {dims} dimensions")
    if not np.isfinite(query).all():
        raise EmbedderError("the query vector holds a NaN or an infinity; check the embedder")
    return query


def check_matrix(vectors: Matrix, count: int) -> Matrix:
    """Return `vectors` as contiguous little-endian float32 of shape (count, dims), for storing.

    Raises:
        EmbedderError: It has another shape, no dimensions, a NaN or an infinity, or a component beyond 1e18.
    """
    matrix = np.ascontiguousarray(vectors, dtype="<f4")
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] < 1:
        raise EmbedderError(f"{count} texts gave vectors of shape {matrix.shape}; one row for each text is needed")
    if not _is_usable(matrix):
        raise EmbedderError(f"vectors with NaN, infinity or more than {LARGEST:g} are not stored; check the embedder")
    return matrix + np.float32(0)  # turns -0.0 into 0.0, so that an all-zero vector is all zero bytes


def pack(matrix: Matrix, *, exactly: bool) -> list[bytes]:
    """Return the rows of a checked matrix as they are stored: little-endian float32 if `exactly`, else int16.

    The latter fill the range of int16, whatever their largest component, and are read as unit vectors.
    """
    if not exactly:
        largest = np.abs(matrix).max(axis=1, keepdims=True)
        steps = np.where(largest > NO_DIRECTION, matrix / np.maximum(largest, NO_DIRECTION), 0) * DIRECTION_MAX
        matrix = np.rint(steps).astype("<i2")
    return [row.tobytes() for row in matrix]


def shrink_vectors(db: apsw.Connection, model_id: int, dims: int) -> None:
    """Store vectors of a model as directions that are float32: it is that of the chunks from now on."""
    last = 0
    while rows := fetch(db, WIDE_PAGE, (model_id, last, 2 * dims, SCAN_ROWS)):
        last = _advance(last, rows)
        ids, matrix = decode_rows(rows, dims)
        db.executemany(SHRINK, zip(pack(matrix, exactly=False), ids, strict=True))


# --- codes -------------------------------------------------------------------------------------------------------


def forget_codes(db: apsw.Connection) -> None:
    """Mark `chunk_vectors` as outdated; the next write with sqlite-vec fills it again."""
    db.execute("DELETE FROM meta WHERE key = ?", (vector_rows.CODES_DIMS,))


def update_codes(db: apsw.Connection, dims: int, removed: Iterable[int], added: Iterable[int]) -> None:
    """Update `chunk_vectors` for the chunks that this transaction has removed and added, by id.

    It is filled again where it is missing or outdated, and when most of its places have become holes.
    """
    if dims > vector_rows.VEC0_MAX_DIMS:
        return
    with _detect_damage(db):
        if not vector_rows.has_current_codes(db, dims):
            _fill_codes(db, dims)
            return
        vector_rows.try_look_ups(db)
        db.executemany("DELETE FROM chunk_vectors WHERE rowid = ?", ((chunk_id,) for chunk_id in removed))
        _insert_codes(db, fetch(db, EMBEDDINGS_WITH_SOURCE, (as_json(added),)), dims)
        if _is_sparse(db):
            _fill_codes(db, dims)


def find_problems(db: apsw.Connection) -> Iterator[str]:
    """Yield a sentence on each page of vectors, of any model, with one that was never written so.

    A flipped bit that leaves a vector finite is not found.
    """
    for model_id, dims in fetch(db, MODELS):
        last = 0
        while rows := fetch(db, VECTOR_PAGE, (model_id, last, SCAN_ROWS)):
            last = _advance(last, rows)
            try:
                decode_rows(rows, dims or 0)
            except apsw.CorruptError as error:
                yield f"vectors {rows[0][0]} to {last}: {error}"


def find_code_problems(db: apsw.Connection) -> Iterator[str]:
    """Yield in words where `chunk_vectors` holds codes of other chunks than those that have vectors."""
    coded: list[int] = []
    for numbers, valid in fetch(db, "SELECT rowids, validity FROM chunk_vectors_chunks"):
        taken = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little").astype(bool)
        coded += np.frombuffer(numbers, dtype="<i8")[taken].tolist()
    if sorted(coded) != [chunk_id for (chunk_id,) in fetch(db, IDS_WITH_VECTOR)]:
        yield "sqlite-vec: there are codes of chunks that do not exist, or chunks without one"


@contextmanager
def _detect_damage(db: apsw.Connection) -> Iterator[None]:
    """Distinguish damage from a full disk, for which vec0 has the same error.

    Raises:
        apsw.CorruptError: The tables of `chunk_vectors` are damaged.
        apsw.Error: Something else went wrong; the disk may be full.
    """
    try:
        yield
    except apsw.SQLError as error:
        # SQLite itself ends a transaction when the disk is full or fails, and not when it meets damage.
        kind = apsw.CorruptError if db.in_transaction else apsw.Error
        raise kind(f"sqlite-vec: {error}") from error


def _fill_codes(db: apsw.Connection, dims: int) -> None:
    db.execute("DROP TABLE IF EXISTS chunk_vectors")
    db.execute(CREATE_CODES.format(dims=int(dims)))
    for rows in _scan_pages(db, None):
        _insert_codes(db, rows, dims)
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (vector_rows.CODES_DIMS, dims))


def _insert_codes(db: apsw.Connection, rows: Sequence[tuple[Any, ...]], dims: int) -> None:
    """Add the codes of rows (chunk id, embedding, source)."""
    ids, matrix = decode_rows(rows, dims)
    codes = zip(ids, (row[2] for row in rows), (row.tobytes() for row in quantize(matrix)), strict=True)
    db.executemany("INSERT INTO chunk_vectors (rowid, source, code) VALUES (?, ?, vec_int8(?))", codes)


def _is_sparse(db: apsw.Connection) -> bool:
    """Return whether half of the places are holes: vec0 fills those of its last block, and drops only empty blocks."""
    ((blocks,),) = fetch(db, "SELECT count(*) FROM chunk_vectors_chunks")
    ((rows,),) = fetch(db, "SELECT count(*) FROM chunks")
    return bool(blocks * VEC0_CHUNK_ROWS > 2 * rows + 2 * VEC0_CHUNK_ROWS)


def quantize(matrix: Matrix) -> NDArray[np.int8]:
    """Return the coarse codes of unit vectors, shape (n, dims)."""
    scale = np.float32(CODE_MAX * max(1.0, matrix.shape[1] ** 0.5 / CODE_SPAN))
    codes: NDArray[np.int8] = np.clip(np.rint(matrix * scale), -CODE_MAX, CODE_MAX).astype(np.int8)
    return codes


def _find_candidates(db: apsw.Connection, query: Vector, k: int, source: Source | None) -> list[int]:
    code = quantize(query[np.newaxis, :]).tobytes()
    try:
        if source is None:
            rows = fetch(db, vector_rows.NEAREST, (code, k))
        else:
            rows = fetch(db, vector_rows.NEAREST + " AND source = ?", (code, k, source))
    except apsw.SQLError as error:  # a reading that vec0 cannot do, of tables that it wrote
        raise apsw.CorruptError(f"sqlite-vec: {error}") from error
    return [chunk_id for (chunk_id,) in rows]


def _read_candidates(db: apsw.Connection, candidates: Sequence[int], dims: int) -> Page:
    """Return the vectors of the candidates.

    Raises:
        apsw.CorruptError: Codes and chunks do not match.
    """
    page = _read_chunks(db, candidates, dims)
    if len(page[0]) != len(set(candidates)):
        raise apsw.CorruptError("sqlite-vec: there are codes of chunks that do not exist, or have no vector")
    return page


# --- exact vectors -----------------------------------------------------------------------------------------------


def _read_chunks(db: apsw.Connection, ids: Iterable[int], dims: int) -> Page:
    """Return those of these chunks that have a vector, by ascending id, and their vectors."""
    return decode_rows(fetch(db, EMBEDDINGS, (as_json(ids),)), dims)


def read_rows(db: apsw.Connection, ids: Sequence[int], dims: int) -> Page:
    """Return the vectors of these ids of vectors, in their order; unknown ones are left out."""
    return decode_rows(fetch(db, OF_IDS, (json.dumps(ids),)), dims)


def _read_pages(db: apsw.Connection, ids: Iterable[int], source: Source | None) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows (chunk id, embedding, source) of those of these chunks that have a vector, by ascending id."""
    order = sorted(ids)
    for first in range(0, len(order), SCAN_ROWS):
        rows = fetch(db, EMBEDDINGS_WITH_SOURCE, (as_json(order[first : first + SCAN_ROWS]),))
        yield [row for row in rows if source in {None, row[2]}]


def _scan_pages(db: apsw.Connection, source: Source | None) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows (chunk id, embedding, source) of all chunks that have a vector, in ascending order of id."""
    last = 0
    while rows := fetch(db, EMBEDDING_PAGE, (last, source, source, SCAN_ROWS)):
        yield rows
        last = _advance(last, rows)


def _advance(last: int, rows: Sequence[tuple[Any, ...]]) -> int:
    """Return the id of the last row of a page, after which the next one begins.

    Raises:
        apsw.CorruptError: It is not above `last`, and reading on would never end.
    """
    following = rows[-1][0]
    if not isinstance(following, int) or following <= last:
        raise apsw.CorruptError(f"row {following!r} came after row {last}")
    return following


def decode_rows(rows: Sequence[tuple[Any, ...]], dims: int) -> Page:
    """Return ids and vectors of rows (id, embedding).

    Raises:
        apsw.CorruptError: One of the vectors cannot be the written one.
    """
    parts = [_decode([row[1] for row in group], dims) for _, group in groupby(rows, lambda row: _measure(row[1]))]
    matrix = parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, dims), np.float32), *parts])
    return [row[0] for row in rows], matrix


def _decode(embeddings: Sequence[Any], dims: int) -> Matrix:
    """Return vectors that are stored in the same way as float32, shape (n, dims)."""
    size = _measure(embeddings[0])
    if dims and size == 2 * dims:
        matrix: Matrix = np.frombuffer(b"".join(embeddings), "<i2").reshape(-1, dims).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
        matrix /= np.where(lengths > 0, lengths, 1)[:, np.newaxis]
        return matrix
    if dims and size == 4 * dims:
        matrix = np.frombuffer(b"".join(embeddings), "<f4").reshape(-1, dims)
        if _is_usable(matrix):
            return matrix
    raise apsw.CorruptError(f"a vector is not one of {dims} finite numbers")


def _measure(embedding: Any) -> int:
    return len(embedding) if type(embedding) is bytes else -1


def _is_usable(vectors: Matrix | Vector) -> bool:
    """Return whether a cosine can be computed with these numbers; any comparison with a NaN is false."""
    return not vectors.size or bool(vectors.min() >= -LARGEST and vectors.max() <= LARGEST)
