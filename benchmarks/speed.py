"""What the library costs: CPU time (user and system) of each piece of work beside its bar.

    python benchmarks/speed.py [--quick] [--rivals] [--json] [--only WORD]

Notes and questions are synthetic and the same everywhere (`speed_data.py`). A figure is the median of several runs.
Search is set against the schema and query of OpenClaw's documents on the same chunks (`speed_openclaw.py`); with
`--rivals`, whole libraries do the same work on the same notes (`speed_rivals.py`, `pip install -r requirements.txt`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import speed_openclaw
from speed_data import questions, write_chunks, write_files
from speed_static import static_rows
from speed_upkeep import upkeep_rows

from openclaw_memory import Memory, load_embedder
from openclaw_memory.types import Embedder, Store

ROOT = Path(__file__).parent.parent
SEARCHED = ("ours", "LangChain: FAISS + BM25", "txtai: hybrid")  # of `rivals.py`
COMMAND = ["-m", "openclaw_memory"]
SEARCH_BAR = 150  # ms: a command that answers before one has looked up
WARM_UP = 60  # other questions, asked before the clock runs: a process at work has met most words


@dataclass(frozen=True)
class Scale:
    """How much is measured. `warm` are (chunks, bar in ms)."""

    files: int
    commands: int
    warm: tuple[tuple[int, float], ...]
    processes: int
    repeats: int
    asked: int
    asked_of_openclaw: int
    rival_files: int
    rival_chunks: tuple[int, ...]


FULL = Scale(2000, 15, ((1_000, 6), (10_000, 12), (100_000, 80)), 11, 9, 60, 9, 200, (2_200, 17_600, 101_000))
QUICK = Scale(200, 5, ((1_000, 6),), 7, 5, 30, 9, 50, (1_000,))


@dataclass(frozen=True)
class Row:
    """A figure, and the bar that it shall not exceed, or shall reach where `at_least`; None: for information."""

    work: str
    figure: float
    unit: str
    bar: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.figure >= self.bar if self.at_least else self.figure <= self.bar


class Counting:
    """An embedder that adds up what it costs: `seconds` of CPU time."""

    def __init__(self, embedder: Embedder) -> None:
        self.provider, self.model, self.identity = embedder.provider, embedder.model, embedder.identity
        self.embed_words = embedder.embed_words  # type: ignore[attr-defined]  # the static one has them
        self.leaves_machine, self.close = embedder.leaves_machine, embedder.close
        self._embedder = embedder
        self.seconds = 0.0

    def embed_query(self, text: str) -> Any:
        return self._counted(self._embedder.embed_query, text)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._counted(self._embedder.embed_documents, texts)

    def _counted(self, work: Callable[[Any], Any], argument: Any) -> Any:
        started = time.process_time()
        try:
            return work(argument)
        finally:
            self.seconds += time.process_time() - started


def counting_embedder() -> Counting:
    embedder = load_embedder("static")
    assert embedder is not None
    return Counting(embedder)


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process, all threads."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def process_milliseconds(arguments: Sequence[str], scratch: Path) -> float:
    """CPU time of `python ARGUMENTS` from its start to its end; its bytecode is kept in `scratch`, as if installed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


# --- rows --------------------------------------------------------------------------------------------------------


