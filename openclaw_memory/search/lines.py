"""Candidate chunks as lines, and what speaks for each line as an answer.

All features are arrays with one value for each line. A neighbouring line lends some of what it holds: the closer, the
more, and what stands before a line more than what follows it, because people answer below the question they answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.search.question import Question
from openclaw_memory.text import fold, terms
from openclaw_memory.text import words as words_of
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.workspace.dates import note_date

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# How far a line's content reaches, in characters: likeness fades to 1/e over this distance.
REACH_OF_TERMS = (300.0, 180.0)  # forward to the lines below, back to the lines above
REACH_OF_WORDS = (500.0, 300.0)
REACH_OF_MEANING = (200.0, 130.0)
NEIGHBOURS = 4
# A label ("Anna:", "Status:") is taken for one when it heads at least so many of the lines.
MIN_LABELLED_LINES = 3

_LABEL = re.compile(r"\s*(?:[-*+]\s+)?(?:\*\*)?([^\W\d_][^\s:*]{0,40})(?:\*\*)?:(?:\*\*)?\s")
_DATE_TITLE = re.compile(r"\s*#{1,6}\s+\d{4}-\d{2}-\d{2}\s*")
_HEADING = re.compile(r" {0,3}#{1,6}\s")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file (or a piece of a very long one). `block` changes wherever lines do not follow one another."""

    path: str
    source: Source
    number: int
    start_char: int
    text: str
    block: int
    chunk: int

    @property
    def end_char(self) -> int:
        return self.start_char + len(self.text)

    @property
    def says_something(self) -> bool:
        """False for a blank line, and for a title that is a date: the path of a daily note says that already."""
        return bool(self.text.strip()) and not _DATE_TITLE.fullmatch(self.text)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What can be said of a line's text without knowing the question."""

    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    words: tuple[str, ...]
    label: str
    is_question: bool


def lines_of(chunks: Sequence[StoredChunk]) -> list[Line]:
    """The lines of chunks, each once, in the order of path and place; `Line.chunk` is the index of its chunk."""
    lines: list[Line] = []
    order = sorted(range(len(chunks)), key=lambda at: (chunks[at].path, chunks[at].chunk.start_char))
    block, path, end = 0, "", -1
    for at in order:
        stored = chunks[at]
        number, start = stored.chunk.start_line, stored.chunk.start_char
        for text in stored.chunk.text.split("\n"):
            if stored.path != path or start >= end:
                if stored.path != path or start > end + 1 or _HEADING.match(text):
                    block += 1
                lines.append(Line(stored.path, stored.source, number, start, text, block, at))
                path, end = stored.path, start + max(len(text), 1)
            number, start = number + 1, start + len(text) + 1
    return lines


@lru_cache(maxsize=4096)
def analysed(text: str) -> Analysis:
    """Terms, words and shape of one line."""
    found = terms(text)
    label = _LABEL.match(text)
    return Analysis(
        terms=frozenset(found),
        pairs=frozenset(pairwise(found)),
        words=tuple(words_of(text)),
        label=fold(label[1]) if label else "",
        is_question=text.rstrip(" *_\"')").endswith(("?", "？")),
    )


class Neighbourhood:
    """Which lines are close to which, and how close, for a list of lines in order."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.middles = np.array([line.start_char + len(line.text) / 2 for line in lines], np.float32)
        self.blocks = np.array([line.block for line in lines], np.int32)

    def steps(self, reach: tuple[float, float]) -> list[tuple[int, Floats, Floats]]:
        """For each step 1..NEIGHBOURS: the step, and how much of a line reaches the one below and the one above."""
        found = []
        for step in range(1, min(NEIGHBOURS, len(self.middles) - 1) + 1):
            distance = self.middles[step:] - self.middles[:-step]
            same = (self.blocks[step:] == self.blocks[:-step]).astype(np.float32)
            found.append((step, same * np.exp(-distance / reach[0]), same * np.exp(-distance / reach[1])))
        return found

    def strongest(self, values: Floats, reach: tuple[float, float]) -> Floats:
        """Each value, or a neighbour's faded one where that is larger; `values` has shape (lines, columns)."""
        best = values.copy()
        for step, below, above in self.steps(reach):
            np.maximum(best[step:], values[:-step] * below[:, None], out=best[step:])
            np.maximum(best[:-step], values[step:] * above[:, None], out=best[:-step])
        return best

    def blended(self, vectors: Floats, reach: tuple[float, float]) -> Floats:
        """Each vector plus its neighbours' faded ones."""
        total = vectors.copy()
        for step, below, above in self.steps(reach):
            total[step:] += vectors[:-step] * below[:, None]
            total[:-step] += vectors[step:] * above[:, None]
        return total


