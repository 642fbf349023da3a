"""The state of an index: how much it holds, which paths of the engine work, and what is damaged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import apsw

from openclaw_memory.config.data_folder import locate_user_data
from openclaw_memory.errors import StoreError
from openclaw_memory.store import code_table, erasure, fts, rows, schema, token_rows, vector_cache
from openclaw_memory.store.connection import APPLICATION_ID, COMPANIONS, fetch, needs_hook
from openclaw_memory.store.footprint import bytes_needed, load_simsimd
from openclaw_memory.types import StoreInfo

ID_AT = 68  # where SQLite's header has the application's id

COUNTS = """
SELECT source, count(DISTINCT files.id), count(chunks.id)
FROM files LEFT JOIN chunks ON chunks.file_id = files.id GROUP BY source
"""


# What must not be in an index, each with the words that describe it. Terms are in a table of their own for every chunk.
ODD = {
    "chunks are not in the keyword index": """
SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM chunk_terms_docsize)
""",
    "rows of the keyword index belong to no chunk": """
SELECT count(*) FROM chunk_terms_docsize WHERE id NOT IN (SELECT id FROM chunks)
""",
    "chunks have a vector that does not exist": """
SELECT count(*) FROM chunks WHERE vector_id IS NOT NULL AND vector_id NOT IN (SELECT id FROM vectors)
""",
    "vectors have a model that does not exist": """
SELECT count(*) FROM vectors WHERE model_id NOT IN (SELECT id FROM models)
""",
}


def with_counts(
    info: StoreInfo,
    db: apsw.Connection,
    path: Path,
    extension: tuple[str | None, str | None],
    shortage: str | None,
) -> StoreInfo:
    """Return `info` with counts, sizes and working engine paths.

    `extension` is the path of sqlite-vec's library, or None and the reason why it is not loaded; `shortage` says
    that the disk is full.
    """
    library, vector_error = extension
    error = vector_error or _codes_error(db)
    counts = {source: (files, chunks) for source, files, chunks in fetch(db, COUNTS)}
    log_bytes = size_of(path.with_name(f"{path.name}-wal"))
    chunks = sum(count for _, count in counts.values())
    _, slow = load_simsimd()
    return replace(
        info,
        notices=(*info.notices, *filter(None, [shortage, slow])),
        files=sum(files for files, _ in counts.values()),
        chunks=chunks,
        vectors=vector_cache.count(db),
        without_tokens=token_rows.missing(db),
        sources=counts,
        vector_path="scan" if error else "sqlite-vec",
        vector_error=error,
        extension_path=library,
        size_bytes=size_of(path) + log_bytes,
        log_bytes=log_bytes,
        engine=_engine(db, with_vec=vector_error is None),
        memory_bytes=bytes_needed(chunks, vector_cache.dims(db) or 0),
        unerased=erasure.is_erasing(db),
    )


def problems(db: apsw.Connection, *, with_vec: bool) -> Iterator[str]:
    """Yield what is wrong with tables, chunks, terms, vectors and (where sqlite-vec is loaded) codes, in words.

    Raises:
        CorruptIndexError: Something that cannot even be read; nothing is looked at after it.
    """
    yield from (str(row[0]) for row in fetch(db, "PRAGMA integrity_check(10)") if row != ("ok",))
    rows.meta(db)
    rows.files(db)
    rows.last_id(db)
    yield from rows.problems(db)
    if wrong := schema.wrong_version(db):
        yield wrong
    for words, statement in ODD.items():
        yield from (f"{count} {words}" for (count,) in fetch(db, statement) if count)
    if wrong := token_rows.problem(db):
        yield wrong
    fts.document_frequencies(db, ["word"])
    dims = vector_cache.dims(db)
    if vector_cache.count(db):
        from openclaw_memory.store import vectors

        yield from vectors.problems(db)
        matches = with_vec and dims is not None and code_table.matches(db, dims)
        if matches and (error := code_table.error(db, int(dims or 0))):
            yield f"sqlite-vec: {error}"
        elif matches:
            yield from vectors.problems_of_codes(db)


def _codes_error(db: apsw.Connection) -> str | None:
    dims = vector_cache.dims(db)
    return None if dims is None else code_table.error(db, dims)


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it is missing."""
    try:
        return path.stat().st_size
    except OSError:  # the last connection that closes removes the log
        return 0


def _engine(db: apsw.Connection, *, with_vec: bool) -> Mapping[str, str]:
    statements = {"sqlite": "SELECT sqlite_version()", "journal_mode": "PRAGMA journal_mode"}
    if with_vec:
        statements["sqlite_vec"] = "SELECT vec_version()"
    found = {name: str(fetch(db, statement)[0][0]) for name, statement in statements.items()}
    return {"apsw": apsw.apsw_version(), **found}


def delete_damaged(index_path: Path) -> None:
    """Delete a damaged index, with its companions; no connection may be open on it.

    What was found where the caller said that the index is, and may not be one, is renamed to `<name>.damaged-<time>`.

    Raises:
        StoreError: It cannot be deleted; the folder may be read-only.
    """
    try:
        # The companions go first: a crash in between leaves a database without a journal, never a journal alone.
        for suffix in COMPANIONS:
            Path(f"{index_path}{suffix}").unlink(missing_ok=True)
        if index_path.is_relative_to(locate_user_data()) or _was_index(index_path):
            index_path.unlink()
        else:
            index_path.rename(f"{index_path}.damaged-{time.time_ns()}")
    except OSError as error:
        raise StoreError(
            f"{index_path} is damaged and cannot be deleted ({error}); delete it and sync again"
        ) from error


def _was_index(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(ID_AT + 4)
    return needs_hook(header) or header[ID_AT:] == APPLICATION_ID.to_bytes(4, "big")
