"""Cache the vectors of texts for all workspaces of a user, so that no text is embedded, or paid for, twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from openclaw_memory._safe import warn
from openclaw_memory.config.environment import locate_user_data
from openclaw_memory.errors import StoreError
from openclaw_memory.store.connection import BUSY_TIMEOUT_MS, COMPANIONS, fetch, prepare_file

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix

# `key` is a digest of the model's identity and the text's key, `vector` holds int16 as in an index.
SCHEMA = """
PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS embeddings (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, workspace TEXT NOT NULL, vector BLOB NOT NULL, token_codes BLOB
);
CREATE INDEX IF NOT EXISTS embeddings_by_workspace ON embeddings (workspace);
"""
LOAD = "SELECT key, vector, token_codes FROM embeddings WHERE key IN (SELECT unhex(value) FROM json_each(?))"
SAVE = "INSERT OR REPLACE INTO embeddings (key, workspace, vector, token_codes) VALUES (?, ?, ?, ?)"
FORGET = "DELETE FROM embeddings WHERE workspace = ?; VACUUM"
PRUNE = "DELETE FROM embeddings WHERE id <= (SELECT max(id) FROM embeddings) - ?"


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class EmbeddingCache:
    """The vectors that a user's workspaces have had embedded, in one SQLite file. Safe to use from threads.

    It only saves work: a damaged file is made again, and where it cannot be used a warning is logged.

    Attributes:
        path: The file.
        workspace: The name under which vectors are saved, and forgotten.
        max_entries: How many vectors to keep; the oldest go first.
    """

    path: Path
    workspace: str
    max_entries: int

    def load(
        self, identity: str, keys: Iterable[str], *, with_token_codes: bool = False
    ) -> tuple[list[str], Matrix, list[bytes] | None] | None:
        """Return the vectors that are cached: their keys, one row for each, and its token codes if wanted.

        Args:
            identity: The model of the vectors.
            keys: The keys of texts.
            with_token_codes: Whether vectors without token codes are left out.
        """
        keys_by_digest = {_digest(identity, key): key for key in keys}
        if not keys_by_digest:
            return None
        digests = json.dumps([digest.hex() for digest in keys_by_digest])

        def read(db: apsw.Connection) -> tuple[list[str], Matrix, list[bytes] | None] | None:
            rows = [row for row in fetch(db, LOAD, (digests,)) if row[2] is not None or not with_token_codes]
            if not rows:
                return None
            from openclaw_memory.store.vectors import decode_rows

            _, matrix = decode_rows(rows, len(rows[0][1]) // 2)
            codes = [row[2] for row in rows] if with_token_codes else None
            return [keys_by_digest[row[0]] for row in rows], matrix, codes

        return self._run(read)

    def save(
        self, identity: str, keys: Sequence[str], vectors: Matrix, token_codes: Sequence[bytes] | None = None
    ) -> None:
        """Add vectors, shape (len(keys), dims), and remove the oldest ones beyond `max_entries`."""
        from openclaw_memory.store.vectors import pack

        codes: Sequence[bytes | None] = token_codes or [None] * len(keys)
        rows = [
            (_digest(identity, key), self.workspace, vector, own)
            for key, vector, own in zip(keys, pack(vectors, exactly=False), codes, strict=True)
        ]

        def write(db: apsw.Connection) -> None:
            with db:
                db.executemany(SAVE, rows)
                db.execute(PRUNE, (self.max_entries,))

        self._run(write, create=True)

    def count(self) -> int:
        """Return how many vectors are cached, of all workspaces."""
        rows = self._run(lambda db: fetch(db, "SELECT count(*) FROM embeddings"))
        return int(rows[0][0]) if rows else 0

    def forget(self) -> None:
        """Erase all vectors that this workspace has saved; those in its index stay there."""
        self._run(lambda db: fetch(db, FORGET, (self.workspace,)))

    def _run(self, work: Callable[[apsw.Connection], _Result], *, create: bool = False) -> _Result | None:
        """Run `work` on a connection and return its result; None, with a warning, if the file cannot be used."""
        if not (create or self.path.exists()):
            return None
        try:
            prepare_file(self.path)
            flags = apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_READWRITE
            with closing(apsw.Connection(str(self.path.resolve()), flags)) as db:
                db.set_busy_timeout(BUSY_TIMEOUT_MS)
                fetch(db, SCHEMA)
                return work(db)
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:
            warn(f"the cache of embeddings {self.path} is damaged ({error}): it is made again")
            for suffix in ("", *COMPANIONS):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        except (apsw.Error, StoreError, OSError) as error:
            warn(f"the cache of embeddings {self.path} cannot be used ({error}): texts are embedded without it")
        return None


def locate_cache() -> Path:
    """Locate the file of the user's cache. Raises ConfigError without a home folder."""
    return locate_user_data() / "embeddings.sqlite"


def _digest(identity: str, key: str) -> bytes:
    return sha256(f"{identity}\0{key}".encode()).digest()[:16]
