"""Store the vectors of texts by model and key, with the codes of tokens, and remove those that no row uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from openclaw_memory.errors import EmbedderError, IndexReplacedError, StoreError
from openclaw_memory.store.connection import fetch, make_damage_error
from openclaw_memory.store.rows import META_KEY, read_value

if TYPE_CHECKING:
    from openclaw_memory.types import ChunkRow, IndexMeta

# Of a key's 32 bytes these are stored, twice (row and index). That any two of ten million texts share 72 bits of
# SHA-256 has a chance of 1e-8; of the million chunks of a large index, 1e-10.
KEY_BYTES = 9
KEYS_PER_LOOKUP = 400  # OpenClaw's number

CURRENT_IDENTITY = f"(SELECT value ->> '$.identity' FROM meta WHERE key = '{META_KEY}')"
MODEL = "SELECT id, dims FROM models WHERE identity = ?"
CURRENT_MODEL = f"""
SELECT models.id, models.dims, value ->> '$.dims' FROM meta LEFT JOIN models ON identity = value ->> '$.identity'
WHERE key = '{META_KEY}'
"""
# An all-zero vector has no direction: its id counts as none, so that such a chunk is found by its terms alone.
KNOWN_KEYS = f"""
SELECT wanted.value, iif(embedding = zeroblob(length(embedding)), NULL, vectors.id) FROM json_each(?) AS wanted
CROSS JOIN vectors ON vectors.model_id = ? AND vectors.key = substr(unhex(wanted.value), 1, {KEY_BYTES})
"""
COPY_DIMS = f"""
UPDATE meta SET value = json_set(value, '$.dims', known.dims) FROM (
  SELECT dims FROM models WHERE identity = {CURRENT_IDENTITY}
) AS known WHERE key = '{META_KEY}' AND known.dims IS NOT NULL
"""
ADD_VECTOR = "INSERT INTO vectors (model_id, key, embedding) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
IN_USE = "SELECT DISTINCT vector_id FROM chunks WHERE typeof(vector_id) = 'integer'"
IN_USE_OF_DOCUMENTS = """
SELECT vectors.id FROM document_vectors JOIN vectors
ON vectors.model_id = document_vectors.model_id AND vectors.key = document_vectors.key
"""
UNUSED = f"SELECT id FROM vectors WHERE id NOT IN ({IN_USE}) AND id NOT IN ({IN_USE_OF_DOCUMENTS})"
ROWS = "SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM document_vectors)"
QUICK_ROWS = 4096  # fewer are looked through in a millisecond
PRUNE = "DELETE FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
PRUNE_MODELS = f"""
DELETE FROM models WHERE identity IS NOT {CURRENT_IDENTITY}
AND NOT EXISTS (SELECT 1 FROM vectors WHERE model_id = models.id)
AND NOT EXISTS (SELECT 1 FROM document_vectors WHERE model_id = models.id)
"""
# The codes of tokens are in a table of their own: a row for each vector that came with tokens.
ADD_CODES = """
INSERT INTO token_codes (vector_id, codes) SELECT id, ? FROM vectors WHERE model_id = ? AND key = ?
ON CONFLICT DO NOTHING
"""
KEYS_WITH_CODES = f"""
SELECT wanted.value FROM json_each(?) AS wanted CROSS JOIN vectors
ON vectors.model_id = ? AND vectors.key = substr(unhex(wanted.value), 1, {KEY_BYTES})
CROSS JOIN token_codes ON vector_id = vectors.id
"""
CODES_OF_CHUNKS = """
SELECT chunks.id, codes FROM json_each(?) AS wanted
CROSS JOIN chunks ON chunks.id = wanted.value CROSS JOIN token_codes ON token_codes.vector_id = chunks.vector_id
WHERE codes != x''
"""
CHUNKS_WITH_VECTOR = "SELECT count(*) FROM chunks WHERE vector_id IS NOT NULL"
CHUNKS_WITH_CODES = (
    "SELECT count(*) FROM chunks JOIN token_codes ON token_codes.vector_id = chunks.vector_id WHERE codes != x''"
)
PRUNE_CODES = "DELETE FROM token_codes WHERE vector_id IN (SELECT value FROM json_each(?))"


def read_model(db: apsw.Connection, identity: str | None = None) -> tuple[int, int | None] | None:
    """Return id and dimensions (None before its first vectors) of a model; None for an unknown one.

    `identity` None means the one in meta.

    Raises:
        CorruptIndexError: Meta names a model that does not exist, or that has other dimensions.
    """
    if identity is not None:
        rows = fetch(db, MODEL, (identity,))
        return rows[0] if rows else None
    for model_id, dims, meta_dims in fetch(db, CURRENT_MODEL):
        if model_id is None or (dims is not None and meta_dims not in {None, dims}):
            raise make_damage_error(db.filename, f"its model has {dims} dimensions, its meta says {meta_dims}")
        return model_id, dims
    return None


def require_model(db: apsw.Connection) -> tuple[int, int | None]:
    """Return id and dimensions of the model in meta.

    Raises:
        IndexReplacedError: The index has no meta: no build was begun, or the file was deleted since.
    """
    model = read_model(db)
    if model is None:
        raise IndexReplacedError(f"{db.filename} has no meta, or lost it: call begin_build(meta) first, or sync again")
    return model


def add_model(db: apsw.Connection, identity: str, dims: int | None = None) -> int:
    """Return the id of a model, which is added where it is new. Raises EmbedderError as `fix_dims`."""
    db.execute("INSERT INTO models (identity) VALUES (?) ON CONFLICT DO NOTHING", (identity,))
    ((model_id,),) = fetch(db, "SELECT id FROM models WHERE identity = ?", (identity,))
    if dims is not None:
        fix_dims(db, model_id, dims)
    return int(model_id)


def fix_dims(db: apsw.Connection, model_id: int, dims: int) -> None:
    """Hold the vectors of a model to `dims` dimensions.

    Raises:
        EmbedderError: Its vectors have another number of dimensions.
    """
    ((identity, fixed),) = fetch(db, "SELECT identity, dims FROM models WHERE id = ?", (model_id,))
    if fixed is not None and fixed != dims:
        raise EmbedderError(
            f"the vectors have {dims} dimensions, {db.filename} holds some of {fixed} under the same identity, "
            f"{identity!r}; name the dimensions in the embedder's identity, or delete the index and sync again"
        )
    db.execute("UPDATE models SET dims = ? WHERE id = ?", (dims, model_id))
    copy_dims(db)


def copy_dims(db: apsw.Connection) -> None:
    """Copy the dimensions of the model in meta into meta, once it has some."""
    db.execute(COPY_DIMS)


def find_ids(
    db: apsw.Connection, rows: Iterable[ChunkRow], made_for: IndexMeta | None
) -> tuple[int | None, dict[str, int | None]]:
    """Return the dimensions of the current model, and the ids of the vectors that rows name.

    Raises:
        StoreError: A row names a vector that is not stored.
        IndexReplacedError: So it does, and was `made_for` an index, to which its builder has added the vector.
    """
    model_id, dims = require_model(db)
    keys = {row.vector_key for row in rows if row.vector_key is not None and row.identity is None}
    vector_ids = find_keys(db, model_id, keys)
    if missing := keys - vector_ids.keys():
        words = f"no vector is stored under {min(missing)!r}"
        if made_for is not None:
            raise IndexReplacedError(f"{words}: {db.filename} was deleted and built again meanwhile; sync again")
        raise StoreError(f"{words}; call add_vectors before the rows")
    return dims, vector_ids


def find_keys(db: apsw.Connection, model_id: int, keys: Iterable[str]) -> dict[str, int | None]:
    """Return which of the keys are stored, with the ids of their vectors (None for an all-zero one)."""
    return dict(look_up(db, KNOWN_KEYS, model_id, keys))


def look_up(db: apsw.Connection, statement: str, model_id: int, keys: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that takes keys as JSON, and a model."""
    key_list = list(keys)
    for first in range(0, len(key_list), KEYS_PER_LOOKUP):
        yield from fetch(db, statement, (json.dumps(key_list[first : first + KEYS_PER_LOOKUP]), model_id))


