"""Which sessions a search finds for the questions of LongMemEval (Wu et al., ICLR 2025), without a model that answers.

    python benchmarks/longmemeval.py FILE [--embedder static|none|...] [--limit N] [--json]

FILE is `longmemeval_s.json` or one of its kind (github.com/xiaowu0162/LongMemEval), which is not part of this project.
Each question has a memory of its own: a note for each session of its haystack, below its day, a line for each message.
Questions without an answer in the haystack (`..._abs`) are left out, as others do. The units are those of `sessions.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embedders import loaded
from retrieval import machine
from sessions import average, rank_sessions, score_sessions, table

from openclaw_memory import Memory

ROLES = {"user": "User", "assistant": "Assistant"}


def read_day(text: str) -> datetime:
    """The moment that LongMemEval writes as `2023/05/20 (Sat) 02:21`."""
    year, month, day, hour, minute = map(int, re.findall(r"\d+", text))
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def write_notes(question: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Write a note for each session of a question's haystack; returns the id of the session by the path of its note."""
    (folder / "memory").mkdir(parents=True)
    paths, days = {}, Counter[str]()
    haystack = (question[f"haystack_{part}"] for part in ("session_ids", "dates", "sessions"))
    for session, date, messages in zip(*haystack, strict=True):
        day = f"{read_day(date):%Y-%m-%d}"
        days[day] += 1
        path = f"memory/{day}-{days[day]}.md"
        turns = [f"{ROLES[turn['role']]}: {' '.join(turn['content'].split())}" for turn in messages]
        (folder / path).write_text(f"# {day}\n\n" + "\n".join(turns) + "\n", encoding="utf-8")
        paths[path] = session
    return paths


def measure(questions: Sequence[Mapping[str, Any]], embedder: str) -> Iterator[dict[str, float]]:
    """The units of each question that has an answer."""
    model = loaded(embedder, None)
    for question in questions:
        if question["question_id"].endswith("_abs"):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            paths = write_notes(question, Path(scratch) / "notes")
            with Memory.open(Path(scratch) / "notes", embedder=model) as memory:
                memory.sync()
                ranked = [paths[path] for path in rank_sessions(memory, question["question"])]
        yield score_sessions(ranked, question["answer_session_ids"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--embedder", default="static", help="a provider's name; none: keywords only")
    parser.add_argument("--limit", type=int, help="how many of the questions")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    questions = json.loads(options.file.read_text(encoding="utf-8"))[: options.limit]
    row = {"embedder": options.embedder, **average(measure(questions, options.embedder))}
    print(json.dumps({**machine(), **row}, indent=1) if options.json else table([row]))


if __name__ == "__main__":
    main()
