"""A row of meta that names the last writes, so that those who keep a part of the index in memory can follow them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openclaw_memory.store.connection import fetch

if TYPE_CHECKING:
    import apsw

ROW = "changes"  # [[token, ids of the chunks that it removed, ids of those whose terms it changed], ...], latest last
MAX_WRITES, MAX_IDS = 64, 2000


def record(db: apsw.Connection, removed: Iterable[int], renewed: Iterable[int] = ()) -> None:
    """Record the chunks that this transaction removed, and those that got other terms."""
    import secrets

    writes = [*log(read_row(db)), [secrets.randbits(53), list(removed), list(renewed)]][-MAX_WRITES:]
    while len(writes) > 1 and sum(len(ids) for _, *lists in writes for ids in lists) > MAX_IDS:
        del writes[0]
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (ROW, json.dumps(writes)))


def read_row(db: apsw.Connection) -> object:
    """Return the row as it is stored; None where there is none."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (ROW,))
    return rows[0][0] if rows else None


def log(row: object) -> list[list[Any]]:
    """Return the writes that the row names; none where it cannot be read, and the next write begins another list."""
    with suppress(TypeError, ValueError):
        writes = json.loads(row)  # type: ignore[arg-type]
        if all(isinstance(token, int) for token, _, _ in writes):
            return list(writes)
    return []