def add_vectors(db: apsw.Connection, model_id: int, keys: Sequence[str], embeddings: Iterable[bytes]) -> None:
    """Store embeddings by their keys; existing ones stay."""
    rows = zip(keys, embeddings, strict=True)
    db.executemany(ADD_VECTOR, ((model_id, digest(key), row) for key, row in rows))


def read_dims(db: apsw.Connection) -> int | None:
    """Return the dimensions of the model that the index has; None before its first vectors."""
    model = read_model(db)
    return None if model is None else model[1]


def count(db: apsw.Connection) -> int:
    """Return how many vectors are stored, of all models."""
    ((vectors,),) = fetch(db, "SELECT count(*) FROM vectors")
    return int(vectors)


def prune(db: apsw.Connection, *, is_erasing: bool) -> list[int]:
    """Remove the vectors that no row uses, and models without any; return the ids of the vectors.

    A large index that has no more vectors than rows is not looked through, unless a text is being erased.
    """
    ((rows,),) = fetch(db, ROWS)
    if not is_erasing and QUICK_ROWS <= rows >= count(db):
        return []
    ids = [vector_id for (vector_id,) in fetch(db, UNUSED)]
    db.execute(PRUNE, (as_json(ids),))
    db.execute(PRUNE_CODES, (as_json(ids),))
    db.execute(PRUNE_MODELS)
    return ids


