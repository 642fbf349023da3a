"""Measure how well a memory answers labelled questions, and which settings answer them best.

A question is labelled with quotes from the notes. It counts as answered as far as the quotes are in what a search
shows, however the notes are split into chunks; a question that the notes do not answer should show nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.config.config import settings_of
from openclaw_memory.embeddings.selection import EmbedderChoice, embedders_of
from openclaw_memory.errors import QueryError, WriteError
from openclaw_memory.evaluation.dataset import Question, check_evidence, folded, read_questions
from openclaw_memory.evaluation.report import Answered, Comparison, Evaluation, mean
from openclaw_memory.memory import Memory
from openclaw_memory.types import Progress

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.search import SearchResults


LAB = Path(__file__).parents[1] / "data" / "lab"
QUESTIONS = "questions.jsonl"


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
    asked = list(questions)
    if not asked:
        raise QueryError("there are no questions to ask: label some, see openclaw_memory.evaluation.read_questions")
    report = memory.sync()
    check_evidence(memory, asked)
    found = [memory.search(question.text, now=now) for question in asked]
    lacking = [f"{file.path}: {file.reason}" for file in (*report.failed, *report.waiting)]
    reasons = dict.fromkeys([*lacking, *(results.reason for results in found if results.reason)])
    rows = tuple(_answered(question, results) for question, results in zip(asked, found, strict=True))
    return Evaluation(name, rows, found[0].mode, tuple(reasons))


def compare(
    workspace: str | os.PathLike[str],
    questions: Iterable[Question],
    settings: Mapping[str, MemoryConfig],
    *,
    embedder: EmbedderChoice = "default",
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
    asked = list(questions)
    evaluations = []
    built: list[tuple[object, ...]] = []  # what decides over the content of each index
    with tempfile.TemporaryDirectory(prefix="openclaw-memory-compare-") as folder:
        for number, (name, given) in enumerate(settings.items()):
            config = settings_of(given)
            if progress is not None:
                progress(Progress(number, len(settings), f"trying {name}"))
            content = (config.chunking, config.embedding, config.files, config.sessions)
            if content not in built:
                built.append(content)
            index = Path(folder) / str(built.index(content)) / "index.sqlite"
            with _opened(workspace, embedder, config, index) as memory:
                evaluations.append(evaluate(memory, asked, name=name, now=now))
    if progress is not None:
        progress(Progress(len(settings), len(settings), "tried all settings"))
    return Comparison(tuple(evaluations))


def _opened(workspace: str | os.PathLike[str], embedder: EmbedderChoice, config: MemoryConfig, index: Path) -> Memory:
    """Return a memory that chunks as `config` says, and does nothing in the background."""
    from openclaw_memory.store import SqliteStore

    quiet = replace(config, sync=replace(config.sync, on_open=False, on_search=False, interval_seconds=0.0))
    usual = Memory.open(workspace, embedder=embedder, config=quiet, index_path=index)
    settings = replace(usual.config, chunking=config.chunking)
    embedders = embedders_of(embedder, settings.embedding)
    return Memory(usual.workspace, SqliteStore(index), embedders, settings)


def copy_lab(folder: str | os.PathLike[str]) -> list[Question]:
    """Copy the labelled workspace that ships with the library, and return its questions. Existing files are kept.

    It holds the notes of an invented small team, in five languages, and questions of several kinds about them.

    Args:
        folder: Where to copy it.

    Raises:
        WriteError: `folder` cannot be written.
    """
    target = Path(folder).expanduser()
    try:
        for source in sorted(LAB.rglob("*.md")):
            place = target / source.relative_to(LAB)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                # Under its own name only when it is whole: a file that is there is kept.
                part = place.with_suffix(".part")
                shutil.copyfile(source, part)
                os.replace(part, place)
    except OSError as error:
        raise WriteError(f"the lab cannot be copied to {target}: {error}; name a folder that you may write") from error
    return read_questions(LAB / QUESTIONS)


def _answered(question: Question, results: SearchResults) -> Answered:
    snippets = [folded(result.snippet) for result in results]
    wanted = [folded(quote) for quote in question.evidence]
    rank = next((at for at, text in enumerate(snippets, 1) if any(quote in text for quote in wanted)), None)
    shown = mean(any(quote in text for text in snippets) for quote in wanted) if wanted else None
    return Answered(question, shown, rank, len(snippets), sum(map(len, snippets)))
