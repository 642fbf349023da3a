"""Turn candidate chunks into results: their best lines, or the beginning of each chunk."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.candidates import Candidate
from openclaw_memory.search.line_features import (
    LineVocabulary,
    date_matches,
    exact_matches,
    likeness,
    literal_share,
    name_matches,
    pair_matches,
    text_of,
    without_blank_lines,
    word_overlap,
)
from openclaw_memory.search.lines import Line, lines_of
from openclaw_memory.search.prepared import Lexicon, Lines, Neighbourhood
from openclaw_memory.search.query import Query
from openclaw_memory.search.ranking import TEXT_SCORE, VECTOR_SCORE, VECTOR_SHARE, share_of
from openclaw_memory.text.utf16 import truncate_utf16
from openclaw_memory.types import SOURCES, SearchResult, SourceHits, StoredChunk
from openclaw_memory.workspace.paths import exact_path_tier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


# A chunk shares in the matches of its neighbours: the answer is often next to the words of the question.
NEIGHBOUR_SHARE = 0.3
_FILE_NAME = re.compile(r"[^\s\"'`<>()]+\.md\b")
MAX_EXPONENT = 700.0  # exp(710) is beyond any float
# A longer question is not the name of a file.
MAX_NAME_CHARS = 200
# MMR and age choose among this many times the wanted answers.
POOL = 4


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features of a line, set by hand and the same for every workspace.

    `middle` and `slope` turn the value of the best window, without its `name` and `chunk` parts, into the confidence
    that the notes answer the query: a logistic curve fitted to answerable and unanswerable questions. `name` is left
    out because most lines of a name do not answer, `chunk` because some chunk is always the nearest. `spread` is how
    slowly other windows lose score.
    """

    keyword: float
    overlap: float
    words: float
    meaning: float
    pairs: float
    exact: float
    date: float
    name: float
    question: float
    chunk: float
    middle: float
    slope: float
    spread: float = 5.0


HYBRID = Weights(
    keyword=1.5, overlap=0.0, words=6.0, meaning=7.0, pairs=0.4, exact=2.0, date=2.0, name=3.0, question=-0.8,
    chunk=1.5, middle=8.2, slope=1.09,
)  # fmt: skip
KEYWORD = Weights(
    keyword=3.0, overlap=3.0, words=0.0, meaning=0.0, pairs=0.3, exact=2.0, date=1.5, name=2.0, question=-0.5,
    chunk=0.0, middle=5.1, slope=2.0,
)  # fmt: skip


# The features that come from vectors, of words or of chunks; the others from the words themselves.
BY_VECTORS = frozenset({"words", "meaning", "chunk"})


@dataclass(frozen=True, slots=True)
class RerankInput:
    """Everything that results are made from; see `openclaw_memory.search.search`."""

    query: Query
    candidates: Sequence[Candidate]
    hits: SourceHits
    rules: SearchConfig
    lexicon: Lexicon
    by_vector: bool
    explain: bool
    use_chunk_scores: bool = False


def best_lines(given: RerankInput) -> list[SearchResult]:
    """Return windows of lines from the candidates, best first.

    The score is the confidence that the notes answer the query at all, which the best window decides, times the share
    of each window relative to the best one.
    """
    chunks = [candidate.stored for candidate in given.candidates]
    arrays = given.lexicon.lines(chunks)
    vocabulary = LineVocabulary(arrays, given.lexicon)
    terms = vocabulary.terms(given.query)
    features = _features(given, chunks, arrays, vocabulary, terms)
    weights = HYBRID if given.by_vector else KEYWORD
    lines = [line._replace(block=at) for line, at in zip(arrays.lines, arrays.blocks.tolist(), strict=True)]
    notes = sum(line.source == "memory" for line in lines)
    values = np.zeros(len(lines), np.float32)
    for name, feature in features.items():
        values += getattr(weights, name) * feature
    windows = _windows(lines, values, notes, given.rules)
    confidence = _confidence(windows[0], features, weights) if windows else 0.0
    results = []
    for window in windows:
        worth = {name: getattr(weights, name) * float(feature[window.best]) for name, feature in features.items()}
        share = math.exp((window.value - windows[0].value) / weights.spread)
        parts = {
            "confidence": confidence,
            "share": share,
            VECTOR_SHARE: _vector_share(given.query, terms[window.start : window.end + 1], worth),
        }
        if given.explain:
            parts |= {name: float(feature[window.best]) for name, feature in features.items()}
        results.append(_result(lines, window, confidence * share, given.rules.snippet_chars, parts))
    return results


