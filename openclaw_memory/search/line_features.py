"""Lines of candidate chunks, and the features that rank them.

A feature is an array with one value for each line. A line passes part of its values on to its neighbours: more to
closer ones, and more to lines below than above, because people answer below the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from openclaw_memory.search.query import Query, is_code
from openclaw_memory.search.query_dates import day_of
from openclaw_memory.text.terms import fold, word_stem, words
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.workspace.paths import is_date_title

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

_BLANK_LINES = re.compile(r"\n\s*\n")


class Line(NamedTuple):
    """A line of a file, or a piece of a very long one.

    `block` changes with the section, and where lines are missing. `context` is that of the line's chunk.
    """

    path: str
    source: Source
    number: int
    start_char: int
    text: str
    block: int
    context: str = ""

    @property
    def end_char(self) -> int:
        return self.start_char + len(self.text)

    @property
    def said(self) -> str:
        """The text to compare with the query: in a transcript, without the role that a turn begins with."""
        return self.text.removeprefix("User: ").removeprefix("Assistant: ") if self.source == "sessions" else self.text

    @property
    def says_something(self) -> bool:
        """False for a blank line and for a title that is a date, which the path of a daily note says already."""
        return bool(self.text.strip()) and not is_date_title(self.text)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a line without the query."""

    words: tuple[str, ...]
    label: str
    is_question: bool


def lines_of(chunks: Sequence[StoredChunk]) -> list[Line]:
    """Return the lines of chunks, each once, by path and position, notes before transcripts."""
    lines: list[Line] = []
    block, before, end, last = 0, ("", 0), -1, -1
    for stored in sorted(chunks, key=lambda stored: (stored.source, stored.path, stored.chunk.start_char)):
        number, start = stored.chunk.start_line, stored.chunk.start_char
        section = (stored.path, stored.chunk.section)
        for text in stored.chunk.text.split("\n"):
            if stored.path != before[0] or start >= end:
                # Between chunks that follow one another there are blank lines at most.
                if section != before or (start > end + 1 and stored.ordinal != last + 1):
                    block += 1
                text_of_line = text.removesuffix("\r")
                lines.append(Line(stored.path, stored.source, number, start, text_of_line, block, stored.chunk.context))
                before, end, last = section, start + max(len(text), 1), stored.ordinal
            number, start = number + 1, start + len(text) + 1
    return lines


def text_of(lines: Sequence[Line]) -> str:
    """Return adjacent lines as text, with the blank lines between them.

    In a transcript, blank lines replace what it does not show, and are left out.
    """
    parts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        gap = line.start_char - above.end_char
        parts += ["\n" * (line.number - above.number) or " " * gap, line.text]
    text = "".join(parts)
    return without_blank_lines(text) if lines and lines[0].source == "sessions" else text


def without_blank_lines(text: str) -> str:
    """Return `text` with only line breaks between its lines."""
    return _BLANK_LINES.sub("\n", text)


@lru_cache(maxsize=16384)
def shape_of(text: str) -> Shape:
    """Return the words of one line, its label ("Anna:") and whether it is a question."""
    label = _LABEL.match(text)
    return Shape(
        words=tuple(words(text)),
        label=fold(label[1]) if label else "",
        is_question=text.rstrip(" *_\"')").endswith(("?", "？")),
    )


