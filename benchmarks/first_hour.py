"""How well a person's notes are searched as they are: 58 notes in four languages, 110 in ten, and 288 questions.

    python benchmarks/first_hour.py [--embedder static|none|PROVIDER] [--split dev|held-out|all] [--misses] [--json]

`first_hour/vault` holds daily notes, meetings with front matter, recipes, projects, people, travel, health, house, code,
tables, checklists and links; two files have CRLF, and one is not UTF-8. `first_hour/questions.jsonl` names for each
question the lines that answer it; 19 questions have none, most of them about something close to what is there. A
question counts as answered by a result that shows one of its lines. One without an answer is met where nothing is
found, or all of it is marked weak. Nothing is tuned on the half `held-out`.

`first_hour/languages` holds ten vaults of eleven short notes, each of another person in another language, with 20
questions each: five in the note's words, five in others, two about days, four misspelt or without accents, and four
that the notes do not answer. Who wrote them had not seen how a search works. They have rows of their own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paraphrase import wilson
from retrieval import machine

from openclaw_memory import Memory, SearchResults
from openclaw_memory.search.results import keep_strong_results
from openclaw_memory.text.markdown_blocks import count_front_matter
from openclaw_memory.types import SearchResult

FOLDER = Path(__file__).parent / "first_hour"
LANGUAGES = FOLDER / "languages"
SPLITS = ("dev", "held-out")
# What this evaluation asks of the defaults, as shares: see `figures`.
BARS = {"first": 0.85, "in three": 0.95, "by tools": 1.0, "met without an answer": 0.8}


class Question(NamedTuple):
    """A question, and the lines that answer it: path, number from 1, text; none where the notes do not answer it."""

    question: str
    language: str
    split: str
    lines: list[tuple[str, int, str]]


class Asked(NamedTuple):
    """A question and its answer: `rank` is the place, from 1, of the first result that shows a line of it."""

    question: Question
    results: SearchResults
    rank: int | None
    is_matter: bool  # whether the first result shows front matter alone


def questions(folder: Path = FOLDER) -> list[Question]:
    """All questions, in their order."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


def ask(wanted: Sequence[Question], embedder: str | None = "static", folder: Path = FOLDER) -> list[Asked]:
    """Ask a copy of the vault these questions, with the settings of a new memory."""
    with tempfile.TemporaryDirectory(prefix="openclaw-memory-first-hour-") as place:
        shutil.copytree(folder / "vault", place, dirs_exist_ok=True)
        with Memory.open(place, embedder=embedder) as memory:
            memory.sync()
            return [_asked(memory, question) for question in wanted]


def ask_languages(embedder: str | None = "static") -> list[Asked]:
    """Ask each vault of `LANGUAGES` its own questions."""
    folders = sorted(LANGUAGES.iterdir())
    return [each for folder in folders for each in ask(questions(folder), embedder, folder)]


def _asked(memory: Memory, question: Question) -> Asked:
    results = memory.search(question.question)
    rank = next((at for at, result in enumerate(results, 1) if _shows(result, question)), None)
    return Asked(question, results, rank, bool(results) and _is_matter(memory, results[0]))


def _shows(result: SearchResult, question: Question) -> bool:
    places = {(result.path, line) for first, last in result.spans for line in range(first, last + 1)}
    return any((path, line) in places and text in result.snippet for path, line, text in question.lines)


def _is_kept(asked: Asked) -> bool:
    return any(_shows(result, asked.question) for result in keep_strong_results(asked.results, None))


def _is_matter(memory: Memory, result: SearchResult) -> bool:
    return result.end_line <= (count_front_matter(memory.workspace.read(result.path).split("\n")) or 0)


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """The shares of the questions with an answer that are answered first, in three and in six, and what is said of others.

    `by tools` is the share of those answered in six that tools show too, who leave out what is weak. `doubted` is the
    share of answered questions all of whose results are marked weak; `matter` counts first results that show nothing but
    front matter, where that is no answer.
    """
    answerable = [each for each in asked if each.question.lines]
    others = [each for each in asked if not each.question.lines]
    ranks = [each.rank for each in answerable]
    met = sum(not each.results or each.results.all_weak for each in others)
    first = sum(rank == 1 for rank in ranks)
    return {
        "questions": len(answerable),
        "first": first / len(answerable),
        "95 % of first": wilson(first, len(answerable)),
        "in three": sum(rank is not None and rank <= 3 for rank in ranks) / len(answerable),
        "in six": sum(rank is not None and rank <= 6 for rank in ranks) / len(answerable),
        "by tools": statistics.fmean(_is_kept(each) for each in answerable if each.rank is not None),
        "doubted": sum(not each.results or each.results.all_weak for each in answerable) / len(answerable),
        "without an answer": len(others),
        "met without an answer": met / len(others),
        "95 % of met": wilson(met, len(others)),
        "silent": sum(not each.results for each in others) / len(others),
        "matter": sum(each.is_matter and each.rank != 1 for each in asked),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="static", help="a provider's name, or none")
    parser.add_argument("--split", choices=(*SPLITS, "all"), default="all")
    parser.add_argument("--misses", action="store_true", help="show the questions that were not answered first")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    embedder = None if chosen.embedder == "none" else chosen.embedder
    first, languages = ask(questions(), embedder), ask_languages(embedder)
    by_name = {"": first, "ten languages": languages}
    by_name |= {code: [each for each in languages if each.question.language == code] for code in _codes(languages)}
    rows = {
        f"{name} {split}".strip(): figures(some)
        for name, asked in by_name.items()
        for split in (*SPLITS, "all")
        if chosen.split in {"all", split}
        and (some := [each for each in asked if split in {"all", each.question.split}])
    }
    if chosen.json:
        print(json.dumps({**machine(), "embedder": chosen.embedder, "bars": BARS, "figures": rows}, indent=1))
        return
    for name, row in rows.items():
        print(name, ", ".join(f"{what} {_shown(value)}" for what, value in row.items()), sep=": ")
    asked = [each for each in first + languages if chosen.split in {"all", each.question.split}]
    for each in asked if chosen.misses else ():
        is_met = each.rank == 1 if each.question.lines else not each.results or each.results.all_weak
        if not is_met:
            print(f"\n{each.question.split} {each.question.question!r}: rank {each.rank}")
            for result in each.results[:3]:
                print(f"  {result.score:.2f} {result.confidence} {result.citation} {result.snippet[:150]!r}")


def _codes(asked: Sequence[Asked]) -> list[str]:
    return list(dict.fromkeys(each.question.language for each in asked))


def _shown(value: float | tuple[float, float]) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_shown, value))
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
