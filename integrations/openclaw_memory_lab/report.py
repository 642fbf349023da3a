"""Report the results of an evaluation: for one question, for all of a memory, and for several settings."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args, overload

from openclaw_memory.errors import NotFoundError, QueryError

if TYPE_CHECKING:
    import pandas

# What settings are chosen by. Silence is not one of them: a search without any answer is always silent.
Measure: TypeAlias = Literal["shown", "first"]
_SHARES = ("shown", "first", "silent")
_COLOUR = "#0072b2"  # of bars
# By how many questions more than it does worse on a setting has to do better to be chosen: with ten questions, settings
# differ in nothing rarely get so far apart. From eighty on, six are the better margin: docs/how-to/better-ranking.md.
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

    `shown` is the share of the evidence in the snippets, 0..1, None without evidence. `rank` is that of the first
    result that shows some, from 1, None if none does. `results` and `chars` count what was shown.
    """

    question: Question
    shown: float | None
    rank: int | None
    results: int
    chars: int

    def worth(self, measure: Measure) -> float:
        """Return the value of a measure for a question that has evidence, 0..1.

        Args:
            measure: "shown" for the share of the evidence, "first" for evidence in the first result.
        """
        return self.shown or 0.0 if measure == "shown" else float(self.rank == 1)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What the searches of one memory showed for all questions; `name` is that of its settings.

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
        return mean(row.shown for row in self.rows if row.shown is not None)

    @property
    def first(self) -> float:
        """The share, 0..1, of questions with evidence whose first result shows some; NaN without such a question."""
        return mean(row.rank == 1 for row in self.rows if row.shown is not None)

    @property
    def silent(self) -> float:
        """The share, 0..1, of questions without evidence that got no result; NaN without such a question."""
        return mean(row.results == 0 for row in self.rows if row.shown is None)

    @property
    def chars(self) -> float:
        """The mean number of characters shown for a question that has evidence; NaN without such a question."""
        return mean(row.chars for row in self.rows if row.shown is not None)

    def against(self, other: Evaluation, measure: Measure = "shown") -> tuple[int, int]:
        """Return on how many questions with evidence this does better than another evaluation, and on how many worse.

        Args:
            other: The other evaluation, of the same questions.
            measure: "shown" for the share of the evidence, "first" for evidence in the first result.

        Raises:
            QueryError: The other was asked other questions, or the measure is unknown.
        """
        if measure not in get_args(Measure):
            known = " or ".join(map(repr, get_args(Measure)))
            raise QueryError(f"settings are chosen by {known}, not by {measure!r}")
        if [row.question for row in self.rows] != [row.question for row in other.rows]:
            raise QueryError(f"{self.name!r} and {other.name!r} were asked different questions: ask both the same")
        both = [
            (one.worth(measure), two.worth(measure))
            for one, two in zip(self.rows, other.rows, strict=True)
            if one.shown is not None
        ]
        return sum(mine > theirs for mine, theirs in both), sum(mine < theirs for mine, theirs in both)

    def by(self, label: Literal["language", "kind"]) -> dict[str, Evaluation]:
        """Split the evaluation by language or kind of question, in the order of their first question.

        Args:
            label: "language" or "kind".
        """
        groups = dict.fromkeys(getattr(row.question, label) for row in self.rows)
        return {
            group: replace(self, rows=tuple(row for row in self.rows if getattr(row.question, label) == group))
            for group in groups
        }

    def missed(self) -> tuple[Answered, ...]:
        """Return the questions whose evidence was not shown whole, and those that should have shown nothing and did."""
        return tuple(row for row in self.rows if (row.results > 0 if row.shown is None else row.shown < 1))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per question: question, language, kind, shown, rank, results, chars.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.display import frame

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
            evaluation = next((one for one in self.evaluations if one.name == index), None)
            if evaluation is None:
                raise NotFoundError(f"no settings are named {index!r}; there are {', '.join(one.name for one in self)}")
            return evaluation
        return self.evaluations[index]

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    def best(self, measure: Measure = "shown", *, margin: int = MARGIN) -> Evaluation:
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
        gained = {one.name: better - worse for one in self for better, worse in [one.against(self[0], measure)]}
        others = [one for one in self[1:] if gained[one.name] >= margin]
        return max(others, key=lambda one: (gained[one.name], -one.chars), default=self[0])

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per setting: name, shown, first, silent, chars, better and worse.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.display import frame

        columns = ("name", *_SHARES, "chars")
        rows = ([*(getattr(one, name) for name in columns), *one.against(self[0])] for one in self)
        return frame("to_pandas()", (*columns, "better", "worse"), rows)

    def __repr__(self) -> str:
        return "\n".join(["Comparison(", *(f"  {_line(one)}" for one in self), ")"])

    def _repr_html_(self) -> str:
        from openclaw_memory.display import bars, table

        answerable = sum(row.shown is not None for row in self[0].rows) if self else 0
        rest = len(self[0].rows) - answerable if self else 0
        caption = (
            "shown: share of the evidence in the snippets; first: evidence in the first result "
            f"({answerable} questions); silent: no result where the notes have no answer ({rest} questions)"
        )
        compared = [f"questions better, worse than {self[0].name}"] if len(self) > 1 else []
        rows = (
            (
                "; ".join([one.name or "memory", *one.reasons]),
                *(bars(value, (value, _COLOUR)) for value in (getattr(one, name) for name in _SHARES)),
                f"{one.chars:,.0f}",
                *([f"+{better} −{worse}"] if len(self) > 1 else []),
            )
            for one in self
            for better, worse in [one.against(self[0])]
        )
        return table(caption, ("settings", *_SHARES, "characters shown", *compared), rows)


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN of nothing."""
    known = list(values)
    return statistics.fmean(known) if known else float("nan")


def _line(one: Evaluation) -> str:
    shares = ", ".join(f"{name} {getattr(one, name):.3f}" for name in _SHARES)
    return "; ".join([f"{one.name or 'memory'}: {shares}, {one.chars:,.0f} characters", *one.reasons])
