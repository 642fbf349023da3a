"""Writers, searchers and a watcher at work on one workspace, each killed and started again: nothing is lost at the end."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from processes import fresh, python, synced
from watching import eventually

WRITER = """
import itertools, random, sys, time
from openclaw_memory import Memory
folder, who = sys.argv[1:]
topic, dice = f"memory/topic-{who.split('-')[0]}.md", random.Random(who)
with Memory.open(folder, embedder="hashing") as memory:
    log = memory.sessions.log("talk")
    for number in itertools.count():
        name = f"{who}-{number}"
        memory.append(f"- memo {name} apple", date=f"2026-11-{1 + number // 40 % 28:02}")
        print(f"note {name}", flush=True)
        log.append("user", f"memo {name} pear")
        print(f"said {name}", flush=True)
        memory.edit(topic, 1, 1, f"memo {name} plum", expected=memory.get(topic, start=1, lines=1))
        print(f"edit {name}", flush=True)
        if dice.random() < 0.02:
            memory.sync(force=dice.random() < 0.3)
        time.sleep(dice.uniform(0, 0.05))
"""
SEARCHER = """
import itertools, random, sys, time
from openclaw_memory import Memory
with Memory.open(sys.argv[1], embedder="hashing") as memory:
    for number in itertools.count():
        memory.search(random.choice(["apple", "pear plum"]))
        kept = memory.search("quince")
        assert any(hit.path == "MEMORY.md" for hit in kept), number
        print("answered", number, flush=True)
        time.sleep(random.uniform(0, 0.02))
"""
WATCHER = """
import sys, time
from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SessionsConfig, SyncConfig
config = MemoryConfig(sync=SyncConfig(debounce_seconds=0.1), sessions=SessionsConfig(delta_messages=5))
with Memory.open(sys.argv[1], embedder="hashing", config=config) as memory:
    watcher, syncs = memory.watch(), 0
    while True:
        time.sleep(0.05)
        if watcher.syncs != syncs:
            syncs = watcher.syncs
            print("followed", syncs, flush=True)
"""


@dataclass
class Worker:
    """One at a time of the processes that do the same; `said` is the file of all that they print."""

    name: str
    code: str
    folder: Path
    said: Path
    runs: int = 0
    before: int = 0
    process: subprocess.Popen[str] | None = None
    ended: list[int] = field(default_factory=list)

    def start(self) -> None:
        self.runs += 1
        self.before = self.words()
        arguments = [self.folder] if self.code != WRITER else [self.folder, f"{self.name}-{self.runs}"]
        with self.said.open("a") as out:
            self.process = python(self.code, *arguments, stdout=out)

    def words(self) -> int:
        """How many lines this worker has printed, in all its runs."""
        return self.said.read_bytes().count(b"\n") if self.said.exists() else 0

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.ended.append(self.process.wait())


def soak(folder: Path, notes: Path, kills: int, pairs: int) -> list[Worker]:
    """Have them work, killing one after another; every second one has worked, the others may be starting still."""
    crew = {f"{number}": WRITER for number in range(pairs)}
    crew |= {f"searcher {number}": SEARCHER for number in range(pairs)} | {"watcher": WATCHER}
    workers = [Worker(name, code, notes, folder / f"{name}.txt") for name, code in crew.items()]
    dice = random.Random(4)
    try:
        for worker in workers:
            worker.start()
        for number in range(kills):
            worker = dice.choice(workers)
            if number % 2 == 0:
                # While files change all the time, the watcher waits for most of it.
                enough = worker.before + (1 if worker.code == WATCHER else dice.randint(1, 20))
                eventually(lambda worker=worker, enough=enough: worker.words() >= enough)
            worker.kill()
            worker.start()
        for worker in workers:
            enough = worker.before + (3 if worker.code == WRITER else 1)  # an edit is a writer's third word
            eventually(lambda worker=worker, enough=enough: worker.words() >= enough)
    finally:
        for worker in workers:
            worker.kill()
    return workers


def acknowledged(workers: list[Worker], kind: str) -> list[str]:
    return [
        name
        for worker in workers
        for name in re.findall(rf"^{kind} (\d+-\d+-\d+)\n", worker.said.read_text(), re.MULTILINE)
    ]


@pytest.mark.fault(1)
@pytest.mark.parametrize(
    ("kills", "pairs"),  # of writers and searchers
    [pytest.param(60, 4, marks=pytest.mark.nightly), pytest.param(900, 4, marks=pytest.mark.endurance)],
)
def test_whatever_is_killed_nothing_acknowledged_is_lost_and_the_index_equals_a_fresh_one(tmp_path, kills, pairs):
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    (notes / "MEMORY.md").write_text("memo kept quince\n")
    for writer in range(pairs):
        (notes / f"memory/topic-{writer}.md").write_text("memo 0-0-0 plum\nmemo kept\n")
    synced(notes)
    workers = soak(tmp_path, notes, kills, pairs)
    assert {code for worker in workers for code in worker.ended} == {-9}, "one ended by itself"
    assert any(worker.runs > 1 for worker in workers)
    days = [file.read_text() for file in notes.glob("memory/2026-*.md")]
    lines = [line for day in days for line in day.splitlines() if line and not line.startswith("# ")]
    whole = [re.fullmatch(r"- memo (\S+) apple", line) for line in lines]
    assert None not in whole, "torn"
    said = Counter(match[1] for match in whole if match)
    noted = acknowledged(workers, "note")
    assert noted
    assert [name for name in noted if said[name] != 1] == []
    entries = [json.loads(line) for line in (notes / "sessions/talk.jsonl").read_text().splitlines() if line]
    told = Counter(entry["message"]["content"].split(" ")[1] for entry in entries if entry["type"] == "message")
    assert [name for name in acknowledged(workers, "said") if told[name] != 1] == []
    for writer in range(pairs):
        topic = re.fullmatch(r"memo (\S+) plum\nmemo kept\n", (notes / f"memory/topic-{writer}.md").read_text())
        assert topic, "torn"
        newest = acknowledged([workers[writer]], "edit")[-1]
        assert order(topic[1]) >= order(newest), "an acknowledged edit was lost"
    assert workers[-1].said.read_text().count("followed"), "the watcher did not follow"
    assert all(worker.said.read_text().count("answered") for worker in workers if worker.code == SEARCHER)
    assert synced(notes) == fresh(notes)


def order(name: str) -> list[int]:
    return [int(part) for part in name.split("-")]
