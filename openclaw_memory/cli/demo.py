"""Show a demonstration: a small workspace that ships with the package, indexed and asked three questions."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from openclaw_memory.cli.output import paint, say, say_json, say_results

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import SyncReport

# What to look at in each answer, and the question.
QUESTIONS = (
    ("by meaning: the note says it in other words", "Which visitors do not eat meat?"),
    ("by an exact name", "What does E_CAL_DRIFT mean?"),
    ("without an answer in these notes", "How do I change the oil of a motorcycle?"),
)
SHOWN = 2  # results for each question: enough to see that the right one comes first


def run_demo(*, as_json: bool) -> int:
    """Index a copy of the notes in a temporary folder, ask, and show the answers; return the exit code."""
    from openclaw_memory.memory import Memory
    from openclaw_memory.testing import sample_workspace

    with tempfile.TemporaryDirectory(prefix="openclaw-memory-demo-") as folder:
        workspace = Path(folder) / "notes"
        sample_workspace(workspace)
        with Memory.open(workspace) as memory:
            report = memory.sync()
            answers = [(why, question, memory.search(question, max_results=SHOWN)) for why, question in QUESTIONS]
    if as_json:
        shown = [{"query": question, "shows": why, "results": list(results)} for why, question, results in answers]
        say_json({"sync": report, "questions": shown})
    else:
        _say(report, answers)
    return 0


def _say(report: SyncReport, answers: list[tuple[str, str, SearchResults]]) -> None:
    results = answers[0][2]
    say(paint("openclaw-memory", bold=True) + "  Markdown in, cited lines out; nothing leaves this machine")
    say(
        f"{len(report.added)} files of notes indexed in {report.seconds:.2f} s; "
        f"{results.mode} search, {results.provider} {results.model}"
    )
    for why, question, found in answers:
        say()
        say(f"{click.style('?', fg='green', bold=True)} {paint(question, bold=True)}  {paint(why, dim=True)}")
        if found:
            say_results(found)
        else:
            say("    Nothing found: the notes do not say.")
    say()
    say('Your own notes:  openclaw-memory search --workspace PATH "a question"')
