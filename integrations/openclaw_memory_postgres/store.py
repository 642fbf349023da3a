"""Keep the index of an agent in PostgreSQL with pgvector, where those of other agents are too: each is a tenant."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec.structs import replace

from openclaw_memory import types
from openclaw_memory.errors import ConfigError, EmbedderError, StoreError
from openclaw_memory.store import clean_terms, gather_hits
from openclaw_memory_postgres import connections
from openclaw_memory_postgres import rows as rows_of
from openclaw_memory_postgres import search as searching
from openclaw_memory_postgres.rows import encode, hash_term, read
from openclaw_memory_postgres.writing import HERE, OF_A_GENERATION, Generation, lock_row

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg
    from psycopg_pool import ConnectionPool

    from openclaw_memory_postgres.notes import PostgresFiles

_Result = TypeVar("_Result")

ATTEMPTS = 3  # of a call whose connection was lost: its transaction is done as a whole or not at all
LOCKS = ("sync", "watch")
_COLUMNS = ("path", "doc_id", "part_of")  # by which filters name files
_IN_RANGES = " OR ".join(
    f"{column} = ANY(%({column}_texts)s::text[]) OR EXISTS "
    f"(SELECT 1 FROM unnest(%({column}_prefixes)s::text[]) AS prefix WHERE starts_with({column}, prefix))"
    for column in _COLUMNS
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")

# The generation that answers, or the one that is being built.
_LIVE = "(SELECT generation FROM {s}.generations WHERE tenant = %(tenant)s AND live)"

# The model that is asked for, or that of the chunks.
_MODEL = "coalesce(%(model)s::text, (SELECT identity FROM {s}.generations WHERE {here}))"
_META = "SELECT meta FROM {s}.generations WHERE {here}"


class PostgresStore:
    """A `Store` in PostgreSQL: one of many tenants in the tables of one database.

    Connections come from a pool that all stores of one process and database share. A lost connection is tried again;
    a server that cannot be reached is a `StoreError`.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str,
        schema: str = connections.SCHEMA,
        pool: ConnectionPool[Any] | None = None,
        keeps_files: bool = False,
    ) -> None:
        """Take an address; nothing is connected before the first call.

        Args:
            url: A connection string of PostgreSQL.
            tenant: The id of the agent, any text: rows of others are never seen.
            schema: The schema of the tables, which are made where they are missing.
            pool: The connections to use. Default: those that all stores of this process and `url` share.
            keeps_files: Keep the notes as rows too; see `open_shared_files`.

        Raises:
            ConfigError: The tenant is empty, or the schema is no plain name.
        """
        if not isinstance(tenant, str) or not tenant:
            raise ConfigError(f"a store in PostgreSQL needs a tenant, the id of its agent, not {tenant!r}")
        if not _NAME.fullmatch(schema):
            raise ConfigError(f"the schema {schema!r} must be letters, digits and _, beginning with a letter")
        self.url, self.tenant, self.schema = url, tenant, schema
        self._key = rows_of.hash_tenant(tenant)
        self._pool = pool
        self._notes = {"notes": "rows"} if keeps_files else {}
        self._turns = threading.BoundedSemaphore(connections.TENANT_SIZE)  # views share it
        self._generation: int | None = None  # None: the one that answers
        self._held: psycopg.Connection[Any] | None = None  # of a snapshot, in its transaction
        self._held_meta: types.IndexMeta | None = None  # read when the snapshot began
        self._files: dict[Any, Mapping[str, types.FileRecord]] = {}  # all of them, by their last change; views share it
        self._pruned_at: Any = None  # the changes after which vectors were pruned

    def open_shared_files(self, root: Path) -> PostgresFiles | None:
        """Return the tenant's notes, copied to the folder `root`; None if notes are files alone."""
        from openclaw_memory_postgres.notes import PostgresFiles

        return PostgresFiles(self.url, self.schema, self._key, root, self._try) if self._notes else None

    # --- connections ---------------------------------------------------------------------------------------------

    @contextmanager
    def _open_connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection for a transaction that ends with the block; in a snapshot, its own."""
        if self._held is not None:
            yield self._held
            return
        with connections.wait_turn(self._turns), self._get_pool().connection(connections.CONNECT_SECONDS) as connection:
            yield connection

    def _get_pool(self) -> ConnectionPool[Any]:
        return self._pool or connections.POOLS.get_pool(self.url, self.schema)

    def _try(self, work: Callable[[psycopg.Connection[Any]], _Result]) -> _Result:
        """Call `work`, which reads, in a transaction of a connection, and with another one if the first is lost.

        Raises:
            StoreError: The server cannot be reached, or refuses.
        """

        def run_once() -> _Result:
            with connections.map_errors(self.url), self._open_connection() as connection:
                is_begun = self._held is not None
                with nullcontext() if is_begun else connections.begin(connection, self._key):
                    return work(connection)

        return self._retry(run_once)

    def _retry(self, work: Callable[[], _Result]) -> _Result:
        """Call `work`, and again if a connection was lost."""
        left = 1 if self._held is not None else ATTEMPTS
        while True:
            left -= 1
            try:
                return work()
            except StoreError as error:
                if left < 1 or not connections.is_lost(error):
                    raise
                # They are not asked before each use, which is a round trip; those that are lost go as soon as one is.
                self._get_pool().check()

    def _run(self, connection: psycopg.Connection[Any], statement: str, **values: Any) -> psycopg.Cursor[Any]:
        """Run a statement on a connection, as `_ask`."""
        return connection.execute(self._make_query(statement), self._bind(values), binary=True)

    def _ask(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; `{s}` is the schema, `{here}` the generation in use."""

        def run(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
            return self._run(connection, statement, **values).fetchall()

        return self._try(run)

    def _write(self, work: Callable[[Generation], _Result], *, saves: bool = True) -> _Result:
        """Call `work` in one transaction that locks the generation in use; without `saves`, its row stays as it is."""

        def write_once() -> _Result:
            with connections.map_errors(self.url), self._open_connection() as connection:
                with connections.begin(connection, self._key, seconds=connections.WRITE_SECONDS):
                    generation = lock_row(connection, self.schema, self._key, self._generation)
                result = work(generation)
                if saves:
                    generation.save()
                return result

        return self._retry(write_once)

    def _make_query(self, statement: str) -> Any:
        generation = "%(generation)s" if self._generation is not None else _LIVE.replace("{s}", self.schema)
        here = HERE.replace("%(generation)s", generation)
        return connections.as_query(
            statement.replace("{here}", here)
            .replace("{s}", self.schema)
            .replace("%(generation)s", generation)
            .replace("{v}", "OPERATOR(public.<#>)")
        )

    def _bind(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"tenant": self._key, "generation": self._generation, **values}

    # --- meta and builds -----------------------------------------------------------------------------------------

    def read_meta(self) -> types.IndexMeta | None:
        if self._held is not None:
            return self._held_meta
        rows = self._ask(_META)
        return rows_of.decode_meta(rows[0][0]) if rows else None

    def get_meta(self, name: str) -> str | None:
        rows = self._ask("SELECT value FROM {s}.texts WHERE tenant = %(tenant)s AND name = %(name)s", name=encode(name))
        return read(rows[0][0]) if rows else None

    def set_meta(self, name: str, text: str) -> None:
        self._ask(
            """INSERT INTO {s}.texts VALUES (%(tenant)s, %(name)s, %(text)s)
            ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value RETURNING name""",
            name=encode(name),
            text=encode(text),
        )

    def begin_build(self, meta: types.IndexMeta, *, keep_rows: bool = False) -> types.Build:
        """Begin the next index: in place where this one answers nothing yet, else as a generation of its own."""

        def begin(generation: Generation) -> int | None:
            dims = self._read_dims(generation.connection, encode(meta.identity))
            if dims is not None and meta.dims not in {None, dims}:
                raise EmbedderError(f"{meta.identity!r} has vectors of {dims} dimensions, meta says {meta.dims}")
            next_meta = replace(meta, dims=dims or meta.dims, building=os.urandom(8).hex())
            there = generation.meta
            if there is not None and there.complete:
                return self._begin_next(generation, next_meta, keep_rows=keep_rows)
            generation.number = max(0, generation.number)
            if there is None or not keep_rows:
                generation.clear()
                generation.meta = next_meta
            return None

        number = self._write(begin)
        return _Build(self if number is None else self._open_view(number), self)

    def _begin_next(self, here: Generation, meta: types.IndexMeta, *, keep_rows: bool) -> int:
        """Make a generation that answers nothing yet, in the place of any that a build has left; return its number."""
        for table in ("generations", *OF_A_GENERATION):
            here.run(f"DELETE FROM {{s}}.{table} WHERE tenant = %(tenant)s AND generation <> %(generation)s")
        coming = Generation(here.connection, here.schema, here.tenant, here.number + 1, meta, here.last_id, live=False)
        if keep_rows:
            coming.meta = replace(here.meta or meta, building=meta.building)
            coming.chunks, coming.terms = here.chunks, here.terms
            coming.copy_rows(here.number)
        coming.save()
        return coming.number

    def _open_view(self, generation: int | None, connection: psycopg.Connection[Any] | None = None) -> PostgresStore:
        view = PostgresStore(self.url, tenant=self.tenant, schema=self.schema, pool=self._pool)
        view._generation, view._held, view._turns, view._files = generation, connection, self._turns, self._files
        return view

    @contextmanager
    def snapshot(self) -> Iterator[PostgresStore]:
        """Yield a view in a transaction of its own, which sees no later write."""
        if self._held is not None:
            yield self
            return
        with connections.map_errors(self.url), ExitStack() as stack:
            yield self._retry(lambda: self._freeze(stack))

    def _freeze(self, stack: ExitStack) -> PostgresStore:
        """Return a view in a transaction that ends with the stack."""
        with connections.map_errors(self.url), ExitStack() as own:
            connection = own.enter_context(self._open_connection())
            frozen = self._open_view(self._generation, connection)
            with connections.begin(connection, self._key, "ISOLATION LEVEL REPEATABLE READ READ ONLY"):
                row = frozen._run(connection, _META).fetchone()
            frozen._held_meta = rows_of.decode_meta(row[0]) if row else None
            stack.enter_context(own.pop_all())
            return frozen

    # --- writing -------------------------------------------------------------------------------------------------

    def replace_files(
        self,
        files: Sequence[tuple[types.FileRecord, Sequence[types.ChunkRow] | None]],
        made_for: types.IndexMeta | None = None,
    ) -> None:
        def write(generation: Generation) -> None:
            generation.check(made_for)
            with_rows = [(record, rows) for record, rows in files if rows is not None]
            generation.drop("path = ANY(%(paths)s)", paths=[encode(record.path) for record, _ in with_rows])
            generation.put_records([record for record, _ in with_rows])
            generation.put_rows([(record, rows, 0) for record, rows in with_rows])
            for record, rows in files:
                if rows is None:
                    generation.update_record(record)

        self._write(write)

    def extend_file(
        self,
        record: types.FileRecord,
        chunks: Sequence[types.ChunkRow],
        from_line: int,
        made_for: types.IndexMeta | None = None,
    ) -> None:
        def write(generation: Generation) -> None:
            generation.check(made_for)
            path = encode(record.path)
            if not generation.has(path):
                raise StoreError(f"{record.path} is not indexed, and cannot be extended: sync again")
            of_file = "path = %(path)s AND identity = ''"
            generation.drop(f"{of_file} AND start_line >= %(line)s", path=path, line=from_line)
            count = generation.run(
                f"SELECT count(*) FROM {{s}}.chunks WHERE {{here}} AND {of_file}", path=path
            ).fetchone()
            generation.put_records([record])
            generation.put_rows([(record, chunks, count[0] if count else 0)])

        self._write(write)

    def remove_files(self, paths: Iterable[str]) -> int:
        names = [encode(path) for path in paths]

        def write(generation: Generation) -> int:
            generation.drop("path = ANY(%(paths)s)", paths=names)
            return generation.run("DELETE FROM {s}.files WHERE {here} AND path = ANY(%(paths)s)", paths=names).rowcount

        return self._write(write)

    # --- vectors -------------------------------------------------------------------------------------------------

    def find_keys(
        self, keys: Iterable[str], identity: str | None = None, *, with_token_codes: bool = False
    ) -> set[str]:
        names = {encode(key): key for key in keys}

        if not names:
            return set()
        coded = " AND token_codes IS NOT NULL" if with_token_codes else ""
        rows = self._ask(
            f"SELECT key FROM {{s}}.vectors WHERE tenant = %(tenant)s AND identity = {_MODEL} AND key = ANY(%(keys)s)"
            + coded,
            model=None if identity is None else encode(identity),
            keys=rows_of.Packed(list(names)),
        )
        return {names[key] for (key,) in rows}

    def add_vectors(
        self,
        keys: Sequence[str],
        vectors: types.Matrix,
        identity: str | None = None,
        *,
        token_codes: Sequence[bytes] | None = None,
    ) -> None:
        import numpy as np

        if not keys:
            return
        matrix = np.asarray(vectors, np.float32)

        def write(generation: Generation) -> None:
            model = encode(identity) if identity is not None else generation.model
            if model is None:
                raise StoreError("the index has no meta yet; call begin_build(meta) first, or name the identity")
            # One writer at a time for a model: the first vectors set its dimensions.
            generation.run("SELECT pg_advisory_xact_lock(%(lock)s)", lock=connections.lock_key(str(self._key), model))
            meta = generation.meta if generation.model == model else None
            dims = self._read_dims(generation.connection, model) or (meta.dims if meta else None)
            dims = dims or (matrix.shape[-1] if matrix.ndim else 0)
            if not dims or matrix.shape != (len(keys), dims) or not np.isfinite(matrix).all():
                raise EmbedderError(
                    f"{len(keys)} finite vectors of {dims} dimensions are wanted under {read(model)!r}, "
                    f"not {matrix.shape}"
                )
            generation.put_vectors(model, keys, matrix, token_codes)
            if meta is not None:
                generation.meta = replace(meta, dims=dims)

        self._write(write)

    def _read_dims(self, connection: psycopg.Connection[Any], model: str) -> int | None:
        """Return how long the stored vectors of a model are; None where there is none."""
        statement = (
            "SELECT public.vector_dims(vector) FROM {s}.vectors WHERE tenant = %(tenant)s AND identity = %(model)s"
        )
        row = connection.execute(self._make_query(f"{statement} LIMIT 1"), self._bind({"model": model})).fetchone()
        return row[0] if row else None

    def prune(self, *, keep_unused: bool = False) -> int:
        """Remove the vectors that no row uses, if anything was written since the last call."""
        if keep_unused:
            return 0
        changes = "SELECT generation, change FROM {s}.generations WHERE tenant = %(tenant)s ORDER BY generation"
        state = self._ask(changes)
        if state and state == self._pruned_at:
            return 0
        removed, self._pruned_at = self._write(Generation.prune, saves=False), state
        return removed

    # --- searching -----------------------------------------------------------------------------------------------

    def find_hits(self, request: types.HitRequest) -> types.Hits:
        """Find chunks by keywords and vector, in one transaction; usually in one round trip."""
        with self.snapshot() as frozen:
            meta = frozen.read_meta()
            if searching.is_usual(request, meta.dims if meta else None):
                hits = frozen._try(lambda connection: searching.find_usual(partial(frozen._run, connection), request))
                if hits is not None:
                    return hits
            return gather_hits(
                frozen,
                request,
                frequencies=frozen._count_terms(request.counted),
                chunk_count=next(iter(frozen._ask("SELECT chunks FROM {s}.generations WHERE {here}")), (0,))[0],
                sources=frozen._list_sources(),
            )

    def _list_sources(self) -> list[types.Source]:
        rows = self._ask(
            "SELECT source FROM unnest(%(known)s::text[]) AS source WHERE EXISTS "
            "(SELECT 1 FROM {s}.files WHERE {here} AND files.source = source.source)",
            known=list(searching.SOURCES),
        )
        return [source for (source,) in rows]

    def _count_terms(self, terms: Sequence[str]) -> dict[str, int]:
        keys = {term: hash_term(next(iter(clean_terms([term])), "")) for term in terms}
        rows = self._ask(
            """SELECT term, sum(cardinality(chunks)) FROM {s}.postings WHERE {here} AND term = ANY(%(terms)s)
            GROUP BY term""",
            terms=list(keys.values()),
        )
        counts = dict(rows)
        return {term: counts.get(key, 0) for term, key in keys.items()}

    def search_text(
        self,
        terms: Sequence[str],
        k: int,
        *,
        match: Literal["any", "all"] = "any",
        source: types.Source | None = None,
        where: types.Where | None = None,
    ) -> list[types.Hit]:
        """Return the k best chunks by BM25 over segmented terms; only the first 64 terms count."""
        searched = clean_terms(terms)
        if not searched or k < 1:
            return []
        ids = self._filter_ids(where, source)
        needed = len(searched) if match == "all" else 1

        def rank(*, telling: bool) -> list[types.Hit]:
            rows = self._ask(
                searching.STATEMENTS["ranked"],
                terms=[hash_term(term) for term in searched],
                k=k,
                ids=ids,
                source=source,
                needed=needed,
                **searching.make_parameters(telling=telling),
            )
            return [types.Hit(chunk_id, float(score)) for chunk_id, score in rows]

        if match == "all":
            return rank(telling=False)
        hits = rank(telling=True)  # without terms that rank nothing; they are asked for where others find too few
        return hits if len(hits) >= k else rank(telling=False)

    def search_vector(
        self,
        vector: types.Vector,
        k: int,
        *,
        source: types.Source | None = None,
        identity: str | None = None,
        where: types.Where | None = None,
    ) -> list[types.Hit]:
        """Return the k chunks nearest to a unit vector by cosine, exactly; with an `identity`, the rows under it."""
        import numpy as np

        query = np.asarray(vector, np.float32)
        rows_known = self._ask(
            f"""SELECT {_MODEL}, (SELECT public.vector_dims(vector) FROM {{s}}.vectors
                WHERE tenant = %(tenant)s AND identity = {_MODEL} LIMIT 1)""",
            model=None if identity is None else encode(identity),
        )
        model, dims = rows_known[0]
        if dims is None:
            return []
        if query.shape != (dims,):
            raise EmbedderError(
                f"the query vector has shape {query.shape}, the index holds vectors of {dims} dimensions"
            )
        if not np.isfinite(query).all():
            raise EmbedderError("the query vector holds a NaN or an infinity; check the embedder")
        if k < 1 or not (identity or query.any()):
            return []
        rows = self._ask(
            searching.STATEMENTS["nearest"],
            vector=query,
            k=k,
            model=model,
            identity=encode(identity or ""),
            zeros=identity is not None,
            source=source,
            ids=self._filter_ids(where, source, identity),
        )
        return searching.read_hits(rows)

    def _filter_ids(
        self, where: types.Where | None, source: types.Source | None, identity: str | None = None
    ) -> list[int] | None:
        """Return the ids of the rows that pass a filter, or None without one."""
        if where is None:
            return None
        statement = "SELECT id, path, metadata FROM {s}.chunks WHERE {here} AND identity = %(identity)s"
        statement += " AND (%(source)s::text IS NULL OR source = %(source)s)"
        ranges = getattr(where, "files", ())
        if ranges:
            statement += f" AND path IN (SELECT path FROM {{s}}.files WHERE {{here}} AND ({_IN_RANGES}))"
        texts = {
            f"{column}_{kind}": [
                encode(text) for name, text, is_prefix in ranges if (name, is_prefix) == (column, kind == "prefixes")
            ]
            for column in _COLUMNS
            for kind in ("texts", "prefixes")
        }
        statement += " ORDER BY id"
        chunks = self._ask(statement, identity="", source=source, **texts)
        if identity is None:
            return [chunk_id for chunk_id, path, metadata in chunks if where(read(path), json.loads(metadata))]
        first = {path: metadata for _, path, metadata in reversed(chunks)}
        rows = self._ask(statement, identity=encode(identity), source=source, **texts)
        return [at for at, path, _ in rows if path not in first or where(read(path), json.loads(first[path]))]

    # --- reading -------------------------------------------------------------------------------------------------

    def get_vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, types.Vector]:
        rows = self._ask(
            searching.STATEMENTS["vectors"],
            ids=list(chunk_ids),
        )
        return {chunk_id: vector.to_numpy() for chunk_id, vector in rows}

    def get_chunks(self, ids: Iterable[int], *, token_codes: bool = False) -> list[types.StoredChunk]:
        statement = searching.STATEMENTS["stored_with_codes" if token_codes else "stored"]
        return searching.read_chunks(self._ask(statement, ids=list(set(ids))), token_codes=token_codes)

    def get_file_chunks(self, *paths: str, identity: str | None = None) -> list[types.StoredChunk]:
        of_files, values = searching.STATEMENTS["of_files"], {"identity": encode(identity or "")}
        return searching.read_chunks(self._ask(of_files, paths=[*map(encode, paths)], **values))

    def get_files(
        self,
        paths: Iterable[str] | None = None,
        *,
        ids: Iterable[str] | None = None,
        part_of: str | None = None,
        id_prefix: str | None = None,
    ) -> Mapping[str, types.FileRecord]:
        if paths is None and ids is None and part_of is None and id_prefix is None:
            return self._read_files()
        rows = self._ask(
            f"SELECT {', '.join(rows_of.FILES)} FROM {{s}}.files WHERE {{here}} "
            "AND (%(paths)s::text[] IS NULL OR path = ANY(%(paths)s)) "
            "AND (%(ids)s::text[] IS NULL OR doc_id = ANY(%(ids)s)) "
            "AND (%(part_of)s::text IS NULL OR part_of = %(part_of)s) "
            "AND (%(id_prefix)s::text IS NULL OR starts_with(doc_id, %(id_prefix)s))",
            paths=None if paths is None else [encode(path) for path in paths],
            ids=None if ids is None else [encode(doc_id) for doc_id in ids],
            part_of=None if part_of is None else encode(part_of),
            id_prefix=None if id_prefix is None else encode(id_prefix),
        )
        return rows_of.read_file_records(rows)

    def _read_files(self) -> Mapping[str, types.FileRecord]:
        """Return all files: the same object as long as nothing was written."""
        state = tuple(self._ask("SELECT generation, change FROM {s}.generations WHERE {here}"))
        if (files := self._files.get(state)) is None:
            # After `state`: what is written in between is read again.
            rows = self._ask(f"SELECT {', '.join(rows_of.FILES)} FROM {{s}}.files WHERE {{here}}")
            files = MappingProxyType(rows_of.read_file_records(rows))
            self._files.clear()
            self._files[state] = files
        return files

    def count_identities(self) -> Mapping[str, tuple[int, int]]:
        rows = self._ask(
            """SELECT c.identity, count(*), count(v.key) FROM {s}.chunks AS c
            LEFT JOIN {s}.vectors AS v ON v.tenant = c.tenant AND v.identity = c.identity AND v.key = c.vector_key
            WHERE c.tenant = %(tenant)s AND c.generation = %(generation)s AND c.identity <> '' GROUP BY c.identity"""
        )
        return {read(name): (count, ready) for name, count, ready in rows}

    # --- looking after it ----------------------------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str, wait: float | None = None, notify: Callable[[str], None] | None = None) -> Iterator[bool]:
        """Hold an advisory lock of the server while the block runs, by a connection that nothing else has meanwhile."""
        key = connections.lock_key(str(self._key), name)
        if connections.POOLS.holders.get(key) == (os.getpid(), threading.get_ident()):
            yield False  # by another store too: a thread does not wait for itself
            return
        who = f"another holder has the lock {name!r} of {self.tenant!r}"
        with ExitStack() as stack:
            with connections.map_errors(self.url):
                pool = connections.POOLS.get_pool(self.url, self.schema, is_held=True)
                connection = stack.enter_context(pool.connection(connections.CONNECT_SECONDS))
                stack.enter_context(connections.take_lock(connection, key, who, wait, notify))
            yield True

    def verify(self) -> tuple[str, ...]:
        """Check that the rows match the counts and names of the index."""
        rows = self._ask(searching.STATEMENTS["checked"])
        counted, there, fileless, orphans, length, terms = rows[0]
        wrong = []
        if (counted or 0) != there or (terms or 0) != length:
            wrong.append(f"the index counts {counted} chunks of {terms} terms, and has {there} of {length}")
        if fileless:
            wrong.append(f"{fileless} chunks are of no file")
        if orphans:
            wrong.append(f"{orphans} postings are of no chunk")
        return tuple(wrong)

    def delete_damaged(self, reason: str) -> str:
        def write(generation: Generation) -> None:
            last = generation.run("SELECT max(last_id) FROM {s}.generations WHERE tenant = %(tenant)s").fetchone()
            for table in connections.INDEX_TABLES:
                generation.run(f"DELETE FROM {{s}}.{table} WHERE tenant = %(tenant)s")
            generation.number, generation.last_id = 0, (last and last[0]) or 0
            generation.meta, generation.chunks, generation.terms = None, 0, 0

        self._write(write)
        return f"the index was damaged ({reason}) and was emptied"

    def describe(self, *, counts: bool = True) -> types.StoreInfo:
        rows = self._ask(searching.STATEMENTS["described"])
        exists, version, vector_version, size = rows[0]
        taken = {int(key) & (1 << 64) - 1 for key in size}
        info = types.StoreInfo(
            "postgres",
            location=connections.mask_url(self.url, self.tenant),
            exists=exists,
            locked=frozenset(n for n in LOCKS if connections.lock_key(str(self._key), n) & (1 << 64) - 1 in taken),
            vector_path="pgvector, exact",
            engine={"postgres": version, "pgvector": vector_version or ""} | self._notes,
        )
        if not counts:
            return info
        counted = self._ask(searching.STATEMENTS["counted"])[0]
        files = self._ask("SELECT source, count(*) FROM {s}.files WHERE {here} GROUP BY source")
        chunks = dict(
            self._ask("SELECT source, count(*) FROM {s}.chunks WHERE {here} AND identity = '' GROUP BY source")
        )
        return replace(
            info,
            files=counted[0],
            chunks=counted[1],
            vectors=counted[2],
            without_tokens=counted[3],
            sources={source: (count, chunks.get(source, 0)) for source, count in files},
        )

    def close(self) -> None:
        """Do nothing: connections are those of the process, and wait for the next store."""


