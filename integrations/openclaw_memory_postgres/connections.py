"""Connect to PostgreSQL: a pool for each database, the tables with their row security, and typed errors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from openclaw_memory.errors import MissingExtraError, StoreError, SyncBusyError
from openclaw_memory_postgres.rows import Packed, hash_term

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg
    from psycopg_pool import ConnectionPool

SCHEMA = "openclaw_memory"
# What row-level security compares rows with: set at the beginning of each transaction.
SETTING = "openclaw_memory.tenant"
INDEX_TABLES = ("generations", "texts", "files", "chunks", "postings", "vectors")
TABLES = (*INDEX_TABLES, "notes")
# Of joins, those whose cost is the rows of the tenant, whatever the statistics expect; see `search`. Machine
# code is not worth its making for statements of milliseconds. The last one has the coordinator of Citus hand on what a
# transaction sets to its workers, whose policies compare rows with it.
SESSION = "SET enable_nestloop = off; SET jit = off; SET citus.propagate_set_commands = 'local'"
POOL_SIZE = 8  # connections of a process, for all its memories of one database
TENANT_SIZE = 4  # of these, for one memory: one whose server hangs leaves some to the others
# Of those that one holds while it asks others: a limit here would let threads wait for each other. The server has one.
MOST_HELD = 1000
POLL_SECONDS, NOTIFY_SECONDS = 0.05, 1.0
CONNECT_SECONDS = READ_SECONDS = 10.0
WRITE_SECONDS = 120.0
# A server that has gone without a word is noticed in so many seconds too.
TCP_LIMITS = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 2, "tcp_user_timeout": 10_000}
_MISSING = 'a store in PostgreSQL needs an extra ({}): pip install ".[postgres]" in its checkout'


def open_pool(url: str, schema: str, size: int, *, is_checked: bool) -> ConnectionPool[Any]:
    """Open a pool of connections to a database, and make the tables where they are missing.

    Args:
        url: A connection string of PostgreSQL.
        schema: The schema of the tables.
        size: How many connections at most.
        is_checked: Ask the server whether a connection is still there before each use of it.

    Raises:
        MissingExtraError: The extra `postgres` is not installed.
        StoreError: The server cannot be reached, has no pgvector, or the role may not make the tables.
    """
    try:
        import psycopg
        from pgvector.psycopg import register_vector
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise MissingExtraError(_MISSING.format(error)) from error

    limits: Any = {"autocommit": True, "connect_timeout": int(CONNECT_SECONDS), **TCP_LIMITS}
    with map_errors(url), psycopg.connect(url, **limits) as connection:
        _check_node(connection, url)
        _make_tables(connection, schema)

    def configure(connection: psycopg.Connection[Any]) -> None:
        connection.execute(as_query(SESSION))
        register_vector(connection)
        _register_packed(connection)

    return ConnectionPool(
        url,
        min_size=0,
        max_size=size,
        open=True,
        timeout=CONNECT_SECONDS,
        reconnect_timeout=1.0,  # a server that is up again is asked at once: its pauses grow to this
        configure=configure,
        kwargs=limits,
        check=ConnectionPool.check_connection if is_checked else None,
    )


def _register_packed(connection: psycopg.Connection[Any]) -> None:
    """Let a connection send `Packed` columns as they are."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class Whole(Dumper):
        format = Format.BINARY

        def dump(self, obj: Packed) -> bytes:
            return obj.pack()

        def get_key(self, obj: Packed, format: Any) -> Any:  # noqa: A002, ARG002 - as psycopg calls it
            return (self.cls, obj.types)

        def upgrade(self, obj: Packed, format: Any) -> Dumper:  # noqa: A002, ARG002 - as psycopg calls it
            dumper = Whole(self.cls)
            dumper.oid = obj.types[0]
            return dumper

    connection.adapters.register_dumper(Packed, Whole)


def _check_node(connection: psycopg.Connection[Any], url: str) -> None:
    """Refuse a worker of Citus: each node has its own locks, and writers by two nodes would not see each other."""
    functions = connection.execute("SELECT oid::regprocedure FROM pg_proc WHERE proname = 'citus_is_coordinator'")
    if (function := functions.fetchone()) and not _answer(connection, f"SELECT {function[0]}"):
        raise StoreError(f"{mask_url(url)} is a worker of Citus: name the coordinator, which has the locks of all")


