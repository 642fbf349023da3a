"""Write the rows of one index in PostgreSQL: a generation of a tenant, in a transaction that alone writes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import StoreError
from openclaw_memory.types import ChunkRow, FileRecord, IndexMeta, Matrix
from openclaw_memory_postgres import rows as rows_of
from openclaw_memory_postgres.connections import as_query
from openclaw_memory_postgres.rows import encode
from openclaw_memory_postgres.search import STATEMENTS

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg

HERE = "tenant = %(tenant)s AND generation = %(generation)s"
OF_A_GENERATION = ("files", "chunks", "postings")
_POSITIONS = ("first", "last")  # of what a row has in a long column; they are no columns of a table
# What a document is, and what of it is left out, stays as it is where only the record of its file is updated.
_KEPT = frozenset({"path", "doc_id", "part_of", "left_out"})


@dataclass(slots=True)
class Generation:
    """The row of a generation, locked until its transaction ends; `save` writes its changes.

    `number` is -1 where nothing was built yet, and only vectors are written.
    """

    connection: psycopg.Connection[Any]
    schema: str
    tenant: UUID
    number: int = -1
    meta: IndexMeta | None = None
    last_id: int = 0
    chunks: int = 0
    terms: int = 0
    live: bool = True
    change: str | None = None

    @property
    def model(self) -> str | None:
        """The identity of the vectors of chunks, as it is stored; None before the first build."""
        return encode(self.meta.identity) if self.meta else None

    def run(self, statement: str, **values: Any) -> psycopg.Cursor[Any]:
        """Run a statement; `{s}` is the schema, `{here}` this generation."""
        bound = {"tenant": self.tenant, "generation": self.number, "model": self.model, **values}
        return self.connection.execute(as_query(statement.replace("{here}", HERE).replace("{s}", self.schema)), bound)

    def check(self, made_for: IndexMeta | None) -> None:
        """Check that rows made for an index may be written to this one.

        Raises:
            StoreError: They may not.
        """
        if self.meta is None:
            raise StoreError("the index has no meta yet; call begin_build(meta) first, or name the identity")
        there = (self.meta.identity, dict(self.meta.chunking))
        if made_for is not None and there != (made_for.identity, dict(made_for.chunking)):
            raise StoreError("the index was built again by another process meanwhile; sync again")

    def save(self) -> None:
        """Write the row of the generation."""
        if self.number < 0:
            return
        self.change = os.urandom(8).hex()
        self.run(
            STATEMENTS["write_generation"],
            live=self.live,
            meta=rows_of.encode_meta(self.meta) if self.meta else None,
            last_id=self.last_id,
            chunks=self.chunks,
            terms=self.terms,
            change=self.change,
        )

    # --- rows ----------------------------------------------------------------------------------------------------

    def drop(self, which: str, **values: Any) -> None:
        """Remove rows and their postings; their vectors stay."""
        dropped = self.run(
            STATEMENTS["drop"].replace("{which}", which),
            **values,
        ).fetchone()
        if dropped:
            self.chunks -= dropped[0]
            self.terms -= dropped[1]

    def clear(self) -> None:
        """Remove all files and rows; vectors are kept."""
        for table in OF_A_GENERATION:
            self.run(f"DELETE FROM {{s}}.{table} WHERE {{here}}")
        self.chunks = self.terms = 0

    def copy_rows(self, old: int) -> None:
        """Begin with the files and rows of another generation."""
        columns = {"files": rows_of.FILES, "chunks": (*rows_of.CHUNKS, "terms"), "postings": rows_of.POSTINGS}
        for table, names in columns.items():
            listed = ", ".join(names)
            self.run(
                f"INSERT INTO {{s}}.{table} (tenant, generation, {listed}) SELECT tenant, %(generation)s, {listed} "
                f"FROM {{s}}.{table} WHERE tenant = %(tenant)s AND generation = %(old)s ON CONFLICT DO NOTHING",
                old=old,
            )

    def has(self, path: str) -> bool:
        """Return True if a file is indexed."""
        return self.run("SELECT 1 FROM {s}.files WHERE {here} AND path = %(path)s", path=path).fetchone() is not None

    def put_records(self, records: Sequence[FileRecord]) -> None:
        """Add records of files, or put them in the place of those that are there."""
        new = ", ".join(f"{name} = excluded.{name}" for name in rows_of.FILES)
        self._insert(
            "files",
            rows_of.FILES,
            rows_of.FILE_TYPES,
            [rows_of.make_file_row(record) for record in records],
            then=f"ON CONFLICT (tenant, generation, path) DO UPDATE SET {new}",
        )

    def update_record(self, record: FileRecord) -> None:
        """Update the record of an indexed file; its document stays."""
        new = ", ".join(f"{name} = %({name})s" for name in rows_of.FILES if name not in _KEPT)
        values = dict(zip(rows_of.FILES, rows_of.make_file_row(record), strict=True))
        self.run(f"UPDATE {{s}}.files SET {new} WHERE {{here}} AND path = %(path)s", **values)

    def put_rows(self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow], int]]) -> None:
        """Add the rows of files with new ids, each from its first ordinal on.

        Raises:
            StoreError: The vector of a chunk is not stored.
        """
        needed = {encode(row.vector_key) for _, rows, _ in files for row in rows if row.vector_key and not row.identity}
        existing = self.run(
            "SELECT key FROM {s}.vectors WHERE tenant = %(tenant)s AND identity = %(model)s AND key = ANY(%(keys)s)",
            keys=rows_of.Packed(list(needed)),
        )
        if missing := sorted(needed - {key for (key,) in existing}):
            raise StoreError(f"no vector is stored under {missing[0]!r}; call add_vectors before the rows")
        block = self.last_id + 1
        columns: list[tuple[tuple[Any, ...], Mapping[int, float]]] = []
        for record, rows, first in files:
            columns += rows_of.chunk_rows(record, rows, self.last_id + 1, first, block)
            self.last_id += len(rows)
        own = [(row, weights) for row, weights in columns if not row[rows_of.IDENTITY]]
        self.chunks += len(own)
        self.terms += sum(row[rows_of.LENGTH] for row, _ in own)
        self._put_chunks(columns)
        self._put_postings(block, own)

    def _put_chunks(self, rows: Sequence[tuple[tuple[Any, ...], Mapping[int, float]]]) -> None:
        """Add chunks with the keys of their terms, sent as one long column that the server cuts."""
        import numpy as np

        has = [len(weights) if not row[rows_of.IDENTITY] else 0 for row, weights in rows]
        terms = chain.from_iterable(weights for (_, weights), count in zip(rows, has, strict=True) if count)
        lasts = list(accumulate(has))
        self._insert(
            "chunks",
            (*rows_of.CHUNKS, *_POSITIONS),
            (*rows_of.CHUNK_TYPES, "int8", "int8"),
            [(*row, last - count + 1, last) for (row, _), count, last in zip(rows, has, lasts, strict=True)],
            computed={"terms": "(%(terms)s)[first:last]"},
            terms=rows_of.Packed(np.fromiter(terms, np.int64, sum(has))),
        )

    def _put_postings(self, block: int, rows: Sequence[tuple[tuple[Any, ...], Mapping[int, float]]]) -> None:
        """Add the postings of a block, sent as four long columns that the server cuts."""
        for source in sorted({row[rows_of.SOURCE] for row, _ in rows}):
            postings = _list_postings([row for row in rows if row[0][rows_of.SOURCE] == source])
            if postings is None:
                continue
            self.run(
                """INSERT INTO {s}.postings (tenant, generation, term, block, source, chunks, weights, lengths)
                SELECT %(tenant)s, %(generation)s, term, %(block)s, %(source)s, (%(chunks)s)[first:last],
                    (%(weights)s)[first:last], (%(lengths)s)[first:last]
                FROM unnest(%(terms)s, %(firsts)s, %(lasts)s) AS new (term, first, last) ON CONFLICT DO NOTHING""",
                block=block,
                source=source,
                **{name: rows_of.Packed(column) for name, column in postings.items()},
            )

    def _insert(
        self,
        table: str,
        columns: Sequence[str],
        types: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        *,
        then: str = "ON CONFLICT DO NOTHING",
        computed: Mapping[str, str] = MappingProxyType({}),
        **values: Any,
    ) -> None:
        """Add rows in one statement: COPY is refused under row-level security.

        Citus makes a COPY of an INSERT of a SELECT unless it has ON CONFLICT; there is no conflict, as all ids are new.

        Columns that the server computes are in `computed`, with their expressions.
        """
        if not rows:
            return
        arrays = {
            f"column{at}": rows_of.Packed(column) if kind == "text" else rows_of.format_array(column)
            for at, (column, kind) in enumerate(zip(zip(*rows, strict=True), types, strict=True))
        }
        arguments = ", ".join(f"%({name})s::{kind}[]" for name, kind in zip(arrays, types, strict=True))
        own = [name for name in columns if name not in _POSITIONS]
        self.run(
            f"INSERT INTO {{s}}.{table} (tenant, generation, {', '.join([*own, *computed])}) "
            f"SELECT %(tenant)s, %(generation)s, {', '.join([*own, *computed.values()])} "
            f"FROM unnest({arguments}) AS new ({', '.join(columns)}) {then}",
            **arrays,
            **values,
        )

    # --- vectors -------------------------------------------------------------------------------------------------

    def put_vectors(
        self, model: str, keys: Sequence[str], matrix: Matrix, token_codes: Sequence[bytes] | None = None
    ) -> None:
        """Add vectors that are not stored yet; those that are get the codes of their tokens, if they have none."""
        codes = token_codes if token_codes is not None else [None] * len(keys)
        are_zero: list[bool] = (matrix == 0).all(axis=1).tolist()
        self.run(
            "CREATE TEMPORARY TABLE IF NOT EXISTS new_vectors "
            "(key text, vector public.vector, is_zero boolean, codes bytea) ON COMMIT DELETE ROWS"
        )
        with self.connection.cursor().copy("COPY new_vectors FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["text", "vector", "bool", "bytea"])
            for key, row, is_zero, own in zip(keys, matrix, are_zero, codes, strict=True):
                copy.write_row((encode(key), row, is_zero, own))
        self.run(
            """INSERT INTO {s}.vectors AS old (tenant, identity, key, vector, is_zero, token_codes)
            SELECT DISTINCT ON (key) %(tenant)s, %(model)s, key, vector, is_zero, codes FROM new_vectors ORDER BY key
            ON CONFLICT (tenant, identity, key) DO UPDATE SET token_codes = excluded.token_codes
            WHERE old.token_codes IS NULL AND excluded.token_codes IS NOT NULL""",
            model=model,
        )

    def prune(self) -> int:
        """Remove the vectors that no row of any generation uses, and return how many."""
        return self.run(STATEMENTS["prune"]).rowcount


def _list_postings(rows: Sequence[tuple[tuple[Any, ...], Mapping[int, float]]]) -> dict[str, Any] | None:
    """Return the postings of a source, term by term; None without terms.

    Those of a term are from its `firsts` to its `lasts` in `chunks`, `weights` and `lengths`, from 1 on. The terms are
    in the order of their index, in which the server writes them with half of the work.
    """
    import numpy as np

    counts = np.fromiter((len(weights) for _, weights in rows), np.int64)
    terms = np.fromiter(chain.from_iterable(weights for _, weights in rows), np.int64)
    if not len(terms):
        return None
    order = np.argsort(terms, kind="stable")  # so that the ids of a term stay in their order
    terms = terms[order]
    starts = np.flatnonzero(np.r_[True, terms[1:] != terms[:-1]])
    weights = np.fromiter(chain.from_iterable(weights.values() for _, weights in rows), np.float32)
    return {
        "terms": terms[starts],
        "firsts": starts + 1,
        "lasts": np.r_[starts[1:], len(terms)],
        "chunks": np.repeat(np.fromiter((row[0] for row, _ in rows), np.int64), counts)[order],
        "weights": weights[order],
        "lengths": np.repeat(np.fromiter((row[rows_of.LENGTH] for row, _ in rows), np.float32), counts)[order],
    }


def lock_row(connection: psycopg.Connection[Any], schema: str, tenant: UUID, number: int | None = None) -> Generation:
    """Return a generation of a tenant, by default the one that answers, and keep other writers from it until the end.

    Where nothing was built yet, it has the number -1.
    """
    generation = Generation(connection, schema, tenant)
    row = generation.run(
        "SELECT generation, meta, last_id, chunks, terms, live FROM {s}.generations WHERE tenant = %(tenant)s AND "
        + ("live" if number is None else "generation = %(number)s")
        + " FOR UPDATE",
        number=number,
    ).fetchone()
    if row is not None:
        generation.number, generation.meta = row[0], rows_of.decode_meta(row[1])
        generation.last_id, generation.chunks, generation.terms, generation.live = row[2:]
    return generation
