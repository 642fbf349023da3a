"""Whether the score of the best result says how likely the notes answer: reliability, and what it tells apart.

    python benchmarks/calibration.py DIR... --held DIR... [--embedder static none ...] [--figure FILE.svg] [--json]

The workspaces are those of `retrieval.py`, with notes of two speakers. Each is asked its own questions, questions about
something else (those of other workspaces, with its names), and its own with the names of its speakers swapped. They
count 50, 25 and 25 %. The curve that would fit the first workspaces best is printed; all else is of those in `--held`.
`paraphrased` asks the questions of `paraphrase/`, which share no word with the note that answers them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from embedders import loaded
from numpy.typing import NDArray
from paraphrase import facts
from retrieval import Workspace, auroc, machine, opened, speakers, unanswerable, workspaces

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.search.passages import HYBRID, KEYWORD, LATE, WEAK_BELOW, Weights
from openclaw_memory.types import Embedder

WEIGHTS = {"answered": 0.5, "something else": 0.25, "other speaker": 0.25}
BINS = 10

Scores = Mapping[str, Sequence[float]]
Floats = NDArray[np.float64]


def swapped(workspace: Workspace) -> list[str]:
    """The questions that name one of the two speakers, with the other one's name."""
    one, other = speakers(workspace)
    names = {one: other, other: one}
    every = [question["question"] for question in workspace.questions]
    named = [text for text in every if len({*re.findall(rf"\b(?:{one}|{other})\b", text)}) == 1]
    return [re.sub(rf"\b(?:{one}|{other})\b", lambda name: names[name[0]], text) for text in named]


def score(memory: Memory, question: str) -> float:
    found = memory.search(question, min_score=0)
    return found[0].score if found else 0.0


def scores(workspace: Workspace, others: Sequence[Workspace], embedder: Embedder | None) -> dict[str, list[float]]:
    """The best scores of each kind of question."""
    asked = {
        "answered": [question["question"] for question in workspace.questions],
        "something else": unanswerable(workspace, others),
        "other speaker": swapped(workspace),
    }
    with (
        tempfile.TemporaryDirectory() as scratch,
        opened(workspace, MemoryConfig(), embedder, Path(scratch), "without") as memory,
    ):
        return {kind: [score(memory, text) for text in texts] for kind, texts in asked.items()}


def paraphrased(embedder: Embedder | None) -> list[float]:
    """The best scores of questions that share no word with the note that answers them, one memory a language."""
    known, found = facts(), []
    for language in sorted({each.language for each in known}):
        own = [each for each in known if each.language == language]
        with tempfile.TemporaryDirectory() as folder:
            text = "\n".join(f"- {each.fact}" for each in own)
            Path(folder, "MEMORY.md").write_text(f"# {language}\n\n{text}\n", encoding="utf-8")
            with Memory.open(folder, embedder=embedder) as memory:
                memory.sync()
                found += [score(memory, each.question) for each in own if each.question]
    return found


def joined(parts: Sequence[Scores]) -> dict[str, list[float]]:
    return {kind: [one for part in parts for one in part[kind]] for kind in WEIGHTS}


def weighted(found: Scores) -> tuple[Floats, Floats, Floats]:
    """The scores, 1 where the notes answer or else 0, and the weights, which sum to 1."""
    given, answers, weights = list[float](), list[float](), list[float]()
    for kind, share in WEIGHTS.items():
        given += found[kind]
        answers += [float(kind == "answered")] * len(found[kind])
        weights += [share / len(found[kind])] * len(found[kind])
    return np.array(given), np.array(answers), np.array(weights)


def reliability(found: Scores) -> list[tuple[float, float, float]]:
    """The mean score, the share that is answered, and the weight of each bin that holds any."""
    given, answers, weights = weighted(found)
    bins = np.minimum((given * BINS).astype(int), BINS - 1)
    rows = []
    for at in range(BINS):
        inside = bins == at
        if weight := float(weights[inside].sum()):
            rows.append(
                (
                    float(weights[inside] @ given[inside]) / weight,
                    float(weights[inside] @ answers[inside]) / weight,
                    weight,
                )
            )
    return rows


def calibration_error(found: Scores) -> float:
    return sum(weight * abs(said - seen) for said, seen, weight in reliability(found))


