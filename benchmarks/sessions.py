"""Which sessions and turns a search finds, in the units that other systems publish.

    python benchmarks/sessions.py DIR... [--embedder static|none|...] [--json]

Each DIR is a workspace with questions, or a folder of some, as for `retrieval.py`: a note is a session, and a line is a
turn. `hit@1`, `any@5`, `any@10` and `all@5` are the shares of questions of which the first session, any of the first
five or ten, or all sessions within five hold the evidence. `turn recall@20` is the share of the lines of evidence among
the first twenty lines, `turn hit@20` the share of questions with one there, `turn MRR` the mean of 1 / its rank.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Collection, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from embedders import loaded
from retrieval import chosen_workspaces, machine, opened

from openclaw_memory import Memory, MemoryConfig

SESSIONS, TURNS = 10, 20
DEPTH = 100  # results, of which several may be of one session
# A result is then one line.
ONE_LINE = {"snippet_chars": 40}

Unit = TypeVar("Unit", bound=Hashable)


def rank_sessions(memory: Memory, question: str) -> list[str]:
    """The paths of the notes that a search finds, best first."""
    return list(dict.fromkeys(result.path for result in memory.search(question, max_results=DEPTH, min_score=0)))


def rank_turns(memory: Memory, question: str) -> list[tuple[str, int]]:
    """The path and number of each line that a search finds, best first."""
    results = memory.search(question, max_results=TURNS, min_score=0, options={"settings": ONE_LINE})
    return list(dict.fromkeys((result.path, result.start_line) for result in results))[:TURNS]


def score_sessions(ranked: Sequence[Unit], gold: Collection[Unit]) -> dict[str, float]:
    """The units of one question by sessions, where it has evidence in those of `gold`."""
    ranks = [ranked.index(one) + 1 if one in ranked else SESSIONS + 1 for one in set(gold)]
    return {
        "hit@1": float(min(ranks) == 1),
        "any@5": float(min(ranks) <= 5),
        "any@10": float(min(ranks) <= SESSIONS),
        "all@5": float(max(ranks) <= 5),
    }


def score_turns(ranked: Sequence[Unit], gold: Collection[Unit]) -> dict[str, float]:
    """The units of one question by turns."""
    ranks = [ranked.index(one) + 1 for one in set(gold) if one in ranked]
    return {
        "turn recall@20": len(ranks) / len(set(gold)),
        "turn hit@20": float(bool(ranks)),
        "turn MRR": 1 / min(ranks) if ranks else 0.0,
    }


def average(scores: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of each unit over the questions, and their number."""
    rows = list(scores)
    return {"questions": len(rows), **{name: statistics.fmean(row[name] for row in rows) for name in rows[0]}}


def table(rows: Sequence[dict[str, float | str]]) -> str:
    """The rows as a Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument(
        "--embedder", action="append", help="a provider's name; none: keywords only; may be given again"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    chosen, rows = chosen_workspaces(parser, options.folders), []
    for embedder in options.embedder or ["static", "none"]:
        scores, model = [], loaded(embedder, None)
        for workspace in chosen:
            with (
                tempfile.TemporaryDirectory() as scratch,
                opened(workspace, MemoryConfig(), model, Path(scratch), "without") as memory,
            ):
                for question in workspace.questions:
                    gold, text = [(path, line) for path, line, _ in workspace.gold(question)], question["question"]
                    sessions = score_sessions(rank_sessions(memory, text), [path for path, _ in gold])
                    scores.append(sessions | score_turns(rank_turns(memory, text), gold))
        rows.append({"embedder": embedder, **average(scores)})
    print(json.dumps({**machine(), "rows": rows}, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
