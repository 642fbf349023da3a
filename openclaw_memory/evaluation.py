"""How well a memory answers labelled questions, and which settings answer them best: for your notes, or the lab's.

A question is labelled with quotes from the notes. It counts as answered as far as the quotes stand in what a search
shows, however the notes are cut into chunks; a question that the notes do not answer should show nothing.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import QueryError
from openclaw_memory.memory import Memory
from openclaw_memory.types import Progress

if TYPE_CHECKING:
    import datetime
    import os

    import pandas

    from openclaw_memory.embeddings._choice import EmbedderChoice

__all__ = ["Answered", "Comparison", "Evaluation", "Question", "compare", "copy_lab", "evaluate", "read_questions"]

LAB = Path(__file__).parent / "data" / "lab"
QUESTIONS = "questions.jsonl"
# What settings are chosen by. Silence is none of them: who never answers is always silent where it is right.
Measure: TypeAlias = Literal["shown", "first"]
_SHARES = ("shown", "first", "silent")
# By how many questions more than it does worse on a setting has to do better to be chosen: with ten questions, settings
# that differ in nothing rarely get so far apart.
MARGIN = 3
_NAMES = ("question", "evidence", "language", "kind")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and quotes from the notes that answer it, word for word; none where the notes do not answer it.

    `language` and `kind` are labels to group by; they may be anything.
    """

    text: str
    evidence: tuple[str, ...] = ()
    language: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a search showed for one question.

    `shown` is the share of the evidence in the snippets, 0..1, None without evidence. `rank` is that of the first
    result that shows some, from 1, None where none does. `results` and `chars` count what was shown.
    """

    question: Question
    shown: float | None
    rank: int | None
    results: int
    chars: int

    def worth(self, measure: Measure) -> float:
        """What this counts for a measure of a question that has evidence, 0..1."""
        return self.shown or 0.0 if measure == "shown" else float(self.rank == 1)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What the searches of one memory showed for all questions; `name` is that of its settings."""

    name: str
    rows: tuple[Answered, ...]

    @property
    def shown(self) -> float:
        """The mean share, 0..1, of the evidence that stands in the snippets; NaN without a question that has any."""
        return _mean(row.shown for row in self.rows if row.shown is not None)

    @property
    def first(self) -> float:
        """The share, 0..1, of questions with evidence whose first result shows some; NaN without such a question."""
        return _mean(row.rank == 1 for row in self.rows if row.shown is not None)

    @property
    def silent(self) -> float:
        """The share, 0..1, of questions without evidence that got no result; NaN without such a question."""
        return _mean(row.results == 0 for row in self.rows if row.shown is None)

    @property
    def chars(self) -> float:
        """How many characters were shown for a question that has evidence, on average; NaN without such a question."""
        return _mean(row.chars for row in self.rows if row.shown is not None)

    def against(self, other: Evaluation, measure: Measure = "shown") -> tuple[int, int]:
        """On how many questions with evidence this does better than `other`, and on how many worse.

        Raises:
            QueryError: the other was asked other questions.
        """
        if [row.question for row in self.rows] != [row.question for row in other.rows]:
            raise QueryError(f"{self.name!r} and {other.name!r} were asked different questions: ask both the same")
        both = [
            (one.worth(measure), two.worth(measure))
            for one, two in zip(self.rows, other.rows, strict=True)
            if one.shown is not None
        ]
        return sum(mine > theirs for mine, theirs in both), sum(mine < theirs for mine, theirs in both)

    def by(self, label: Literal["language", "kind"]) -> dict[str, Evaluation]:
        """The same for each language, or each kind of question, in the order in which they are first met."""
        groups = dict.fromkeys(getattr(row.question, label) for row in self.rows)
        return {
            group: Evaluation(self.name, tuple(row for row in self.rows if getattr(row.question, label) == group))
            for group in groups
        }

    def missed(self) -> tuple[Answered, ...]:
        """The questions whose evidence was not shown whole, and those that should have shown nothing and did."""
        return tuple(row for row in self.rows if (row.results > 0 if row.shown is None else row.shown < 1))

    def to_pandas(self) -> pandas.DataFrame:
        """One row a question: question, language, kind, shown, rank, results, chars.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.tables import frame

        columns = ("question", "language", "kind", "shown", "rank", "results", "chars")
        rows = (
            (row.question.text, row.question.language, row.question.kind, row.shown, row.rank, row.results, row.chars)
            for row in self.rows
        )
        return frame("to_pandas()", columns, rows)

    def __repr__(self) -> str:
        return f"Evaluation({_line(self)})"

    def _repr_html_(self) -> str:
        return Comparison((self,))._repr_html_()


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Sequence[Evaluation]):
    """The evaluations of several settings on the same questions, in the order in which they were named."""

    evaluations: tuple[Evaluation, ...]

    @overload
    def __getitem__(self, index: int | str) -> Evaluation: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Evaluation, ...]: ...

    def __getitem__(self, index: int | str | slice) -> Evaluation | tuple[Evaluation, ...]:
        if isinstance(index, str):
            return {one.name: one for one in self.evaluations}[index]
        return self.evaluations[index]

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    def best(self, measure: Measure = "shown", *, margin: int = MARGIN) -> Evaluation:
        """The first, unless others do better on at least `margin` more questions than they do worse on.

        Of those it is the one that gains most, and of equals the one that shows fewer characters.
        """
        gained = {one.name: better - worse for one in self for better, worse in [one.against(self[0], measure)]}
        others = [one for one in self[1:] if gained[one.name] >= margin]
        return max(others, key=lambda one: (gained[one.name], -one.chars), default=self[0])

    def to_pandas(self) -> pandas.DataFrame:
        """One row a setting: name, shown, first, silent, chars; on how many questions better, and worse, than the first.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.tables import frame

        columns = ("name", *_SHARES, "chars")
        rows = ([*(getattr(one, name) for name in columns), *one.against(self[0])] for one in self)
        return frame("to_pandas()", (*columns, "better", "worse"), rows)

    def __repr__(self) -> str:
        return "\n".join(["Comparison(", *(f"  {_line(one)}" for one in self), ")"])

    def _repr_html_(self) -> str:
        from openclaw_memory.tables import KEYWORD_COLOUR, Markup, bars, bold, table

        answerable = sum(row.shown is not None for row in self[0].rows) if self else 0
        rest = len(self[0].rows) - answerable if self else 0
        caption = Markup(
            f"{bold('shown')}: share of the evidence in the snippets; {bold('first')}: evidence in the first result "
            f"({answerable} questions); {bold('silent')}: no result where the notes have no answer ({rest} questions)"
        )
        compared = [f"questions better, worse than {self[0].name}"] if len(self) > 1 else []
        rows = (
            (
                one.name or "memory",
                *(bars(value, (value, KEYWORD_COLOUR)) for value in (getattr(one, name) for name in _SHARES)),
                f"{one.chars:,.0f}",
                *([f"+{better} −{worse}"] if len(self) > 1 else []),
            )
            for one in self
            for better, worse in [one.against(self[0])]
        )
        return table(caption, ("settings", *_SHARES, "characters shown", *compared), rows)


