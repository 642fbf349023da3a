"""What a search returns: a sequence of results that also says how it was found, and shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from openclaw_memory.types import SearchResult

if TYPE_CHECKING:
    import pandas

    from openclaw_memory.search.explanation import Explanation

_COLUMNS = ("score", "citation", "snippet", "path", "start_line", "end_line", "source")


@dataclass(frozen=True, slots=True, repr=False)
class SearchResults(Sequence[SearchResult]):
    """The answers to one question, best first.

    `mode` says which legs were used; `reason` why it is less than hybrid, where that was not asked for. `filtered`
    counts the answers that the threshold `min_score` took; a search that explains itself has them in `rejected`.
    `stale` is True when files had changed since the index was built.
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

    @overload
    def __getitem__(self, index: int) -> SearchResult: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SearchResult, ...]: ...

    def __getitem__(self, index: int | slice) -> SearchResult | tuple[SearchResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[SearchResult]:
        return iter(self.results)

    def explain(self) -> Explanation:
        """How each score came about: a table in a notebook, and a plot.

        After `search(..., explain=True)` it also has the answers that the threshold took, and the features of lines.
        """
        from openclaw_memory.search.explanation import explanation

        return explanation(self)

    def to_pandas(self) -> pandas.DataFrame:
        """One row a result: score, citation, snippet, path, start_line, end_line, source.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.tables import frame

        return frame("to_pandas()", _COLUMNS, ([getattr(result, name) for name in _COLUMNS] for result in self))

    def __repr__(self) -> str:
        """What was asked and found, a line for each result."""
        found = [f"  {result.score:.2f} {result.citation}" for result in self]
        return "\n".join([f"SearchResults({self.query!r}: {self._found()})", *found])

    def _repr_html_(self) -> str:
        from openclaw_memory.tables import KEYWORD_COLOUR, Markup, bars, bold, code, lines, table

        caption = Markup(f"{bold(self.query)}<br>{lines(self._found())}")
        rows = (
            (number, bars(result.score, (result.score, KEYWORD_COLOUR)), code(result.citation), lines(result.snippet))
            for number, result in enumerate(self, 1)
        )
        return table(caption, ("", "score", "place", "text"), rows)

    def _found(self) -> str:
        """How much was found and by what, and whatever is less than it could be, in one line."""
        count = f"{len(self)} result{'s' if len(self) != 1 else ''}" if self else "nothing found"
        words = [f"{count}, {self.mode} search, {self.provider} {self.model}".rstrip()]
        if self.filtered:
            more = f"{self.filtered} more below the minimum score of {self.min_score:g}"
            words.append(more if self else f"{more}, which min_score=0 shows")
        if self.stale:
            words.append("stale: files have changed since they were indexed")
        return "; ".join([*words, *([self.reason] if self.reason else [])])