def import_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Imports in fresh processes, less what a bare Python takes; in turns, so that a busy machine slows all alike."""
    statements = ("pass", "import openclaw_memory", "from openclaw_memory import Memory, MemoryConfig")
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(scale.processes + 2):
        for statement in statements:
            times[statement].append(process_milliseconds(["-c", statement], scratch))
    bare, package, names = (statistics.median(times[statement][2:]) for statement in statements)
    yield Row("bare Python", bare, "ms")
    yield Row("import openclaw_memory, over bare Python", package - bare, "ms", 50)
    yield Row("from openclaw_memory import Memory, MemoryConfig, over bare Python", names - bare, "ms", 50)


def command_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Commands in fresh processes, from start to end, in turns with what no command of a search can do without."""
    folder = write_files(scratch / "command", scale.files)
    with Memory.open(folder) as memory:
        memory.sync()
    place, note = ["--workspace", str(folder)], min((folder / "memory").iterdir()).name
    runs: dict[str, Callable[[str], list[str]]] = {
        "bare Python": lambda _: ["-c", "pass"],
        "import numpy": lambda _: ["-c", "import numpy"],
        "openclaw-memory --help": lambda _: [*COMMAND, "--help"],
        "openclaw-memory show": lambda _: [*COMMAND, "show", f"memory/{note}#L3-L6", *place],
        "openclaw-memory status": lambda _: [*COMMAND, "status", *place],
        "openclaw-memory search": lambda question: [*COMMAND, "search", question, *place],
        "openclaw-memory search --no-sync": lambda question: [*COMMAND, "search", "--no-sync", question, *place],
        "openclaw-memory add": lambda question: [*COMMAND, "add", question, *place],
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for question in questions(scale.commands + 1):
        for name, arguments in runs.items():
            times[name].append(process_milliseconds(arguments(question), scratch))
    for name, found in times.items():
        bar = SEARCH_BAR if name == "openclaw-memory search" else None
        yield Row(f"{name}, a fresh process, {scale.files:,} notes", statistics.median(found[1:]), "ms", bar)


def sync_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    files = f"{scale.files:,} files"
    runs = []
    for number in range(3):
        folder = write_files(scratch / f"sync-{number}", scale.files)
        # A fresh process each time: the caches of words are empty then, as they are for a user.
        runs.append(in_fresh_process(first_index, folder))
    yield Row(f"first index of {files} x 3 KB, embedding apart", median(runs, "seconds"), "s", 4 * scale.files / 2000)
    yield Row("  embedding them", median(runs, "embedding"), "s")
    run = runs[-1]
    yield Row(f"  chunks of {files}", run["chunks"], "chunks")
    yield Row("size on disk / (text + float32 vectors)", run["disk"] / (run["text"] + run["vectors"]), "x", 1.3)
    yield from resync_rows(scale, folder, files)


def first_index(folder: Path) -> dict[str, float]:
    """Seconds of CPU time and bytes of a first sync."""
    embedder = counting_embedder()
    started = time.process_time()
    with Memory.open(folder, embedder=embedder) as memory:
        memory.sync()
        seconds = time.process_time() - started - embedder.seconds
        stats = opened_store(memory).describe()
    return {
        "seconds": seconds,
        "embedding": embedder.seconds,
        "chunks": stats.chunks,
        "disk": sum(path.stat().st_size for path in (folder / ".memory").iterdir()),
        "text": sum(path.stat().st_size for path in folder.rglob("*.md")),
        "vectors": stats.vectors * len(embedder.embed_query("memory")) * 4,
    }


def resync_rows(scale: Scale, folder: Path, files: str) -> Iterator[Row]:
    """Syncs of an index that is there: nothing changed, a line at the end, a line on top, a rename."""
    embedder = counting_embedder()
    with Memory.open(folder, embedder=embedder) as memory:
        memory.sync()
        unchanged = [milliseconds(memory.sync) for _ in range(scale.repeats)]
        yield Row(f"no-change sync of {files}", statistics.median(unchanged), "ms", 12 * max(1, scale.files / 2000))
        notes = sorted((folder / "memory").iterdir())[:: scale.files // (2 * scale.repeats)]
        times, embedding = [], []
        for note in notes[: scale.repeats]:
            note.write_text(note.read_text(encoding="utf-8") + "- The plumber comes on Friday.\n", encoding="utf-8")
            before = embedder.seconds
            total = milliseconds(memory.sync)
            embedding.append((embedder.seconds - before) * 1000)
            times.append(total - embedding[-1])
        yield Row(f"one file of {files} changed, embedding apart", statistics.median(times), "ms", 40)
        yield Row("  embedding it", statistics.median(embedding), "ms")
        on_top = []
        for note in notes[scale.repeats : 2 * scale.repeats]:
            note.write_text("A line on top.\n" + note.read_text(encoding="utf-8"), encoding="utf-8")
            on_top.append(memory.sync().embedded)
        yield Row("a line on top embeds", max(on_top), "chunks", 2)
        day = notes[0].name[:10]
        notes[0].rename(notes[0].with_name(f"{day}-another-name.md"))
        yield Row("a rename embeds", memory.sync().embedded, "chunks", 0)
        notes[1].rename(notes[1].with_name("a-name-without-its-date.md"))
        yield Row("  a rename that takes a note's date away embeds", memory.sync().embedded, "chunks")


def search_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    for chunks, bar in scale.warm:
        folder = write_chunks(scratch / f"warm-{chunks}", chunks)
        run = in_fresh_process(warm_search, folder, scale.asked, scale.asked_of_openclaw)
        yield Row(f"warm search p50, {chunks:,} chunks", run["ours"], "ms", bar)
        yield Row("  p95", run["slow"], "ms")
        yield Row("  OpenClaw's documented query p50", run["documented"], "ms")
        yield Row("  OpenClaw's documented query / ours", run["documented"] / run["ours"], "x", 10, at_least=True)


def warm_search(folder: Path, asked: int, asked_of_openclaw: int) -> dict[str, float]:
    """Milliseconds a question, each asked once."""
    asked_before, rest = questions(WARM_UP + asked)[:WARM_UP], questions(WARM_UP + asked)[WARM_UP:]
    with Memory.open(folder) as memory:
        memory.sync()
        for question in asked_before:
            memory.search(question)
        ours = [milliseconds(lambda: memory.search(question)) for question in rest]  # noqa: B023 - called at once
        store = opened_store(memory)
        chunks = store.get_chunks(range(1, store.describe().chunks + 1))
    embedder = counting_embedder()
    db = speed_openclaw.build(folder / "documented.sqlite", chunks, embedder)
    speed_openclaw.search(db, embedder, asked_before[0])
    some = rest[:asked_of_openclaw]
    theirs = [milliseconds(lambda: speed_openclaw.search(db, embedder, question)) for question in some]  # noqa: B023
    return {"ours": statistics.median(ours), "slow": quantile(ours, 0.95), "documented": statistics.median(theirs)}


def rival_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Each library in a process of its own: what one loads or leaves behind is not another's."""
    files = f"{scale.rival_files} files"
    for name in ("openclaw_memory", "langchain", "memsearch"):
        yield from rival(name, files, write_files(scratch / f"rival-{name}", scale.rival_files))
    for chunks in scale.rival_chunks:
        notes = write_chunks(scratch / f"rival-{chunks}", chunks)
        for name in SEARCHED:
            yield from rival(name, f"{chunks:,} chunks", notes)


def rival(name: str, size: str, folder: Path) -> Iterator[Row]:
    """What a library or recipe costs with the notes in `folder`; nothing where it is not installed."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("speed_rivals.py")), name, str(folder)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if done.returncode:
        print(f"{name} is left out: {(done.stderr.strip() or 'no word').splitlines()[-1]}", file=sys.stderr)
        return
    for work, (figure, unit) in json.loads(done.stdout.splitlines()[-1]).items():
        yield Row(f"{size}, {name}: {work}", figure, unit)


# --- running -----------------------------------------------------------------------------------------------------


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def opened_store(memory: Memory) -> Store:
    return memory._engine.service.store()  # what lies behind the door is what is measured


def median(runs: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| work | figure | bar | met |", "|---|---|---|---|"]
    for row in rows:
        bar = "" if row.bar is None else f"{'>=' if row.at_least else '<='} {row.bar:g} {row.unit}"
        met = {None: "", True: "yes", False: "NO"}[row.met]
        figure = f"{row.figure:.0f}" if row.figure >= 100 or row.unit == "chunks" else f"{row.figure:.2f}"
        lines.append(f"| {row.work} | {figure} {row.unit} | {bar} | {met} |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures were measured with."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    changed = subprocess.run(
        ["git", "status", "--short", "openclaw_memory"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return {
        "commit": commit.stdout.strip() + ("+" if changed.stdout else ""),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
    }


PARTS = {
    "import": import_rows,
    "static": static_rows,
    "command": command_rows,
    "sync": sync_rows,
    "search": search_rows,
    "upkeep": upkeep_rows,
    "rivals": rival_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that all runs")
    parser.add_argument("--rivals", action="store_true", help="other libraries as well, those that are installed")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    chosen = options.only or [name for name in PARTS if name != "rivals" or options.rivals]
    measure([PARTS[name] for name in chosen], scale, as_json=options.json)


def measure(parts: Sequence[Callable[[Any, Path], Iterator[Row]]], scale: Any, *, as_json: bool) -> None:
    """Measure the parts: each row goes to stderr as it comes, and all of them, as a table or JSON, to stdout."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for part in parts:
            for row in part(scale, Path(scratch)):
                print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
                rows.append(row)
    figures = {**machine(), "scale": asdict(scale), "rows": [asdict(row) | {"met": row.met} for row in rows]}
    print(json.dumps(figures, indent=1) if as_json else table(rows))


if __name__ == "__main__":
    main()