def fitted(found: Scores, now: Weights) -> tuple[float, float]:
    """The slope and the middle of the logistic curve that fits the evidence best, by Newton's method."""
    given, answers, weights = weighted(found)
    given = np.clip(given, 1e-12, 1 - 1e-12)
    evidence = now.middle + np.log(given / (1 - given)) / now.slope
    inputs, curve = np.stack([evidence - now.middle, np.ones_like(evidence)]), np.array([now.slope, 0.0])
    for _ in range(50):
        said = 1 / (1 + np.exp(-curve @ inputs))
        steepness = (inputs * (weights * said * (1 - said))) @ inputs.T
        # Half of a step: a whole one may lead far beyond the best curve, and not come back.
        curve = curve - np.linalg.solve(steepness, inputs @ (weights * (said - answers))) / 2
    return float(curve[0]), float(now.middle - curve[1] / curve[0])


def figures(fit: Sequence[Workspace], held: Sequence[Workspace], name: str) -> dict[str, Any]:
    embedder = loaded(name, None)
    every = [*fit, *held]
    of_each = [scores(one, [other for other in every if other is not one], embedder) for one in every]
    before, found = joined(of_each[: len(fit)]), joined(of_each[len(fit) :])
    now = {"none": KEYWORD, "local": LATE}.get(name, HYBRID)
    slope, middle = fitted(before, now)
    kinds = {**found, "paraphrased": paraphrased(embedder)}
    return {
        "questions": {kind: len(each) for kind, each in kinds.items()},
        "calibration_error": calibration_error(found),
        "calibration_error_fit": calibration_error(before),
        "auroc_something_else": auroc(found["answered"], found["something else"]),
        "auroc_other_speaker": auroc(found["answered"], found["other speaker"]),
        "weak": {kind: float(np.mean(np.array(each) < WEAK_BELOW)) for kind, each in kinds.items()},
        "slope": {"now": now.slope, "fitted": slope},
        "middle": {"now": now.middle, "fitted": middle},
        "reliability": reliability(found),
    }


SIDE, EDGE = 300, 48  # pixels: of the square, and of the room for its labels
COLOURS = ("#1f77b4", "#d62728", "#2ca02c")


def drawn(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A reliability diagram as SVG; the area of a dot is the weight of its bin."""

    def place(said: float, seen: float) -> tuple[float, float]:
        return EDGE + SIDE * said, EDGE / 2 + SIDE * (1 - seen)

    size = SIDE + 2 * EDGE
    (left, bottom), (right, top) = place(0, 0), place(1, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size - EDGE // 2}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>',
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{top}" stroke="#999" stroke-dasharray="4"/>',
        f'<text x="{EDGE + SIDE / 2}" y="{bottom + 34}" text-anchor="middle">score of the best result</text>',
        f'<text transform="translate(14 {EDGE / 2 + SIDE / 2}) rotate(-90)" text-anchor="middle">share answered</text>',
    ]
    for tick in (0, 0.5, 1):
        (x, _), (_, y) = place(tick, 0), place(0, tick)
        parts.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{tick}</text>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{tick}</text>')
    for at, ((name, row), colour) in enumerate(zip(rows.items(), COLOURS, strict=False)):
        dots = [(*place(said, seen), 3 + 16 * weight**0.5) for said, seen, weight in row["reliability"]]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in dots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{colour}" opacity="0.6"/>' for x, y, r in dots]
        label = f"{name}: error {row['calibration_error']:.3f}"
        parts.append(f'<text x="{left + 10}" y="{top + 20 + 16 * at}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="what the curve is fitted to")
    parser.add_argument("--held", nargs="+", type=Path, required=True, metavar="DIR", help="what the figures are of")
    parser.add_argument("--embedder", nargs="+", default=["static", "none"], help="providers; none: keywords only")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="where to draw the reliability")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    fit, held = list(workspaces(options.folders)), list(workspaces(options.held))
    rows = {"keywords only" if name == "none" else name: figures(fit, held, name) for name in options.embedder}
    if options.figure:
        options.figure.write_text(drawn(rows), encoding="utf-8")
    if options.json:
        print(json.dumps({**machine(), "rows": rows}, indent=1))
        return
    columns = [name for name in next(iter(rows.values())) if name != "reliability"]
    print("| | " + " | ".join(rows) + " |\n" + "|---" * (len(rows) + 1) + "|")
    for column in columns:
        print(f"| {column} | " + " | ".join(shown(row[column]) for row in rows.values()) + " |")


def shown(figure: Any) -> str:
    if isinstance(figure, dict):
        return ", ".join(f"{name} {shown(each)}" for name, each in figure.items())
    return f"{figure:.3f}" if isinstance(figure, float) else str(figure)


if __name__ == "__main__":
    sys.exit(main())
