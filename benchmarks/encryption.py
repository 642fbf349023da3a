"""What an encrypted index costs beside a plain one of the same notes: CPU time (medians) and bytes.

    python benchmarks/encryption.py [--chunks 1000,10000,30000] [--builds N] [--plain] [--json]

Each piece of work is done in turn by both, in one process, so that what else the machine does slows both. `kept` are
searches of an index that the process keeps in memory, as it does from the fourth on; `from the file` are those of one
that it does not keep (`search.memory_mb = 0`). With `--plain` only the plain index is measured: the same in an
environment that has `apsw` in place of `apsw-sqlite3mc` says what the other build of SQLite costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
from openclaw_memory_encryption import decrypt_index, encrypt_index, rotate_index_key
from retrieval import machine
from speed_data import questions, write_chunks

from openclaw_memory import Memory, MemoryConfig, load_embedder

BAR = 1.5  # times what a search of the plain index costs
ASKED = 60
WARM_UP = 60  # other questions, asked before the clock runs
OPENED = 15  # times that a memory is opened for one question
KINDS = ("plain", "encrypted")


def config_of(kind: str, **search: Any) -> MemoryConfig:
    plugins = {"encryption": {"enabled": kind == "encrypted"}}
    settings = {"plugins": plugins, "search": search, "sync": {"on_search": False}}
    return MemoryConfig().replace(settings)


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process, all threads."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def in_turn(works: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """The median of each work in milliseconds; all are done once before the next round begins."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(times):
        for name in sorted(works, reverse=bool(number % 2)):
            taken[name].append(milliseconds(works[name]))
    return {name: statistics.median(times) for name, times in taken.items()}


def asking(memory: Memory, asked: Sequence[str]) -> Callable[[], object]:
    following = iter(asked)
    return lambda: memory.search(next(following))


def searched(folder: Path, kinds: Sequence[str], indexes: dict[str, Path], memory_mb: int | None) -> dict[str, float]:
    """Warm searches by each kind of index."""
    search = {} if memory_mb is None else {"memory_mb": memory_mb}
    asked = questions(WARM_UP + ASKED)
    opened = {
        kind: Memory.open(folder, config=config_of(kind, **search), index_path=indexes[kind], embedder=EMBEDDER)
        for kind in kinds
    }
    try:
        for memory in opened.values():
            for question in asked[:WARM_UP]:
                memory.search(question)
        return in_turn({kind: asking(memory, asked[WARM_UP:]) for kind, memory in opened.items()}, ASKED)
    finally:
        for memory in opened.values():
            memory.close()


def first_answer(folder: Path, kind: str, index: Path) -> Callable[[], object]:
    def work() -> None:
        with Memory.open(folder, config=config_of(kind), index_path=index, embedder=EMBEDDER) as memory:
            memory.search("Who has the spare key?")

    return work


def first_index(folder: Path, kind: str, index: Path) -> Callable[[], object]:
    def work() -> None:
        shutil.rmtree(index.parent, ignore_errors=True)
        with Memory.open(folder, config=config_of(kind), index_path=index, embedder=EMBEDDER) as memory:
            assert memory.sync().ok

    return work


def one_change(folder: Path, kind: str, index: Path) -> Callable[[], object]:
    note, number = folder / "memory/changed.md", 0

    def work() -> None:
        nonlocal number
        number += 1
        note.write_text(f"# Changed\n\nA line of the {kind} index, number {number}.\n", encoding="utf-8")
        with Memory.open(folder, config=config_of(kind), index_path=index, embedder=EMBEDDER) as memory:
            assert memory.sync().ok

    return work


def measured(chunks: int, kinds: Sequence[str], scratch: Path, builds: int) -> list[dict[str, Any]]:
    """The rows of one size."""
    folder = write_chunks(scratch / "notes", chunks)
    indexes = {kind: scratch / kind / "index.sqlite" for kind in kinds}
    rows: list[dict[str, Any]] = []

    def add(work: str, unit: str, figures: dict[str, float]) -> None:
        ratio = figures["encrypted"] / figures["plain"] if len(figures) > 1 else None
        bar = BAR if work.startswith("warm search") else None
        rows.append({"chunks": chunks, "work": work, "unit": unit, **figures, "ratio": ratio, "bar": bar})

    add("first index", "ms", in_turn({kind: first_index(folder, kind, indexes[kind]) for kind in kinds}, builds))
    add("size", "MB", {kind: index.stat().st_size / 1e6 for kind, index in indexes.items()})
    add("warm search, kept", "ms", searched(folder, kinds, indexes, None))
    add("warm search, from the file", "ms", searched(folder, kinds, indexes, 0))
    add("open and first search", "ms", in_turn({k: first_answer(folder, k, indexes[k]) for k in kinds}, OPENED))
    add("sync of one change", "ms", in_turn({k: one_change(folder, k, indexes[k]) for k in kinds}, OPENED))
    if "encrypted" in kinds:
        index = indexes["encrypted"]
        for name, change in (("rotate-key", rotate_index_key), ("decrypt", decrypt_index), ("encrypt", encrypt_index)):
            rows.append(
                {
                    "chunks": chunks,
                    "work": name,
                    "unit": "ms",
                    "encrypted": milliseconds(lambda c=change: c(folder, index)),
                }
            )
    return rows


def figure(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:,.1f} {row['unit']}" if row.get(name) is not None else ""


def table(report: dict[str, Any]) -> str:
    lines = [f"{report['sqlite']}", "| chunks | work | plain | encrypted | times | bar |", "|---|---|---|---|---|---|"]
    for row in report["rows"]:
        times = f"{row['ratio']:.2f}" if row.get("ratio") else ""
        bar = f"{row['bar']:g}" if row.get("bar") and times else ""
        lines.append(
            f"| {row['chunks']:,} | {row['work']} | {figure(row, 'plain')} | {figure(row, 'encrypted')} | {times} | {bar} |"
        )
    return "\n".join(lines)


EMBEDDER = load_embedder("static")  # one for all, whose time is the same for both


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", default="1000,10000,30000", metavar="N,N", help="sizes of the index")
    parser.add_argument("--builds", type=int, default=3, metavar="N", help="first indexes of each kind")
    parser.add_argument("--plain", action="store_true", help="measure only the plain index")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        os.environ["OPENCLAW_MEMORY_HOME"] = place  # keys of this run alone
        for count in map(int, options.chunks.split(",")):
            kinds = KINDS[:1] if options.plain else KINDS
            rows += measured(count, kinds, Path(place) / str(count), options.builds)
    build = getattr(apsw, "mc_version", "SQLite without encryption")
    report = {**machine(), "sqlite": f"{apsw.sqlite_lib_version()}, {build}", "rows": rows}
    print(json.dumps(report, indent=1) if options.json else table(report))


if __name__ == "__main__":
    main()