def _vector_share(query: Query, terms: Floats, worth: Mapping[str, float]) -> float:
    """Return the share of vectors in the value of a window's best line.

    To the extent that the window contains the query's words themselves, its `terms`, vectors add nothing to them.
    """
    vector = (1 - literal_share(terms, query)) * sum(value for name, value in worth.items() if name in BY_VECTORS)
    return share_of(vector, sum(worth.values()) - vector)


def _windows(lines: Sequence[Line], values: Floats, notes: int, rules: SearchConfig) -> list[Window]:
    """Return the best windows of the first `notes` lines, and as many of the rest."""
    parts = (slice(0, notes), slice(notes, len(lines)))
    found = [
        window.moved(part.start)
        for part in parts
        for window in best_windows(lines[part], values[part], rules.snippet_chars, _pool(rules))
    ]
    return sorted(found, key=lambda window: -window.value)


def _confidence(best: Window, features: Mapping[str, Floats], weights: Weights) -> float:
    """Return how likely it is that the notes answer the query at all, 0..1."""
    evidence = best.value - weights.name * float(features["name"][best.best])
    if "chunk" in features:
        evidence -= weights.chunk * float(features["chunk"][best.best])
    # A query of hundreds of words may speak so much against a line that the exponential has no float.
    return 1 / (1 + math.exp(min(-weights.slope * (evidence - weights.middle), MAX_EXPONENT)))


def best_chunks(given: RerankInput) -> list[SearchResult]:
    """Return the best chunks, each with its beginning as the snippet."""
    results = []
    for candidate in _first_of_each(given.candidates, _pool(given.rules)):
        stored, chunk = candidate.stored, candidate.stored.chunk
        score = candidate.score if given.rules.fusion == "weighted" else 1 / (1 + math.exp(-candidate.score))
        first, last, text = chunk.start_line, chunk.end_line, chunk.text
        if stored.source == "sessions":
            first += len(text) - len(text.lstrip("\n"))
            last -= len(text) - len(text.rstrip("\n"))
            text = without_blank_lines(text.strip("\n"))
        snippet = truncate_utf16(text, given.rules.snippet_chars).rstrip("\r\n")
        share = _vector_share_of(candidate, given.rules)
        parts = {VECTOR_SCORE: candidate.vector, TEXT_SCORE: candidate.text, VECTOR_SHARE: share}
        place = (stored.path, first, last)
        results.append(SearchResult(*place, min(1.0, max(0.0, score)), snippet, stored.source, parts))
    return results


def _vector_share_of(candidate: Candidate, rules: SearchConfig) -> float:
    """Return the share of its vector in a chunk's score; z-scores have no parts, so weighted scores replace them."""
    vector = rules.vector_weight * candidate.vector
    if rules.fusion == "weighted":
        return share_of(vector, candidate.score - vector)
    return share_of(vector, rules.text_weight * candidate.text / (1 + candidate.text))


def _first_of_each(candidates: Sequence[Candidate], count: int) -> Iterator[Candidate]:
    """Yield the first `count` candidates of each source."""
    for source in SOURCES:
        yield from islice((candidate for candidate in candidates if candidate.stored.source == source), count)


