"""Measures what encrypted files cost: CPU time of reading, writing, syncing and searching, next to the same in the open.

Both have an encrypted index, so that only the files differ. python benchmarks/encrypted_files.py [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from openclaw_memory import Memory, MemoryConfig

NOTES, LINES, REPEATS = 500, 40, 200  # a note has about 4 kB
MESSAGE, MEGABYTE = "x" * 2_000, 1_000_000
KEY = "00" * 32  # of no importance: the files are gone when this ends


def cpu(work: Callable[[int], object], repeats: int) -> float:
    """The median of CPU milliseconds of a call."""
    times = []
    for number in range(repeats):
        started = time.process_time()
        work(number)
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def measured(*, encrypted: bool) -> dict[str, float]:
    """Milliseconds of CPU time by what was done, and the bytes of the notes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "memory").mkdir()
        for number in range(NOTES):
            said = "".join(
                f"- The plan {number} of part {part} is in room {part * number % 977}, as Ines said, and nobody but her "
                "has its key.\n"
                for part in range(LINES)
            )
            (folder / "memory" / f"plan-{number}.md").write_text(f"# Plan {number}\n\n{said}")
        (folder / "memory" / "2026-11-21.md").write_text("# 2026-11-21\n\n" + "- said\n" * 500)
        plugins = {"encryption": {"enabled": True, "transcripts": encrypted, "snapshots": encrypted}}
        with Memory.open(folder, embedder=None, config=MemoryConfig(plugins=plugins)) as memory:
            memory.status()
            paths = [file.path for file in memory.workspace.scan().files]
            if encrypted:
                paths = [memory.control.reseal(path, sealed=True) for path in paths]
            notes = [path for path in paths if "plan" in path]
            found: dict[str, float] = {"bytes": sum((folder / path).stat().st_size for path in notes)}
            started = time.process_time()
            memory.sync()
            found["sync of 500 notes"] = (time.process_time() - started) * 1000
            found["get of a note of 4 kB"] = cpu(lambda at: memory.get(notes[at % NOTES]), REPEATS)
            found["append to a note of 4 kB"] = cpu(lambda at: memory.append(f"- {at}", date="2026-11-21"), REPEATS)

            def edit(at: int) -> None:
                seen = memory.get(notes[at], start=3, lines=1)
                memory.edit(notes[at], 3, 3, f"- The plan is off, {at}.", expected=seen)

            found["get and edit of a line"] = cpu(edit, REPEATS)
            memory.sync()
            for at in range(5):
                memory.search(f"Where is plan {at}?")
            found["search"] = cpu(lambda at: memory.search(f"Where is the plan {at} of part {at % LINES}?"), 60)
            log = memory.sessions.log("talk")
            while log.size < MEGABYTE:
                log.append_entries([{"type": "message", "message": {"role": "user", "content": MESSAGE}}] * 50)
            found["a message to a transcript of 1 MB"] = cpu(lambda _: log.append("user", "Where is it?"), 30)
            return found


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    os.environ["OPENCLAW_MEMORY_KEY"] = KEY
    plain, encrypted = measured(encrypted=False), measured(encrypted=True)
    if as_json:
        print(json.dumps({"plain": plain, "encrypted": encrypted}, indent=1))
        return
    for name, value in plain.items():
        print(f"{name:<36} {value:>12,.3f} {encrypted[name]:>12,.3f} {encrypted[name] / value:>6.2f} x")


if __name__ == "__main__":
    main()
