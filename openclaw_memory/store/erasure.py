"""Erase the bytes of removed rows: noted when they go, and erased at the end of a sync.

`PRAGMA secure_delete` is not enough: pages that SQLite balances keep copies of rows that have moved away. Only a file
that is written again from its rows holds nothing but the index.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from openclaw_memory.store import fts, rebuild
from openclaw_memory.store.connection import WRITE, begin, fetch
from openclaw_memory.store.rows import SET_META

if TYPE_CHECKING:
    import apsw

# Rows of meta: one that is there while no vector may have become unused since the last pruning; and a number, another
# one after each removal, while there is something to erase.
PRUNED, ERASE = "pruned", "erase"
TRIES = 5  # a tenth of a second: searches are over by then, and other readers are not waited for


def record_removal(db: apsw.Connection, *, erase: bool) -> None:
    """Note, in the transaction of a change, that vectors may be in no use; with `erase`, that a text was removed."""
    db.execute("DELETE FROM meta WHERE key = ?", (PRUNED,))
    if erase:
        db.execute(SET_META, (ERASE, secrets.randbits(60)))


def is_due(db: apsw.Connection, *, keep_unused: bool) -> bool:
    """Return whether there is anything to prune or to erase."""
    return is_pending(db) or (not keep_unused and _read_value(db, PRUNED) is None)


def is_pending(db: apsw.Connection) -> bool:
    """Return whether a removed text was not erased yet."""
    return _read_value(db, ERASE) is not None


def mark_pruned(db: apsw.Connection) -> None:
    """Note, in the transaction that removes unused vectors, that it did."""
    db.execute(SET_META, (PRUNED, 1))


def erase(db: apsw.Connection) -> None:
    """Erase the bytes of removed rows, outside any transaction.

    Something stays while a reader, in any process, still holds an old state: the next sync goes on.
    """
    if (number := _read_value(db, ERASE)) is None:
        return
    with begin(db, WRITE):
        fts.merge(db)
    # An index beyond the page cache would be in memory as a whole, did the copy go where temporary tables go.
    fetch(db, "PRAGMA temp_store = FILE")
    try:
        db.execute("VACUUM")
    finally:
        fetch(db, "PRAGMA temp_store = MEMORY")
    if rebuild.settle(db, TRIES):
        db.execute("DELETE FROM meta WHERE key = ? AND value = ?", (ERASE, number))


def _read_value(db: apsw.Connection, name: str) -> int | None:
    values = fetch(db, "SELECT value FROM meta WHERE key = ?", (name,))
    return values[0][0] if values else None