def file_matcher(text: str) -> Callable[[str], bool] | None:
    """Return a test whether the query names the note at a path, or None if it names no file.

    A query names a note if it is its path or file name, or contains its file name with the ending. It never names a
    transcript, whose beginning answers nothing and may be too long to read.

    Args:
        text: The query.
    """
    names = [text] if len(text) <= MAX_NAME_CHARS and not text.rstrip().endswith(("?", "？")) else []
    names += _FILE_NAME.findall(text)
    parts = [posixpath.basename(name.strip().replace("\\", "/")).casefold() for name in names]
    if not any(parts):
        return None

    def is_named(path: str) -> bool:
        likely = not path.isascii() or any(part in path.casefold() for part in parts if part)
        return likely and not path.endswith(".jsonl") and any(exact_path_tier(name, path) for name in names)

    return is_named


def beginning(chunks: Sequence[StoredChunk], max_chars: int) -> SearchResult:
    """Return as many whole lines from the start of a file as fit, as a result with score 1.

    Args:
        chunks: All chunks of the file.
        max_chars: The length of the snippet, at most.
    """
    lines = lines_of(chunks)
    end = max([1, *(at for at, line in enumerate(lines, 1) if line.end_char - lines[0].start_char <= max_chars)])
    snippet = text_of(lines[:end])[:max_chars]
    return SearchResult(lines[0].path, lines[0].number, lines[end - 1].number, 1.0, snippet, lines[0].source)


ANSWERS: Mapping[str, Callable[[RerankInput], list[SearchResult]]] = {"lines": best_lines, "chunks": best_chunks}


def _pool(rules: SearchConfig) -> int:
    """Return how many results to make: more than are wanted if MMR or age will select among them."""
    return rules.max_results * (1 if rules.mmr is None and rules.half_life_days is None else POOL)


def _features(
    given: RerankInput, chunks: Sequence[StoredChunk], lines: Lines, vocabulary: LineVocabulary, terms: Floats
) -> dict[str, Floats]:
    query, neighbourhood = given.query, Neighbourhood(lines.middles, lines.blocks)
    dated = date_matches(lines.lines, query)
    features = {
        "keyword": _keyword_scores(chunks, lines, given.hits.text),
        "pairs": pair_matches(vocabulary, query),
        "exact": exact_matches(lines.lines, query),
        "date": dated,
        "name": name_matches(lines, given.lexicon, query),
        "question": lines.questions,
    }
    if not given.by_vector:
        return features | {"overlap": word_overlap(terms, query, neighbourhood)}
    like = likeness(lines, vocabulary, query, neighbourhood, dated)
    if given.use_chunk_scores:
        features["chunk"] = _chunk_scores(chunks, lines, given.hits.cosines)
    return features | {"words": like.words, "meaning": like.meaning}


def _keyword_scores(chunks: Sequence[StoredChunk], lines: Lines, text: Mapping[int, float]) -> Floats:
    """Return for each line the best keyword score of a chunk that holds it, as a share of the best of all; 0..1."""
    by_place = {(stored.path, stored.ordinal): text.get(stored.id, 0.0) for stored in chunks}
    scores = []
    for stored in chunks:
        around = [by_place.get((stored.path, at), 0.0) for at in (stored.ordinal - 1, stored.ordinal + 1)]
        scores.append(text.get(stored.id, 0.0) + NEIGHBOUR_SHARE * sum(around))
    of_lines = _best_by_line(chunks, lines, scores)
    return of_lines / max(float(of_lines.max()), 1e-9)


def _chunk_scores(chunks: Sequence[StoredChunk], lines: Lines, cosines: Mapping[int, float]) -> Floats:
    """Return for each line how near its chunk is to the query, from the farthest chunk, 0, to the nearest, 1.

    Each model has its own scale for cosines; relative distances are comparable.
    """
    known = [cosines[stored.id] for stored in chunks if stored.id in cosines]
    farthest, nearest = min(known, default=0.0), max(known, default=0.0)
    reach = max(nearest - farthest, 1e-9)
    shares = [(cosines.get(stored.id, farthest) - farthest) / reach for stored in chunks]
    return _best_by_line(chunks, lines, shares)