def term_overlap(analyses: Sequence[Analysis], question: Question, near: Neighbourhood) -> Floats:
    """The share of the question's terms that stand in or near a line, weighted by rarity; 0..1."""
    if not question.terms:
        return np.zeros(len(analyses), np.float32)
    held = np.array([[term in analysis.terms for term in question.terms] for analysis in analyses], np.float32)
    return _weighted_mean(near.strongest(held, REACH_OF_TERMS), question.weights)


def pair_matches(analyses: Sequence[Analysis], question: Question) -> Floats:
    """How many neighbouring terms of the question are neighbours in the line too."""
    return np.array([len(question.pairs & analysis.pairs) for analysis in analyses], np.float32)


def name_matches(analyses: Sequence[Analysis], question: Question) -> Floats:
    """+0.5 for a line labelled with a name from the question, -0.5 for one labelled otherwise, 0 when none is named."""
    counts: dict[str, int] = {}
    for analysis in analyses:
        counts[analysis.label] = counts.get(analysis.label, 0) + 1
    labels = {label for label, count in counts.items() if label and count >= MIN_LABELLED_LINES}
    if not labels & question.names:
        return np.zeros(len(analyses), np.float32)
    return np.array(
        [0.0 if a.label not in labels else 0.5 if a.label in question.names else -0.5 for a in analyses], np.float32
    )


WordVectors = Callable[[Sequence[str]], "Floats"]


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a model of words says: `words` 0..1, the question's words met by like ones; `meaning`, a cosine."""

    words: Floats
    meaning: Floats


def likeness(
    analyses: Sequence[Analysis], question: Question, near: Neighbourhood, word_vectors: WordVectors
) -> Likeness:
    """Likeness of each line with the question, by the vectors of their words."""
    vocabulary = list(set().union(*(analysis.words for analysis in analyses)))
    if not vocabulary or not question.words:
        nothing = np.zeros(len(analyses), np.float32)
        return Likeness(nothing, nothing)
    rows = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
    words = np.fromiter(map(rows.__getitem__, chain.from_iterable(a.words for a in analyses)), np.intp)
    counts = np.array([len(analysis.words) for analysis in analyses])
    lines = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[lines]
    vectors = word_vectors(vocabulary)

    cosines = _products(_unit(word_vectors(question.words)), _unit(vectors))
    best = np.zeros((len(analyses), len(question.words)), np.float32)
    best[lines] = np.maximum.reduceat(np.maximum(cosines, 0)[:, words], starts, axis=1).T
    met = _weighted_mean(near.strongest(best, REACH_OF_WORDS), question.word_weights)

    sums = np.zeros((len(analyses), vectors.shape[1]), np.float32)
    for line, start, count in zip(lines.tolist(), starts.tolist(), counts[lines].tolist(), strict=True):
        # Line by line: np.add.reduceat along rows takes ten times as long.
        sums[line] = np.add.reduce(vectors[words[start : start + count]])
    whole = word_vectors(words_of(question.text)).sum(axis=0, keepdims=True)
    meaning = _products(_unit(whole), _unit(near.blended(_unit(sums), REACH_OF_MEANING)))[0]
    return Likeness(met, meaning)


def _weighted_mean(columns: Floats, weights: Sequence[float]) -> Floats:
    shares = np.array(weights, np.float32) / np.float32(sum(weights))
    mean: Floats = _products(shares[None], columns)[0]
    return mean


def _unit(rows: Floats) -> Floats:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit: Floats = (rows / np.maximum(norms, np.float32(1e-10))[:, None]).astype(np.float32, copy=False)
    return unit


def _products(few: Floats, many: Floats) -> Floats:
    """All dot products, shape (few, many). Not by BLAS: its threads cost more than these small products do."""
    products: Floats = np.einsum("ij,kj->ik", few, many)
    return products


def date_matches(lines: Sequence[Line], question: Question) -> Floats:
    """How well the date of each line's file agrees with a date in the question, 0..1."""
    if not question.dates:
        return np.zeros(len(lines), np.float32)
    written = {path: note_date(path) for path in {line.path for line in lines}}
    agreement = {path: max(named.agreement(day) for named in question.dates) for path, day in written.items() if day}
    return np.array([agreement.get(line.path, 0.0) for line in lines], np.float32)


def exact_matches(analyses: Sequence[Analysis], question: Question) -> Floats:
    """How many of the question's identifiers (`GEO-1000`, `config.toml`) stand in the line as they are written."""
    if not question.identifiers:
        return np.zeros(len(analyses), np.float32)
    return np.array([len(question.identifiers & analysis.terms) for analysis in analyses], np.float32)
