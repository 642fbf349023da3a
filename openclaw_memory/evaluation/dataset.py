"""Read labelled questions from a file, and check that the notes hold their evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import NotFoundError, QueryError, WorkspaceError

if TYPE_CHECKING:
    import os

    from openclaw_memory.memory import Memory

_NAMES = ("question", "evidence", "language", "kind")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and quotes from the notes that answer it, word for word; empty if the notes do not answer it.

    `language` and `kind` are labels to group by; they may be anything.
    """

    text: str
    evidence: tuple[str, ...] = ()
    language: str = ""
    kind: str = ""


def read_questions(path: str | os.PathLike[str], memory: Memory | None = None) -> list[Question]:
    """Read questions from a file of JSON lines: `{"question": "...", "evidence": ["..."], "language": "", "kind": ""}`.

    All but `question` may be left out; empty lines are skipped.

    Args:
        path: The file, in UTF-8.
        memory: If given, its notes must hold the evidence.

    Raises:
        QueryError: A line is not of that form, or no note holds the evidence; the message names the line or the quote.
    """
    place = Path(path).expanduser()
    try:
        lines = place.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"{place} cannot be read: {error}; name a file of JSON lines in UTF-8") from error
    questions = [_question(line, f"{place}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if memory is not None:
        check_evidence(memory, questions)
    return questions


def check_evidence(memory: Memory, questions: Iterable[Question]) -> None:
    """Check that a note or a transcript of the memory, as its files are now, holds each quote.

    Raises:
        QueryError: A quote is missing; the message names it and its question.
    """
    texts = list(_texts(memory))
    advice = memory.workspace.advice(len(texts))
    for question in questions:
        for quote in question.evidence:
            if not any(folded(quote) in text for text in texts):
                raise QueryError(
                    f"no note holds the evidence {quote!r} of {question.text!r}: quote a note word for word, or leave "
                    f"the evidence out where the notes do not answer the question{f'; {advice}' if advice else ''}"
                )


def _texts(memory: Memory) -> Iterator[str]:
    """Yield the text of each file; unreadable ones are listed by the sync, and answer nothing."""
    for file in memory.workspace.scan().files:
        with suppress(WorkspaceError, NotFoundError):
            yield folded(memory.workspace.read(file.path))


def folded(text: str) -> str:
    """Return `text` with each run of white space as one space: a quote may cross the end of a line."""
    return " ".join(text.split())


def _question(line: str, place: str) -> Question:
    form = 'a line is {"question": "...", "evidence": ["a quote"], "language": "", "kind": ""}'
    try:
        fields: Any = json.loads(line)
    except ValueError as error:
        raise QueryError(f"{place}: this is not JSON ({error}); {form}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("question"), str) or not fields["question"].strip():
        raise QueryError(f"{place}: there is no question; {form}")
    if unknown := sorted(set(fields) - set(_NAMES)):
        raise QueryError(f"{place}: {unknown[0]!r} is unknown; {form}")
    evidence = fields.get("evidence", [])
    quotes = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(quotes, list) or not all(isinstance(quote, str) and quote.strip() for quote in quotes):
        raise QueryError(f"{place}: the evidence must be a list of quotes, not {evidence!r}; {form}")
    labels = [fields.get(name, "") for name in ("language", "kind")]
    if not all(isinstance(label, str) for label in labels):
        raise QueryError(f"{place}: language and kind are words; {form}")
    return Question(fields["question"], tuple(quotes), *labels)