def _best_by_line(chunks: Sequence[StoredChunk], lines: Lines, scores: Sequence[float]) -> Floats:
    """Return for each line the best score of a chunk that contains it."""
    files = {line.path: at for line, at in zip(lines.lines, lines.files.tolist(), strict=True)}
    # Files are numbered in the order of the lines: with them as high digits, line numbers ascend in all files.
    base = int(lines.numbers.max()) + 1
    edges = [
        files.get(stored.path, -1) * base + min(line, base)
        for stored in chunks
        for line in (stored.chunk.start_line, stored.chunk.end_line + 1)
    ]
    places = np.searchsorted(lines.files * base + lines.numbers, edges).tolist()
    best = np.zeros(len(lines.lines), np.float32)
    for start, end, score in zip(places[::2], places[1::2], scores, strict=True):
        np.maximum(best[start:end], np.float32(score), out=best[start:end])
    return best


def _result(
    lines: Sequence[Line], window: Window, score: float, max_chars: int, parts: Mapping[str, float]
) -> SearchResult:
    first, last = lines[window.start], lines[window.end]
    snippet = text_of(lines[window.start : window.end + 1])[:max_chars]
    return SearchResult(first.path, first.number, last.number, score, snippet, first.source, parts)


# A line counts exp(value / TEMPERATURE): the best line decides, then its neighbours.
TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `start` to `end` (inclusive, indices into the list of lines).

    `best` is the index of the best line; `value` is log(sum(exp(value of each line))), at least the best line's.
    """

    start: int
    end: int
    best: int
    value: float

    def moved(self, by: int) -> Window:
        """Return the window in a list with `by` more lines in front."""
        return replace(self, start=self.start + by, end=self.end + by, best=self.best + by) if by else self


def best_windows(lines: Sequence[Line], values: Floats, max_chars: int, count: int) -> list[Window]:
    """Return non-overlapping windows of lines, best first.

    A window never crosses a heading or a gap. A single line longer than `max_chars` is a window of its own.

    Args:
        lines: The lines.
        values: The value of each line.
        max_chars: The length of a window, at most.
        count: How many windows at most.
    """
    if not lines:
        return []
    filled = np.array([line.says_something for line in lines])
    peak = values.max()
    weights = np.where(filled, np.exp((values - peak) / TEMPERATURE), 0.0)
    totals = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    starts, ends = np.arange(len(lines)), _ends(lines, max_chars)
    free = np.ones(len(lines), bool)
    found: list[Window] = []
    while len(found) < count:
        sums = np.where(free, totals[ends + 1] - totals[starts], 0.0)
        start = int(sums.argmax())
        if sums[start] <= 0:
            break
        end = int(ends[start])
        found.append(_trimmed(filled, values, start, end, float(peak + TEMPERATURE * np.log(sums[start]))))
        free[start : end + 1] = False
        ends[(starts < start) & (ends >= start)] = start - 1
    return found


def _ends(lines: Sequence[Line], max_chars: int) -> NDArray[np.intp]:
    """Return for each line the last line of the longest window that starts there."""
    blocks = np.array([line.block for line in lines], np.int64)
    first = np.array([line.start_char for line in lines], np.int64)
    length = np.array([len(line.text) for line in lines], np.int64)
    # Blocks are numbered in the order of the lines: with them as high digits, places in all files sort as one.
    base = blocks * (int((first + length).max()) + max_chars + 2)
    ends = np.searchsorted(base + first + length, base + first + max_chars, side="right") - 1
    return np.maximum(ends, np.arange(len(lines)))


def _trimmed(filled: NDArray[np.bool_], values: Floats, start: int, end: int, value: float) -> Window:
    """Return the window without empty lines at its edges."""
    kept = start + np.flatnonzero(filled[start : end + 1])
    return Window(int(kept[0]), int(kept[-1]), int(kept[values[kept].argmax()]), value)
