"""What it costs to stay true while files change: rows of `speed.py` about syncing, watching and building again."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
from speed_data import Vocabulary, questions, write_chunks, write_files

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig

QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
PATIENCE = 60.0  # seconds after which something that should happen has not happened


def in_child(work: Callable[..., None], *arguments: Any) -> multiprocessing.Process:
    """`work` in a process of its own, started afresh."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    child.start()
    return child  # type: ignore[return-value]


def until(true: Callable[[], bool], pause: float = 0.01) -> float:
    """Seconds until it is true."""
    started = time.monotonic()
    while not true():
        if time.monotonic() - started > PATIENCE:
            raise TimeoutError("it did not happen")
        time.sleep(pause)
    return time.monotonic() - started


# --- an append is found ----------------------------------------------------------------------------------------------


def found_after_append(folder: Path, repeats: int) -> dict[str, float]:
    """Seconds of wall time from an append to its being found, with a watcher; CPU milliseconds of the next sync."""
    with Memory.open(folder, config=QUIET) as memory:
        memory.sync()
        syncs = []
        for number in range(repeats):
            memory.append(f"The zeppelin of plumber number {number} lands at noon.", date="2031-05-01")
            started = time.process_time()
            memory.sync()
            syncs.append((time.process_time() - started) * 1000)
            assert any("zeppelin" in result.snippet for result in memory.search(f"zeppelin plumber {number}"))
        waits = []
        with memory.watch() as watcher:
            until(lambda: watcher.state.startswith("watching"))
            time.sleep(3)
            for number in range(3):
                text = f"Quokka number {number} was seen near the harbour."
                memory.append(text, date="2031-05-02")
                waits.append(
                    until(lambda: any(text in result.snippet for result in memory.search(f"quokka {number}")), 0.05)  # noqa: B023
                )
    return {"sync": statistics.median(syncs), "watched": max(waits), "debounce": QUIET.sync.debounce_seconds}


# --- a burst of events -----------------------------------------------------------------------------------------------


def write_burst(folder: str, events: int, files: int) -> None:
    """Append a line to files in turn, with an event or more for each."""
    names = [Path(folder) / "memory" / f"burst-{number}.md" for number in range(files)]
    for number in range(events):
        with names[number % files].open("a", encoding="utf-8") as file:
            file.write(f"- Line {number} of the burst.\n")


def burst(folder: Path, events: int, files: int) -> dict[str, float]:
    """Syncs after a burst, and the CPU seconds that watching took besides them."""
    with Memory.open(folder, config=QUIET) as memory:
        memory.sync()
        spent: list[float] = []
        real = memory._engine.service.sync  # what the watcher calls

        def counted(*arguments: Any, **options: Any) -> Any:
            started = time.thread_time()
            try:
                return real(*arguments, **options)
            finally:
                spent.append(time.thread_time() - started)

        memory._engine.service.sync = counted  # type: ignore[method-assign]
        with memory.watch() as watcher:
            until(lambda: watcher.state.startswith("watching"))
            time.sleep(3)
            before, syncs = time.process_time(), len(spent)
            child = in_child(write_burst, str(folder), events, files)
            child.join()
            time.sleep(0.2)
            until(lambda: not watcher.is_behind and len(spent) > syncs, 0.1)
            time.sleep(1)
            total = time.process_time() - before
            own = sum(spent[syncs:])
            return {"syncs": len(spent) - syncs, "watching": total - own, "syncing": own}


# --- building again --------------------------------------------------------------------------------------------------


def rebuild(folder: str) -> None:
    with Memory.open(folder, config=QUIET) as memory:
        memory.sync(force=True)


def hold_watch(index: Path, stop: threading.Event, longest: list[float]) -> None:
    """Ask for the write lock again and again; the longest wait is how long somebody else held it."""
    db = apsw.Connection(str(index))
    db.set_busy_timeout(0)
    began: float | None = None
    while not stop.is_set():
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except apsw.BusyError:
            began = began or time.monotonic()
        else:
            if began is not None:
                longest.append(time.monotonic() - began)
                began = None
        time.sleep(0.0005)
    db.close()


def searching(folder: Path, asked: list[str], beside: str) -> dict[str, float]:
    """p95 of search in wall milliseconds, idle and while the index is built again by this process or by another."""
    with Memory.open(folder, config=QUIET) as memory:
        memory.sync()
        for question in asked[:60]:
            memory.search(question)
        idle = [timed(memory, question) for question in asked[60:260]]
        stop, held = threading.Event(), list[float]()
        watch = threading.Thread(target=hold_watch, args=(memory.index_path, stop, held))
        if beside == "process":
            work: Any = in_child(rebuild, str(folder))
            watch.start()
        else:
            work = threading.Thread(target=memory.sync, kwargs={"force": True})
            work.start()
        busy: list[float] = []
        while work.is_alive():
            busy.append(timed(memory, asked[60 + len(busy) % 200]))
            time.sleep(0.01)
        work.join()
        stop.set()
        if beside == "process":
            watch.join()
    return {"idle": quantile(idle), "busy": quantile(busy), "held": max(held, default=0.0) * 1000, "asked": len(busy)}


