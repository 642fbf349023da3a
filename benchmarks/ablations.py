"""What each part of the default recipe is worth: the retrieval benchmark with one part changed at a time.

python benchmarks/ablations.py DIR... [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import retrieval

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import SearchConfig
from openclaw_memory.search import candidates, passages

FEATURES = ("keyword", "words", "meaning", "pairs", "exact", "date", "name", "question")

# The minimum score is fitted to the whole recipe: a part is judged without it, and so is what it is compared with.
NO_THRESHOLD: dict[str, object] = {"min_score": 0.0}
NAMES = ("name", "question")

# Name: settings of the search that differ, weights of lines that are zero, constants that are different.
ABLATIONS: dict[str, tuple[dict[str, object], tuple[str, ...], dict[str, object]]] = {
    "default": ({}, (), {}),
    "default, no minimum score": (NO_THRESHOLD, (), {}),
    "vectors only": (NO_THRESHOLD | {"vector_weight": 1.0}, ("keyword", "pairs", "exact"), {}),
    "whole chunks answer, not lines": (NO_THRESHOLD | {"answer": "chunks"}, (), {}),
    "MMR 0.7": (NO_THRESHOLD | {"mmr": 0.7}, (), {}),
    **{f"without {name}": (NO_THRESHOLD, (name,), {}) for name in FEATURES},
    "without name and question": (NO_THRESHOLD, NAMES, {}),
    "chunks without their neighbours' matches": (NO_THRESHOLD, (), {"NEIGHBOUR_SHARE": 0.0}),
    "repeats count in full": (NO_THRESHOLD, (), {"REPEAT": 0.0}),
    "no chunks next to the best": (NO_THRESHOLD, (), {"WITH_NEIGHBOURS": 0}),
    "12 candidates": (NO_THRESHOLD | {"candidates": 12}, (), {}),
    "25 candidates": (NO_THRESHOLD | {"candidates": 25}, (), {}),
    "100 candidates": (NO_THRESHOLD | {"candidates": 100}, (), {}),
}
SHOWN = ("recall@1", "mrr", "shown@6", "coverage@1500", "coverage@4200", "snippet_chars", "query_ms", "auroc")


def measured(folders: Sequence[Path]) -> list[dict[str, object]]:
    """One row an ablation; keywords alone is one of them, with weights of its own."""
    chosen = list(retrieval.workspaces(folders))
    rows = []
    for name, (settings, zero, constants) in ABLATIONS.items():
        config = MemoryConfig(search=SearchConfig(**settings))  # type: ignore[arg-type]
        weights = replace(passages.HYBRID, **dict.fromkeys(zero, 0.0))
        with ExitStack() as changed:
            for constant, value in ({"HYBRID": weights} | constants).items():
                module = candidates if hasattr(candidates, constant) else passages
                changed.enter_context(patch.object(module, constant, value))
            rows.append({"name": name} | retrieval.measured(chosen, config, "static")[-1] | {"name": name})
        print(f"{name}: done", file=sys.stderr)
    return [*rows, retrieval.measured(chosen, MemoryConfig(), None)[-1] | {"name": "keywords only"}]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    rows = measured(options.folders)
    short = [
        {"name": row["name"], "questions": row["questions"]} | {k: row[k] for k in SHOWN if k in row} for row in rows
    ]
    print(json.dumps({**retrieval.machine(), "rows": rows}, indent=1) if options.json else retrieval.table(short))


if __name__ == "__main__":
    main()
