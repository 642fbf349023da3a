"""Measures records: how often settled answers change under noise, what a year of them costs, CPU time, and forgetting.

python benchmarks/records.py [--json]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import RecordsConfig
from openclaw_memory.records import Records, RecordSource
from openclaw_memory.records.heartbeat import Heartbeat
from openclaw_memory.records.settlement import DAY
from openclaw_memory.types import Status

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STREAMS, OBSERVATIONS, NOISE = 1_000, 60, 0.1
YEAR_OBSERVATIONS, KEYS, DAYS = 10_000, 300, 364
WEEKS = 4  # after which a year of records is flat: files, index and prompt
NOTES, FORGOTTEN_DAYS = 2_000, 30
FORGET_SECONDS = 3.0  # the bar of forgetting, of CPU time
BARS = {"remember": 3.0, "get": 1.0, "quiet heartbeat": 5.0}  # ms of CPU time


class Clock:
    """A moment that the benchmark moves."""

    now = START

    def __call__(self) -> datetime.datetime:
        return self.now


def flips(settling: RecordsConfig) -> dict[str, float]:
    """How often the answer changes in a stream of observations of one value, a tenth of them of another one.

    "latest" takes each observation for the answer, as a note that is overwritten does.
    """
    rng, latest, settled, wrong = random.Random(11), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        for stream in range(STREAMS):
            clock = Clock()
            clock.now = START
            records = Records(memory.workspace, settling, search=memory.search, clock=clock)
            before = answer = None
            for number in range(OBSERVATIONS):
                value = "light" if rng.random() < NOISE else "dark"
                source = RecordSource("chat_turn", f"m{number}", clock.now)
                record = records.remember("preference", f"k{stream}", value, source=source).record
                latest += before is not None and value != before
                settled += answer is not None and record.value != answer
                wrong += record.value != "dark"
                before, answer = value, record.value
                clock.now += DAY
            records.forget("preference", f"k{stream}")
    return {
        "latest": latest / STREAMS,
        "settled": settled / STREAMS,
        "wrong": wrong / STREAMS / OBSERVATIONS,
        "wrong, latest": NOISE,
    }


def keys_of_year(rng: random.Random, first_days: int) -> list[int]:
    """The key of each observation: at random, but each of them once at least within the first days, if there are any."""
    keys = [rng.randrange(KEYS) for _ in range(YEAR_OBSERVATIONS)]
    first = int(first_days * YEAR_OBSERVATIONS / DAYS)
    for key, at in zip(range(KEYS), rng.sample(range(first), KEYS) if first else (), strict=False):
        keys[at] = key
    return keys


def year(first_days: int = 0) -> list[dict[str, Any]]:
    """Files, index and prompt after each of 52 weeks of observations, with a heartbeat every day.

    All keys are seen within the first days; if there are none, a last one is as likely as not in the ninth week.
    """
    rng, rows, clock, seen = random.Random(11), [], Clock(), set[int]()
    keys = keys_of_year(rng, first_days)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        records = Records(memory.workspace, memory.config.records, search=memory.search, clock=clock)
        beats = Heartbeat(memory.workspace, records, memory._engine.service, clock)
        per_day = YEAR_OBSERVATIONS / DAYS
        for day in range(DAYS):
            for number in range(int((day + 1) * per_day) - int(day * per_day)):
                key = keys[int(day * per_day) + number]
                seen.add(key)
                kind = ("preference", "fact", "other")[key % 3]
                source = RecordSource("chat_turn", f"d{day}-{number}", clock.now)
                records.remember(kind, f"topic.k{key}", f"value {rng.randrange(3)} of {key}", source=source)
            beats.run(budget_seconds=60)
            clock.now += DAY
            if day % 7 == 6:
                sizes = _sizes(memory, memory.status(), Path(folder), clock.now)
                rows.append({"week": day // 7 + 1, "keys": len(seen), **sizes})
    return rows


def _sizes(memory: Memory, status: Status, folder: Path, now: datetime.datetime) -> dict[str, int]:
    """Files, bytes and index of the records, and the characters that a question puts into a prompt."""
    notes = list((folder / "memory" / "records").rglob("*.md"))
    found = memory.search("What is the value of topic k7?", max_chars=4_200, now=now)
    return {
        "files": len(notes),
        "bytes": sum(file.stat().st_size for file in notes),
        "bytes on disk": sum(file.stat().st_blocks * 512 for file in notes),
        "index": status.bytes.index,
        "prompt": sum(len(result.snippet) for result in found),
    }


def cpu(work: Callable[[int], object], repeats: int) -> float:
    """The median of CPU milliseconds of a call."""
    times = []
    for number in range(repeats):
        started = time.process_time()
        work(number)
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def speed() -> dict[str, float]:
    """CPU milliseconds of the calls, among 1,000 records, 10,000 records, and 2,000 notes."""
    measured = {}
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        for number in range(1_000):
            memory.records.remember("fact", f"k.{number}", number)
        measured["remember"] = cpu(lambda number: memory.records.remember("fact", f"new.{number}", number), 100)
        for number in range(9_000):
            memory.records.remember("other", f"k.{number}", number)
        measured["get"] = cpu(lambda number: memory.records.get("other", f"k.{number}"), 1_000)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2_000):
            file = Path(folder) / "memory" / f"topic-{number}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"# Topic {number}\n\nThe plan number {number} is in room {number % 7}.\n")
            os.utime(file, (START.timestamp(), START.timestamp()))
        with Memory.open(folder, embedder=None) as memory:
            memory.sync()
            memory.heartbeat(budget_seconds=60)
            look = cpu(lambda _: memory.workspace.scan(), 15)
            measured["quiet heartbeat"] = cpu(lambda _: memory.heartbeat(), 15) - look
    return measured


def filtered() -> dict[str, float]:
    """CPU milliseconds of a search among 10,000 chunks: of all, of one by a filter, and by one that is new each time."""
    rng, words = random.Random(3), [f"w{number}" for number in range(3_000)]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2_000):
            file = Path(folder) / "memory" / f"topic-{number}.md"
            file.parent.mkdir(exist_ok=True)
            parts = (
                f"## Part {part}\n\nThe plan {number} {' '.join(rng.choices(words, k=40))}.\n" for part in range(5)
            )
            file.write_text("\n".join(parts))
        one = Path(folder) / "memory" / "one.md"
        one.write_text("---\ntags: [one]\n---\n\nThe plan of w1.\n")

        def asked(number: int) -> str:
            return "What is the plan of " + " ".join(words[(7 * number + at) % len(words)] for at in range(4))

        with Memory.open(folder) as memory:
            memory.sync()
            for number in range(8):
                memory.search(asked(number))
            return {
                "all": cpu(lambda number: memory.search(asked(100 + number)), 60),
                "one": cpu(lambda number: memory.search(asked(100 + number), filter={"tags": "one"}), 60),
                "a new filter": cpu(
                    lambda number: memory.search(asked(100 + number), filter={"path": f"topic-{number}.md"}), 60
                ),
            }


def forgetting() -> dict[str, float]:
    """CPU seconds of forgetting 30 of 365 days among 2,000 notes, and in how many files a trace is left."""
    first = datetime.date(2026, 1, 1)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "memory"
        notes.mkdir()
        days = [first + datetime.timedelta(days=number) for number in range(365)]
        for number, day in enumerate(days):
            word = "zanquill" if number >= len(days) - FORGOTTEN_DAYS else "plain"
            said = "\n".join(f"- The {word} plan {number}, part {part}, is in room {part % 7}." for part in range(12))
            (notes / f"{day}.md").write_text(f"# {day}\n\n{said}\n")
        for number in range(NOTES - len(days)):
            (notes / f"topic-{number}.md").write_text(f"# Topic {number}\n\nPlan {number} is in room {number % 7}.\n")
        with Memory.open(folder) as memory:
            memory.sync()
            before = _traces(Path(folder))
            started = time.process_time()
            plan = memory.control.forget(since=days[-FORGOTTEN_DAYS]).plan
            planned = time.process_time()
            receipt = memory.control.forget(since=days[-FORGOTTEN_DAYS], dry_run=False, expected=plan)
            done = time.process_time()
            after = _traces(Path(folder))
    assert len(receipt.forgotten) == FORGOTTEN_DAYS
    assert receipt.is_erased
    assert before > FORGOTTEN_DAYS  # the notes, and the index
    return {"plan": planned - started, "forget": done - planned, "files with a trace": after}


def _traces(folder: Path) -> int:
    """In how many files of a folder the word of the forgotten days is left."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(b"zanquill" in path.read_bytes().lower() for path in files)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    never = MemoryConfig().records
    result = {
        "flips": flips(never),
        "year": year(WEEKS * 7),
        "year, keys at random": year(),
        "speed": speed(),
        "forgetting": forgetting(),
        "filtered": filtered(),
    }
    if as_json:
        print(json.dumps(result, indent=1))
        return
    print("answers that change in 60 observations, a tenth of them noise:", result["flips"])
    for name in ("year", "year, keys at random"):
        print(name)
        for row in result[name]:
            if row["week"] in {1, 2, 4, 8, 13, 26, 39, 52}:
                print(row)
    for name, figure in result["speed"].items():
        print(f"{name}: {figure:.2f} ms of CPU time" + (f" (bar {BARS[name]:g})" if name in BARS else ""))
    print("search among 10,000 chunks, ms of CPU time (bar: one <= 1.5 x all):", result["filtered"])
    print(f"forgetting, seconds of CPU time (bar {FORGET_SECONDS:g}, 0 traces):", result["forgetting"])


if __name__ == "__main__":
    main()
