"""Read the items of another program's database: the table `store` of LangGraph's `SqliteStore`."""

from __future__ import annotations

from pathlib import Path

from openclaw_memory.errors import InvalidInputError

COMPANION = "-wal"  # what was written last may be in this file next to the database
_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at", "expires_at")
_LATE = _COLUMNS[3:]  # what a database of an early version may lack


def langgraph_items(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of the table `store`: prefix, key, value, created_at, updated_at, expires_at; "" for a null.

    The database is only read.

    Args:
        path: The database.

    Raises:
        InvalidInputError: It is damaged, locked, or has no such table.
    """
    import apsw

    from openclaw_memory.store.connection import fetch

    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            names = {row[1] for row in fetch(db, "PRAGMA table_info(store)")}
            if not names.issuperset(_COLUMNS[:3]):
                raise InvalidInputError(
                    f"{path} has no table `store` of LangGraph's SqliteStore: name the database that the store was "
                    "opened with, not that of the checkpoints"
                )
            wanted = ", ".join(name if name in names else "NULL" for name in _COLUMNS)
            rows = fetch(db, f"SELECT {wanted} FROM store ORDER BY prefix, key")
        finally:
            db.close()
    except (apsw.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read as a database ({error}): close the program that uses it, or restore a copy"
        ) from error
    return [tuple(map(_text, row)) for row in rows]


def _text(value: object) -> str:
    """Return a value as text. The store writes JSON as bytes; what of it is not UTF-8 becomes U+FFFD."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
