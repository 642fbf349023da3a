"""What a call over the Model Context Protocol costs beside the search that it makes: CPU time and wall time, medians.

    python benchmarks/mcp_calls.py [--notes N] [--rounds N] [--json]

The same questions in turn to `memory.search`, to the tool in this process, and to `openclaw-memory mcp` over stdin and
stdout. Of the server its own CPU time is counted, by the system; that of the client is another program's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from speed_data import questions, write_files

from openclaw_memory import Memory
from openclaw_memory.tools import memory_tools

QUESTIONS = 40  # asked in each round
BAR_MS = 2.0
NAMES = ("memory.search", "tool", "mcp", "mcp, legacy")  # the protocol of 2026-07-28, and the one with a handshake


def cpu_of(process: int) -> float:
    """Milliseconds of CPU time that a process has used in all its threads."""
    return (
        sum(
            int(Path(f"/proc/{process}/task/{task}/schedstat").read_text().split()[0])
            for task in os.listdir(f"/proc/{process}/task")
        )
        / 1e6
    )


def children() -> set[int]:
    return {
        int(one)
        for task in os.listdir("/proc/self/task")
        for one in Path(f"/proc/self/task/{task}/children").read_text().split()
    }


async def measured(folder: Path, rounds: int) -> dict[str, Any]:
    asked = questions(QUESTIONS)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    before = children()
    with Memory.open(folder) as memory:
        memory.sync()
        tool, most = memory_tools(memory)[0], memory.config.recall.max_chars
        arguments = ["-m", "openclaw_memory", "mcp", "--workspace", str(folder)]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(parameters)) as client, Client(stdio_client(parameters), mode="legacy") as older:
            # Both begin with a look at the files, and make a watcher: that is not part of a call.
            await asyncio.sleep(3)
            by_version = {"mcp": client, "mcp, legacy": older}
            servers: dict[str, int] = {}
            for name, one in by_version.items():
                used = {child: cpu_of(child) for child in children() - before}
                for question in asked:
                    await one.call_tool("memory_search", {"query": question})
                servers[name] = max(used, key=lambda child: cpu_of(child) - used[child])
            for number in range(rounds + 1):
                order = [*times][number % len(times) :] + [*times][: number % len(times)]  # who comes first differs
                for name in order:
                    server = servers.get(name, os.getpid())
                    wall, cpu = time.perf_counter(), cpu_of(server)
                    for question in asked:
                        if name == "memory.search":
                            memory.search(question, max_chars=most)
                        elif name == "tool":
                            assert tool.run({"query": question}).ok
                        else:
                            answer = await by_version[name].call_tool("memory_search", {"query": question})
                            assert not answer.is_error
                    if number:  # the first round warms up
                        done = (cpu_of(server) - cpu, (time.perf_counter() - wall) * 1000)
                        times[name].append((done[0] / QUESTIONS, done[1] / QUESTIONS))
    return {
        name: {
            "cpu_ms": statistics.median(cpu for cpu, _ in spent),
            "wall_ms": statistics.median(wall for _, wall in spent),
        }
        for name, spent in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(measured(write_files(Path(place) / "notes", given.notes), given.rounds))
    search = found["memory.search"]["cpu_ms"]
    report = {"notes": given.notes, "rounds": given.rounds, "questions": QUESTIONS, "bar_ms": BAR_MS, **found}
    for name in ("tool", "mcp", "mcp, legacy"):
        report[f"{name}, over memory.search"] = found[name]["cpu_ms"] - search
    if given.json:
        print(json.dumps(report, indent=2))
        return
    for name, spent in found.items():
        print(
            f"{name:15} {spent['cpu_ms']:6.2f} ms CPU  {spent['wall_ms']:6.2f} ms  {spent['cpu_ms'] - search:+.2f} ms over the search"
        )


if __name__ == "__main__":
    main()