class LineVocabulary:
    """The words of a list of lines: each distinct word once in `words`, and its positions."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.words = list(set().union(*(shape.words for shape in shapes)))
        rows = dict(zip(self.words, range(len(self.words)), strict=True))
        # For each word of each line, in order: its row in the vocabulary, and its line.
        self.rows = np.fromiter(map(rows.__getitem__, chain.from_iterable(shape.words for shape in shapes)), np.intp)
        self.counts = np.array([len(shape.words) for shape in shapes], np.intp)
        self.lines = np.repeat(np.arange(len(shapes)), self.counts)
        self._filled = np.flatnonzero(self.counts)
        self._starts = (np.cumsum(self.counts) - self.counts)[self._filled]

    def numbered(self, stems: Sequence[str]) -> NDArray[np.intp]:
        """Return for each word the index of its stem in `stems`, or -1."""
        return np.array(_numbered(self.words, stems), np.intp)

    def best(self, scores: Floats) -> Floats:
        """Return the largest score of any word in each line, shape (lines, rows of `scores`).

        Args:
            scores: Scores by word, shape (rows, words).
        """
        found = np.zeros((len(self.counts), len(scores)), np.float32)
        if len(self._filled):
            found[self._filled] = np.maximum.reduceat(scores[:, self.rows], self._starts, axis=1).T
        return found

    def sums(self, vectors: Floats) -> Floats:
        """Return the sum of the word vectors of each line, shape (lines, dims).

        Args:
            vectors: The vectors of the words, shape (words, dims).
        """
        found = np.zeros((len(self.counts), vectors.shape[1]), np.float32)
        for line, start in zip(self._filled.tolist(), self._starts.tolist(), strict=True):
            # Line by line: np.add.reduceat along rows takes ten times as long.
            found[line] = np.add.reduce(vectors[self.rows[start : start + self.counts[line]]])
        return found


class Neighbourhood:
    """The distances between neighbouring lines, for an ordered list of lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.middles = np.array([line.start_char + len(line.text) / 2 for line in lines], np.float32)
        self.blocks = np.array([line.block for line in lines], np.int32)

    def steps(self, reach: tuple[float, float]) -> list[tuple[int, Floats, Floats]]:
        """Return for each step 1..NEIGHBOURS the step, and the shares that lines pass on to the lines below and above.

        Args:
            reach: The distances in characters, forward and back, over which a share fades to 1/e.
        """
        found = []
        for step in range(1, min(NEIGHBOURS, len(self.middles) - 1) + 1):
            same = self.blocks[step:] == self.blocks[:-step]
            distance = np.where(same, self.middles[step:] - self.middles[:-step], np.inf)
            found.append((step, np.exp(-distance / reach[0]), np.exp(-distance / reach[1])))
        return found

    def strongest(self, values: Floats, reach: tuple[float, float]) -> Floats:
        """Return each value, or the faded value of a neighbour if that is larger; shape (lines, columns)."""
        best = values.copy()
        for step, below, above in self.steps(reach):
            np.maximum(best[step:], values[:-step] * below[:, None], out=best[step:])
            np.maximum(best[:-step], values[step:] * above[:, None], out=best[:-step])
        return best

    def blended(self, vectors: Floats, reach: tuple[float, float]) -> Floats:
        """Return each vector plus the faded vectors of its neighbours."""
        total = vectors.copy()
        for step, below, above in self.steps(reach):
            total[step:] += vectors[:-step] * below[:, None]
            total[:-step] += vectors[step:] * above[:, None]
        return total


def literal_share(lines: Iterable[Line], query: Query) -> float:
    """Return the share of the query's words that these lines contain in any form, weighted by rarity; 0..1."""
    vocabulary = set().union(*(shape_of(line.said).words for line in lines))
    stems = query.stems
    met = {stems[at] for at in _numbered(vocabulary, stems) if at >= 0}
    met |= {term for term in stems if _is_sign(term) and any(term in word for word in vocabulary)}
    held = sum(weight for term, weight in zip(stems, query.weights, strict=True) if term in met)
    return held / sum(query.weights) if query.weights else 0.0


def _numbered(vocabulary: Iterable[str], stems: Sequence[str]) -> list[int]:
    """Return for each word the index of its stem in `stems`, or -1."""
    numbers = {term: at for at, term in enumerate(stems)}
    # Stemming takes time: only words that begin like one of the stems are stemmed (y may become i: dying, die).
    beginnings = {term[:2] for term in stems} | {term[:2].replace("i", "y") for term in stems}
    return [
        numbers.get(word_stem(word), -1) if word[:2] in beginnings or not word.isascii() else -1 for word in vocabulary
    ]


def _is_sign(term: str) -> bool:
    """Return whether a term is one Chinese, Japanese or Korean character; text is segmented into pairs of them."""
    return len(term) == 1 and not term.isascii()


def word_overlap(vocabulary: LineVocabulary, query: Query, neighbourhood: Neighbourhood) -> Floats:
    """Return the share of the query's words in or near each line in any form, weighted by rarity; 0..1."""
    numbers = vocabulary.numbered(query.stems)
    held = (numbers == np.arange(len(query.stems))[:, None]).astype(np.float32)
    for at, term in enumerate(query.stems):
        if _is_sign(term):
            held[at] = [term in word for word in vocabulary.words]
    return _weighted_mean(neighbourhood.strongest(vocabulary.best(held), REACH_OF_TERMS), query.weights)


def pair_matches(vocabulary: LineVocabulary, query: Query) -> Floats:
    """Return how many pairs of adjacent query words are adjacent in each line too, in any form."""
    stems = sorted(set(chain.from_iterable(query.pairs)))
    terms = vocabulary.numbered(stems)[vocabulary.rows]
    together = vocabulary.lines[1:] == vocabulary.lines[:-1]
    found = np.zeros(len(vocabulary.counts), np.float32)
    for first, second in query.pairs:
        places = (terms[:-1] == stems.index(first)) & (terms[1:] == stems.index(second)) & together
        found[np.unique(vocabulary.lines[:-1][places])] += 1
    return found


def exact_matches(lines: Sequence[Line], query: Query) -> Floats:
    """Return how many identifiers of the query (`GEO-1000`, `config.toml`) each line contains as they are written.

    For each code that is in none of the lines, all lose one: a line with `ERR_042` is not about `ERR_043`.
    """
    found = np.zeros(len(lines), np.float32)
    for identifier in query.identifiers:
        pattern = re.compile(rf"(?<![\w-]){re.escape(identifier)}(?![\w-])")
        holds = np.array([pattern.search(fold(line.text)) is not None for line in lines], np.float32)
        found += holds if holds.any() or not is_code(identifier) else -1
    return found


