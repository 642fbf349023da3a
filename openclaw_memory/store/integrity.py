"""What an index is found to be: how much it holds, which paths of the engine work, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw

from openclaw_memory.store import document_rows, fts, rows, schema, vector_cache
from openclaw_memory.store.connection import fetch
from openclaw_memory.types import StoreStats

COUNTS = """
SELECT source, count(DISTINCT files.id), count(chunks.id)
FROM files LEFT JOIN chunks ON chunks.file_id = files.id GROUP BY source
"""


# What must not be there, by the words that tell of it. Terms lie in a table of their own for every chunk.
ODD = {
    "chunks are not in the keyword index": """
SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM chunk_terms_docsize)
""",
    "rows of the keyword index belong to no chunk": """
SELECT count(*) FROM chunk_terms_docsize WHERE id NOT IN (SELECT id FROM chunks)
""",
    "chunks have a vector that is not there": """
SELECT count(*) FROM chunks WHERE vector_id IS NOT NULL AND vector_id NOT IN (SELECT id FROM vectors)
""",
    "vectors have a model that is not there": """
SELECT count(*) FROM vectors WHERE model_id NOT IN (SELECT id FROM models)
""",
    "vectors have keys of another length": """
SELECT count(DISTINCT length(key)) - 1 FROM vectors WHERE true HAVING count(DISTINCT length(key)) > 1
""",
}
ODD_DOCUMENTS = {
    "vectors of documents belong to no file": """
SELECT count(*) FROM document_vectors WHERE file_id NOT IN (SELECT id FROM files)
""",
    "vectors of documents have a model that is not there": """
SELECT count(*) FROM document_vectors WHERE model_id NOT IN (SELECT id FROM models)
""",
}


def stats(db: apsw.Connection, path: Path, vector_error: str | None) -> StoreStats:
    """Counts, sizes and which engine paths work; `vector_error` says why sqlite-vec is not loaded."""
    error = vector_error or _codes_error(db)
    counts = {source: (files, chunks) for source, files, chunks in fetch(db, COUNTS)}
    return StoreStats(
        files=sum(files for files, _ in counts.values()),
        chunks=sum(chunks for _, chunks in counts.values()),
        vectors=vector_cache.count(db),
        sources=counts,
        vector_path="scan" if error else "sqlite-vec",
        vector_error=error,
        size_bytes=_size(path),
        engine=_engine(db, with_vec=vector_error is None),
    )


def problems(db: apsw.Connection, *, with_vec: bool) -> Iterator[str]:
    """What is wrong with tables, indexes, terms, vectors, codes (where sqlite-vec is loaded) and chunks, in words.

    Raises:
        CorruptIndexError: something that cannot even be read; nothing is looked at after it.
    """
    yield from (str(row[0]) for row in fetch(db, "PRAGMA integrity_check(10)") if row != ("ok",))
    yield from rows.problems(db)
    if wrong := schema.wrong_version(db):
        yield wrong
    odd = {**ODD, **ODD_DOCUMENTS} if document_rows.are_there(db) else ODD
    for words, statement in odd.items():
        yield from (f"{count} {words}" for (count,) in fetch(db, statement) if count)
    # Asked for the damage that they meet, not for what they say.
    rows.last_id(db)
    vector_cache.now(db)
    fts.document_frequencies(db, ["word"])
    yield from _vector_problems(db, with_vec=with_vec)


def _vector_problems(db: apsw.Connection, *, with_vec: bool) -> Iterator[str]:
    dims = _dims(db)
    if not vector_cache.count(db):
        return
    from openclaw_memory.store import vectors

    yield from vectors.problems(db)
    if with_vec and dims is not None and vectors.codes_match(db, dims):
        if error := vectors.error_of_codes(db, dims):
            yield f"sqlite-vec: {error}"
        yield from (f"sqlite-vec: {words}" for words in vectors.problems_of_codes(db, dims))


def _codes_error(db: apsw.Connection) -> str | None:
    dims = _dims(db)
    if dims is None:
        return None
    from openclaw_memory.store import vectors

    return vectors.error_of_codes(db, dims)


def _dims(db: apsw.Connection) -> int | None:
    found = vector_cache.model(db)
    return None if found is None else found[1]


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _engine(db: apsw.Connection, *, with_vec: bool) -> Mapping[str, str]:
    statements = {"sqlite": "SELECT sqlite_version()", "journal_mode": "PRAGMA journal_mode"}
    if with_vec:
        statements["sqlite_vec"] = "SELECT vec_version()"
    found = {name: str(fetch(db, statement)[0][0]) for name, statement in statements.items()}
    return {"apsw": apsw.apsw_version(), **found}