def timed(memory: Memory, question: str) -> float:
    started = time.monotonic()
    memory.search(question)
    return (time.monotonic() - started) * 1000


def quantile(values: list[float], share: float = 0.95) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- appends, transcripts --------------------------------------------------------------------------------------------


def appends(folder: Path, count: int) -> dict[str, float]:
    """Appends per second, and what a bare write and fsync of such a line takes there."""
    folder.mkdir(parents=True)
    line = b"- The plumber comes on Friday at nine, and brings the long ladder.\n"
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    bare = []
    for _ in range(count):
        started = time.monotonic()
        os.write(descriptor, line)
        os.fsync(descriptor)
        bare.append(time.monotonic() - started)
    os.close(descriptor)
    with Memory.open(folder, embedder=None, config=QUIET) as memory:
        started = time.monotonic()
        for number in range(count):
            memory.append(f"{line.decode().strip()} {number}", date="2031-05-01")
        seconds = time.monotonic() - started
    return {"rate": count / seconds, "fsync": statistics.median(bare) * 1000}


def transcript_line(number: int, text: str) -> str:
    role = ("user", "assistant")[number % 2]
    moment = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC) + datetime.timedelta(seconds=20 * number)
    content = [{"type": "text", "text": text}]
    return json.dumps(
        {"type": "message", "timestamp": moment.isoformat(), "message": {"role": role, "content": content}}
    )


def grown_transcript(folder: Path, megabytes: int, lines: int) -> dict[str, float]:
    """CPU milliseconds of the sync after `lines` lines were added to a transcript of so many megabytes."""
    import random

    rng, vocabulary = random.Random(5), Vocabulary()
    sentences = [" ".join(vocabulary.sentence(rng) for _ in range(4)) for _ in range(2000)]
    file = folder / "sessions" / "long.jsonl"
    file.parent.mkdir(parents=True)
    (folder / "memory").mkdir()
    number = 0
    with file.open("w", encoding="utf-8") as out:
        while out.tell() < megabytes * 1_000_000:
            # Most of a long transcript are results of tools, which are not indexed.
            for _ in range(200):
                noise = {"type": "message", "message": {"role": "toolResult", "content": sentences[number % 2000] * 8}}
                said = transcript_line(number, sentences[(number * 7) % 2000])
                out.write((said if number % 8 == 0 else json.dumps(noise)) + "\n")
                number += 1
    with Memory.open(folder, config=QUIET) as memory:
        started = time.process_time()
        memory.sync()
        first = time.process_time() - started
        with file.open("a", encoding="utf-8") as out:
            for _ in range(lines):
                number += 1
                out.write(transcript_line(number, f"New line {number}: {vocabulary.sentence(rng)}") + "\n")
        started = time.process_time()
        report = memory.sync()
        grown = (time.process_time() - started) * 1000
        assert report.changed == ("sessions/long.jsonl",), report
    return {"first": first, "grown": grown, "embedded": report.embedded, "read": file.stat().st_size / 1e6}


# --- rows ------------------------------------------------------------------------------------------------------------


def upkeep_rows(scale: Any, scratch: Path) -> Iterator[Any]:
    """Rows of `speed.py`; `Row` and the running in a fresh process are its own."""
    from speed import Row, in_fresh_process

    files = f"{scale.files:,} files"
    folder = write_files(scratch / "append", scale.files)
    run = in_fresh_process(found_after_append, folder, scale.repeats)
    yield Row(f"append, then the sync that finds it, {files}", run["sync"], "ms", 60)
    yield Row("append to found, watcher on (wall)", run["watched"], "s", run["debounce"] + 1)
    events = 5 * scale.files
    run = in_fresh_process(burst, folder, events, 100)
    yield Row(f"{events:,} writes in a burst: syncs", run["syncs"], "syncs", 1)
    yield Row("  CPU of watching, besides the sync", run["watching"], "s", 1)
    yield Row("  CPU of the sync of the changed files", run["syncing"], "s")
    folder = write_chunks(scratch / "rebuild", 2 * scale.cli_chunks)
    asked = questions(260)
    for beside in ("process", "thread"):
        run = in_fresh_process(searching, folder, asked, beside)
        yield Row(f"search p95, idle, {2 * scale.cli_chunks:,} chunks (wall)", run["idle"], "ms")
        yield Row(f"  while another {beside} builds the index again", run["busy"], "ms", 2 * run["idle"])
        yield Row("  searches meanwhile", run["asked"], "searches")
        if beside == "process":
            yield Row("longest time that the write lock was held", run["held"], "ms", 100)
    run = in_fresh_process(appends, scratch / "appends", 300)
    yield Row("appends with fsync, one process", run["rate"], "/s", 100, at_least=True)
    yield Row("  a bare write and fsync there", run["fsync"], "ms")
    megabytes = scale.files // 20
    run = in_fresh_process(grown_transcript, scratch / "transcript", megabytes, 1000)
    yield Row(f"1,000 lines more in a transcript of {megabytes} MB: the sync", run["grown"], "ms", 200)
    yield Row("  texts embedded in it", run["embedded"], "chunks")
    yield Row("  its first sync", run["first"], "s")


if __name__ == "__main__":
    sys.exit("run benchmarks/speed.py --only upkeep")
