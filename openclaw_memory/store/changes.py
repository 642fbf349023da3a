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


def note(db: apsw.Connection, removed: Iterable[int], renewed: Iterable[int] = ()) -> None:
    """Note which chunks the write of this transaction removed, and of which it changed the terms."""
    import secrets

    writes = [*log(written(db)), [secrets.randbits(53), list(removed), list(renewed)]][-MAX_WRITES:]
    while len(writes) > 1 and sum(len(gone) + len(others) for _, gone, others in writes) > MAX_IDS:
        del writes[0]
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (ROW, json.dumps(writes)))


def written(db: apsw.Connection) -> object:
    """Return the row as it is written; None where there is none."""
    found = fetch(db, "SELECT value FROM meta WHERE key = ?", (ROW,))
    return found[0][0] if found else None


def log(row: object) -> list[list[Any]]:
    """Return the writes that the row names; none where it cannot be read, and the next write begins another list."""
    with suppress(TypeError, ValueError):
        writes = json.loads(row)  # type: ignore[arg-type]
        if all(isinstance(token, int) for token, _, _ in writes):
            return list(writes)
    return []
