"""What the access log costs: CPU time of an entry, of a call with the log off and on, and of the proof; medians.

    python benchmarks/audit.py [--entries N] [--rounds N] [--json]

Entries are those of a line that is read, and of a search with six results. The call is made in turn on two memories of
the same notes, of which one logs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from openclaw_memory_audit import AccessLog
from speed_data import write_files

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.environment import locate_workspace_data
from openclaw_memory.events import Event
from openclaw_memory.workspace import Workspace

BAR_US = 100.0  # of an entry
NOTES = 500
LOGGED = MemoryConfig(plugins={"audit": {"enabled": True}})
PLACES = tuple((f"memory/2026-11-{day:02}.md", "3-9") for day in range(1, 7))


def cpu(call: Callable[[], object], times: int) -> float:
    """Microseconds of CPU time of one of so many calls."""
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / times * 1e6


def entries(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """The cost of an entry, and of the proof, with the usual settings, rotation included."""
    folder.mkdir()
    log = AccessLog(Workspace.open(folder))
    log(Event("search", PLACES))
    one = [cpu(lambda: log(Event("get", PLACES[:1])), count) for _ in range(rounds)]
    six = [cpu(lambda: log(Event("search", PLACES)), count) for _ in range(rounds)]
    files = list((locate_workspace_data(folder) / "audit").glob("access.*"))
    began = time.process_time()
    verdict = log.verify()
    spent = time.process_time() - began
    assert verdict.ok, verdict
    return {
        "entry_us": round(statistics.median(one), 1),
        "entry_of_a_search_us": round(statistics.median(six), 1),
        "bytes": round(sum(file.stat().st_size for file in files) / verdict.entries),
        "kept": verdict.entries,
        "proof_us_an_entry": round(spent / verdict.entries * 1e6, 1),
        "proof_s": round(spent, 2),
    }


def calls(folder: Path, count: int, rounds: int) -> dict[str, float]:
    """The cost of `Memory.get` of a line, the cheapest of all calls, with the log off and on."""
    write_files(folder, NOTES)
    with Memory.open(folder, embedder=None) as off, Memory.open(folder, embedder=None, config=LOGGED) as on:
        path = off.workspace.scan().files[0].path
        times: dict[str, list[float]] = {"off": [], "on": []}
        for _ in range(rounds):
            for name, memory in (("off", off), ("on", on)):
                times[name].append(cpu(partial(memory.get, path, start=1, lines=1), count))
    return {name: round(statistics.median(some), 1) for name, some in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OPENCLAW_MEMORY_HOME"] = f"{folder}/data"
        found = {
            **entries(Path(folder, "entries"), given.entries, given.rounds),
            "get_us": calls(Path(folder, "calls"), given.entries, given.rounds),
        }
    if given.json:
        print(json.dumps({"entries": given.entries, "rounds": given.rounds, "bar_us": BAR_US, **found}, indent=1))
        return
    print(f"an entry: {found['entry_us']} us, of a search {found['entry_of_a_search_us']} us; bar {BAR_US:g} us")
    print(f"{found['bytes']} bytes an entry; the proof of {found['kept']:,} entries takes {found['proof_s']} s")
    print(f"Memory.get: {found['get_us']['off']} us off, {found['get_us']['on']} us on")


if __name__ == "__main__":
    main()
