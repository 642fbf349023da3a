"""The index in one SQLite file: an implementation of `Store`, each method one transaction."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from weakref import proxy

import apsw
from msgspec.structs import replace

from openclaw_memory.errors import CorruptIndexError, StoreError
from openclaw_memory.store import document_rows, filter_cache, fts, integrity, rebuild, rows, schema, vector_rows
from openclaw_memory.store.connection import (
    IN_MEMORY,
    READ,
    Connections,
    OnConnect,
    Pinned,
    begin,
    connect,
    fetch,
    find_extension,
    is_index,
    is_missing,
    make_damage_error,
    make_hook_error,
    needs_hook,
    prepare_file,
    read_header,
    translate_errors,
)
from openclaw_memory.store.hits import gather_hits
from openclaw_memory.store.lock import is_locked, lock_file
from openclaw_memory.store.schema import SCHEMA_VERSION
from openclaw_memory.types import (
    Build,
    ChunkRow,
    ConnectionHook,
    FileRecord,
    Hit,
    HitRequest,
    Hits,
    IndexMeta,
    Source,
    StoredChunk,
    StoreInfo,
)
from openclaw_memory.types.conditions import Where
from openclaw_memory.types.files import SOURCES

if TYPE_CHECKING:
    from openclaw_memory.store.resident import Resident
    from openclaw_memory.types import Matrix, Vector

COUNT = "SELECT count(*) FROM chunks"
HAS_SOURCE = "SELECT 1 FROM files WHERE source = ? LIMIT 1"


LOCKS = ("sync", "watch")
# The first searches walk the tables: a command asks once, and reading all vectors takes as long as some of these.
SEARCHES_BEFORE = 3


class SqliteStore:
    """A `Store` in one SQLite file, safe to use from several threads and processes. A forked child opens its own.

    Any method may raise CorruptIndexError (the file is damaged), IndexLockedError (another process held it for more
    than ten seconds), what the hook raises, or StoreError (the disk is full or
    failing, or the store is closed).
    """

    def __init__(
        self, path: str | os.PathLike[str], *, vector_extension: bool = True, hook: ConnectionHook | None = None
    ) -> None:
        """Name the index at `path`, which is opened at the first use and created by the first write, with its folders.

        A missing file is an empty index. An index on a read-only disk can still be read.

        Args:
            path: The index file.
            vector_extension: Use sqlite-vec where it is installed; otherwise all vectors are scanned.
            hook: Sets up each connection: for example a cipher.
        """
        self.path = Path(path).expanduser()
        self._hook = hook
        self._wants_extension = vector_extension
        store = proxy(self)  # so that a store is freed, with its connections, once nobody uses it
        self._connections = Connections(
            lambda path: store._connect(path),  # noqa: PLW0108 - a method would keep the store
            self.path,
            lambda: store._open_first(),  # noqa: PLW0108
            lambda: store._open_empty(),  # noqa: PLW0108
        )
        self._document_cache: document_rows.Cache = {}
        self._file_cache: rows.FileCache = {}
        self._filter_cache = filter_cache.Cache()
        self._residency = _Residency()  # snapshots share it
        self._resident: Resident | None = None  # of a snapshot, in its state

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, vector_extension: bool = True) -> Self:
        """Open and check the index at `path` now; it is created where missing.

        Args:
            path: The index file.
            vector_extension: Use sqlite-vec where it is installed; otherwise all vectors are scanned.

        Returns:
            The open store.

        Raises:
            StoreError: The index is missing and cannot be made, the file is another SQLite database, or a newer version
                of this library made it.
            CorruptIndexError: The file is damaged or is not a database.
        """
        store = cls(path, vector_extension=vector_extension)
        try:
            with store._connections.open():
                return store
        except BaseException:
            store.close()
            raise

    @cached_property
    def _extension(self) -> tuple[str | None, str | None]:
        """The path of sqlite-vec's library, or None and the reason why it is not loaded."""
        return find_extension() if self._wants_extension else (None, "switched off")

    @property
    def _vector_error(self) -> str | None:
        return self._extension[1]

    @property
    def _on_connect(self) -> OnConnect | None:
        return self._hook.on_connect if self._hook else None

    def _connect(self, path: Path) -> apsw.Connection:
        read_only, extension = self._is_read_only(), self._extension[0]
        return connect(path, read_only=read_only, extension=extension, on_connect=self._on_connect)

    def _is_read_only(self) -> bool:
        return self.path.is_file() and not os.access(self.path, os.W_OK)

    def _open_first(self) -> apsw.Connection:
        """Return a connection to the file, which is made if missing, with readable tables."""
        read_only = self._is_read_only()
        if not read_only:
            prepare_file(self.path)  # an empty file; SQLite removes the log that a deleted index has left next to it
        db = self._open_existing(read_only)
        try:
            schema.check_header(db)
            if not read_only:
                schema.create_tables(db)
            elif not is_index(db):
                raise StoreError(f"{self.path} is empty; sync first")
            meta = rows.read_meta(db)
            if meta is not None and meta.schema_version > SCHEMA_VERSION:
                raise StoreError(
                    f"{self.path} has schema version {meta.schema_version}, this library knows up to "
                    f"{SCHEMA_VERSION}; update openclaw_memory, or delete the index and sync again"
                )
            schema.check_version(db)
        except BaseException:
            db.close(True)
            raise
        return db

    def _open_existing(self, read_only: bool) -> apsw.Connection:
        """Return a connection to the file, as the hook opens it; an empty one is to be an index."""
        if not read_only and not integrity.measure_file(self.path):
            if self._hook is not None:
                self._hook.begin(self.path)
            return self._connect(self.path)
        db = self._try_hook(None) if self._hook is None else self._hook.open(self.path, self._try_hook)
        if db is None:
            if self._hook is None and needs_hook(read_header(self.path, 24)):
                raise make_hook_error(self.path)
            raise make_damage_error(self.path, "file is not a database")
        return db

    def _try_hook(self, on_connect: OnConnect | None) -> apsw.Connection | None:
        """Return a connection that a function has set up; None if nothing can be read with it."""
        db = None
        try:
            db = connect(self.path, read_only=self._is_read_only(), extension=self._extension[0], on_connect=on_connect)
            fetch(db, "SELECT count(*) FROM sqlite_schema")
        except BaseException as error:
            if db is not None:
                db.close()
            if isinstance(error, apsw.NotADBError):
                return None
            raise
        return db

    def rewrite(
        self, make_hook: Callable[[], ConnectionHook | None], announce: Callable[[], None], wait: float | None = 0
    ) -> None:
        """Write the index anew through another hook, in place; this store does not open it afterwards.

        Killed, it leaves the old file or the new one.

        Args:
            make_hook: Makes the hook, None for a plain index; called once nothing else has the index open.
            announce: Called when the new file is on the disk, before it takes the place of the old one.
            wait: How many seconds to wait for a sync that is under way; None for as long as it takes.

        Raises:
            IndexLockedError: It is in use, or a sync is under way.
            StoreError: It is empty, damaged, or cannot be written. Nothing was changed.
        """
        with translate_errors(self.path), self.lock("sync", wait) as is_alone:
            if not is_alone:
                raise StoreError(f"{self.path} cannot be locked: make its folder writable, on a file system with locks")
            self._connections.forget()
            with closing(self._open_existing(read_only=False)) as db:
                if not is_index(db):
                    raise StoreError(f"{self.path} is empty: sync first")
                rebuild.rewrite(db, self.path, make_hook, announce)

    def _open_empty(self) -> apsw.Connection | None:
        """Return a connection to an empty index if the file is missing, for readers; else None."""
        if not is_missing(self.path):
            return None
        db = connect(Path(IN_MEMORY), read_only=False, extension=None)
        schema.create_tables(db)
        return db

    def read_meta(self) -> IndexMeta | None:
        """Return the description of the index; None when it is new. The first vectors set `dims`."""
        with self._connections.read() as db:
            return rows.read_meta(db)

    def begin_build(self, meta: IndexMeta, *, keep_rows: bool = False) -> Build:
        """Begin the next index: in a file of its own next to a complete index, in place otherwise.

        Raises:
            CorruptIndexError: The index is damaged, even if no search meets it: the next one begins as its copy.
            StoreError: The folder cannot be written, or the disk is full.
            EmbedderError: The vectors kept under this identity have other dimensions than `meta.dims`.
        """
        stored = self.read_meta()
        if stored is None or not stored.complete:
            unfinished = stored.building if stored is not None and keep_rows else None
            return _Build(self, unfinished or self._reset(meta))
        if problems := self.verify():
            raise make_damage_error(self.path, "; ".join(problems))
        copied = rebuild.copy_index(self._connections, self._extension[0], self._on_connect)
        built = SqliteStore(copied.path, vector_extension=self._wants_extension, hook=self._hook)
        built._connections = copied
        try:
            return _Build(built, None if keep_rows else built._reset(meta), self)
        except BaseException:
            rebuild.remove(copied)
            raise

    def _reset(self, meta: IndexMeta) -> str:
        """Forget all files and chunks, store `meta`, and begin a build; return its name. Vectors are kept."""
        name = os.urandom(8).hex()
        with self._connections.write() as db:
            if self._vector_error is None:
                db.execute("DROP TABLE IF EXISTS chunk_vectors")
            schema.renew_tables(db)
            rows.write_meta(db, replace(meta, building=name))
            model_id = vector_rows.add_model(db, meta.identity, meta.dims)
            vector_rows.copy_dims(db)
            if dims := vector_rows.read_dims(db):
                from openclaw_memory.store.vectors import shrink_vectors

                shrink_vectors(db, model_id, dims)
            rebuild.record_removal(db, erase=True)
        return name

    def _publish(self, built: Self) -> None:
        """Take over the content of `built`; the texts in `meta` stay as they are here.

        It is copied over this index in one transaction: readers in all processes see the old index or the new one.
        """
        with self._connections.lock() as live, built._connections.lock() as source:
            rows.restore_meta_texts(source, rows.list_meta_texts(live))
            rebuild.copy_pages(source, live)
            rebuild.settle(live)

    def get_files(
        self,
        paths: Iterable[str] | None = None,
        *,
        ids: Iterable[str] | None = None,
        part_of: str | None = None,
        id_prefix: str | None = None,
    ) -> Mapping[str, FileRecord]:
        """Return indexed files by path: all, or those with these paths or ids, or parts of this."""
        with self._connections.read() as db:
            if id_prefix is not None:
                return rows.find_files(db, "id_range", id_prefix, filter_cache.end_of_prefix(id_prefix))
            if part_of is not None:
                return rows.find_files(db, "part_of", part_of)
            if ids is not None:
                return rows.find_files(db, "ids", json.dumps(list(ids)))
            if paths is not None:
                return rows.find_files(db, "paths", json.dumps(list(paths)))
            return rows.load_files(db, self._file_cache)

    def replace_files(
        self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow] | None]], made_for: IndexMeta | None = None
    ) -> None:
        """Replace the records of files, and all their rows; None for rows keeps them.

        Raises:
            StoreError: A vector_key was not added before, no build was ever begun, or another one was begun since, for
                another model or chunking than the rows were `made_for`; nothing is changed.
        """
        paths = [record.path for record, _ in files]
        with self._connections.write() as db, rows.follow_files(db, self._file_cache, paths):
            rows.check_meta(db, made_for)
            rows.stamp_files(db, [record for record, chunks in files if chunks is None])
            new = [(record, chunks) for record, chunks in files if chunks is not None]
            new_rows = [row for _, chunks in new for row in chunks]
            dims, vector_ids = vector_rows.find_ids(db, new_rows, made_for)
            there = rows.find_files(db, "paths", json.dumps([record.path for record, _ in new]))
            lines = rows.list_stored_lines(db, there)
            document_rows.remove_rows(db, there)
            _, removed = rows.remove_files(db, there)
            added = rows.add_files(db, new, vector_ids)
            document_rows.add_rows(db, new)
            self._update_codes(db, dims, removed, added)
            if new:
                rows.record_changes(db, removed)
                rebuild.record_removal(db, erase=not lines <= rows.list_lines(new_rows))

    def extend_file(
        self, record: FileRecord, chunks: Sequence[ChunkRow], from_line: int, made_for: IndexMeta | None = None
    ) -> None:
        """Replace the rows of one file from line `from_line` on, and its record; earlier rows stay.

        `chunks` are in the order of their lines, none before `from_line`. Unchanged ones at the beginning keep their
        ids.

        Raises:
            StoreError: As `replace_files`; or the file is not indexed.
        """
        with self._connections.write() as db, rows.follow_files(db, self._file_cache, [record.path]):
            rows.check_meta(db, made_for)
            dims, vector_ids = vector_rows.find_ids(db, chunks, made_for)
            lines = rows.list_stored_lines(db, [record.path], from_line)
            removed, added, same = rows.extend_file(db, record, chunks, from_line, vector_ids)
            self._update_codes(db, dims, removed, added)
            rows.record_changes(db, removed, same)
            rebuild.record_removal(db, erase=not lines <= rows.list_lines(chunks))

    def remove_files(self, paths: Iterable[str]) -> int:
        """Remove files and all their rows; returns how many there were."""
        removals = list(paths)
        with self._connections.write() as db, rows.follow_files(db, self._file_cache, removals):
            document_rows.remove_rows(db, removals)
            count, removed = rows.remove_files(db, removals)
            self._update_codes(db, vector_rows.read_dims(db), removed, [])
            rows.record_changes(db, removed)
            if count:
                rebuild.record_removal(db, erase=True)
            return count

    def find_keys(
        self, keys: Iterable[str], identity: str | None = None, *, with_token_codes: bool = False
    ) -> set[str]:
        """Return which of the keys have vectors under `identity`; None is the identity in `meta`."""
        with self._connections.read() as db:
            model = vector_rows.read_model(db, identity)
            if model is None:
                return set()
            if with_token_codes:
                return vector_rows.find_keys_with_codes(db, model[0], keys)
            return set(vector_rows.find_keys(db, model[0], keys))

    def add_vectors(
        self,
        keys: Sequence[str],
        vectors: Matrix,
        identity: str | None = None,
        *,
        token_codes: Sequence[bytes] | None = None,
    ) -> None:
        """Store one row of `vectors`, shape (len(keys), dims), for each key; a stored key keeps its vector.

        `token_codes` holds for each key the codes of its tokens; those that are stored stay as well.

        `identity` names their model; None means the one in `meta`. A model may get vectors before a build makes it the
        current one.

        Raises:
            EmbedderError: Wrong count, wrong dimensions, a NaN or an infinity; nothing is stored.
            StoreError: A key is not a SHA-256, or neither `identity` nor `meta` names a model.
        """
        if not keys:
            return
        from openclaw_memory.store.vectors import check_matrix, pack

        matrix = check_matrix(vectors, len(keys))
        with self._connections.write() as db:
            model_id = vector_rows.require_model(db)[0] if identity is None else vector_rows.add_model(db, identity)
            vector_rows.fix_dims(db, model_id, matrix.shape[1])
            of_chunks = (vector_rows.read_model(db) or (None,))[0] == model_id
            vector_rows.add_vectors(db, model_id, keys, pack(matrix, exactly=not of_chunks))
            if token_codes is not None:
                vector_rows.add_codes(db, model_id, keys, token_codes)
            rebuild.record_removal(db, erase=False)
            document_rows.mark_change(db, model_id)

    def prune(self, *, keep_unused: bool = False) -> int:
        """Remove the vectors that no row uses, and return how many were removed.

        The bytes of a removed text are erased from the bytes of the file and of its log: the file is
        rewritten. Text that a reader holds is erased by the first call after it has ended.
        """
        with self._connections.read() as db:
            if not rebuild.has_leftovers(db, keep_unused=keep_unused):
                return 0
        removed: list[int] = []
        if not keep_unused:
            with self._connections.write() as db:
                rebuild.mark_pruned(db)
                removed = vector_rows.prune(db, is_erasing=rebuild.has_unerased(db))
        self._erase()
        return len(removed)

    def _erase(self) -> None:
        with self._connections.lock() as db:
            rebuild.erase(db)

    def find_hits(self, request: HitRequest) -> Hits:
        """Find chunks by keywords and vector, in one transaction.

        Raises:
            EmbedderError: The vector has other dimensions than the index, or holds a NaN.
        """
        # For terms that are only counted the index is not loaded into memory.
        load = partial(self._residency.load, max_bytes=request.memory_bytes) if request.terms else self._share_resident
        with self._connections.read() as db, load(db) as resident:
            pinned = self._open_pinned(db)
            pinned._resident = resident
            counted = partial(fts.count_documents, db) if resident is None else partial(resident.count_documents, db)
            return gather_hits(
                pinned,
                request,
                frequencies=counted(request.counted),
                chunk_count=int(fetch(db, COUNT)[0][0]) if resident is None else resident.chunk_count,
                sources=resident.sources if resident else [name for name in SOURCES if fetch(db, HAS_SOURCE, (name,))],
            )

    def search_text(
        self,
        terms: Sequence[str],
        k: int,
        *,
        match: Literal["any", "all"] = "any",
        source: Source | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best chunks by BM25 over segmented terms; the first 64 terms count."""
        with self._connections.read() as db:
            return fts.search(db, terms, k, match, source, self._find_passing(db, where), self._resident)

    def search_vector(
        self,
        vector: Vector,
        k: int,
        *,
        source: Source | None = None,
        identity: str | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k chunks nearest to a unit vector by exact cosine; with an `identity`, the rows of that model.

        A row passes `where` as the first chunk of its file does, or if that has none.

        Raises:
            EmbedderError: The vector has other dimensions than the index, or those rows, or holds a NaN.
        """
        from openclaw_memory.store import vectors

        with self._connections.read() as db:
            ids = self._find_passing(db, where)
            if self._resident is not None and identity is None:
                return self._resident.find_nearest(db, vector, k, source, ids)
            if identity is not None:
                return document_rows.search_rows(db, self._document_cache, vector, k, source, identity, ids)
            dims = vector_rows.read_dims(db)
            if dims is None:
                return []
            return vectors.find_nearest(db, vector, dims, k, source, ids, use_codes=self._vector_error is None)

    def get_vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the vectors of these chunks, each of shape (dims,); chunks without a vector are left out."""
        from openclaw_memory.store import vectors

        with self._connections.read() as db, self._share_resident(db) as resident:
            if resident is not None and all(at > 0 for at in chunk_ids):
                return resident.get_vectors(db, chunk_ids)
            dims, ids = vector_rows.read_dims(db), list(chunk_ids)
            of_chunks = {} if dims is None else vectors.read_vectors(db, dims, ids)
            return {**of_chunks, **document_rows.read_vectors(db, ids)}

    def get_chunks(self, ids: Iterable[int], *, token_codes: bool = False) -> list[StoredChunk]:
        """Return these chunks, in ascending order of id; unknown ids are left out."""
        with self._connections.read() as db, self._share_resident(db) as resident:
            ids = list(ids)
            if resident is not None and all(at > 0 for at in ids):
                chunks = resident.get_chunks(db, ids)
            else:
                chunks = [*document_rows.read_rows(db, ids), *rows.read_chunks(db, [at for at in ids if at > 0])]
            codes = vector_rows.read_codes(db, ids) if token_codes else {}
            return [replace(chunk, token_codes=codes[chunk.id]) if chunk.id in codes else chunk for chunk in chunks]

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Yield this store in its present state, read-only, for the thread of the `with` block.

        Later writes are not seen. The write-ahead log grows as long as the block lasts.
        """
        with self._connections.read() as db:
            yield self._open_pinned(db)

    def set_meta(self, name: str, text: str) -> None:
        """Store a short text under a name, which outlives every build."""
        with self._connections.write() as db:
            if forgotten := rows.write_meta_text(db, name, text):
                rebuild.record_removal(db, erase=True)
        if forgotten:
            self._erase()

    def get_meta(self, name: str) -> str | None:
        """Return the text under a name; None for an unknown name."""
        with self._connections.read() as db:
            return rows.read_meta_text(db, name)

    def get_file_chunks(self, *paths: str, identity: str | None = None) -> list[StoredChunk]:
        """Return all chunks of files, each in the order of its lines; with an `identity`, the rows of that model."""
        with self._connections.read() as db:
            if identity is None:
                return rows.read_file_chunks(db, paths)
            return document_rows.read_file_rows(db, paths, identity)

    def count_identities(self) -> Mapping[str, tuple[int, int]]:
        """Return how many rows each identity has but the index's own, and how many have vectors."""
        with self._connections.read() as db:
            return document_rows.count_identities(db, self._document_cache)

    @contextmanager
    def lock(self, name: str, wait: float | None = None, notify: Callable[[str], None] | None = None) -> Iterator[bool]:
        """Keep out every other thread and process that asks for `name`, by a lock file next to the index.

        The holder of the lock `sync` first removes leftovers of killed builders.
        """
        with lock_file(self._lock_path(name), wait, notify) as taken:
            if taken and name == "sync":
                rebuild.sweep(self.path)
            yield taken

    def _lock_path(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}-lock")

    def describe(self, *, counts: bool = True) -> StoreInfo:
        """Return the place and the locks of the index; with `counts` its size, and the paths of the engine that work.

        `vector_path` is `sqlite-vec` or `scan`, tested with a real query. `vectors` counts those of all identities,
        including vectors that no chunk uses: they are a cache. `size_bytes` is the size on disk, including the
        write-ahead log.
        """
        info = StoreInfo(
            "sqlite",
            str(self.path),
            exists=not is_missing(self.path),
            locked=frozenset(name for name in LOCKS if is_locked(self._lock_path(name))),
        )
        if not (counts and info.exists):
            return info
        with self._connections.read() as db:
            info = integrity.add_counts(info, db, self.path, self._extension)
            return info if self._hook is None else self._hook.describe(info, db)

    def verify(self) -> tuple[str, ...]:
        """Return the faults of tables, terms and vectors, and the chunks that are not as they were written.

        The file is opened again for it. A flipped bit that leaves a vector finite is not found.
        """
        if is_missing(self.path):
            return ()
        problems: list[str] = []
        try:
            with translate_errors(self.path), closing(self._open_first()) as db, begin(db, READ):
                problems.extend(integrity.list_problems(db, with_vec=self._vector_error is None))
        except CorruptIndexError as error:
            problems.append(error.damage or str(error))
        return tuple(problems)

    def delete_damaged(self, reason: str) -> str:
        """Delete a damaged index and return the reason; an empty one takes its place.

        Raises:
            StoreError: It cannot be deleted; the folder may be read-only.
        """
        self._connections.forget()
        integrity.delete_damaged(self.path)
        fault = reason if reason.startswith(schema.OUTDATED) else f"it was damaged: {reason}"
        return f"the index is built again ({fault})"

    def close(self) -> None:
        """Release the index. Calling it twice is allowed; work under way in other threads ends first."""
        self._connections.close()
        self._residency.resident = None

    def _find_passing(self, db: apsw.Connection, where: Where | None) -> frozenset[int] | None:
        """Return the ids of the chunks that pass a filter; None without one."""
        return filter_cache.find_ids(db, self._filter_cache, where) if where else None

    def _share_resident(self, db: apsw.Connection) -> AbstractContextManager[Resident | None]:
        """Share the index in memory, if it is in the state of a snapshot."""
        resident = self._residency.resident
        if self._resident is not None or resident is None or not isinstance(self._connections, Pinned):
            return nullcontext(self._resident)
        return resident.follow(db)

    def _open_pinned(self, db: apsw.Connection) -> Self:
        """Return this store as it is in the read transaction of one connection."""
        store = copy(self)
        store._connections = Pinned(db, self.path)
        return store

    def _update_codes(self, db: apsw.Connection, dims: int | None, removed: list[int], added: list[int]) -> None:
        if dims is None or not (removed or added):
            return
        from openclaw_memory.store import vectors

        if self._vector_error is None:
            vectors.update_codes(db, dims, removed, added)
        else:
            vectors.forget_codes(db)


class _Residency:
    """The index in memory, loaded after the first searches of a store."""

    def __init__(self) -> None:
        self._searches = 0
        self.resident: Resident | None = None

    def load(self, db: apsw.Connection, max_bytes: int) -> AbstractContextManager[Resident | None]:
        """Load the index as a transaction sees it, as a context; None for the first searches."""
        self._searches += 1
        if self._searches <= SEARCHES_BEFORE or not max_bytes:
            return nullcontext()
        from openclaw_memory.store.resident import Resident

        self.resident = self.resident or Resident()
        return self.resident.follow(db, max_bytes)


class _Build:
    """The next index: the first one in place, where the next build continues, later ones in a file of their own."""

    def __init__(self, store: SqliteStore, name: str | None, live: SqliteStore | None = None) -> None:
        """Build in `store`, the index itself or a copy of a `live` one; None for a name keeps the rows."""
        self.store, self._name, self._live = store, name, live

    def publish(self) -> None:
        try:
            if self._name is not None:  # it is complete, unless another one has begun since
                with self.store._connections.write() as db:
                    db.execute(rows.FINISH, (rows.META_KEY, self._name))
            if self._live is not None:
                self._live._publish(self.store)
        finally:
            self.abort()

    def abort(self) -> None:
        """Remove a copy; leave the rows of an index that is built in place. Calling it twice is allowed."""
        if self._live is not None:
            rebuild.remove(self.store._connections)
