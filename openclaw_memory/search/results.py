"""What a search returns: a sequence of results that also says how it was found, and shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, overload

from openclaw_memory.errors import MissingExtraError
from openclaw_memory.types import SearchResult

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class SearchResults(Sequence[SearchResult]):
    """The answers to one question, best first.

    `mode` says which legs were used; `reason` why it is less than hybrid, where that was not asked for. `filtered`
    counts the answers that the threshold took. `stale` is True when files had changed since the index was built.
    """

    results: tuple[SearchResult, ...]
    query: str
    mode: Literal["hybrid", "keyword", "vector"]
    provider: str
    model: str
    filtered: int = 0
    stale: bool = False
    reason: str | None = None

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

    def to_dataframe(self) -> pandas.DataFrame:
        """One row a result: score, citation, snippet, path, start_line, end_line, source.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("to_dataframe() needs pandas: pip install pandas") from error
        columns = ["score", "citation", "snippet", "path", "start_line", "end_line", "source"]
        return pandas.DataFrame([[getattr(result, name) for name in columns] for result in self], columns=columns)

    def _repr_html_(self) -> str:
        head = f"{len(self)} results for <b>{escape(self.query)}</b> ({self.mode}, {escape(self.provider)})"
        rows = "".join(
            f"<tr><td>{result.score:.2f}</td><td><code>{escape(result.citation)}</code></td>"
            f"<td style='text-align:left;white-space:pre-wrap'>{escape(result.snippet)}</td></tr>"
            for result in self
        )
        return f"<p>{head}</p><table><tr><th>score</th><th>place</th><th>text</th></tr>{rows}</table>"
