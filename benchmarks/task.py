"""Whether results are better where a search is given the task at hand, and what an unrelated task costs.

    python benchmarks/task.py DIR... [--embedder static|none] [--json]

DIR is as for `retrieval.py`. No data set says what its asker was at work on, so that a question stands for the task:
the previous one about the same file (`previous`), or one of another workspace (`unrelated`, the control). What is
measured is the share of the evidence in the six results of a default search, on the questions that have such a task.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from retrieval import SHOWN_AT, Workspace, chosen_workspaces, machine, opened, shown

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.search import search as search_module

WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.5)
TASKS = ("previous", "unrelated")


def tasks(workspace: Workspace, others: Sequence[Workspace]) -> Iterator[dict[str, str]]:
    """The tasks of each question, by kind; there is no previous one where it has the same evidence, or none."""
    latest: dict[str, dict[str, Any]] = {}
    for number, question in enumerate(workspace.questions):
        path = question["gold"][0][0]
        before, latest[path] = latest.get(path), question
        other = others[number % len(others)]
        found = {"unrelated": other.questions[(7 * number) % len(other.questions)]["question"]}
        if before is not None and not {*map(tuple, question["gold"])} & {*map(tuple, before["gold"])}:
            found["previous"] = before["question"]
        yield found


def measured(chosen: Sequence[Workspace], embedder: str | None) -> list[dict[str, Any]]:
    """One row a workspace and task, and one a task for all together: the share without a task, and by weight."""
    rows: list[dict[str, Any]] = []
    every: dict[str, list[list[float]]] = {kind: [] for kind in TASKS}
    times: list[list[float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for workspace in chosen:
            others = [other for other in chosen if other is not workspace]
            seen: dict[str, list[list[float]]] = {kind: [] for kind in TASKS}
            with opened(workspace, MemoryConfig(), embedder, Path(scratch), "without") as memory:
                memory.search("warm up")
                by_weight = [_with_weight(memory, weight, embedder) for weight in WEIGHTS]
                for question, told in zip(workspace.questions, tasks(workspace, others), strict=True):
                    gold = workspace.gold(question)
                    without, own = _timed(memory, question["question"], None, gold)
                    for kind, task in told.items():
                        found = [_timed(each, question["question"], task, gold) for each in by_weight]
                        seen[kind].append([without, *(share for share, _ in found)])
                        times.append([own, *(spent for _, spent in found)])
                for each in by_weight:
                    each.close()
            for kind, values in seen.items():
                rows.append(_row(workspace.name, kind, values))
                every[kind] += values
    rows += [_row("all", kind, values) for kind, values in every.items()]
    spent = [statistics.median(column) for column in zip(*times, strict=True)]
    return [*rows, {"name": "CPU ms", "task": "", "questions": len(times)} | _columns(spent)]


def _with_weight(memory: Memory, weight: float, embedder: str | None) -> Memory:
    """The same folder and index, searched with another weight."""
    other = Memory.open(memory.workspace.root, config=memory.config, embedder=embedder)
    search_module.TASK_WEIGHT = weight
    for _ in range(4):  # from its fourth search on it keeps the index in memory
        other.search("warm up")
    return other


def _timed(
    memory: Memory, question: str, task: str | None, gold: Sequence[tuple[str, int, str]]
) -> tuple[float, float]:
    started = time.process_time()
    results = memory.search(question, options={"task": task}, max_results=SHOWN_AT)
    return shown([one.snippet for one in results], gold), (time.process_time() - started) * 1000


def _row(name: str, kind: str, values: Sequence[Sequence[float]]) -> dict[str, Any]:
    means = [statistics.fmean(column) for column in zip(*values, strict=True)]
    return {"name": name, "task": kind, "questions": len(values)} | _columns(means)


def _columns(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(("none", *map(str, WEIGHTS)), values, strict=True))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table, one column a weight."""
    names = [*rows[0]]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = (f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--embedder", default="static", help="a provider's name; none: keywords only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    chosen = chosen_workspaces(parser, options.folders)
    if len(chosen) < 2:
        parser.error("one workspace alone has no unrelated task: name two or more")
    rows = measured(chosen, None if options.embedder == "none" else options.embedder)
    print(
        json.dumps({**machine(), "embedder": options.embedder, "rows": rows}, indent=1) if options.json else table(rows)
    )


if __name__ == "__main__":
    sys.exit(main())
