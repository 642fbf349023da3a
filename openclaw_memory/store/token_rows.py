"""Store the codes of tokens in a table of their own: a row for each vector that came with tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from openclaw_memory.store import schema, vector_rows
from openclaw_memory.store.connection import fetch

if TYPE_CHECKING:
    import apsw

ADD = """
INSERT INTO token_codes (vector_id, codes) SELECT id, ? FROM vectors WHERE model_id = ? AND key = ?
ON CONFLICT DO NOTHING
"""
KNOWN = f"""
SELECT wanted.value FROM json_each(?) AS wanted CROSS JOIN vectors
ON vectors.model_id = ? AND vectors.key = substr(unhex(wanted.value), 1, {vector_rows.KEY_BYTES})
CROSS JOIN token_codes ON vector_id = vectors.id
"""
OF_CHUNKS = """
SELECT chunks.id, codes FROM json_each(?) AS wanted
CROSS JOIN chunks ON chunks.id = wanted.value CROSS JOIN token_codes ON token_codes.vector_id = chunks.vector_id
WHERE codes != x''
"""
WITH_VECTOR = "SELECT count(*) FROM chunks WHERE vector_id IS NOT NULL"
WITH_CODES = (
    "SELECT count(*) FROM chunks JOIN token_codes ON token_codes.vector_id = chunks.vector_id WHERE codes != x''"
)
ODD = "SELECT count(*) FROM token_codes WHERE vector_id NOT IN (SELECT id FROM vectors)"
PRUNE = "DELETE FROM token_codes WHERE vector_id IN (SELECT value FROM json_each(?))"


def add(db: apsw.Connection, model_id: int, keys: Sequence[str], codes: Sequence[bytes]) -> None:
    """Store codes with the vectors of these keys, which are stored; existing codes stay."""
    schema.make_token_rows(db)
    pairs = zip(keys, codes, strict=True)
    db.executemany(ADD, ((own, model_id, vector_rows.digest(key)) for key, own in pairs))


def find_keys(db: apsw.Connection, model_id: int, keys: Iterable[str]) -> set[str]:
    """Return the keys of vectors that have a row here."""
    if not has_table(db):
        return set()
    return {key for (key,) in vector_rows.look_up(db, KNOWN, model_id, keys)}


def read_codes(db: apsw.Connection, ids: Iterable[int]) -> Mapping[int, bytes]:
    """Return the codes of chunks by id; those without codes are left out."""
    return dict(fetch(db, OF_CHUNKS, (vector_rows.as_json(ids),))) if has_table(db) else {}


def count_missing(db: apsw.Connection) -> int:
    """Count the chunks that have a vector but no codes."""
    ((chunks,),) = fetch(db, WITH_VECTOR)
    return int(chunks - fetch(db, WITH_CODES)[0][0]) if has_table(db) else int(chunks)


def prune(db: apsw.Connection, vector_ids: str) -> None:
    """Remove the codes of the vectors with these ids, which are JSON."""
    if has_table(db):
        db.execute(PRUNE, (vector_ids,))


def find_problem(db: apsw.Connection) -> str | None:
    """Return the fault of these rows in words; None for sound ones."""
    lost = int(fetch(db, ODD)[0][0]) if has_table(db) else 0
    return f"{lost} codes of tokens have a vector that does not exist" if lost else None


def has_table(db: apsw.Connection) -> bool:
    """Return whether this index has the table of these rows."""
    return bool(fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'token_codes'"))
