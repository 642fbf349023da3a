"""Whether an embedder finds a fact by a question that shares no word with it, in five languages.

    python benchmarks/paraphrase.py [--embedder static|PATH.oms|PROVIDER] [--split dev|held-out|all] [--json]

`paraphrase/*.jsonl` holds 310 facts, one file a language: 64 answer a question, half of the others stand near those.
Each question is looked for among the facts of its own language, by vectors alone; the last column looks among those of
all languages, where a fact of another language that answers it as well counts as a miss. The split is `dev` unless told
otherwise; `held-out` judges a finished model: nothing is tuned on it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from retrieval import machine

from openclaw_memory import load_embedder
from openclaw_memory.errors import EmbedderError
from openclaw_memory.types import Embedder

FOLDER = Path(__file__).parent / "paraphrase"
SPLITS = ("dev", "held-out")
COLUMNS = ("language", "questions", "facts", "r@1", "95 % of r@1", "r@5", "mrr", "r@1 of all")
Z = 1.96  # of a standard normal variable, 95 % lie nearer to its mean


class Fact(NamedTuple):
    language: str
    fact: str
    question: str | None = None  # None: a fact that answers no question
    split: str | None = None


def facts(folder: Path = FOLDER) -> list[Fact]:
    """The facts of all languages, with the questions that they answer."""
    return [
        Fact(path.stem, **json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


class Rank(NamedTuple):
    """The place of a question's fact, from 1: among the facts of its language, and among those of all."""

    own: int
    of_all: int


def loaded(name: str) -> Embedder:
    """The embedder of a provider, or the static one in a file.

    Raises:
        EmbedderError: there is none.
    """
    embedder = load_embedder("static", path=name) if name.endswith(".oms") else load_embedder(name)
    if embedder is None:
        raise EmbedderError(f"{name!r} has no vectors; name a provider that has, or a model file")
    return embedder


def ranks(embedder: Embedder, known: Sequence[Fact], splits: Sequence[str]) -> dict[str, list[Rank]]:
    """The ranks of each question's fact among `known`, by language; facts that are equally near come before it."""
    vectors = embedder.embed_documents([each.fact for each in known])
    languages = np.array([each.language for each in known])
    found: dict[str, list[Rank]] = {}
    for at, each in enumerate(known):
        if each.question is not None and each.split in splits:
            nearness = vectors @ embedder.embed_query(each.question)
            before = nearness >= nearness[at]
            rank = Rank(int(before[languages == each.language].sum()), int(before.sum()))
            found.setdefault(each.language, []).append(rank)
    return found


def figures(language: str, found: Sequence[Rank], known: int) -> dict[str, Any]:
    first = sum(rank.own == 1 for rank in found)
    return {
        "language": language,
        "questions": len(found),
        "facts": known,
        "r@1": first / len(found),
        "95 % of r@1": wilson(first, len(found)),
        "r@5": sum(rank.own <= 5 for rank in found) / len(found),
        "mrr": statistics.fmean(1 / rank.own for rank in found),
        "r@1 of all": sum(rank.of_all == 1 for rank in found) / len(found),
    }


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson (1927)."""
    share, square = successes / trials, Z * Z / trials
    half = Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials))
    return (share + square / 2 - half) / (1 + square), (share + square / 2 + half) / (1 + square)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(shown(row[column]) for column in COLUMNS) + " |" for row in rows]
    return "\n".join(lines)


def shown(figure: str | float | tuple[float, float]) -> str:
    if isinstance(figure, tuple):
        return " to ".join(map(shown, figure))
    return f"{figure:.3f}" if isinstance(figure, float) else str(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="static", help="a provider's name, or a static model's file (.oms)")
    parser.add_argument(
        "--split", choices=(*SPLITS, "all"), default="dev", help="dev (default); held-out: not tuned on"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    known = facts()
    try:
        embedder = loaded(options.embedder)
    except EmbedderError as error:
        parser.error(str(error))
    found = ranks(embedder, known, SPLITS if options.split == "all" else (options.split,))
    own = Counter(each.language for each in known)
    rows = [figures(language, each, own[language]) for language, each in found.items()]
    rows.append(figures("all", [rank for each in found.values() for rank in each], max(own.values())))
    if options.json:
        report = {**machine(), "embedder": embedder.identity, "split": options.split, "rows": rows}
        print(json.dumps(report, indent=1))
    else:
        print(f"{embedder.model}, {options.split}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
