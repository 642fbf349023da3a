"""Keep an index of neighbours (HNSW) of one tenant's vectors, measure how many of the nearest it finds, and ask it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import StoreError
from openclaw_memory.store.postgres_connections import as_query, lock_key, own_errors
from openclaw_memory.store.postgres_rows import read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    import psycopg

    from openclaw_memory.types import IndexMeta, Vector

STATE = "hnsw"  # the name of what is kept about it among the texts of a tenant
LEAST_VECTORS = 1000  # fewer are compared in a few milliseconds, for which nothing has to be kept
MOST_DIMS = 2000  # what pgvector takes in such an index
# Candidates of a search. The most that pgvector takes is 1000; more find more, at a price that is in proportion.
REACH, MOST_REACH = 200, 1000
SAMPLES, NEAREST = 50, 10
RECALL_BAR = 0.95
_GROWN = 1.2  # an index that has so many times its vectors, or has lost as many, is measured again


@dataclass(frozen=True, slots=True)
class HnswIndex:
    """What is known of the index of a tenant.

    Attributes:
        identity: The model of the vectors, as it is stored.
        dims: Their length.
        vectors: How many there were when `recall` was measured.
        recall: The share of the 10 nearest of a stored vector that a search by it finds, 0 to 1.
        samples: Of how many vectors that is the mean.
        error: Why there is no such index, in words; "" where there is one.
    """

    identity: str = ""
    dims: int = 0
    vectors: int = 0
    recall: float = 0.0
    samples: int = 0
    error: str = ""

    @classmethod
    def read(cls, text: str) -> HnswIndex:
        """Return it as it is stored among the texts of a tenant."""
        return cls(**json.loads(text))

    def in_words(self) -> str:
        """Return how vectors are searched, for `status`."""
        if self.error:
            return "exact"
        return f"HNSW, recall@{NEAREST} {self.recall:.2f} of {self.samples} samples"

    def notice(self) -> str | None:
        """Return what is wrong with it, in words; None where nothing is."""
        if self.error:
            return f"vectors are compared exactly, though hnsw=1 is asked for: {self.error}"
        if self.recall < RECALL_BAR:
            return (
                f"the HNSW index finds {self.recall:.2f} of the {NEAREST} nearest vectors, below {RECALL_BAR:g}: "
                "leave hnsw=1 out of the address to compare all of them"
            )
        return None


@dataclass(frozen=True, slots=True)
class Hnsw:
    """The index of a tenant on a connection that sees that tenant alone."""

    connection: psycopg.Connection[Any]
    schema: str
    tenant: UUID

    def name(self, identity: str) -> str:
        """Return the name of the index for a model."""
        return f"hnsw_{self.tenant.hex}_{lock_key('hnsw', identity) & (1 << 64) - 1:016x}"

    def known(self) -> HnswIndex | None:
        """Return what is known of the index; None where there is none, or where it is not whole."""
        row = self._run(
            "SELECT value FROM {s}.texts WHERE tenant = %(tenant)s AND name = %(name)s", name=STATE
        ).fetchone()
        index = HnswIndex.read(read(row[0])) if row else None
        if index is None or index.error:
            return index
        return index if self._is_whole(index.identity) else None

    def nearest(self, index: HnswIndex, vector: Vector, reach: int) -> dict[str, float]:
        """Return the keys of about `reach` vectors that are nearest to a unit vector, with their cosines.

        Call it in a transaction: what the planner may do is set for that alone. It knows nothing of a tenant's rows,
        expects a single one, and would rather sort that than ask the index.
        """
        with self.connection.pipeline():
            self.connection.execute(as_query(f"SET LOCAL hnsw.ef_search = {reach:d}"))
            self.connection.execute("SET LOCAL enable_sort = off")
            rows = self._run(self._nearest(index), vector=vector, reach=reach)
            self.connection.execute("SET LOCAL enable_sort = on")
            return dict(rows.fetchall())

    def keep(self, meta: IndexMeta, identity: str) -> HnswIndex:
        """Make the index for the vectors of a model, or measure it again where they have grown; return what is known.

        It is made beside the work of others, which takes two reads of the table of all tenants.

        Raises:
            StoreError: The server refuses, for instance a role that does not own the table.
        """
        dims, name = meta.dims or 0, self.name(identity)
        row = self._run(
            "SELECT count(*) FROM {s}.vectors WHERE tenant = %(tenant)s AND identity = %(model)s AND NOT is_zero",
            model=identity,
        ).fetchone()
        count = row[0] if row else 0
        if count < LEAST_VECTORS:
            return HnswIndex(error=f"{count} vectors are few enough; it is made from {LEAST_VECTORS:,} on")
        if dims > MOST_DIMS:
            return HnswIndex(error=f"vectors of {dims} dimensions do not fit, at most {MOST_DIMS:,} do")
        index, known = HnswIndex(identity, dims, count), self.known()
        if known and not known.error and known.identity == identity:
            if known.vectors / _GROWN <= count <= known.vectors * _GROWN:
                return known
        elif not self._is_whole(identity) and not self._make(index, name):
            return HnswIndex(error="one of another agent is being made; the next sync makes it")
        return self._measured(index)

    def _make(self, index: HnswIndex, name: str) -> bool:
        """Make the index, and remove those of other models; return whether it was our turn."""
        turn = lock_key("hnsw", self.schema)  # the server makes one index of a table at a time
        row = self.connection.execute("SELECT pg_try_advisory_lock(%s)", (turn,)).fetchone()
        if not row or not row[0]:
            return False
        try:
            for old in self._all():
                self.connection.execute(as_query(f"DROP INDEX CONCURRENTLY IF EXISTS {self.schema}.{old}"))
            self.connection.execute(
                as_query(
                    f"CREATE INDEX CONCURRENTLY {name} ON {self.schema}.vectors USING hnsw "
                    f"((vector::public.vector({index.dims:d})) public.vector_ip_ops) WHERE {self._rows(index)}"
                )
            )
        finally:
            self.connection.execute("SELECT pg_advisory_unlock(%s)", (turn,))
        return True

    def _measured(self, index: HnswIndex) -> HnswIndex:
        """Compare what the index finds for some stored vectors with what comparing all of them does."""
        samples = self._run(
            "SELECT key, vector FROM {s}.vectors WHERE tenant = %(tenant)s AND identity = %(model)s AND NOT is_zero "
            "ORDER BY md5(key) LIMIT %(samples)s",
            model=index.identity,
            samples=SAMPLES,
        ).fetchall()
        found = 0
        for key, stored_vector in samples:
            vector = stored_vector.to_numpy()
            exact = self._run(
                "SELECT -(vector {v} %(vector)s) AS score FROM {s}.vectors WHERE tenant = %(tenant)s "
                "AND identity = %(model)s AND NOT is_zero AND key <> %(key)s ORDER BY score DESC LIMIT %(k)s",
                model=index.identity,
                vector=vector,
                key=key,
                k=NEAREST,
            ).fetchall()
            with self.connection.transaction():
                near = self.nearest(index, vector, REACH)
            near.pop(key, None)
            # Vectors of one cosine are as near as each other, whichever of them is found.
            least = exact[-1][0] - 1e-6
            found += min(NEAREST, sum(score >= least for score in near.values()))
        return HnswIndex(
            index.identity, index.dims, index.vectors, found / (NEAREST * max(1, len(samples))), len(samples)
        )

    def _all(self) -> list[str]:
        rows = self.connection.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = %s AND starts_with(indexname, %s)",
            (self.schema.lower(), f"hnsw_{self.tenant.hex}_"),
        ).fetchall()
        return [name for (name,) in rows]

    def _is_whole(self, identity: str) -> bool:
        row = self.connection.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
            (f"{self.schema}.{self.name(identity)}",),
        ).fetchone()
        return bool(row and row[0])

    def _rows(self, index: HnswIndex) -> str:
        """Return which rows the index has, as literals: the planner must see that a search wants no others."""
        from psycopg.sql import Literal

        tenant, model = (Literal(one).as_string(self.connection) for one in (str(self.tenant), index.identity))
        return f"tenant = {tenant}::uuid AND identity = {model} AND NOT is_zero"

    def _nearest(self, index: HnswIndex) -> str:
        distance = f"vector::public.vector({index.dims:d}) {{v}} %(vector)s"
        rows = self._rows(index).replace("%", "%%")
        return f"SELECT key, -({distance}) FROM {{s}}.vectors WHERE {rows} ORDER BY {distance} LIMIT %(reach)s"

    def _run(self, statement: str, **values: Any) -> psycopg.Cursor[Any]:
        query = statement.replace("{s}", self.schema).replace("{v}", "OPERATOR(public.<#>)")
        given: Mapping[str, Any] = {"tenant": self.tenant, **values}
        return self.connection.execute(as_query(query), given, binary=True)


def kept(connection: psycopg.Connection[Any], schema: str, tenant: UUID, url: str, meta: IndexMeta, model: str) -> str:
    """Keep the index as a sync ends; return what is known of it as it is stored, an error of the server among it."""
    try:
        with own_errors(url):
            index = Hnsw(connection, schema, tenant).keep(meta, model)
    except StoreError as error:
        if connection.closed:
            raise
        index = HnswIndex(error=str(error))
    return json.dumps(asdict(index))
