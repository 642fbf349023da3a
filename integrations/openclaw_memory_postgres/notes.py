"""Keep the notes of a memory as rows of PostgreSQL, with a copy in the folder of each worker."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory.errors import NotFoundError, PathNotAllowedError, StoreError
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_postgres import connections
from openclaw_memory_postgres.rows import encode, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    import psycopg

log = logging.getLogger(__name__)

_HEAD = "SELECT coalesce(max(version), 0) FROM {s}.notes WHERE tenant = %(tenant)s"
_NEWS = "SELECT key, path, bytes, hash, changed_ns FROM {s}.notes WHERE tenant = %(tenant)s AND version > %(version)s"
_OF_KEYS = _NEWS + " AND key = ANY(%(keys)s)"
_PUT = """INSERT INTO {s}.notes VALUES
    (%(tenant)s, %(key)s, %(path)s, %(bytes)s, %(hash)s, %(changed_ns)s, %(version)s)
    ON CONFLICT (tenant, key) DO UPDATE SET path = excluded.path, bytes = excluded.bytes, hash = excluded.hash,
        changed_ns = excluded.changed_ns, version = excluded.version"""
NOTES_FOLDER = "memory"
ENDINGS = (".md", ".md.age")
LONG_TERM = ("MEMORY.md", "MEMORY.md.age", "memory.md")  # beside the folder: what `promote` writes
STATE, ASIDE = "notes.json", "not-shared"  # in the user's data folder


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
        self._folder, self._data = SafeFolder(root), SafeFolder.locate_data(root)
        self._name = f"{schema}:{tenant}"
        self._writer: int | None = None  # the thread that holds the lock
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
        if self._tried(self._read_version) == self._seen:
            return
        with self._folder.lock(f"{NOTES_FOLDER}/.lock"), self._connect() as connection:
            with connections.begin(connection, self._tenant):
                head = self._read_version(connection)
            self._pull(connection, head)

    @contextmanager
    def lock(self) -> Iterator[None]:
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
        with self._connect() as connection:
            with connections.begin(connection, self._tenant):
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (connections.lock_key("notes", self._name),))
            version, files = self._pull(connection, self._read_version(connection))
            self._writer = get_ident()
            try:
                yield
            finally:  # of an error too: some files may be written
                self._writer = None
                self._push(connection, version, files)

    # --- rows and files -------------------------------------------------------------------------------------------

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection for this block alone."""
        pool = connections.POOLS.get_pool(self._url, self._schema, is_held=True)
        with connections.map_errors(self._url), pool.connection(connections.CONNECT_SECONDS) as connection:
            yield connection

    def _run(self, connection: psycopg.Connection[Any], statement: str, **values: Any) -> psycopg.Cursor[Any]:
        query = connections.as_query(statement.replace("{s}", self._schema))
        return connection.execute(query, {"tenant": self._tenant, **values})

    def _read_version(self, connection: psycopg.Connection[Any]) -> int:
        row = self._run(connection, _HEAD).fetchone()
        return int(row[0]) if row else 0

    def _pull(self, connection: psycopg.Connection[Any], head: int) -> tuple[int, dict[str, Copied]]:
        """Bring the folder up to date with the rows of version `head`; return the version and the files."""
        version, copies = self._read_state()
        there = {path: _stamp(info) for path, info in self._list_files()}
        if version < 0 and not head:  # the first worker brings its notes
            self._seen = 0
            return 0, {}
        news = {row[0]: row[1:] for row in self._run(connection, _NEWS, version=version)}
        if version < 0:
            self._check_new(there, news)
        strange = [path for path, stamp in there.items() if path not in copies or copies[path].stamp != stamp]
        lost = [path for path in copies if path not in there]
        keys = [_hash_path(path) for path in (*strange, *lost)]
        old = {row[0]: row[1:] for row in self._run(connection, _OF_KEYS, version=-1, keys=keys)} if keys else {}
        files, names = dict(copies), {_hash_path(path): path for path in (*copies, *there)}
        for key, (path, data, digest, changed_ns) in {**old, **news}.items():
            if path is None:
                if (name := names.get(key)) is not None:
                    self._remove(name, files.pop(name, None))
            else:
                name = read(path)
                files[name] = self._put(name, data, digest, changed_ns, files.get(name))
        for path in strange:
            if _hash_path(path) not in old and _hash_path(path) not in news:
                self._remove(path, files.pop(path, None))
        self._save(head, files)
        return head, files

    def _push(self, connection: psycopg.Connection[Any], version: int, files: dict[str, Copied]) -> None:
        """Write changed files to the rows, in the transaction that holds the notes."""
        there = {path: _stamp(info) for path, info in self._list_files()}
        now, changed = dict(files), False
        for path, stamp in there.items():
            if path in files and files[path].stamp == stamp:
                continue
            data = self._folder.read(path)
            now[path] = Copied(sha256(data).hexdigest(), stamp)
            if path in files and files[path].hash == now[path].hash:
                continue
            changed = True
            values = {"path": encode(path), "bytes": data, "hash": now[path].hash, "changed_ns": stamp[2]}
            self._run(connection, _PUT, key=_hash_path(path), version=version + 1, **values)
        for path in files.keys() - there.keys():
            changed = True
            del now[path]
            empty = {"path": None, "bytes": None, "hash": None, "changed_ns": 0}
            self._run(connection, _PUT, key=_hash_path(path), version=version + 1, **empty)
        connection.execute("COMMIT")
        self._save(version + 1 if changed else version, now)

    def _put(self, path: str, data: bytes, digest: str, changed_ns: int, copied: Copied | None) -> Copied:
        """Write the file of a row, unless it is the same; return its hash and stamp."""
        if not _is_shared(path):
            raise PathNotAllowedError(f"the database names a note {path!r}, which is none: it was not written")
        place = self._root / path
        with suppress(NotFoundError):
            if self._keep_aside(path, copied, digest) == digest:
                return Copied(digest, _stamp(os.lstat(place)))
        self._folder.replace(path, data)
        os.utime(place, ns=(changed_ns, changed_ns))  # a note may have its day from that
        return Copied(digest, _stamp(os.lstat(place)))

    def _remove(self, path: str, copied: Copied | None) -> None:
        """Remove a file that no row has, and folders that are empty then."""
        with suppress(NotFoundError):
            self._keep_aside(path, copied)
        self._folder.remove(path)
        for folder in (self._root / path).parents:
            if folder in {self._root / NOTES_FOLDER, self._root}:
                break
            with suppress(OSError):  # others are in it
                folder.rmdir()

    def _keep_aside(self, path: str, copied: Copied | None, new: str = "") -> str:
        """Keep a copy of a file that is to go, unless a row has it or `new` is its hash; return its hash."""
        data = self._folder.read(path)
        digest = sha256(data).hexdigest()
        if digest != new and (copied is None or copied.hash != digest):
            aside = f"{ASIDE}/{digest[:16]}-{path.rpartition('/')[2]}"
            self._data.replace(aside, data)
            log.warning("%r was not written through this memory; %s keeps it", path, self._data.base / aside)
        return digest

    def _check_new(self, there: Iterable[str], news: Mapping[str, tuple[Any, ...]]) -> None:
        for path in there:
            digest = sha256(self._folder.read(path)).hexdigest()
            if news.get(_hash_path(path), (None, None, None))[2] != digest:
                raise StoreError(
                    f"{self._root} holds {path}, and the database has other notes of this tenant: open an "
                    "empty folder, and add there what this one holds"
                )

    def _list_files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files that are shared, with their stats; never through a link."""
        here = [name for name in os.listdir(self._root) if name in LONG_TERM]
        top: list[tuple[str, list[str], list[str]]] = [(str(self._root), [], here)]
        for folder, folders, names in chain(top, os.walk(self._root / NOTES_FOLDER)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self._root).replace(os.sep, "/")
                with suppress(FileNotFoundError):
                    if _is_shared(path) and stat.S_ISREG((info := os.lstat(os.path.join(folder, name))).st_mode):
                        yield path, info

    # --- what the folder is a copy of -----------------------------------------------------------------------------

    def _read_state(self) -> tuple[int, dict[str, Copied]]:
        try:
            state = json.loads(self._data.read(STATE))
            if state["of"] == self._name:
                return int(state["version"]), {
                    path: Copied(digest, tuple(stamp)) for path, (digest, stamp) in state["files"].items()
                }
        except (NotFoundError, ValueError, KeyError, TypeError):
            pass  # a folder that is new, or whose copy is to be looked at as a whole
        return -1, {}

    def _save(self, version: int, files: Mapping[str, Copied]) -> None:
        self._data.replace(STATE, json.dumps({"of": self._name, "version": version, "files": files}).encode())
        self._seen = version


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _hash_path(path: str) -> str:
    return sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _is_shared(path: str) -> bool:
    parts = path.split("/")
    if any(part in {"", ".", ".."} or part.startswith(".") for part in parts):
        return False
    return path in LONG_TERM or (len(parts) > 1 and parts[0] == NOTES_FOLDER and path.endswith(ENDINGS))