def digest(key: str) -> bytes:
    """Return the bytes of a key that are stored. Raises StoreError for one that is not hexadecimal."""
    try:
        return bytes.fromhex(key)[:KEY_BYTES]
    except ValueError as error:
        raise StoreError(f"the vector key {key!r} is not hexadecimal; use the SHA-256 of the embedded text") from error


def as_json(ids: Iterable[int]) -> str:
    """Return ids as SQL's json_each reads them, each once."""
    return json.dumps(sorted(set(ids)))


# --- the codes of tokens ---------------------------------------------------------------------------------------------


def add_codes(db: apsw.Connection, model_id: int, keys: Sequence[str], codes: Sequence[bytes]) -> None:
    """Store codes with the vectors of these keys, which are stored; existing codes stay."""
    pairs = zip(keys, codes, strict=True)
    db.executemany(ADD_CODES, ((own, model_id, digest(key)) for key, own in pairs))


def find_keys_with_codes(db: apsw.Connection, model_id: int, keys: Iterable[str]) -> set[str]:
    """Return the keys of vectors that came with the codes of their tokens."""
    return {key for (key,) in look_up(db, KEYS_WITH_CODES, model_id, keys)}


def read_codes(db: apsw.Connection, ids: Iterable[int]) -> Mapping[int, bytes]:
    """Return the codes of chunks by id; those without codes are left out."""
    return dict(fetch(db, CODES_OF_CHUNKS, (as_json(ids),)))


def count_without_codes(db: apsw.Connection) -> int:
    """Count the chunks that have a vector but no codes."""
    ((chunks,),) = fetch(db, CHUNKS_WITH_VECTOR)
    return int(chunks - fetch(db, CHUNKS_WITH_CODES)[0][0])


# --- the codes of vectors, in a table of sqlite-vec ------------------------------------------------------------------

CODES_DIMS = "chunk_vectors_dims"  # the row of meta that says that chunk_vectors matches chunks
VEC0_MAX_DIMS = 8192  # sqlite-vec's own limit
# What vec0 itself looks up in its tables: where that cannot even be prepared, vec0 ends the process instead of failing.
LOOK_UPS = (
    "SELECT id, chunk_id, chunk_offset FROM chunk_vectors_rowids LIMIT 0",
    "SELECT chunk_id, size, sequence_id, partition00, validity, rowids FROM chunk_vectors_chunks LIMIT 0",
    "SELECT rowid, vectors FROM chunk_vectors_vector_chunks00 LIMIT 0",
)
HAS_VECTOR = "SELECT 1 FROM chunks WHERE vector_id IS NOT NULL LIMIT 1"
NEAREST = "SELECT rowid FROM chunk_vectors WHERE code MATCH vec_int8(?) AND k = ?"


def has_current_codes(db: apsw.Connection, dims: int) -> bool:
    """Return whether `chunk_vectors` holds the code of every chunk that has a vector."""
    return bool(read_value(db, CODES_DIMS) == dims)


def find_codes_error(db: apsw.Connection, dims: int) -> str | None:
    """Return why a search would not use `chunk_vectors`, after a real query; None when it would."""
    if not fetch(db, HAS_VECTOR):
        return None
    if dims > VEC0_MAX_DIMS:
        return f"sqlite-vec takes up to {VEC0_MAX_DIMS} dimensions, the vectors have {dims}"
    if not has_current_codes(db, dims):
        return "written without sqlite-vec: the next sync that changes a file fills its table again"
    try:
        try_look_ups(db)
        return None if fetch(db, NEAREST, (bytes(dims), 1)) else "sqlite-vec finds nothing"
    except apsw.Error as failure:
        return str(failure)


def try_look_ups(db: apsw.Connection) -> None:
    """Raise apsw.SQLError where the tables of `chunk_vectors` are not those that vec0 made."""
    for statement in LOOK_UPS:
        fetch(db, statement)
