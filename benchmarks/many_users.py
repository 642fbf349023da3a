"""What a pool of memories costs with many people: opening one, its first answer, memory and open files."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from openclaw_memory import Memories

Timed = tuple[float, float]  # milliseconds of wall time, and of CPU time of the thread


def clock() -> Timed:
    """The time, on the wall and in this thread."""
    return time.perf_counter() * 1000, time.thread_time() * 1000


def since(start: Timed) -> Timed:
    """The time that has passed."""
    wall, cpu = clock()
    return wall - start[0], cpu - start[1]


def visit(users: Memories, number: int) -> tuple[Timed, Timed]:
    """Open the memory of a user and ask it; what either took. Every result is the user's own."""
    start = clock()
    with users.use(f"user-{number}") as memory:
        opened, asked = since(start), clock()
        results = memory.search(f"What does user {number} drink?")
        answered = since(asked)
        assert results
        assert all(f"zebra{number}x" in hit.snippet for hit in results), f"user-{number} was shown {results}"
    return opened, answered


def write_users(root: Path, people: int) -> None:
    """A folder for each, with two small notes."""
    for number in range(people):
        notes = root / f"user-{number}" / "memory"
        notes.mkdir(parents=True)
        for day in (1, 2):
            text = f"# 2026-11-0{day}\n\nUser {number} drinks tea with zebra{number}x on day {day}.\n"
            (notes / f"2026-11-0{day}.md").write_text(text)


def spread(times: list[Timed]) -> dict[str, float]:
    """Median and 95th percentile, on the wall and in CPU time."""
    found = {}
    for name, values in zip(("wall", "cpu"), zip(*times, strict=True), strict=True):
        found[f"{name} p50"] = round(statistics.median(values), 2)
        found[f"{name} p95"] = round(sorted(values)[int(len(values) * 0.95)], 2)
    return found


def held() -> dict[str, Any]:
    """Megabytes in RAM, and open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"MB": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1), "files": len(os.listdir("/proc/self/fd"))}


def measured(people: int, at_once: int, max_open: int) -> dict[str, Any]:
    """Every user comes twice: the first time the index is made, the second time in another order it is there."""
    draw = random.Random(20)
    with tempfile.TemporaryDirectory() as folder:
        write_users(Path(folder), people)
        found: dict[str, Any] = {"people": people, "at once": at_once, "max_open": max_open}
        with Memories(folder, max_open=max_open) as users, ThreadPoolExecutor(at_once) as threads:
            visit(users, 0)
            found["held, one open"] = held()
            for name in ("first visit", "second visit"):
                order = random.Random(draw.random()).sample(range(people), people)
                visits = [timed for number in order[: 2 * max_open] for timed in [visit(users, number)]]
                if name == "first visit":
                    found["held, after 2 x max_open"] = held()
                alone = order[2 * max_open : people // 2]
                visits += [visit(users, number) for number in alone]
                found[f"{name}, one at a time: opening"] = spread([opened for opened, _ in visits])
                found[f"{name}, one at a time: first answer"] = spread([answered for _, answered in visits])
                start = time.perf_counter()
                crowd = list(threads.map(lambda number: visit(users, number), order[people // 2 :]))
                found[f"{name}, {at_once} at once: opening"] = spread([opened for opened, _ in crowd])
                found[f"{name}, {at_once} at once: visits a second"] = round(len(crowd) / (time.perf_counter() - start))
            found["held, at the end"] = held()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--max-open", type=int, default=64)
    options = parser.parse_args()
    json.dump(measured(options.people, options.at_once, options.max_open), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
