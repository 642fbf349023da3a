"""Whether an index is kept in memory: from the fourth search of a process on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

    from openclaw_memory.store.resident import Resident

# The first searches walk the tables: a command asks once, and reading all vectors takes as long as some of these.
SEARCHES_BEFORE = 3


class Kept:
    """What is kept in memory of an index, from the fourth search on."""

    def __init__(self) -> None:
        self._searches = 0
        self._resident: Resident | None = None

    def following(self, db: apsw.Connection, max_bytes: int) -> AbstractContextManager[Resident | None]:
        """Return a context of what is kept, in the state of a transaction; of None where nothing is."""
        self._searches += 1
        if self._searches <= SEARCHES_BEFORE or not max_bytes:
            return nullcontext()
        from openclaw_memory.store.resident import Resident

        self._resident = self._resident or Resident()
        return self._resident.following(db, max_bytes)

    def close(self) -> None:
        """Forget it; a search under way ends first."""
        self._resident = None
