"""What a hook of a coding agent costs: CPU time of the whole process, and of the answer alone; medians.

    python benchmarks/hooks.py [--notes N] [--rounds N] [--json]

Cold is `openclaw-memory hook claude-code` as the host starts it, interpreter and imports included, for each event of a
session in turn. Warm is the same answer again in a process that has answered before. In the same rounds, for comparison:
the command `search`, and an interpreter that does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openclaw_memory_hooks import claude_code
from speed_data import questions, write_files

from openclaw_memory import Memory

BARS_MS = {"warm": 150.0, "cold": 250.0}
TURNS = 50  # of the conversation


def write_turns(file: Path, turns: range) -> None:
    """Add turns to a conversation of Claude Code; each carries as much of a tool as a short file has."""
    with file.open("a", encoding="utf-8") as opened:
        for at in turns:
            question = questions(at + 1)[at]
            for name, role, content in (
                ("asked", "user", question),
                (
                    "read",
                    "user",
                    [{"type": "tool_result", "tool_use_id": str(at), "content": "line of a file\n" * 200}],
                ),
                ("said", "assistant", [{"type": "text", "text": f"That is so: {question}"}]),
            ):
                record = {"type": role, "uuid": f"{file.stem}-{at}-{name}", "sessionId": file.stem}
                opened.write(json.dumps(record | {"message": {"role": role, "content": content}}) + "\n")


def events(file: Path, memory: Memory) -> Iterator[dict[str, Any]]:
    """The events of the last turn of a session, of which all turns before have been kept."""
    common = {"session_id": file.stem, "transcript_path": str(file)}
    write_turns(file, range(TURNS - 1))
    claude_code.answer({**common, "hook_event_name": "Stop"}, memory)
    yield {**common, "hook_event_name": "SessionStart", "source": "startup"}
    yield {**common, "hook_event_name": "UserPromptSubmit", "prompt": questions(TURNS)[-1]}
    write_turns(file, range(TURNS - 1, TURNS))
    yield {**common, "hook_event_name": "Stop"}
    yield {**common, "hook_event_name": "PreCompact", "trigger": "auto"}
    yield {**common, "hook_event_name": "SessionStart", "source": "compact"}
    yield {**common, "hook_event_name": "SessionEnd", "reason": "other"}


def name_of(event: dict[str, Any]) -> str:
    return " ".join(filter(None, (event["hook_event_name"], event.get("source"))))


def cold(*arguments: str, stdin: str = "") -> tuple[float, float]:
    """CPU and wall time of a process, in milliseconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, wall * 1000


def warm(event: dict[str, Any], memory: Memory) -> tuple[float, float]:
    cpu, begun = time.process_time(), time.perf_counter()
    claude_code.answer(event, memory)
    return (time.process_time() - cpu) * 1000, (time.perf_counter() - begun) * 1000


def measured(place: Path, notes: int, rounds: int) -> dict[str, Any]:
    folder = write_files(place / "notes", notes)
    with Memory.open(folder) as memory:
        memory.sync()
        spent: dict[str, dict[str, list[tuple[float, float]]]] = {"cold": {}, "warm": {}}
        for number in range(rounds + 1):
            found: list[tuple[str, str, tuple[float, float]]] = []
            run = ("-m", "openclaw_memory", "hook", "claude-code", "--workspace", str(folder))
            for event in events(place / f"cold-{number}.jsonl", memory):
                found += [("cold", name_of(event), cold(*run, stdin=json.dumps(event)))]
            for event in events(place / f"warm-{number}.jsonl", memory):
                found += [("warm", name_of(event), warm(event, memory))]
            search = ("-m", "openclaw_memory", "search", "--workspace", str(folder), "--", questions(number + 1)[-1])
            found += [("cold", "search", cold(*search)), ("cold", "python", cold("-c", "pass"))]
            for kind, name, times in found if number else ():  # the first round warms up
                spent[kind].setdefault(name, []).append(times)
    return {
        kind: {
            name: {
                "cpu_ms": statistics.median(cpu for cpu, _ in times),
                "wall_ms": statistics.median(wall for _, wall in times),
            }
            for name, times in by_name.items()
        }
        for kind, by_name in spent.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # As in an installation: imports read bytecode that was written once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as place:
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(place) / "bytecode")
        found = measured(Path(place), given.notes, given.rounds)
    if given.json:
        print(json.dumps({"notes": given.notes, "rounds": given.rounds, "bars_ms": BARS_MS, **found}, indent=2))
        return
    for kind, by_name in found.items():
        for name, times in by_name.items():
            print(f"{kind} {name:22} {times['cpu_ms']:7.1f} ms CPU  {times['wall_ms']:7.1f} ms")


if __name__ == "__main__":
    main()