def read_questions(path: str | os.PathLike[str], memory: Memory | None = None) -> list[Question]:
    """Questions from a file of JSON lines: `{"question": "...", "evidence": ["..."], "language": "", "kind": ""}`.

    All but `question` may be left out; empty lines are passed over. With a `memory`, its notes must hold the evidence.

    Raises:
        QueryError: a line is not of that form, or evidence stands in no note; the message names the line or the quote.
    """
    place = Path(path).expanduser()
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"{place} cannot be read: {error}; name a file of JSON lines in UTF-8") from error
    questions = [_question(line, f"{place}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if memory is not None:
        check_evidence(memory, questions)
    return questions


def check_evidence(memory: Memory, questions: Iterable[Question]) -> None:
    """Whether each quote stands in a note or a transcript of the memory, as its files are now.

    Raises:
        QueryError: one does not; the message names the quote and its question.
    """
    texts = [_folded(memory.workspace.read(file.path)) for file in memory.workspace.scan().files]
    for question in questions:
        for quote in question.evidence:
            if not any(_folded(quote) in text for text in texts):
                raise QueryError(
                    f"no note holds the evidence {quote!r} of {question.text!r}: quote a note word for word, or leave "
                    "the evidence out where the notes do not answer the question"
                )


def evaluate(
    memory: Memory, questions: Sequence[Question], *, name: str = "", now: datetime.datetime | None = None
) -> Evaluation:
    """Ask a memory all questions, after a sync; `now` is what the age of notes is counted from.

    Raises:
        QueryError: there are no questions, or evidence stands in no note.
    """
    if not questions:
        raise QueryError("there are no questions to ask: label some, see openclaw_memory.evaluation.read_questions")
    memory.sync()
    check_evidence(memory, questions)
    return Evaluation(name, tuple(_answered(memory, question, now) for question in questions))


def compare(
    workspace: str | os.PathLike[str],
    questions: Sequence[Question],
    settings: Mapping[str, MemoryConfig],
    *,
    embedder: EmbedderChoice = "default",
    now: datetime.datetime | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Ask the same notes all questions with each of several settings, by name.

    Indexes are built in a temporary folder, one for all settings that chunk and embed alike: the workspace is only
    read. `embedder` is as in `Memory.open`; "default" takes that of each setting.

    Raises:
        QueryError: there are no questions or no settings, or evidence stands in no note.
        WorkspaceError: `workspace` is missing or is not a folder.
    """
    if not settings:
        raise QueryError('there are no settings to compare: name some, as in {"default": MemoryConfig()}')
    evaluations = []
    built: list[tuple[object, ...]] = []  # what decides over the content of each index
    with tempfile.TemporaryDirectory(prefix="openclaw-memory-compare-") as folder:
        for number, (name, config) in enumerate(settings.items()):
            if progress is not None:
                progress(Progress(number, len(settings), f"trying {name}"))
            quiet = replace(config, sync=replace(config.sync, on_open=False, on_search=False, interval_seconds=0.0))
            content = (config.chunking, config.embedding, config.files, config.sessions)
            if content not in built:
                built.append(content)
            index = Path(folder) / str(built.index(content)) / "index.sqlite"
            with Memory.open(workspace, embedder=embedder, config=quiet, index_path=index) as memory:
                evaluations.append(evaluate(memory, questions, name=name, now=now))
    if progress is not None:
        progress(Progress(len(settings), len(settings), "tried all settings"))
    return Comparison(tuple(evaluations))


def copy_lab(folder: str | os.PathLike[str]) -> list[Question]:
    """Copy the labelled workspace that ships into `folder`, and give its questions. Files that are there are kept.

    They are the notes of an invented small team, in five languages, and questions of several kinds about them.
    """
    target = Path(folder).expanduser()
    for source in sorted(LAB.rglob("*.md")):
        place = target / source.relative_to(LAB)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
    return read_questions(LAB / QUESTIONS)


def _answered(memory: Memory, question: Question, now: datetime.datetime | None) -> Answered:
    snippets = [_folded(result.snippet) for result in memory.search(question.text, now=now)]
    wanted = [_folded(quote) for quote in question.evidence]
    rank = next((at for at, text in enumerate(snippets, 1) if any(quote in text for quote in wanted)), None)
    shown = _mean(any(quote in text for text in snippets) for quote in wanted) if wanted else None
    return Answered(question, shown, rank, len(snippets), sum(map(len, snippets)))


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


def _folded(text: str) -> str:
    """`text` with each run of white space as one space: a quote may go on over the end of a line."""
    return " ".join(text.split())


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else float("nan")


def _line(one: Evaluation) -> str:
    shares = ", ".join(f"{name} {getattr(one, name):.3f}" for name in _SHARES)
    return f"{one.name or 'memory'}: {shares}, {one.chars:,.0f} characters"
