"""Report the results of an evaluation: for one question, for all of a memory, and for several settings."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args, overload

from openclaw_memory.errors import NotFoundError, QueryError

if TYPE_CHECKING:
    import pandas

# What settings are chosen by. Silence is not one of them: a search without any answer is always silent.
Measure: TypeAlias = Literal["shown", "first"]
_SHARES = ("shown", "first", "silent")
# By how many questions more than it does worse on a setting has to do better to be chosen: with ten questions, settings
# differ in nothing rarely get so far apart. From eighty on, six are the better margin: notebooks/ranking_lab.ipynb.
MARGIN = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and quotes from the notes that answer it, word for word; empty if the notes do not answer it.

    `language` and `kind` are labels to group by; they may be anything.
    """

    text: str
    evidence: tuple[str, ...] = ()
    language: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """Report the results of a search for one question.

    `coverage` is the share of the evidence in the snippets, 0..1, None without evidence. `rank` is that of the first
    result that shows some, from 1, None if none does. `results` and `chars` count the results and their characters.
    """

    question: Question
    coverage: float | None
    rank: int | None
    results: int
    chars: int

    def get_measure(self, measure: Measure) -> float:
        """Return the value of a measure for a question that has evidence, 0..1.

        Args:
            measure: "shown" for the share of the evidence, "first" for evidence in the first result.
        """
        return self.coverage or 0.0 if measure == "shown" else float(self.rank == 1)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The results of one memory for all questions; `name` is the name of its settings.

    `mode` is the search that answered (`hybrid`, `keyword`, `vector`), and `reasons` say why it was less than the
    settings ask for, if it was.
    """

    name: str
    rows: tuple[Answered, ...]
    mode: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def shown(self) -> float:
        """The mean share, 0..1, of the evidence that the snippets hold; NaN without a question that has evidence."""
        return calculate_mean(row.coverage for row in self.rows if row.coverage is not None)

    @property
    def first(self) -> float:
        """The share, 0..1, of questions with evidence where the first result shows some; NaN without such questions."""
        return calculate_mean(row.rank == 1 for row in self.rows if row.coverage is not None)

    @property
    def silent(self) -> float:
        """The share, 0..1, of questions without evidence that got no result; NaN without such a question."""
        return calculate_mean(row.results == 0 for row in self.rows if row.coverage is None)

    @property
    def chars(self) -> float:
        """The mean number of characters shown for a question that has evidence; NaN without such a question."""
        return calculate_mean(row.chars for row in self.rows if row.coverage is not None)

    def compare_with(self, baseline: Evaluation, measure: Measure = "shown") -> tuple[int, int]:
        """Count the questions with evidence on which this does better, and worse, than another evaluation.

        Args:
            baseline: The other evaluation, of the same questions.
            measure: "shown" for the share of the evidence, "first" for evidence in the first result.

        Raises:
            QueryError: The other was asked other questions, or the measure is unknown.
        """
        if measure not in get_args(Measure):
            measures = " or ".join(map(repr, get_args(Measure)))
            raise QueryError(f"settings are chosen by {measures}, not by {measure!r}")
        if [row.question for row in self.rows] != [row.question for row in baseline.rows]:
            raise QueryError(f"{self.name!r} and {baseline.name!r} were asked different questions: ask both the same")
        both = [
            (row.get_measure(measure), two.get_measure(measure))
            for row, two in zip(self.rows, baseline.rows, strict=True)
            if row.coverage is not None
        ]
        return sum(mine > theirs for mine, theirs in both), sum(mine < theirs for mine, theirs in both)

    def split_by(self, label: Literal["language", "kind"]) -> dict[str, Evaluation]:
        """Split the evaluation by language or kind of question, in the order of their first question.

        Args:
            label: "language" or "kind".
        """
        groups = dict.fromkeys(getattr(row.question, label) for row in self.rows)
        return {
            group: replace(self, rows=tuple(row for row in self.rows if getattr(row.question, label) == group))
            for group in groups
        }

    def find_missed(self) -> tuple[Answered, ...]:
        """Return the questions with evidence missing from the results, and those without an answer that got one."""
        return tuple(row for row in self.rows if (row.results > 0 if row.coverage is None else row.coverage < 1))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per question: question, language, kind, shown, rank, results, chars."""
        import pandas

        columns = ("question", "language", "kind", "shown", "rank", "results", "chars")
        labels = operator.attrgetter(
            *"question.text question.language question.kind coverage rank results chars".split()
        )
        return pandas.DataFrame(list(map(labels, self.rows)), columns=list(columns))

    def __repr__(self) -> str:
        return f"Evaluation({_format_line(self)})"

    def _repr_html_(self) -> str | None:
        return Comparison((self,))._repr_html_()


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Sequence[Evaluation]):
    """The evaluations of several settings on the same questions, in the order of the settings."""

    evaluations: tuple[Evaluation, ...]

    @overload
    def __getitem__(self, index: int | str) -> Evaluation: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Evaluation, ...]: ...

    def __getitem__(self, index: int | str | slice) -> Evaluation | tuple[Evaluation, ...]:
        if isinstance(index, str):
            evaluation = next((item for item in self.evaluations if item.name == index), None)
            if evaluation is None:
                raise NotFoundError(f"no settings are named {index!r}: choose from {[item.name for item in self]}")
            return evaluation
        return self.evaluations[index]

    def __len__(self) -> int:
        return len(self.evaluations)

    def choose_best(self, measure: Measure = "shown", *, margin: int = MARGIN) -> Evaluation:
        """Return the first evaluation, unless another is better on at least `margin` more questions than worse.

        Of those it is the one that gains most, and of equals the one that shows fewer characters.

        Args:
            measure: "shown" for the share of the evidence, "first" for evidence in the first result.
            margin: By how many questions another one has to be better.

        Raises:
            QueryError: `measure` is neither "shown" nor "first", or there are no settings.
        """
        if not self:
            raise QueryError("there are no settings to choose from")
        gained = {item.name: better - worse for item in self for better, worse in [item.compare_with(self[0], measure)]}
        better_ones = [item for item in self[1:] if gained[item.name] >= margin]
        return max(better_ones, key=lambda item: (gained[item.name], -item.chars), default=self[0])

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per setting: name, shown, first, silent, chars, better and worse."""
        import pandas

        columns = ("name", *_SHARES, "chars")
        rows = ([*(getattr(item, name) for name in columns), *item.compare_with(self[0])] for item in self)
        return pandas.DataFrame(list(rows), columns=[*columns, "better", "worse"])

    def __repr__(self) -> str:
        return "\n".join(["Comparison(", *(f"  {_format_line(item)}" for item in self), ")"])

    def _repr_html_(self) -> str | None:
        answerable = sum(row.coverage is not None for row in self[0].rows) if self else 0
        unanswerable = len(self[0].rows) - answerable if self else 0
        caption = (
            "shown: share of the evidence in the snippets; first: evidence in the first result "
            f"({answerable} questions); silent: no result where the notes have no answer ({unanswerable} questions)"
        )
        with suppress(ImportError):  # without pandas the text is shown
            frame = self.to_pandas().assign(name=["; ".join([item.name or "memory", *item.reasons]) for item in self])
            frame["better"] = "+" + frame["better"].astype(str) + " −" + frame.pop("worse").astype(str)
            frame["chars"] = frame["chars"].map("{:,.0f}".format)
            table = frame.to_html(index=False, na_rep="–", float_format="{:.2f}".format)
            return f'<div class="openclaw-memory"><p>{caption}</p>{table}</div>'
        return None


def calculate_mean(values: Iterable[float]) -> float:
    """Return the mean; NaN without values."""
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else float("nan")


def _format_line(item: Evaluation) -> str:
    shares = ", ".join(f"{name} {getattr(item, name):.3f}" for name in _SHARES)
    return "; ".join([f"{item.name or 'memory'}: {shares}, {item.chars:,.0f} characters", *item.reasons])
