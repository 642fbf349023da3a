"""Keep the notes of a memory as rows of PostgreSQL, of which the folder of each worker is a copy."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory._log import warn
from openclaw_memory.errors import PathNotAllowedError, StoreError
from openclaw_memory.store.postgres_connections import (
    CONNECT_SECONDS,
    POOLS,
    as_query,
    lock_key,
    make_table,
    own_errors,
    take_tenant,
)
from openclaw_memory.store.postgres_rows import read, stored
from openclaw_memory.types.files import ENCRYPTED
from openclaw_memory.workspace.atomic import locked, make_folders, replace_file
from openclaw_memory.workspace.paths import LOWER_CASE_NOTE, NOTE_ENDINGS, NOTES_FOLDER, ROOT_NOTES
from openclaw_memory.workspace.stamps import stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    import psycopg

TABLE = "notes"
# A file that has gone keeps a row without path and bytes: other copies have to learn that it has.
DEFINITION = """CREATE TABLE IF NOT EXISTS {schema}.notes (
    tenant uuid NOT NULL,
    key text NOT NULL,               -- the SHA-256 of the path
    path text,
    bytes bytea,
    hash text,
    changed_ns bigint NOT NULL,
    version bigint NOT NULL,         -- counts the changes of a tenant
    PRIMARY KEY (tenant, key)
);
CREATE INDEX IF NOT EXISTS notes_version ON {schema}.notes (tenant, version)"""
_HEAD = "SELECT coalesce(max(version), 0) FROM {s}.notes WHERE tenant = %(tenant)s"
_NEWS = "SELECT key, path, bytes, hash, changed_ns FROM {s}.notes WHERE tenant = %(tenant)s AND version > %(version)s"
_OF_KEYS = _NEWS + " AND key = ANY(%(keys)s)"
_PUT = """INSERT INTO {s}.notes VALUES
    (%(tenant)s, %(key)s, %(path)s, %(bytes)s, %(hash)s, %(changed_ns)s, %(version)s)
    ON CONFLICT (tenant, key) DO UPDATE SET path = excluded.path, bytes = excluded.bytes, hash = excluded.hash,
        changed_ns = excluded.changed_ns, version = excluded.version"""
# Beside what is below `memory/`: what `promote` writes.
_LONG_TERM = (ROOT_NOTES[0], f"{ROOT_NOTES[0]}{ENCRYPTED}", LOWER_CASE_NOTE)
STATE, ASIDE = ("notes.json",), ("not-shared",)  # below the folder of what is derived
DERIVED = ".memory"


class Copied(NamedTuple):
    """A file of the folder, as it was when it was the same as its row."""

    hash: str
    stamp: tuple[int, ...]


class PostgresFiles:
    """The notes of one tenant, and their copy in the folder of a worker. Safe to use from several threads."""

    def __init__(
        self, url: str, schema: str, tenant: UUID, root: Path, tried: Callable[[Callable[[Any], Any]], Any]
    ) -> None:
        """Keep the notes of a tenant in a database, and their copy in `root`; `tried` runs a read as the store does."""
        self._url, self._schema, self._tenant, self._root, self._tried = url, schema, tenant, root, tried
        self._name = f"{schema}:{tenant}"
        self._writer: int | None = None  # the thread that holds the lock
        self._is_made = False
        self._seen = -1  # the version of the folder, as this object left it

    # --- what the layers above call -------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the folder up to date with the rows; one question to the server where nothing has changed.

        Raises:
            StoreError: The server cannot be reached, or the folder holds notes of its own.
            WriteError, PathNotAllowedError: A file cannot be written.
        """
        if self._writer == get_ident():
            return
        self._make_table()
        if self._tried(self._head) == self._seen:
            return
        make_folders(self._root, (NOTES_FOLDER,), NOTES_FOLDER)
        with locked(self._root / NOTES_FOLDER / ".lock", NOTES_FOLDER), self._connected() as connection:
            self._bring(connection)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the notes of the tenant while files are changed in the folder; they are rows when the block has ended.

        Call it with the lock of the folder held. What was checked in the block is what the rows say: the folder is
        brought up to date before. Where the rows cannot be written, the next use
        makes the files again what the rows say.

        Raises:
            StoreError: The server cannot be reached, or another worker held the notes for 10 s. Nothing is written.
        """
        if self._writer == get_ident():
            yield
            return
        self._make_table()
        with self._connected() as connection:
            with own_errors(self._url):
                connection.execute("BEGIN")
                connection.execute(as_query(f"SET LOCAL lock_timeout = '{CONNECT_SECONDS:g}s'"))
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("notes", self._name),))
            version, files = self._bring(connection)
            self._writer = get_ident()
            try:
                yield
            finally:  # of an error too: some files may be written
                self._writer = None
                self._push(connection, version, files)

    # --- rows and files -------------------------------------------------------------------------------------------

    def _make_table(self) -> None:
        if not self._is_made:
            self._tried(lambda connection: make_table(connection, self._schema, TABLE, DEFINITION))
            self._is_made = True

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection for this block alone: what it asks meanwhile has others."""
        with own_errors(self._url), POOLS.of(self._url, self._schema, held=True).connection(CONNECT_SECONDS) as one:
            take_tenant(one, str(self._tenant))
            yield one

    def _run(self, connection: psycopg.Connection[Any], statement: str, **values: Any) -> psycopg.Cursor[Any]:
        with own_errors(self._url):
            query = as_query(statement.replace("{s}", self._schema))
            return connection.execute(query, {"tenant": self._tenant, **values})

    def _head(self, connection: psycopg.Connection[Any]) -> int:
        row = self._run(connection, _HEAD).fetchone()
        return int(row[0]) if row else 0

    def _bring(self, connection: psycopg.Connection[Any]) -> tuple[int, dict[str, Copied]]:
        """Make the folder what the rows say; return their version and the files."""
        version, known = self._state()
        head = self._head(connection)
        there = {path: stamp_of(info) for path, info in self._files()}
        if version < 0 and not head:  # the first worker brings its notes
            self._seen = 0
            return 0, {}
        news = {one[0]: one[1:] for one in self._run(connection, _NEWS, version=version)}
        if version < 0:
            self._check_new(there, news)
        strange = [path for path, stamp in there.items() if path not in known or known[path].stamp != stamp]
        lost = [path for path in known if path not in there]
        keys = [_key(path) for path in (*strange, *lost)]
        old = {one[0]: one[1:] for one in self._run(connection, _OF_KEYS, version=-1, keys=keys)} if keys else {}
        files, names = dict(known), {_key(path): path for path in (*known, *there)}
        for key, (path, data, digest, changed_ns) in {**old, **news}.items():
            if path is None:
                if (name := names.get(key)) is not None:
                    self._removed(name, files.pop(name, None))
            else:
                name = read(path)
                files[name] = self._written(name, data, digest, changed_ns, files.get(name))
        for path in strange:
            if _key(path) not in old and _key(path) not in news:
                self._removed(path, files.pop(path, None))
        self._save(head, files)
        return head, files

    def _push(self, connection: psycopg.Connection[Any], version: int, files: dict[str, Copied]) -> None:
        """Write to the rows what has changed in the folder, in the transaction that has held the notes."""
        there = {path: stamp_of(info) for path, info in self._files()}
        now, changed = dict(files), False
        for path, stamp in there.items():
            if path in files and files[path].stamp == stamp:
                continue
            data = (self._root / path).read_bytes()
            now[path] = Copied(sha256(data).hexdigest(), stamp)
            if path in files and files[path].hash == now[path].hash:
                continue
            changed = True
            values = {"path": stored(path), "bytes": data, "hash": now[path].hash, "changed_ns": stamp[2]}
            self._run(connection, _PUT, key=_key(path), version=version + 1, **values)
        for path in files.keys() - there.keys():
            changed = True
            del now[path]
            gone = {"path": None, "bytes": None, "hash": None, "changed_ns": 0}
            self._run(connection, _PUT, key=_key(path), version=version + 1, **gone)
        with own_errors(self._url):
            connection.execute("COMMIT")
        self._save(version + 1 if changed else version, now)

    def _written(self, path: str, data: bytes, digest: str, changed_ns: int, known: Copied | None) -> Copied:
        """Write a file as its row is, unless it is so; return what it is now."""
        if not _is_shared(path):
            raise PathNotAllowedError(f"the database names a note {path!r}, which is none: it was not written")
        place, parts, seen = self._root / path, tuple(path.split("/")), None
        with suppress(FileNotFoundError):
            seen = os.lstat(place)
            if self._kept_aside(path, known, digest) == digest:
                return Copied(digest, stamp_of(seen))
        make_folders(self._root, parts[:-1], path)
        replace_file(str(self._root), parts, data, seen)
        os.utime(place, ns=(changed_ns, changed_ns))  # a note may have its day from that
        return Copied(digest, stamp_of(os.lstat(place)))

    def _removed(self, path: str, known: Copied | None) -> None:
        """Remove a file that no row has, and folders that are empty then."""
        place = self._root / path
        with suppress(FileNotFoundError):
            self._kept_aside(path, known)
            place.unlink()
        for folder in place.parents:
            if folder in {self._root / NOTES_FOLDER, self._root}:
                break
            with suppress(OSError):  # others are in it
                folder.rmdir()

    def _kept_aside(self, path: str, known: Copied | None, wanted: str = "") -> str:
        """Keep a copy of a file that is to go, of which no row has what it says; return its hash."""
        data = (self._root / path).read_bytes()
        digest = sha256(data).hexdigest()
        if digest != wanted and (known is None or known.hash != digest):
            aside = (DERIVED, *ASIDE, f"{digest[:16]}-{path.rpartition('/')[2]}")
            make_folders(self._root, aside[:-1], "/".join(aside))
            if not self._root.joinpath(*aside).exists():
                replace_file(str(self._root), aside, data, None)
            warn(f"{path} was not written through this memory, and is kept in {'/'.join(aside)}: add it again")
        return digest

    def _check_new(self, there: Iterable[str], news: Mapping[str, tuple[Any, ...]]) -> None:
        for path in there:
            digest = sha256((self._root / path).read_bytes()).hexdigest()
            if news.get(_key(path), (None, None, None))[2] != digest:
                raise StoreError(
                    f"{self._root} holds {path}, and the database has other notes of this tenant: open an "
                    "empty folder, and import there what an export of this one wrote"
                )

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files that are shared, with their stats; never through a link."""
        here = [name for name in os.listdir(self._root) if name in _LONG_TERM]
        top: list[tuple[str, list[str], list[str]]] = [(str(self._root), [], here)]
        for folder, folders, names in chain(top, os.walk(self._root / NOTES_FOLDER)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self._root).replace(os.sep, "/")
                with suppress(FileNotFoundError):
                    if _is_shared(path) and stat.S_ISREG((info := os.lstat(os.path.join(folder, name))).st_mode):
                        yield path, info

    # --- what the folder is a copy of -----------------------------------------------------------------------------

    def _state(self) -> tuple[int, dict[str, Copied]]:
        try:
            said = json.loads((self._root.joinpath(DERIVED, *STATE)).read_bytes())
            if said["of"] == self._name:
                return int(said["version"]), {
                    path: Copied(digest, tuple(stamp)) for path, (digest, stamp) in said["files"].items()
                }
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a folder that is new, or whose copy is to be looked at as a whole
        return -1, {}

    def _save(self, version: int, files: Mapping[str, Copied]) -> None:
        make_folders(self._root, (DERIVED,), DERIVED)
        path = self._root.joinpath(DERIVED, *STATE)
        data = json.dumps({"of": self._name, "version": version, "files": files}).encode()
        seen = os.lstat(path) if path.exists() else None
        replace_file(str(self._root), (DERIVED, *STATE), data, seen)
        self._seen = version


def _key(path: str) -> str:
    return sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _is_shared(path: str) -> bool:
    parts = path.split("/")
    if any(part in {"", ".", ".."} or part.startswith(".") for part in parts):
        return False
    return path in _LONG_TERM or (len(parts) > 1 and parts[0] == NOTES_FOLDER and path.endswith(NOTE_ENDINGS))
