"""Hold search results: a sequence with the way they came about, shown as a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from msgspec import Struct, field

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.search.ranking import DECAY, TASK, VECTOR_SHARE
from openclaw_memory.types import SearchResult
from openclaw_memory.types.results import RESULT_COLUMNS, make_row, mark_weak

if TYPE_CHECKING:
    import pandas


_COLUMNS = ("score", "confidence", "citation", "snippet", "path", "start_line", "end_line", "source")


@dataclass(frozen=True, slots=True, repr=False)
class SearchResults(Sequence[SearchResult]):
    """The results of one search, best first.

    Attributes:
        results: The results.
        query: The query.
        mode: Which searches ran: keyword, vector, or both.
        provider: The provider of the embedder.
        model: Its model.
        filtered: How many results the threshold `min_score` removed.
        stale: Whether the index is known to be behind: files have changed since, or lack vectors.
        reason: Why the mode is less than hybrid, unless that was asked for, and as what misspelt words were read.
        min_score: The threshold.
        rejected: The removed results, if the search explains itself.
        omitted: How many results did not fit into the budget `max_chars`, or were left out as weak.
    """

    results: tuple[SearchResult, ...]
    query: str
    mode: Literal["hybrid", "keyword", "vector"]
    provider: str
    model: str
    filtered: int = 0
    stale: bool = False
    reason: str | None = None
    min_score: float = 0.0
    rejected: tuple[SearchResult, ...] = ()
    omitted: int = 0

    @overload
    def __getitem__(self, index: int) -> SearchResult: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SearchResult, ...]: ...

    def __getitem__(self, index: int | slice) -> SearchResult | tuple[SearchResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def all_weak(self) -> bool:
        """True if there are results and all are weak: the notes may not answer."""
        return bool(self.results) and all(result.confidence == "weak" for result in self)

    def explain(self) -> Explanation:
        """Return how each score came about, shown as a table in a notebook.

        After `search(..., options={"explain": True})` it also has the results that the threshold removed, and the
        features of lines.
        """
        rows = [_explain(result, rank) for rank, result in enumerate(self, 1)]
        rejected = [_explain(result, None) for result in self.rejected]
        return Explanation((*rows, *rejected), self.query, self.min_score)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row for each result.

        Its columns are score, confidence, citation, snippet, path, start_line, end_line and source.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.display import build_frame

        return build_frame("to_pandas()", _COLUMNS, ([getattr(result, name) for name in _COLUMNS] for result in self))

    def __repr__(self) -> str:
        """Return the query and a summary, with a line for each result."""
        lines = [f"  {result.score:.2f} {clean_line(result.citation)}{mark_weak(result)}" for result in self]
        return "\n".join([f"SearchResults({self.query!r}: {self._summarise()})", *lines])

    def _repr_html_(self) -> str:
        from openclaw_memory.display import Markup, render_bold, render_lines, render_table

        caption = Markup(f"{render_bold(self.query)}<br>{render_lines(self._summarise())}")
        rows = ((number, *make_row(result)) for number, result in enumerate(self, 1))
        return render_table(caption, ("", *RESULT_COLUMNS), rows)

    def _summarise(self) -> str:
        """Return in one line the number of results, the kind of search, and its limits."""
        count = f"{len(self)} result{'s' if len(self) != 1 else ''}" if self else "nothing found"
        words = [f"{count}, {self.mode} search, {self.provider} {self.model}".rstrip()]
        if self.filtered:
            more = f"{self.filtered} more below the minimum score of {self.min_score:g}"
            words.append(more if self else f"{more}, which min_score=0 shows")
        if self.all_weak:
            words.append("all in other words: the notes may not answer")
        if self.stale:
            words.append("stale: the index is behind")
        return clean("; ".join([*words, *([self.reason] if self.reason else [])]))


_EXPLAINED_COLUMNS = ("rank", "citation", "score", "keyword", "vector", "decay")


class Explained(Struct, frozen=True):
    """The score of one result: `score = (keyword + vector + task) * decay`, all in [0, 1].

    `rank` is None if the threshold removed the result. `keyword` and `vector` are the parts of the score before decay,
    from words and from vectors, `task` the part from likeness to the task, 0 without one. `decay` is 1 if age does not
    count. `features` are all parts that the search reported, by name (`SearchResult.parts`).
    """

    rank: int | None
    citation: str
    score: float
    keyword: float
    vector: float
    decay: float
    features: Mapping[str, float] = field(default_factory=dict)
    task: float = 0.0


class Explanation(Struct, frozen=True):
    """The results for `query`, each with the parts of its score.

    `min_score` is the threshold. If results are chunks, some below it are shown because they contain words of the
    query: all of these if no chunk reaches it, else those without a vector score (OpenClaw's rule).
    """

    rows: tuple[Explained, ...]
    query: str
    min_score: float

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row for each result.

        Its columns are rank, citation, score, keyword, vector, decay, kept, `task` where one was given, and
        `feature_<name>` for each feature.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.display import build_frame

        names, columns = self._list_features(), (*_EXPLAINED_COLUMNS, *(["task"] if self._has_task else []))
        rows = (
            [*(getattr(row, name) for name in columns), *(row.features.get(name) for name in names)]
            for row in self.rows
        )
        return build_frame("explain().to_pandas()", (*columns, *(f"feature_{name}" for name in names)), rows)

    def __repr__(self) -> str:
        """Return the query, and a line for each result."""
        rows = [
            f"  {row.score:.2f} = ({row.keyword:.2f} keyword + {row.vector:.2f} vector"
            f"{f' + {row.task:.2f} task' if self._has_task else ''}) * {row.decay:.2f}  "
            f"{clean_line(row.citation)}{'' if row.rank else '  (below the threshold)'}"
            for row in self.rows
        ]
        return "\n".join([f"Explanation({self.query!r}: threshold {self.min_score:g})", *rows])

    def _repr_html_(self) -> str:
        from openclaw_memory.display import (
            KEYWORD_COLOUR,
            TASK_COLOUR,
            VECTOR_COLOUR,
            Markup,
            render_bold,
            render_code,
            render_faint,
            render_table,
        )

        what = f"score = (keyword + vector{' + task' if self._has_task else ''}) × decay; threshold {self.min_score:g}"
        if any(row.rank and row.score < self.min_score for row in self.rows):
            what += ", below which some are shown for the words of the question that they hold"
        rows = (
            (
                row.rank or render_faint("below"),
                (
                    row.score,
                    (row.keyword * row.decay, KEYWORD_COLOUR),
                    (row.vector * row.decay, VECTOR_COLOUR),
                    *([(row.task * row.decay, TASK_COLOUR)] if self._has_task else []),
                ),
                render_code(row.citation),
                f"{row.keyword:.2f}",
                f"{row.vector:.2f}",
                *([f"{row.task:.2f}"] if self._has_task else []),
                f"{row.decay:.2f}",
            )
            for row in self.rows
        )
        caption = Markup(f"{render_bold(self.query)}<br>{what}")
        task = ["task"] if self._has_task else []
        return render_table(caption, ("", "score", "place", "keyword", "vector", *task, "decay"), rows)

    @property
    def _has_task(self) -> bool:
        return any(TASK in row.features for row in self.rows)

    def _list_features(self) -> list[str]:
        """Return the names of all features, in order of their first appearance."""
        return list(
            dict.fromkeys(name for row in self.rows for name in row.features if name not in {VECTOR_SHARE, DECAY, TASK})
        )


def _explain(result: SearchResult, rank: int | None) -> Explained:
    decay = result.parts.get(DECAY, 1.0)
    before = result.score / decay if decay > 0 else 0.0
    task = result.parts.get(TASK, 0.0)
    vector = (before - task) * result.parts.get(VECTOR_SHARE, 0.0)
    keyword = before - task - vector
    return Explained(rank, result.citation, result.score, keyword, vector, decay, result.parts, task)