class _Build:
    """The next index of a tenant: a generation of its own, or the one that answers nothing yet."""

    def __init__(self, store: PostgresStore, live: PostgresStore) -> None:
        self.store, self._live = store, live
        meta = store.read_meta()
        self._name = meta.building if meta else None

    def publish(self) -> None:
        """Let it answer from now on, in one transaction; the rows of the other generation go."""

        def write(built: Generation) -> None:
            if built.meta is None or built.meta.building != self._name or self._name is None:
                return  # another build has begun since
            old = lock_row(built.connection, built.schema, built.tenant)
            built.meta, built.last_id = replace(built.meta, building=None), max(built.last_id, old.last_id)
            if old.number != built.number:
                for table in ("generations", *OF_A_GENERATION):
                    old.run(f"DELETE FROM {{s}}.{table} WHERE {{here}}")
                built.live = True

        self.store._write(write)

    def abort(self) -> None:
        """Forget it, unless it is a first index: that stays as it is, and the next build goes on from there."""

        def write(built: Generation) -> None:
            if not built.live and built.number >= 0:
                for table in ("generations", *OF_A_GENERATION):
                    built.run(f"DELETE FROM {{s}}.{table} WHERE {{here}}")
                built.number = -1
                lock_row(built.connection, built.schema, built.tenant).save()  # its vectors are out of use

        self.store._write(write)
