"""Processes that write and sync, killed at random moments: what they said is written is there, and the index is sound."""

from __future__ import annotations

import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import content, fresh, python, synced

DAY = "2026-11-21"
# Each line that it prints acknowledges what it names.
WRITER = """
import itertools, sys
from openclaw_memory import Memory
folder, name = sys.argv[1:]
with Memory.open(folder, embedder="hashing") as memory:
    log = memory.session_log("talk")
    memory.sync()
    print("ready", flush=True)
    for number in itertools.count():
        memory.append(f"- memo {name}-{number} apple", date="2026-11-21")
        print(f"note {name}-{number}", flush=True)
        log.append("user", f"memo {name}-{number} pear")
        print(f"said {name}-{number}", flush=True)
        if number % 4 == 3:
            line = memory.get(f"memory/topic.md", start=1, lines=1)
            memory.edit("memory/topic.md", 1, 1, f"memo {name}-{number} plum", seen=line)
            print(f"edit {name}-{number}", flush=True)
        memory.sync(force=number % 8 == 7)
"""


class Told:
    """What processes have acknowledged, in all runs of them."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.said: list[str] = []
        self.edited: list[str] = []

    def add(self, printed: str) -> None:
        lists = {"note": self.notes, "said": self.said, "edit": self.edited}
        for kind, what in re.findall(r"^(note|said|edit) (\S+)\n", printed, re.MULTILINE):
            lists[kind].append(what)


def killed(folder: Path, name: str, edits: int, seconds: float) -> str:
    """Kill a writer so many seconds after it began to write, or made so many edits; what it had printed by then."""
    printed = ""
    with python(WRITER, folder, name) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while printed.count("edit ") < edits:
            printed += process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        printed += process.stdout.read()
    assert process.returncode < 0, "it had ended by itself"
    return printed


def check_files(folder: Path, told: Told) -> None:
    """Every acknowledged line is there once, in the order of writing; what else is there is whole."""
    lines = (folder / f"memory/{DAY}.md").read_text(encoding="utf-8").split("\n")
    assert lines[:2] + lines[-1:] == [f"# {DAY}", "", ""]
    noted = [re.fullmatch(r"- memo (\S+) apple", line) for line in lines[2:-1]]
    assert None not in noted, "torn"
    written = [match[1] for match in noted if match]
    assert [what for what in written if what in set(told.notes)] == told.notes

    entries = [json.loads(line) for line in (folder / "sessions/talk.jsonl").read_text(encoding="utf-8").splitlines()]
    said = [entry["message"]["content"].split(" ")[1] for entry in entries if entry["type"] == "message"]
    assert [what for what in said if what in set(told.said)] == told.said

    topic = re.fullmatch(r"memo (\S+) plum\nmemo kept\n", (folder / "memory/topic.md").read_text(encoding="utf-8"))
    assert topic, "torn"
    if told.edited:
        newest = [int(part) for part in told.edited[-1].split("-")]
        assert [int(part) for part in topic[1].split("-")] >= newest, "an acknowledged edit was lost"


def killed_again_and_again(folder: Path, times: int, seed: int) -> Told:
    (folder / "memory").mkdir(parents=True)
    (folder / "memory/topic.md").write_text("memo 0-0 plum\nmemo kept\n", encoding="utf-8")
    (folder / f"memory/{DAY}.md").write_text(f"# {DAY}\n\n", encoding="utf-8")
    (folder / "sessions").mkdir()
    (folder / "sessions/talk.jsonl").touch()
    told, moments = Told(), random.Random(seed)
    for number in range(1, times + 1):
        told.add(killed(folder, str(number), edits=number % 2, seconds=moments.uniform(0, 0.2)))
        check_files(folder, told)
        content(folder / ".memory/index.sqlite")
        if number % 5 == 0 or number == times:
            assert synced(folder) == fresh(folder)
    return told


@pytest.mark.parametrize("kills", [8, pytest.param(500, marks=pytest.mark.nightly)])
def test_writers_that_are_killed_lose_nothing_that_they_acknowledged(tmp_path, kills):
    batches = max(2, kills // 25)  # a workspace of its own for each, so that none grows too large to be looked at
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(killed_again_and_again, tmp_path / str(seed), kills // batches, seed) for seed in range(batches)
        ]
        told = [run.result() for run in runs]
    assert sum(len(one.notes) for one in told) > kills
    assert all(one.said and one.edited for one in told)
