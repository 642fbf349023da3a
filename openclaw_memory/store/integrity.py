"""Measure an index, find its damage, and delete a damaged one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import apsw
from msgspec.structs import replace

from openclaw_memory.config.environment import locate_user_data
from openclaw_memory.errors import StoreError
from openclaw_memory.store import fts, rebuild, rows, vector_rows
from openclaw_memory.store.connection import APPLICATION_ID, COMPANIONS, fetch, needs_hook
from openclaw_memory.types import StoreInfo

# What was asked for is kept up to these limits: exact vectors, chunks, and postings, these for each chunk of the index.
EXACT_BYTES, MAX_CHUNKS, POSTING_BYTES = 8 << 20, 12_000, 256
BYTES_OF_TEXT = 1500  # of a chunk that was asked for, about
BYTES_OF_CHUNK = 39  # of any chunk but for its code: id, length, source and so on
ID_AT = 68  # where SQLite's header has the application's id

COUNTS = """
SELECT source, count(*), sum((SELECT count(*) FROM chunks WHERE file_id = files.id)) FROM files GROUP BY source
"""
COMMON_TERMS = "SELECT term FROM term_counts ORDER BY doc DESC LIMIT 64"  # most chunks hold one: each is ranked
# Counts of contradictions, each with the words that describe it. Every chunk has terms, in a table of their own.
CONTRADICTIONS = {
    "chunks are not in the keyword index": """
SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM chunk_terms_docsize)
""",
    "rows of the keyword index belong to no chunk": """
SELECT count(*) FROM chunk_terms_docsize WHERE id NOT IN (SELECT id FROM chunks)
""",
    "chunks have a vector that does not exist": """
SELECT count(*) FROM chunks WHERE vector_id IS NOT NULL AND vector_id NOT IN (SELECT id FROM vectors)
""",
    "codes of tokens have a vector that does not exist": """
SELECT count(*) FROM token_codes WHERE vector_id NOT IN (SELECT id FROM vectors)
""",
    "vectors have a model that does not exist": """
SELECT count(*) FROM vectors WHERE model_id NOT IN (SELECT id FROM models)
""",
}


def add_counts(info: StoreInfo, db: apsw.Connection, path: Path, extension: tuple[str | None, str | None]) -> StoreInfo:
    """Return `info` with counts, sizes and working engine paths.

    `extension` is the path of sqlite-vec's library, or None and the reason why it is not loaded.
    """
    library, vector_error = extension
    dims, with_vec = vector_rows.read_dims(db), vector_error is None
    error = vector_error or (None if dims is None else vector_rows.find_codes_error(db, dims))
    counts = {source: (files, chunks) for source, files, chunks in fetch(db, COUNTS)}
    chunks, log_bytes = sum(count for _, count in counts.values()), measure_file(path.with_name(f"{path.name}-wal"))
    statements = {"sqlite": "SELECT sqlite_version()", "journal_mode": "PRAGMA journal_mode"}
    statements |= {"sqlite_vec": "SELECT vec_version()"} if with_vec else {}
    return replace(
        info,
        files=sum(files for files, _ in counts.values()),
        chunks=chunks,
        vectors=vector_rows.count(db),
        without_tokens=vector_rows.count_without_codes(db),
        sources=counts,
        vector_path="scan" if error else "sqlite-vec",
        vector_error=error,
        extension_path=library,
        size_bytes=measure_file(path) + log_bytes,
        log_bytes=log_bytes,
        engine={
            "apsw": apsw.apsw_version(),
            **{name: str(fetch(db, statement)[0][0]) for name, statement in statements.items()},
        },
        memory_bytes=estimate_bytes(chunks, dims or 0),
        unerased=rebuild.has_unerased(db),
    )


def estimate_bytes(chunks: int, dims: int) -> int:
    """Return how much memory an index of so many chunks may come to take, with some room to grow."""
    of_chunks = chunks * (dims + BYTES_OF_CHUNK + POSTING_BYTES) * 9 // 8
    return of_chunks + min(EXACT_BYTES, chunks * 4 * dims) + min(chunks, MAX_CHUNKS) * BYTES_OF_TEXT


def list_problems(db: apsw.Connection, *, with_vec: bool) -> Iterator[str]:
    """Yield the faults of tables, chunks, terms, vectors and (if sqlite-vec is loaded) codes, in words.

    Raises:
        CorruptIndexError: A part cannot even be read; nothing is looked at after it.
    """
    yield from (str(row[0]) for row in fetch(db, "PRAGMA integrity_check(10)") if row != ("ok",))
    rows.read_meta(db)
    rows.find_files(db)
    rows.find_last_id(db)
    yield from rows.list_problems(db)
    for words, statement in CONTRADICTIONS.items():
        yield from (f"{count} {words}" for (count,) in fetch(db, statement) if count)
    fts.search(db, [term for (term,) in fetch(db, COMMON_TERMS)], 1 << 31, "any", None)
    dims = vector_rows.read_dims(db)
    if vector_rows.count(db):
        from openclaw_memory.store import vectors

        yield from vectors.find_problems(db)
        if with_vec and dims is not None and vector_rows.has_current_codes(db, dims):
            if error := vector_rows.find_codes_error(db, dims):
                yield f"sqlite-vec: {error}"
            else:
                yield from vectors.find_code_problems(db)


def measure_file(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it is missing."""
    try:
        return path.stat().st_size
    except OSError:  # the last connection that closes removes the log
        return 0


def delete_damaged(index_path: Path) -> None:
    """Delete a damaged index, with its companions; no connection may be open on it.

    A file at a path that the caller named, and that may not be an index, is renamed to `<name>.damaged-<time>`.

    Raises:
        StoreError: It cannot be deleted; the folder may be read-only.
    """
    try:
        # The companions go first: a crash in between leaves a database without a journal, never a journal alone.
        for suffix in COMPANIONS:
            Path(f"{index_path}{suffix}").unlink(missing_ok=True)
        with index_path.open("rb") as file:
            header = file.read(ID_AT + 4)
        is_index = needs_hook(header) or header[ID_AT:] == APPLICATION_ID.to_bytes(4, "big")
        if is_index or index_path.is_relative_to(locate_user_data()):
            index_path.unlink()
        else:
            index_path.rename(f"{index_path}.damaged-{time.time_ns()}")
    except OSError as error:
        raise StoreError(f"{index_path} is damaged and cannot be deleted ({error}): delete it, then sync") from error
