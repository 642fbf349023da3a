"""Check without numpy that a search can use the table of codes that sqlite-vec keeps."""

from __future__ import annotations

import apsw

from openclaw_memory.store.connection import fetch

CODES_DIMS = "chunk_vectors_dims"  # the row of meta that says that chunk_vectors matches chunks
VEC0_MAX_DIMS = 8192  # sqlite-vec's own limit
# What vec0 itself looks up in its tables: where that cannot even be prepared, vec0 ends the process instead of failing.
LOOK_UPS = (
    "SELECT id, chunk_id, chunk_offset FROM chunk_vectors_rowids LIMIT 0",
    "SELECT chunk_id, size, sequence_id, partition00, validity, rowids FROM chunk_vectors_chunks LIMIT 0",
    "SELECT rowid, vectors FROM chunk_vectors_vector_chunks00 LIMIT 0",
)
WITH_VECTOR = "SELECT 1 FROM chunks WHERE vector_id IS NOT NULL LIMIT 1"
NEAREST = "SELECT rowid FROM chunk_vectors WHERE code MATCH vec_int8(?) AND k = ?"


def is_current(db: apsw.Connection, dims: int) -> bool:
    """Return whether `chunk_vectors` holds the code of every chunk that has a vector."""
    return fetch(db, "SELECT value FROM meta WHERE key = ?", (CODES_DIMS,)) == [(dims,)]


def find_error(db: apsw.Connection, dims: int) -> str | None:
    """Return why a search would not use `chunk_vectors`, after a real query; None when it would."""
    if not fetch(db, WITH_VECTOR):
        return None
    if dims > VEC0_MAX_DIMS:
        return f"sqlite-vec takes up to {VEC0_MAX_DIMS} dimensions, the vectors have {dims}"
    if not is_current(db, dims):
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
