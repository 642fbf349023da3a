"""What the way to an embedding service costs: time, memory, requests, and what a killed run asks for twice.

    python benchmarks/services.py [--quick] [--json] [--only PART]

The service is `tests/embedding_server.py` in a process of its own, asked as OpenAI's (openai must be installed)
as a user's program asks it. The notes are those of `speed.py`. Wall time is set against requests / concurrency x
latency, which nothing can beat; peak memory against that of the same run without an embedder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from embedders import peak_megabytes
from speed import ROOT, Row, in_fresh_process, measure
from speed_data import write_files

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.embeddings.service import RetryPolicy
from openclaw_memory.indexing.file_rows import make_note_rows
from openclaw_memory.types import Embedder

LATENCY = 0.02  # seconds from a request to its answer
DIMS = 256
TEXTS_TO_WARM = 1000
LOOK_EVERY = 0.002  # seconds between two looks at what the server has counted


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    files: int
    runs: int
    killed_files: int
    kills: int


FULL = Scale(2000, 3, 400, 10)
QUICK = Scale(200, 1, 100, 2)


# --- the server --------------------------------------------------------------------------------------------------


@contextmanager
def served(latency: float = LATENCY) -> Iterator[str]:
    """The address of an embedding server that runs in a process of its own."""
    script = str(ROOT / "tests" / "embedding_server.py")
    command = [sys.executable, script, "--latency", str(latency), "--dims", str(DIMS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["root"]
        finally:
            process.kill()


def counted(root: str) -> dict[str, int]:
    """What the server has counted since it began."""
    with urlopen(f"{root}/stats") as answer:
        return json.load(answer)


def warm(root: str, folder: Path) -> None:
    """Have the server make every vector once: from then on it takes little of the processor."""
    texts = texts_of(folder)
    for first in range(0, len(texts), TEXTS_TO_WARM):
        body = {"model": "any", "input": texts[first : first + TEXTS_TO_WARM], "encoding_format": "base64"}
        request = Request(f"{root}/openai/v1/embeddings", json.dumps(body).encode())
        with urlopen(request) as answer:
            answer.read()


def texts_of(folder: Path) -> list[str]:
    """What an index of these notes embeds."""
    chunking = MemoryConfig().chunking
    return [
        row.chunk.embedding_text
        for note in sorted((folder / "memory").iterdir())
        for row in make_note_rows(
            note.read_text(encoding="utf-8"), f"memory/{note.name}", chunking, None, with_vectors=True
        )
        if row.vector_key is not None
    ]


def asking(root: str) -> Embedder:
    embedder = load_embedder("openai", base_url=f"{root}/openai/v1")
    assert embedder is not None
    return embedder


# --- rows --------------------------------------------------------------------------------------------------------


def first_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """A first index, in fresh processes: with the service, and without an embedder."""
    with_service, alone = [], []
    with served() as root:
        for number in range(scale.runs):
            os.environ["OPENCLAW_MEMORY_HOME"] = str(scratch / f"data-{number}")  # of the run: no vector is cached
            folder = write_files(scratch / f"first-{number}", scale.files)
            if number == 0:
                warm(root, folder)
            before = counted(root)["embed_requests"]
            run = in_fresh_process(first_index, folder, root)
            with_service.append(run | {"requests": counted(root)["embed_requests"] - before})
            alone.append(in_fresh_process(first_index, write_files(scratch / f"alone-{number}", scale.files), None))
        at_once = counted(root)["most_at_once"]
    requests = median(with_service, "requests")
    least = requests / RetryPolicy().concurrency * LATENCY
    yield Row(f"requests for {scale.files:,} files", requests, "requests")
    yield Row("  texts in them", median(with_service, "embedded"), "texts")
    yield Row("  most of them at once", at_once, "requests")
    yield Row("  requests / concurrency x latency", least, "s")
    yield Row("first index, wall time", median(with_service, "wall"), "s")
    yield Row("first index, wall time / what the requests take", median(with_service, "wall") / least, "x", 1.3)
    yield Row("  loading the SDK before it", median(with_service, "loading"), "s")
    yield Row("first index, CPU time", median(with_service, "cpu"), "s")
    yield Row("  without an embedder", median(alone, "cpu"), "s")
    yield Row("  without an embedder, wall time", median(alone, "wall"), "s")
    yield Row("peak memory", median(with_service, "memory"), "MB")
    yield Row("  without an embedder", median(alone, "memory"), "MB")
    yield Row("peak memory above it", median(with_service, "memory") - median(alone, "memory"), "MB", 200)


def first_index(folder: Path, root: str | None) -> dict[str, float]:
    """Seconds and megabytes of a first sync; `loading` is the import of the SDK, which comes before it."""
    started = time.perf_counter()
    embedder = asking(root) if root else None
    loaded, cpu = time.perf_counter(), time.process_time()
    with Memory.open(folder, embedder=embedder) as memory:
        report = memory.sync()
        assert report.ok, report
        return {
            "loading": loaded - started,
            "wall": time.perf_counter() - loaded,
            "cpu": time.process_time() - cpu,
            "memory": peak_megabytes(),
            "embedded": report.embedded,
        }


def killed_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """A first index that is killed when half of its texts are answered, and finished by another process."""
    answered_twice, rng = [], random.Random(7)
    for number in range(scale.kills):
        folder = write_files(scratch / f"killed-{number}", scale.killed_files)
        total = len(set(texts_of(folder)))
        with served() as root:
            half = killed_at(folder, root, int(total * rng.uniform(0.45, 0.55)))
            first_index_in_process(folder, root).wait()
            done = counted(root)
        batch = done["texts_asked"] / done["embed_requests"]
        answered_twice.append(done["texts_answered_again"] / batch)
        # The question by which each process finds out whether the service answers is no text of the notes.
        assert done["texts_answered"] - done["texts_answered_again"] - 1 == total, (done, total)
        yield Row(f"  killed at {half:,} of {total:,} texts: answered twice", answered_twice[-1], "requests")
    yield Row("killed at 50 %: answered twice, at most", max(answered_twice), "requests", 1)
    yield Row("  median", statistics.median(answered_twice), "requests")


def killed_at(folder: Path, root: str, texts: int) -> int:
    """Kill a first index as soon as the server has answered `texts`; returns how many it had."""
    with first_index_in_process(folder, root) as process:
        while (answered := counted(root)["texts_answered"]) < texts:
            assert process.poll() is None, "the index was finished before it could be killed"
            time.sleep(LOOK_EVERY)
        process.kill()
    return answered


def first_index_in_process(folder: Path, root: str) -> subprocess.Popen[bytes]:
    code = "import sys; from pathlib import Path; from services import first_index as run; run(Path(sys.argv[1]), sys.argv[2])"
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    return subprocess.Popen([sys.executable, "-c", code, str(folder), root], env={**os.environ, "PYTHONPATH": path})


def again_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Requests of syncs of an index that is there."""
    folder = write_files(scratch / "again", scale.killed_files)
    with served(latency=0) as root, Memory.open(folder, embedder=asking(root)) as memory:
        memory.sync()

        def requests() -> int:
            before = counted(root)["embed_requests"]
            memory.sync()
            return counted(root)["embed_requests"] - before

        yield Row("a sync with nothing changed", requests(), "requests", 0)
        notes = sorted((folder / "memory").iterdir())
        notes[0].write_text(notes[0].read_text(encoding="utf-8") + "- The plumber comes.\n", encoding="utf-8")
        yield Row("a sync with one line more", requests(), "requests", 1)
        notes[1].write_text("\n\n".join(f"# Part {n}\n\n{'New words. ' * 40}" for n in range(8)), encoding="utf-8")
        yield Row("a sync with one file rewritten", requests(), "requests", 2)
        notes[2].rename(notes[2].with_name(f"{notes[2].name[:10]}-another-name.md"))
        yield Row("a sync with one file renamed", requests(), "requests", 0)


# --- running -----------------------------------------------------------------------------------------------------


def median(runs: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


PARTS = {"first": first_rows, "killed": killed_rows, "again": again_rows}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that all runs")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("openai") is None:
        parser.error("openai is not installed; run: pip install '.[openai]'")
    scale = QUICK if options.quick else FULL
    measure([PARTS[name] for name in options.only or PARTS], scale, as_json=options.json)


if __name__ == "__main__":
    main()