def _make_tables(connection: psycopg.Connection[Any], schema: str) -> None:
    there = connection.execute("SELECT to_regclass(%s)", (f"{schema}.{TABLES[-1]}",)).fetchone()
    if there and there[0]:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("tables", schema),))
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(as_query(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
        text = package_files("openclaw_memory_postgres").joinpath("tables.sql").read_text(encoding="utf-8")
        connection.execute(as_query(text.replace("{schema}", schema).replace("{vectors}", "public")))
        for table in TABLES:
            _enable_row_security(connection, schema, table)


def _enable_row_security(connection: psycopg.Connection[Any], schema: str, table: str) -> None:
    """Let a connection see the rows of its tenant alone."""
    connection.execute(as_query(f"ALTER TABLE {schema}.{table} ENABLE ROW LEVEL SECURITY"))
    connection.execute(as_query(f"ALTER TABLE {schema}.{table} FORCE ROW LEVEL SECURITY"))
    connection.execute(as_query(f"DROP POLICY IF EXISTS tenant ON {schema}.{table}"))
    connection.execute(
        as_query(
            f"CREATE POLICY tenant ON {schema}.{table} "
            f"USING (tenant = nullif(current_setting('{SETTING}', true), '')::uuid)"
        )
    )


@contextmanager
def wait_turn(turns: threading.BoundedSemaphore) -> Iterator[None]:
    """Hold one of the connections that a memory may have at once.

    Raises:
        StoreError: All of them were in use for as long as a connection is waited for.
    """
    if not turns.acquire(timeout=CONNECT_SECONDS):
        raise StoreError(
            f"all {TENANT_SIZE} connections of this memory were in use for {CONNECT_SECONDS:g} s: try again"
        )
    try:
        yield
    finally:
        turns.release()


@contextmanager
def begin(
    connection: psycopg.Connection[Any], tenant: UUID, mode: str = "", *, seconds: float = READ_SECONDS
) -> Iterator[None]:
    """Begin a transaction of a tenant, in one round trip with the block.

    It sees the rows of that tenant alone. Set for the session, the tenant would not reach the workers of Citus, nor
    survive a pooler of transactions.

    Args:
        connection: It is in no transaction; who gave it out ends this one.
        tenant: The key of the tenant.
        mode: What follows BEGIN.
        seconds: How long each statement may take.
    """
    with connection.pipeline():
        connection.execute(as_query(f"BEGIN {mode}"))
        connection.execute(as_query(f"SET LOCAL {SETTING} = '{tenant}'"))
        connection.execute(as_query(f"SET LOCAL statement_timeout = '{seconds:g}s'"))
        yield


def lock_key(*names: str) -> int:
    """Return the number of an advisory lock."""
    return hash_term("\x00".join(("openclaw_memory", *names)))


def as_query(statement: str) -> Any:
    """Return a constant statement in psycopg's type; values of users are bound."""
    from psycopg.sql import SQL

    text: Any = statement
    return SQL(text)


@contextmanager
def map_errors(url: str) -> Iterator[None]:
    """Turn psycopg's errors into those of `errors.py`, each with its remedy."""
    try:
        import psycopg
        from psycopg_pool import PoolTimeout
    except ImportError as error:
        raise MissingExtraError(_MISSING.format(error)) from error
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(f"{mask_url(url)} gave no connection in {CONNECT_SECONDS:g} s: is the server up?") from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreError(f"{mask_url(url)} gave no answer in time ({error}): is a server of it down?") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(f"{mask_url(url)} cannot be reached ({why:.200}); start the server, then try again") from error
    except psycopg.errors.InsufficientPrivilege as error:
        remedy = "give the role the rights that the guide names"
        if "row-level security" in str(error):
            remedy = f"{SETTING} does not reach the server of the rows: is it set by a pooler, or refused by a worker?"
        raise StoreError(f"{mask_url(url)}: {error}; {remedy}") from error
    except psycopg.errors.FeatureNotSupported as error:
        raise StoreError(f"{mask_url(url)}: {error}; is the extension pgvector installed on the server?") from error
    except psycopg.Error as error:
        raise StoreError(f"{mask_url(url)}: {' '.join(str(error).split())}") from error


def is_lost(error: StoreError) -> bool:
    """Return True for an error of `map_errors` that is a lost connection, not a server without free ones."""
    import psycopg
    from psycopg_pool import PoolTimeout

    why = error.__cause__
    lost = isinstance(why, psycopg.OperationalError | psycopg.InterfaceError)
    return lost and not isinstance(why, PoolTimeout | psycopg.errors.QueryCanceled)


def mask_url(url: str, tenant: str | None = None) -> str:
    """Return an address without its password, with the tenant."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    place = f"{user.partition(':')[0]}{at}{host}"
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in {"password", "tenant"}]
    query = urlencode([*options, *([("tenant", tenant)] if tenant else [])], safe="/", quote_via=quote)
    return urlunsplit((parts.scheme, place, parts.path, query, ""))


class Pools:
    """The connections of a process: one pool for each database, which all stores share.

    `holders` are the process and thread that hold a lock of the server, by its number.
    """

    def __init__(self) -> None:
        self.opened: dict[tuple[int, str, str, bool], ConnectionPool[Any]] = {}
        self.holders: dict[int, tuple[int, int]] = {}
        self._opening = threading.Lock()

    def get_pool(self, url: str, schema: str, *, is_held: bool = False) -> ConnectionPool[Any]:
        """Return the pool of a database and make its tables; a forked child has its own.

        Args:
            url: A connection string of PostgreSQL.
            schema: The schema of the tables.
            is_held: The pool of connections that are held, for a lock or a transaction, while others are asked.

        Raises:
            MissingExtraError, StoreError: As `open_pool`.
        """
        key = (os.getpid(), url, schema, is_held)
        with self._opening:
            if key not in self.opened:
                self.opened[key] = open_pool(url, schema, MOST_HELD if is_held else POOL_SIZE, is_checked=is_held)
            return self.opened[key]

    def close(self, part: str = "") -> None:
        """Close connections to databases with `part` in the address; the next call opens new ones."""
        with self._opening:
            for key in [key for key in self.opened if part in key[1]]:
                pool = self.opened.pop(key)
                if key[0] == os.getpid():
                    pool.close()

    def reset_lock(self) -> None:
        """Free the lock in a child: the thread that held it is not there."""
        self._opening = threading.Lock()


POOLS = Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOLS.reset_lock)


@contextmanager
def take_lock(
    connection: psycopg.Connection[Any],
    key: int,
    who: str,
    wait: float | None = None,
    notify: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold an advisory lock of the server by a connection while the block runs; see `Store.lock`.

    Args:
        connection: It has the lock, and must not be used for another one meanwhile.
        key: The number of the lock.
        who: The message of the wait.
        wait: How many seconds to wait at most; None waits on.
        notify: Is told that it waits, once a second.

    Raises:
        SyncBusyError: It was waited for in vain.
    """
    import psycopg

    began, next_notice = time.monotonic(), 0.0
    while not _answer(connection, "SELECT pg_try_advisory_lock(%s)", key):
        waited = time.monotonic() - began
        if wait is not None and waited >= wait:
            raise SyncBusyError(f"{who}, and was waited for {wait:g} s; try again, or wait for longer")
        if notify is not None and waited >= next_notice:
            notify(f"waiting: {who}")
            next_notice = waited + NOTIFY_SECONDS
        time.sleep(POLL_SECONDS)
    POOLS.holders[key] = (os.getpid(), threading.get_ident())
    has_let_go = False
    try:
        yield
    finally:
        POOLS.holders.pop(key, None)
        try:
            with suppress(psycopg.Error):  # a lost connection has let go of it
                has_let_go = _answer(connection, "SELECT pg_advisory_unlock(%s)", key)
        finally:
            if not has_let_go:
                connection.close()  # who is given it next would hold the lock


def _answer(connection: psycopg.Connection[Any], statement: str, *values: int) -> bool:
    row = connection.execute(as_query(statement), values).fetchone()
    return bool(row and row[0])
