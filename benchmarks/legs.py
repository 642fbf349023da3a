"""The default search beside its parts: keywords alone, vectors alone, and a plain rank fusion of the two.

    python benchmarks/legs.py DIR... [--embedder static|local|...] [--questions N] [--json]

Each DIR is a set of its own: a workspace with questions, or a folder of some, as for `retrieval.py`. Run it with every
change of ranking: what a part finds, the default has to find too. Named below the table is every figure of the default
that is more than a point below one of the others.

`keywords alone` is this library without an embedder. `vectors alone` are whole chunks by the nearness of their vectors.
`rank fusion` are whole chunks too: BM25 and vectors by their ranks (RRF, Cormack et al. 2009), as most compositions do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedders import loaded
from retrieval import LEFT_OUT, SHOWN_AT, Workspace, chosen_workspaces, machine, shown, workspaces

from openclaw_memory import Memory
from openclaw_memory.types import Embedder, SearchResult

CHUNKS = {"answer": "chunks"}
BY_VECTOR = CHUNKS | {"vector_weight": 1.0}
DEPTH = 60  # of each ranking that is fused
RRF_K = 60
METRICS = ("first", f"shown@{SHOWN_AT}")
POINT = 0.01


def fused(*rankings: Sequence[SearchResult]) -> list[SearchResult]:
    """The chunks of several rankings by the sum of 1 / (60 + rank)."""
    worth: dict[tuple[str, int, str], float] = defaultdict(float)
    chunks = {(one.path, one.start_line, one.snippet): one for ranking in rankings for one in ranking}
    for ranking in rankings:
        for rank, one in enumerate(ranking, 1):
            worth[one.path, one.start_line, one.snippet] += 1 / (RRF_K + rank)
    return [chunks[place] for place in sorted(worth, key=lambda place: -worth[place])]


def answers(hybrid: Memory, keywords: Memory, question: str) -> dict[str, list[SearchResult]]:
    """The first six results of each way to search."""
    by_vector = hybrid.search(question, max_results=DEPTH, min_score=0, options={"settings": BY_VECTOR})
    by_words = keywords.search(question, max_results=DEPTH, min_score=0, options={"settings": CHUNKS})
    found = {
        "default": hybrid.search(question),
        "keywords alone": keywords.search(question),
        "vectors alone": by_vector,
        "rank fusion": fused(by_words, by_vector),
    }
    return {way: list(results)[:SHOWN_AT] for way, results in found.items()}


def figures(results: Sequence[SearchResult], gold: Sequence[tuple[str, int, str]]) -> dict[str, float]:
    """Whether the first result holds evidence, and the share of the evidence that six results show."""
    spans = [(results[0].path, first, last) for first, last in results[0].spans] if results else []
    first = any(path == at and start <= line <= end for path, line, _ in gold for at, start, end in spans)
    return {"first": float(first), f"shown@{SHOWN_AT}": shown([one.snippet for one in results], gold)}


def sample(workspace: Workspace, count: int | None) -> list[dict[str, Any]]:
    """So many questions of a workspace, at even distances; all where None."""
    every = workspace.questions
    if count is None or count >= len(every):
        return every
    return [every[at * len(every) // count] for at in range(count)]


def measured(folder: Path, embedder: Embedder | None, count: int | None) -> dict[str, dict[str, Any]]:
    """The figures of each way to search one set."""
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    ignored = shutil.ignore_patterns("questions.json", ".memory", *LEFT_OUT["without"])
    for workspace in workspaces([folder]):
        with tempfile.TemporaryDirectory() as scratch:
            places = [shutil.copytree(workspace.folder, Path(scratch) / name, ignore=ignored) for name in ("a", "b")]
            with Memory.open(places[0], embedder=embedder) as hybrid, Memory.open(places[1], embedder=None) as keywords:
                hybrid.sync()
                keywords.sync()
                for question in sample(workspace, count):
                    gold = workspace.gold(question)
                    for way, results in answers(hybrid, keywords, question["question"]).items():
                        rows[way].append(figures(results, gold))
    return {
        way: {"questions": len(of_way)} | {name: statistics.fmean(each[name] for each in of_way) for name in METRICS}
        for way, of_way in rows.items()
    }


def shortfalls(sets: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """A line for each figure of the default that is more than a point below another's."""
    return [
        f"{name}, {metric}: {ways['default'][metric]:.3f}, {way} {ways[way][metric]:.3f}"
        for name, ways in sets.items()
        for metric in METRICS
        for way in ways
        if ways[way][metric] - ways["default"][metric] > POINT
    ]


def table(sets: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The figures as a Markdown table, and what the default falls short of."""
    ways = list(next(iter(sets.values())))
    lines = ["| set | questions | | " + " | ".join(ways) + " |", "|---" * (len(ways) + 3) + "|"]
    for name, of_set in sets.items():
        for metric in METRICS:
            cells = " | ".join(f"{of_set[way][metric]:.3f}" for way in ways)
            lines.append(f"| {name} | {of_set['default']['questions']} | {metric} | {cells} |")
    below = shortfalls(sets) or ["none"]
    return "\n".join([*lines, "", "More than a point below:", *(f"- {line}" for line in below)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--embedder", default="static", help="a provider's name; local is all-MiniLM-L6-v2")
    parser.add_argument("--questions", type=int, help="so many of each workspace, at even distances")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    chosen_workspaces(parser, options.folders)
    embedder, sets = loaded(options.embedder, None), {}
    for folder in options.folders:
        sets[folder.name] = measured(folder, embedder, options.questions)
        print(json.dumps({folder.name: sets[folder.name]}), file=sys.stderr, flush=True)  # whatever comes next
    report = {**machine(), "embedder": options.embedder, "sets": sets, "below": shortfalls(sets)}
    print(json.dumps(report, indent=1) if options.json else table(sets))


if __name__ == "__main__":
    main()
