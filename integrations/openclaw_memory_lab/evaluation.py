"""Measure how well a memory answers labelled questions, and which settings answer them best.

A question is labelled with quotes from the notes. It counts as answered as far as the quotes are in the snippets of a
search, however the notes are split into chunks; a question that the notes do not answer should show nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError, NotFoundError, QueryError, WorkspaceError, WriteError
from openclaw_memory.types import Embedder, Progress
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_lab.report import Answered, Comparison, Evaluation, Question, calculate_mean

if TYPE_CHECKING:
    import datetime

    from openclaw_memory import SearchResults

LAB = Path(__file__).parent / "data"
QUESTIONS = "questions.jsonl"
_NAMES = ("question", "evidence", "language", "kind")


def evaluate(
    memory: Memory, questions: Iterable[Question], *, name: str = "", now: datetime.datetime | None = None
) -> Evaluation:
    """Ask a memory all questions, after a sync.

    Args:
        memory: The memory to ask.
        questions: The labelled questions.
        name: Names the settings of the memory in reports.
        now: The time from which the age of notes is counted, by default the current time.

    Raises:
        QueryError: There are no questions, or no note holds the evidence.
    """
    labelled = list(questions)
    if not labelled:
        raise QueryError("there are no questions to ask: label some, see openclaw_memory_lab.read_questions")
    report = memory.sync()
    check_evidence(memory, labelled)
    searches = [memory.search(question.text, now=now) for question in labelled]
    lacking = [f"{file.path}: {file.reason}" for file in (*report.failed, *report.waiting)]
    # A misspelt word that was read as another one is no shortcoming.
    reasons = [results.reason for results in searches if results.reason and not results.reason.startswith("read ")]
    rows = tuple(_grade(question, results) for question, results in zip(labelled, searches, strict=True))
    return Evaluation(name, rows, searches[0].mode, tuple(dict.fromkeys([*lacking, *reasons])))


def compare(
    workspace: str | os.PathLike[str],
    questions: Iterable[Question],
    settings: Mapping[str, MemoryConfig],
    *,
    embedder: Embedder | str | None = "default",
    now: datetime.datetime | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Ask the same notes all questions with each of several settings.

    Indexes are built in a temporary folder, one for all settings that chunk and embed alike: the workspace is only
    read, and a service embeds the notes once for each way to chunk them. The chunking in the workspace's own file does
    not count here: the settings do.

    Args:
        workspace: The folder of the notes.
        questions: The labelled questions.
        settings: The settings to compare, by name.
        embedder: As for `Memory.open`; "default" takes that of each setting.
        now: The time from which the age of notes is counted, by default the current time.
        progress: Called with each step.

    Raises:
        QueryError: There are no questions or no settings, or no note holds the evidence.
        ConfigError: One of the settings is not a MemoryConfig.
        WorkspaceError: `workspace` is missing or is not a folder.
    """
    if not settings or not isinstance(settings, Mapping):
        raise QueryError(f'{settings!r} are no settings to compare: name some, as in {{"default": MemoryConfig()}}')
    labelled = list(questions)
    evaluations = []
    built: list[tuple[object, ...]] = []  # what decides over the content of each index
    with tempfile.TemporaryDirectory(prefix="openclaw-memory-compare-") as folder:
        for number, (name, config) in enumerate(settings.items()):
            if not isinstance(config, MemoryConfig):
                raise ConfigError(f"the settings {name!r} must be a MemoryConfig, not a {type(config).__name__}")
            if progress is not None:
                progress(Progress(number, len(settings), f"trying {name}"))
            content = (config.chunking, config.embedding, config.files, config.sessions, config.policies)
            if content not in built:
                built.append(content)
            index = Path(folder) / str(built.index(content)) / "index.sqlite"
            with _open(workspace, embedder, config, index) as memory:
                evaluations.append(evaluate(memory, labelled, name=name, now=now))
    if progress is not None:
        progress(Progress(len(settings), len(settings), "tried all settings"))
    return Comparison(tuple(evaluations))


def _open(workspace: str | os.PathLike[str], embedder: Any, config: MemoryConfig, index: Path) -> Memory:
    """Open a memory that chunks by `config` and has no background work."""
    from openclaw_memory.store import SqliteStore

    quiet = replace(config, sync=replace(config.sync, on_open=False, on_search=False, interval_seconds=0.0))
    usual = Memory.open(workspace, embedder=embedder, config=quiet, index_path=index)
    settings = replace(usual.config, chunking=config.chunking)
    return Memory(usual.workspace, SqliteStore(index), embedder, settings)


def copy_lab(folder: str | os.PathLike[str]) -> list[Question]:
    """Copy the labelled workspace that ships with the library, and return its questions. Existing files are kept.

    It holds the notes of an invented small team, in five languages, and questions of several kinds about them.

    Args:
        folder: Where to copy it.

    Raises:
        WriteError: `folder` cannot be written.
    """
    target = SafeFolder(Path(folder).expanduser(), create=True)
    try:
        for source in sorted(LAB.rglob("*.md")):
            if not os.path.lexists(target.base / source.relative_to(LAB)):
                target.replace(source.relative_to(LAB).as_posix(), source.read_bytes())
    except (WorkspaceError, WriteError) as error:
        raise WriteError(f"the lab cannot be copied: {error}; name a folder that you may write") from error
    return read_questions(LAB / QUESTIONS)


def _grade(question: Question, results: SearchResults) -> Answered:
    snippets = [fold_spaces(result.snippet) for result in results]
    quotes = [fold_spaces(quote) for quote in question.evidence]
    rank = next((at for at, text in enumerate(snippets, 1) if any(quote in text for quote in quotes)), None)
    share = calculate_mean(any(quote in text for text in snippets) for quote in quotes) if quotes else None
    return Answered(question, share, rank, len(snippets), sum(map(len, snippets)))


# --- labelled questions ------------------------------------------------------------------------------------------


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
    questions = [_parse(line, f"{place}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if memory is not None:
        check_evidence(memory, questions)
    return questions


def check_evidence(memory: Memory, questions: Iterable[Question]) -> None:
    """Check that a note or a transcript of the memory, as its files are now, holds each quote.

    Raises:
        QueryError: A quote is missing; the message names it and its question.
    """
    texts = list(_read_texts(memory))
    advice = memory.workspace.suggest_setup(len(texts))
    for question in questions:
        for quote in question.evidence:
            if not any(fold_spaces(quote) in text for text in texts):
                raise QueryError(
                    f"no note holds the evidence {quote!r} of {question.text!r}: quote a note word for word, or leave "
                    f"the evidence out where the notes do not answer the question{f'; {advice}' if advice else ''}"
                )


def _read_texts(memory: Memory) -> Iterator[str]:
    """Yield the text of each file; unreadable ones are listed by the sync, and answer nothing."""
    for file in memory.workspace.scan().files:
        with suppress(WorkspaceError, NotFoundError):
            yield fold_spaces(memory.workspace.read(file.path))


def fold_spaces(text: str) -> str:
    """Return `text` with each run of white space as one space: a quote may cross the end of a line."""
    return " ".join(text.split())


def _parse(line: str, place: str) -> Question:
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
