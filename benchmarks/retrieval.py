"""How much of the evidence a search shows: quality and time on workspaces with questions.

    python benchmarks/retrieval.py DIR... [--preset default|openclaw|openclaw-2026.2] [--embedder static|none|...]
                                   [--sessions without|with|alone] [--store URL] [--rerank NAME] [--json]

Each DIR is a workspace (or a folder of workspaces) with `questions.json`:
`[{"question": ..., "gold": [[path, line], ...]}, ...]`, lines 1-based. The notes are copied to a temporary folder,
so that no DIR is written to.

Transcripts are searched beside the notes (`--sessions with`; the evidence is still what `gold` names, shown from
either), or instead of them (`alone`; the evidence is in `gold_jsonl`).
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.types import Embedder, SearchResult

RANKS = (1, 3, 6, 10)
BUDGETS = (1500, 4200)
SHOWN_AT = 6
PROBE_CHARS = 200  # a gold line is shown when its beginning stands in a snippet
UNANSWERABLE_PER_WORKSPACE = 100
SEED = 7

# What is left out of a workspace where transcripts are searched so.
LEFT_OUT = {"without": ("sessions",), "with": (), "alone": ("memory", "*.md")}

PRESETS = {
    "default": MemoryConfig,
    "openclaw": MemoryConfig.openclaw,
    "openclaw-2026.2": partial(MemoryConfig.openclaw, "2026.2"),
}


@dataclass(frozen=True)
class Workspace:
    """A folder of notes with questions; `lines` holds each file's lines."""

    name: str
    folder: Path
    questions: list[dict[str, Any]]

    def gold(self, question: dict[str, Any], sessions: str = "without") -> list[tuple[str, int, str]]:
        places = question["gold_jsonl" if sessions == "alone" else "gold"]
        return [(path, line, self.line(path, line)) for path, line in places]

    def line(self, path: str, number: int) -> str:
        """The text of a line of a note, or what is said in a line of a transcript."""
        line = (self.folder / path).read_text(encoding="utf-8").split("\n")[number - 1]
        if path.endswith(".md"):
            return line
        return " ".join(" ".join(block["text"] for block in json.loads(line)["message"]["content"]).split())


def workspaces(folders: Sequence[Path]) -> Iterator[Workspace]:
    """The workspaces in `folders`, each a workspace itself or a folder of some."""
    for folder in folders:
        for path in sorted(folder.glob("questions.json")) or sorted(folder.glob("*/questions.json")):
            yield Workspace(path.parent.name, path.parent, json.loads(path.read_text(encoding="utf-8")))


def chosen_workspaces(parser: argparse.ArgumentParser, folders: Sequence[Path]) -> list[Workspace]:
    """The workspaces in the folders that a command was given, which ends with its usage where there are none."""
    chosen = list(workspaces(folders))
    if not chosen:
        parser.error(f"no questions.json in {', '.join(map(str, folders))} or the folders in them")
    return chosen


def opened(
    workspace: Workspace,
    config: MemoryConfig,
    embedder: str | Embedder | None,
    scratch: Path,
    sessions: str,
    store: str = "sqlite",
) -> Memory:
    """The workspace's files, copied and indexed."""
    target = scratch / workspace.name
    left_out = shutil.ignore_patterns("questions.json", ".memory", *LEFT_OUT[sessions])
    shutil.copytree(workspace.folder, target, ignore=left_out)
    memory = Memory.open(target, config=config, embedder=embedder, store=store)
    memory.sync()
    return memory


def scored(
    memory: Memory, question: str, first: Sequence[SearchResult], gold: Sequence[tuple[str, int, str]]
) -> dict[str, float]:
    """The metrics of one question, from the results of a default call, `first`, of a longer one and of each budget."""
    results = [*first, *memory.search(question, max_results=max(RANKS))[len(first) :]]
    ranks = [
        next(
            (at for at, r in enumerate(results, 1) if r.path == path and any(a <= line <= b for a, b in r.spans)), None
        )
        for path, line, _ in gold
    ]
    found = [rank for rank in ranks if rank is not None]
    metrics = {f"recall@{k}": sum(rank <= k for rank in found) / len(gold) for k in RANKS}
    metrics["mrr"] = 1 / min(found) if found else 0.0
    snippets = [result.snippet for result in first[:SHOWN_AT]]
    metrics[f"shown@{SHOWN_AT}"] = shown(snippets, gold)
    for budget in BUDGETS:
        started = time.process_time()
        texts = [result.snippet for result in memory.search(question, max_chars=budget)]
        metrics["budget_ms"] = (time.process_time() - started) * 1000
        metrics |= {f"coverage@{budget}": shown(texts, gold), f"chars@{budget}": sum(map(len, texts))}
    metrics["snippet_chars"] = statistics.fmean(map(len, snippets)) if snippets else 0.0
    metrics["results"] = len(snippets)
    return metrics


