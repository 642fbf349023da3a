"""What an index is found to be: how much it holds, which paths of the engine work, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw

from openclaw_memory.store import cache, checksums, layout
from openclaw_memory.store.connection import fetch
from openclaw_memory.types import StoreStats

COUNTS = """
SELECT source, count(DISTINCT files.id), count(chunks.id)
FROM files LEFT JOIN chunks ON chunks.file_id = files.id GROUP BY source
"""


def stats(db: apsw.Connection, path: Path, vector_error: str | None) -> StoreStats:
    """Counts, sizes and which engine paths work; `vector_error` says why sqlite-vec is not loaded."""
    error = vector_error or _codes_error(db)
    counts = {source: (files, chunks) for source, files, chunks in fetch(db, COUNTS)}
    return StoreStats(
        files=sum(files for files, _ in counts.values()),
        chunks=sum(chunks for _, chunks in counts.values()),
        vectors=cache.count(db),
        sources=counts,
        vector_path="scan" if error else "sqlite-vec",
        vector_error=error,
        size_bytes=_size(path),
        engine=_engine(db, with_vec=vector_error is None),
    )


def problems(db: apsw.Connection, *, with_vec: bool) -> Iterator[str]:
    """What is wrong with tables, indexes, keyword index, codes (where sqlite-vec is loaded) and chunks, in words."""
    yield from (str(row[0]) for row in fetch(db, "PRAGMA integrity_check(10)") if row != ("ok",))
    yield from checksums.problems(db)
    if wrong := layout.wrong_version(db):
        yield wrong
    if with_vec and (error := _codes_error(db, only_damage=True)):
        yield f"sqlite-vec: {error}"


def _codes_error(db: apsw.Connection, *, only_damage: bool = False) -> str | None:
    found = cache.model(db)
    if found is None or found[1] is None:
        return None
    from openclaw_memory.store import vectors

    if only_damage and not vectors.codes_match(db, found[1]):
        return None
    return vectors.error_of_codes(db, found[1])


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _engine(db: apsw.Connection, *, with_vec: bool) -> Mapping[str, str]:
    statements = {"sqlite": "SELECT sqlite_version()", "journal_mode": "PRAGMA journal_mode"}
    if with_vec:
        statements["sqlite_vec"] = "SELECT vec_version()"
    found = {name: str(fetch(db, statement)[0][0]) for name, statement in statements.items()}
    return {"apsw": apsw.apsw_version(), **found}