def name_matches(shapes: Sequence[Shape], query: Query) -> Floats:
    """Return for each line +0.5 for a label that is a name in the query, -0.5 for another label, else 0.

    All are 0 if the query names no label.
    """
    counts: dict[str, int] = {}
    for shape in shapes:
        counts[shape.label] = counts.get(shape.label, 0) + 1
    labels = {label for label, count in counts.items() if label and count >= MIN_LABELLED_LINES}
    if not labels & query.names:
        return np.zeros(len(shapes), np.float32)
    return np.array(
        [0.0 if s.label not in labels else 0.5 if s.label in query.names else -0.5 for s in shapes], np.float32
    )


WordVectors = Callable[[Sequence[str]], "Floats"]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Similarities by word vectors: `words`, 0..1, the query's words matched by similar ones; `meaning`, a cosine."""

    words: Floats
    meaning: Floats


def likeness(
    vocabulary: LineVocabulary, query: Query, neighbourhood: Neighbourhood, dated: Floats, word_vectors: WordVectors
) -> Likeness:
    """Return the similarity of each line with the query, by the vectors of their words.

    Args:
        vocabulary: The words of the lines.
        query: The parsed query.
        neighbourhood: The distances between the lines.
        dated: How well each line's day agrees with the dates in the query; it also matches the words of these dates.
        word_vectors: Returns the vectors of words.
    """
    if not vocabulary.words or not query.words:
        nothing = np.zeros(len(vocabulary.counts), np.float32)
        return Likeness(nothing, nothing)
    vectors = word_vectors(vocabulary.words)
    cosines: Floats = _products(_unit(word_vectors(query.words)), vectors)
    np.maximum(cosines, 0, out=cosines)
    cosines /= _lengths(vectors)
    for at, word in enumerate(query.words):
        if any(sign.isdigit() for sign in word):  # numbers are the same or they are not
            cosines[at] = [other == word for other in vocabulary.words]
    best = vocabulary.best(cosines)
    for at, word in enumerate(query.words):
        if fold(word) in query.date_words:
            best[:, at] = np.maximum(best[:, at], dated)
    met = _weighted_mean(neighbourhood.strongest(best, REACH_OF_WORDS), query.weights)
    whole = word_vectors(words(query.text)).sum(axis=0, keepdims=True)
    meaning = _products(_unit(whole), _unit(neighbourhood.blended(_unit(vocabulary.sums(vectors)), REACH_OF_MEANING)))[
        0
    ]
    return Likeness(met, meaning)


def _weighted_mean(columns: Floats, weights: Sequence[float]) -> Floats:
    shares = np.array(weights, np.float32) / np.float32(sum(weights))
    mean: Floats = _products(shares[None], columns)[0]
    return mean


def _unit(rows: Floats) -> Floats:
    return rows / _lengths(rows)[:, None]


def _lengths(rows: Floats) -> Floats:
    """Return the length of each row, at least 1e-10 so that it can divide."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), np.float32(1e-10)).astype(np.float32, copy=False)
    return lengths


def _products(few: Floats, many: Floats) -> Floats:
    """Return all dot products, shape (few, many). The threads of BLAS cost more than such small products."""
    products: Floats = np.einsum("ij,kj->ik", few, many)
    return products


def date_matches(lines: Sequence[Line], query: Query) -> Floats:
    """Return how well the day of each line agrees with a date in the query, 0..1."""
    if not query.dates:
        return np.zeros(len(lines), np.float32)
    places: set[tuple[Source, str, str]] = {(line.source, line.path, line.context) for line in lines}
    written = {place: day_of(*place) for place in places}
    agreement = {place: max(named.agreement(day) for named in query.dates) for place, day in written.items() if day}
    return np.array([agreement.get((line.source, line.path, line.context), 0.0) for line in lines], np.float32)


_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")

_MARKS = "\"'“”„*_"


def unrepeated(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without transcript lines that repeat a line of a note, whether it is a list item or has a label.

    The lines before and after a removed one are in different blocks.
    """
    written = {form for line in lines if line.source == "memory" for form in _forms(line.text)}
    kept: list[Line] = []
    gaps = 0
    for line in lines:
        if line.source == "sessions" and _plain(line.said) in written:
            gaps += 1
        else:
            kept.append(line._replace(block=line.block + gaps) if gaps else line)
    return kept


def _forms(text: str) -> Iterator[str]:
    """Yield a line of a note, and what follows each label in it ("10:30 Anna: "); nothing for a blank line."""
    rest = _plain(text)
    while rest:
        yield rest
        rest = rest.partition(": ")[2].strip(_MARKS)


def _plain(text: str) -> str:
    """Return a line without list marker, emphasis and enclosing quotes; case and width of spaces are normalised."""
    marker = _LIST_MARKER.match(text)
    words = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(words).strip(_MARKS).casefold()
