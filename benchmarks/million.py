"""One memory that grows to a million chunks: what indexing, searching, syncing and keeping it costs at each size.

    python benchmarks/million.py [--sizes 100000,500000,1000000] [--memory-mb 256,1024] [--folder DIR] [--json]

The index grows from each size to the next by one sync; with one size, that is its first index. Each piece of work has a
process of its own. CPU time, all threads; memory is the most that the process ever held. A folder that is named stays,
and a later run goes on from it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from speed import counting_embedder, in_fresh_process, machine, milliseconds, opened_store, quantile
from speed_data import Vocabulary, notes, questions

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SearchConfig, SyncConfig

CHUNKS_PER_NOTE = 7.25  # of the notes that `speed_data` writes
WORDS = 100_000  # five times as many as in the smaller workspaces: text has new words as it grows
FILES_PER_FOLDER = 1000
WARM_UP, ASKED, SYNCS = 10, 20, 3


def write_notes(folder: Path, count: int) -> dict[str, float]:
    """Make it `count` notes, or leave the more that there are; return how many bytes they have."""
    there = walk(folder / "memory")[0] if (folder / "memory").is_dir() else 0
    for number, (path, text) in enumerate(islice(notes(Vocabulary(WORDS), there), max(0, count - there)), there):
        target = folder / "memory" / f"{number // FILES_PER_FOLDER:04}" / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    files, size = walk(folder / "memory")
    return {"files": files, "text": size}


def synced(folder: Path) -> dict[str, float]:
    """Index what is new."""
    embedder, started = counting_embedder(), time.process_time()
    with Memory.open(folder, embedder=embedder) as memory:
        report = memory.sync()
        seconds, stats = time.process_time() - started, opened_store(memory).describe()
    assert report.ok, report
    assert stats.vector_path == "sqlite-vec", stats.vector_error
    return {
        "chunks": stats.chunks,
        "new_chunks": report.embedded,
        "sync_s": seconds,
        "embedding_s": embedder.seconds,
        "sync_mb": peak_mb(),
        "vectors": 4 * stats.vectors * len(embedder.embed_query("memory")),
        "disk": sum(path.stat().st_size for path in (folder / ".memory").iterdir()),
    }


def unchanged(folder: Path) -> dict[str, float]:
    """Milliseconds of a sync that finds nothing new, and of looking at all files with nothing besides."""
    with Memory.open(folder) as memory:
        memory.sync()
        times = [(milliseconds(memory.sync), milliseconds(lambda: walk(folder / "memory"))) for _ in range(SYNCS)]
    ours, bare = (statistics.median(column) for column in zip(*times, strict=True))
    return {"unchanged_ms": ours, "walk_ms": bare}


def walk(folder: Path) -> tuple[int, int]:
    """Look at each file below a folder; return how many there are, and how many bytes they have."""
    files = size = 0
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            below = walk(Path(entry.path))
            files, size = files + below[0], size + below[1]
        else:
            files, size = files + 1, size + entry.stat().st_size
    return files, size


def searched(folder: Path, memory_mb: int) -> dict[str, float]:
    """Milliseconds of a search with so much of `search.memory_mb`: the first three, and those of a process at work."""
    config = MemoryConfig(search=SearchConfig(memory_mb=memory_mb), sync=SyncConfig(on_search=False, on_open=False))
    with Memory.open(folder, config=config) as memory:
        before = peak_mb()
        times = [milliseconds(lambda: memory.search(question)) for question in questions(WARM_UP + ASKED)]  # noqa: B023
    warm = times[WARM_UP:]
    return {
        "memory_mb": memory_mb,
        "first_ms": statistics.median(times[:3]),
        "reading_ms": max(times[3:WARM_UP]),  # the fourth search reads into memory what it keeps
        "p50_ms": statistics.median(warm),
        "p95_ms": quantile(warm, 0.95),
        "before_mb": before,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(folder: Path, chunks: int, memory_mb: Sequence[int]) -> dict[str, Any]:
    """A row: the index at this size."""
    row: dict[str, Any] = in_fresh_process(write_notes, folder, round(chunks / CHUNKS_PER_NOTE))
    row |= in_fresh_process(synced, folder)
    row["disk_x"] = row["disk"] / (row["text"] + row["vectors"])
    print(json.dumps(row), file=sys.stderr, flush=True)
    row |= in_fresh_process(unchanged, folder)
    row["searches"] = []
    for size in memory_mb:
        row["searches"].append(in_fresh_process(searched, folder, size))
        print(json.dumps(row["searches"][-1]), file=sys.stderr, flush=True)
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    head = (
        "| chunks | files | new chunks | sync, s | of it embedding, s | memory, MB | disk, MB | disk / (text + vectors) "
        "| no-change sync, ms | bare walk, ms | `memory_mb` | search p50, ms | p95, ms | memory, MB |"
    )
    lines = [head, "|" + "---|" * 14]
    for row in rows:
        left = (
            f"| {row['chunks']:,} | {row['files']:,} | {row['new_chunks']:,} | {row['sync_s']:.0f} "
            f"| {row['embedding_s']:.0f} | {row['sync_mb']:.0f} | {row['disk'] / 1e6:,.0f} | {row['disk_x']:.2f} "
            f"| {row['unchanged_ms']:.0f} | {row['walk_ms']:.0f} "
        )
        for one in row["searches"]:
            lines.append(
                f"{left}| {one['memory_mb']} | {one['p50_ms']:.1f} | {one['p95_ms']:.1f} | {one['peak_mb']:.0f} |"
            )
            left = "| " * 10
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100000,500000,1000000", help="numbers of chunks, ascending, with commas")
    parser.add_argument("--memory-mb", default="256,1024", help="values of search.memory_mb, with commas")
    parser.add_argument("--folder", type=Path, help="where the workspace is made, and stays; else a temporary one")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    sizes, memory_mb = ([int(one) for one in given.split(",")] for given in (options.sizes, options.memory_mb))
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        rows = [measured(folder, size, memory_mb) for size in sizes]
    print(json.dumps({**machine(), "rows": rows}, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
