"""Hold search results, with the way they came about, and cut them to a budget of characters, and to the strong ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

from msgspec import Struct, field, structs

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.search.lines import find_open_code, split_lines
from openclaw_memory.search.query import compile_phrase, has_phrases
from openclaw_memory.search.ranking import DECAY, TASK, VECTOR_SHARE, has_line_in
from openclaw_memory.types import SearchResult, StoredChunk
from openclaw_memory.types.files import LEFT_OUT
from openclaw_memory.types.results import RESULT_COLUMNS, make_row, mark_weak

if TYPE_CHECKING:
    import re

    import pandas

MOST_WEAK = 3
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
        reason: Why the mode is less than hybrid, unless that was asked for, and how misspelt words were read.
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
        from openclaw_memory import display

        what = f"score = (keyword + vector{' + task' if self._has_task else ''}) × decay; threshold {self.min_score:g}"
        if any(row.rank and row.score < self.min_score for row in self.rows):
            what += ", below which some are shown for the words of the question that they hold"
        rows = (
            (
                row.rank or display.render_faint("below"),
                (
                    row.score,
                    (row.keyword * row.decay, display.KEYWORD_COLOUR),
                    (row.vector * row.decay, display.VECTOR_COLOUR),
                    *([(row.task * row.decay, display.TASK_COLOUR)] if self._has_task else []),
                ),
                display.render_code(row.citation),
                f"{row.keyword:.2f}",
                f"{row.vector:.2f}",
                *([f"{row.task:.2f}"] if self._has_task else []),
                f"{row.decay:.2f}",
            )
            for row in self.rows
        )
        caption = display.Markup(f"{display.render_bold(self.query)}<br>{what}")
        task = ["task"] if self._has_task else []
        return display.render_table(caption, ("", "score", "place", "keyword", "vector", *task, "decay"), rows)

    @property
    def _has_task(self) -> bool:
        return any(TASK in row.features for row in self.rows)

    def _list_features(self) -> list[str]:
        """Return the names of all features, in order of their first appearance."""
        names = (name for row in self.rows for name in row.features)
        return [*dict.fromkeys(name for name in names if name not in {VECTOR_SHARE, DECAY, TASK})]


def _explain(result: SearchResult, rank: int | None) -> Explained:
    decay = result.parts.get(DECAY, 1.0)
    before = result.score / decay if decay > 0 else 0.0
    task = result.parts.get(TASK, 0.0)
    vector = (before - task) * result.parts.get(VECTOR_SHARE, 0.0)
    keyword = before - task - vector
    return Explained(rank, result.citation, result.score, keyword, vector, decay, result.parts, task)


def keep_strong_results(results: SearchResults, max_results: int | None) -> SearchResults:
    """Return the strong results, or three where all are weak, unless the caller has asked for `max_results`.

    A search has no minimum score, and weak results would fill a prompt or a screen otherwise.
    """
    if max_results is not None:
        return results
    strong = tuple(result for result in results if result.confidence == "strong")
    few = strong or results.results[:MOST_WEAK]
    return replace(results, results=few, omitted=results.omitted + len(results) - len(few))


def cut_to_budget(results: Sequence[SearchResult], max_chars: int) -> tuple[tuple[SearchResult, ...], int]:
    """Return the first results that fit into `max_chars` characters of snippets, and the number of results left out.

    The last snippet that fits in part is cut at the end of a line, before code that does not fit, and its `spans` with
    it. The first one is cut anywhere if nothing could be shown otherwise.
    """
    fitting: list[SearchResult] = []
    room = max_chars
    for result in results:
        if len(result.snippet) <= room:
            fitting.append(result)
            room -= len(result.snippet)
            continue
        # The newline that ends the last line may be the first character over the budget.
        end = result.snippet.rfind("\n", 0, room + 1)
        lines = result.snippet[: max(end, 0)].split("\n")
        stop = len("\n".join(lines[: find_open_code(lines)]))
        if stop > 0 or not fitting:
            fitting.append(_cut(result, stop or (end if end > 0 else room)))
        break
    return tuple(fitting), len(results) - len(fitting)


def _cut(result: SearchResult, stop: int) -> SearchResult:
    runs, parts = result.snippet.split(LEFT_OUT), result.snippet[:stop].removesuffix(LEFT_OUT.rstrip()).split(LEFT_OUT)
    if len(runs) != len(result.spans):  # pieces of a long line, or lines that read as what is left out
        return structs.replace(result, snippet=LEFT_OUT.join(parts))
    *spans, (first, last) = result.spans[: len(parts)]
    # Of a transcript the snippet has not every line: its end stays where it was.
    if last - first == runs[len(parts) - 1].count("\n"):
        last = first + parts[-1].count("\n")
    return structs.replace(result, snippet=LEFT_OUT.join(parts), end_line=last, spans=(*spans, (first, last)))


def show_phrases(
    results: Sequence[SearchResult], chunks: Iterable[StoredChunk], phrases: Iterable[str]
) -> list[SearchResult]:
    """Return results that show the phrases: those that do, and of other chunks the lines with the phrases."""
    patterns = tuple(map(compile_phrase, phrases))
    matching = [result for result in results if has_phrases(result.snippet, patterns)]
    for stored in chunks:
        if any(has_line_in(result, stored) for result in matching):
            continue
        own = (result for result in results if has_line_in(result, stored))
        best = max(own, key=lambda result: result.score, default=None)
        first, last, snippet = _find_shortest(stored, patterns)
        score = best.score if best else min((result.score for result in results), default=0.0)
        parts: Mapping[str, float] = best.parts if best else {}
        confidence = best.confidence if best else "weak"
        matching.append(
            SearchResult(stored.path, first, last, score, snippet, stored.source, parts, confidence=confidence)
        )
    return sorted(matching, key=lambda result: -result.score)


def _find_shortest(stored: StoredChunk, patterns: Iterable[re.Pattern[str]]) -> tuple[int, int, str]:
    """Return the fewest lines of a chunk, one after the other, that hold the phrases: first, last, and their text."""
    lines = split_lines([stored])
    for count in range(1, len(lines) + 1):
        for at in range(len(lines) - count + 1):
            text = "\n".join(line.text for line in lines[at : at + count])
            if has_phrases(text, patterns):
                return lines[at].number, lines[at + count - 1].number, text
    return stored.chunk.start_line, stored.chunk.end_line, stored.chunk.text