def shown(snippets: Sequence[str], gold: Sequence[tuple[str, int, str]]) -> float:
    """The share of gold lines whose first characters stand in one of the snippets."""
    return sum(any(text[:PROBE_CHARS] in snippet for snippet in snippets) for _, _, text in gold) / len(gold)


def speakers(workspace: Workspace) -> list[str]:
    """The two names that head most lines ("Anna: ...")."""
    notes = "\n".join(path.read_text(encoding="utf-8") for path in sorted(workspace.folder.glob("memory/**/*.md")))
    return [name for name, _ in Counter(re.findall(r"^([A-Z][a-z]+): ", notes, re.MULTILINE)).most_common(2)]


def unanswerable(workspace: Workspace, others: Sequence[Workspace]) -> list[str]:
    """Questions from other workspaces with this one's names swapped in: the notes do not answer them."""
    ours = speakers(workspace)
    asked = []
    for other in others:
        theirs = speakers(other)
        for question in other.questions:
            text = question["question"]
            for old, new in zip(theirs, ours, strict=False):
                text = re.sub(rf"\b{old}\b", new, text)
            asked.append(text)
    return random.Random(SEED).sample(asked, min(len(asked), UNANSWERABLE_PER_WORKSPACE))


def auroc(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """The chance that an answerable question has the higher best score; ties count half."""
    ranked = sorted([*((score, 1) for score in answered), *((score, 0) for score in unanswered)])
    total, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        total += sum(label for _, label in ranked[at:end]) * (at + end + 1) / 2
        at = end
    return (total - len(answered) * (len(answered) + 1) / 2) / (len(answered) * len(unanswered))


def measured(
    chosen: Sequence[Workspace],
    config: MemoryConfig,
    embedder: str | None,
    sessions: str = "without",
    store: str = "sqlite",
) -> list[dict[str, Any]]:
    """One row a workspace, and one for all questions together where there are several."""
    rows, everything, best, refused = [], [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        for workspace in chosen:
            with opened(workspace, config, embedder, Path(scratch), sessions, store) as memory:
                memory.search("warm up")
                metrics, times, scores = [], [], []
                for question in workspace.questions:
                    started = time.process_time()
                    six = memory.search(question["question"])
                    times.append((time.process_time() - started) * 1000)
                    metrics.append(scored(memory, question["question"], six, workspace.gold(question, sessions)))
                    scores.append(six[0].score if six else 0.0)
                others = [other for other in chosen if other is not workspace and speakers(other)]
                asked = unanswerable(workspace, others) if speakers(workspace) else []
                answers = [memory.search(text) for text in asked]
                row = mean(metrics) | {"name": workspace.name, "questions": len(metrics)}
                budget_ms = statistics.median(each["budget_ms"] for each in metrics)
                rows.append(row | {"query_ms": statistics.median(times), "budget_ms": budget_ms})
                everything += metrics
                best += scores if asked else []
                refused += [(len(found), found[0].score if found else 0.0) for found in answers]
    if len(rows) > 1:
        total = mean(everything) | {"name": "all", "questions": len(everything)}
        for name in ("query_ms", "budget_ms"):
            total[name] = statistics.median(row[name] for row in rows)
        if refused:
            total["auroc"] = auroc(best, [score for _, score in refused])
            total["results_unanswerable"] = statistics.fmean(count for count, _ in refused)
            total["empty_unanswerable"] = sum(count == 0 for count, _ in refused) / len(refused)
        rows.append(total)
    return rows


def mean(metrics: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {name: statistics.fmean(row[name] for row in metrics) for name in metrics[0]}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    columns = [name for name in rows[-1] if name not in ("name", "questions")]
    lines = ["| workspace | questions | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        cells = [
            f"{row[name]:.3f}" if name in row and row[name] < 20 else f"{row[name]:.0f}" if name in row else ""
            for name in columns
        ]
        lines.append(f"| {row['name']} | {row['questions']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """What the figures were measured with: commit, processor, Python."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {"commit": commit.stdout.strip(), "machine": platform.machine(), "python": platform.python_version()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--preset", choices=PRESETS, default="default")
    parser.add_argument("--embedder", default="static", help="a provider's name; none: keywords only")
    parser.add_argument("--sessions", choices=LEFT_OUT, default="without", help="how transcripts are searched")
    parser.add_argument("--store", default="sqlite", help="or the URL of a database in PostgreSQL")
    parser.add_argument("--rerank", help="a reranker, as search.rerank names one, which may take all the time it needs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    chosen = chosen_workspaces(parser, options.folders)
    embedder = None if options.embedder == "none" else options.embedder
    config = PRESETS[options.preset]()
    if options.rerank:
        config = config.replace({"search": {"rerank": {"model": options.rerank, "milliseconds": 3_600_000}}})
    rows = measured(chosen, config, embedder, options.sessions, options.store)
    settings = {name: getattr(options, name) for name in ("preset", "embedder", "sessions", "rerank")} | {
        "store": options.store.partition("://")[0]
    }
    report = {**machine(), **settings, "rows": rows}
    print(json.dumps(report, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    sys.exit(main())
