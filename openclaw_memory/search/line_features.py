"""The features that rank the lines of candidate chunks.

A feature is an array with one value for each line. A line passes part of its values on to its neighbours: more to
closer ones, and more to lines below than above, because people answer below the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.search.lines import Line
from openclaw_memory.search.prepared import (
    REACH_OF_MEANING,
    REACH_OF_TERMS,
    REACH_OF_WORDS,
    Lexicon,
    Lines,
    Neighbourhood,
    unit,
)
from openclaw_memory.search.query import Query, is_code
from openclaw_memory.search.query_dates import day_of
from openclaw_memory.text.terms import fold, split_words
from openclaw_memory.types import Source
from openclaw_memory.types.files import LEFT_OUT, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]


# OpenBLAS leaves products of so many multiplications to one thread: others would go on spinning, and cost more.
ONE_THREAD = 1 << 17
# Lines are compared in pieces of so many words: one long line among short ones costs little then.
PIECE = 16
# A label ("Anna:", "Status:") is taken for one when it heads at least so many of the lines.
MIN_LABELLED_LINES = 3

_BLANK_LINES = re.compile(r"\n\s*\n")


def text_of(lines: Sequence[Line]) -> str:
    """Return lines of one file as text, with `LEFT_OUT` between those that do not follow one another.

    In a transcript, blank lines replace what it does not show, and are left out.
    """
    parts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        joint = "\n" * (line.number - above.number) or " " * (line.start_char - above.end_char)
        parts += [joint if _follows(above, line) else LEFT_OUT, line.text]
    text = "".join(parts)
    return without_blank_lines(text) if lines and lines[0].source == "sessions" else text


def spans_of(lines: Sequence[Line]) -> tuple[Span, ...]:
    """Return the runs of lines that follow one another."""
    spans = [(lines[0].number, lines[0].number)]
    for above, line in pairwise(lines):
        if _follows(above, line) or above.number == line.number:
            spans[-1] = (spans[-1][0], line.number)
        else:
            spans.append((line.number, line.number))
    return tuple(spans)


def _follows(above: Line, line: Line) -> bool:
    """Return whether there are only line ends between two lines, of few blank lines, or blanks within a long line."""
    rows, gap = line.number - above.number, line.start_char - above.end_char
    if rows == 0:
        return gap <= 1
    return gap == rows * max(above.line_end, line.line_end) and (rows <= len(LEFT_OUT) or line.source == "sessions")


def without_blank_lines(text: str) -> str:
    """Return `text` with only line breaks between its lines."""
    return _BLANK_LINES.sub("\n", text)


class LineVocabulary:
    """The words of lines: the number of each distinct word once in `numbers`, and its positions."""

    def __init__(self, lines: Lines, lexicon: Lexicon) -> None:
        self.lexicon, self.counts = lexicon, lines.counts
        places = np.zeros(len(lexicon.words), np.intp)
        places[lines.words] = 1
        self.numbers = np.flatnonzero(places)
        places[self.numbers] = np.arange(len(self.numbers))
        # For each word of each line, in order: its row in the vocabulary, and its line.
        self.rows = places[lines.words]
        self.lines = np.repeat(np.arange(len(self.counts)), self.counts)
        self._filled = np.flatnonzero(self.counts)
        self._starts = (np.cumsum(self.counts) - self.counts)[self._filled]

    def by_stem(self, stems: Sequence[str]) -> NDArray[np.intp]:
        """Return for each word the index of its stem in `stems`, or -1."""
        numbers = self.lexicon.stems[self.numbers]
        indices = np.full(len(numbers), -1, np.intp)
        for index, stem in enumerate(stems):
            indices[numbers == self.lexicon.stem_numbers.get(stem, -1)] = index
        return indices

    def find_respellings(self, query: Query) -> list[tuple[int, int]]:
        """Return each word of these that is one of the query with other accents: its row, and the index of that one."""
        stems = self.by_stem(query.stems)
        rows = np.flatnonzero(stems >= 0).tolist()
        candidates = [(row, int(stems[row]), self.lexicon.words[self.numbers[row]]) for row in rows]
        return [
            (row, at) for row, at, word in candidates if word != query.words[at] and fold(word) == fold(query.words[at])
        ]

    def best(self, scores: Floats) -> Floats:
        """Return the largest score of any word in each line, shape (lines, columns of `scores`), 0 without a word.

        Args:
            scores: Scores by word, shape (words, columns).
        """
        found = np.zeros((len(self.counts), scores.shape[1]), np.float32)
        if len(self._filled):
            # The largest of all first words of pieces of lines, of all second ones, and so on; then of the pieces.
            counts = self.counts[self._filled]
            of_pieces = -(-counts // PIECE)
            firsts = np.cumsum(of_pieces) - of_pieces
            lines = np.repeat(np.arange(len(counts)), of_pieces)
            starts = self._starts[lines] + PIECE * (np.arange(len(lines)) - firsts[lines])
            words = np.minimum(starts + np.arange(PIECE)[:, None], (self._starts + counts - 1)[lines])
            pieces = scores.take(self.rows[words], axis=0).max(axis=0)
            places = firsts + np.minimum(np.arange(of_pieces.max())[:, None], of_pieces - 1)
            found[self._filled] = pieces.take(places, axis=0).max(axis=0)
        return found

    def total(self, scores: Floats) -> Floats:
        """Return the sum of the scores of each line's words, by word; shape (lines,)."""
        found = np.zeros(len(self.counts), np.float32)
        if len(self._filled):
            found[self._filled] = np.add.reduceat(scores[self.rows], self._starts)
        return found

    def terms(self, query: Query) -> Floats:
        """Return 1 for each term of the query that a line holds in any form, else 0; shape (lines, stems)."""
        held = np.zeros((len(self.counts), len(query.stems)), np.float32)
        stems = self.by_stem(query.stems)[self.rows]
        known = np.flatnonzero(stems >= 0)
        held[self.lines[known], stems[known]] = 1
        for at, term in enumerate(query.stems):
            if _is_sign(term):
                has_it = np.array([term in self.lexicon.words[number] for number in self.numbers.tolist()], bool)
                held[self.lines[has_it[self.rows]], at] = 1
        return held


def literal_share(terms: Floats, query: Query) -> float:
    """Return the share of the query's words that lines contain in any form, weighted by rarity; 0..1.

    Args:
        terms: Which terms each of the lines holds, as `LineVocabulary.terms`.
        query: The parsed query.
    """
    held = {query.stems[at] for at in np.flatnonzero(terms.any(axis=0)).tolist()}
    met = sum(weight for term, weight in zip(query.stems, query.weights, strict=True) if term in held)
    return met / sum(query.weights) if query.weights else 0.0


def _is_sign(term: str) -> bool:
    """Return whether a term is one Chinese, Japanese or Korean character; text is segmented into pairs of them."""
    return len(term) == 1 and not term.isascii()


def word_overlap(terms: Floats, query: Query, neighbourhood: Neighbourhood) -> Floats:
    """Return the share of the query's words in or near each line in any form, weighted by rarity; 0..1."""
    return _weighted_mean(neighbourhood.strongest(terms, REACH_OF_TERMS), query.weights)


def pair_matches(vocabulary: LineVocabulary, query: Query) -> Floats:
    """Return how many pairs of adjacent query words are adjacent in each line too, in any form."""
    stems = sorted(set(chain.from_iterable(query.pairs)))
    terms = vocabulary.by_stem(stems)[vocabulary.rows]
    found = np.zeros(len(vocabulary.counts), np.float32)
    # Hardly any two words of a line are both in the query.
    likely = np.flatnonzero((terms[:-1] >= 0) & (terms[1:] >= 0) & (vocabulary.lines[1:] == vocabulary.lines[:-1]))
    pairs = zip(vocabulary.lines[likely].tolist(), terms[likely].tolist(), terms[likely + 1].tolist(), strict=True)
    for line, first, second in set(pairs):
        found[line] += (stems[first], stems[second]) in query.pairs
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


def name_matches(lines: Lines, lexicon: Lexicon, query: Query) -> Floats:
    """Return for each line +0.5 for a label that is a name in the query, -0.5 for another label, else 0.

    All are 0 if the query names no label.
    """
    counts = np.bincount(lines.labels)
    is_label = counts >= MIN_LABELLED_LINES
    is_label[0] = False
    named = [number for name in query.names if 0 < (number := lexicon.label_numbers.get(name, 0)) < len(counts)]
    if not is_label[named].any():
        return np.zeros(len(lines.labels), np.float32)
    worth = np.where(is_label, np.float32(-0.5), np.float32(0))
    worth[named] = np.abs(worth[named])
    found: Floats = worth[lines.labels]
    return found


@dataclass(frozen=True, slots=True)
class Likeness:
    """Similarities by word vectors: `words`, 0..1, the query's words matched by similar ones; `meaning`, a cosine."""

    words: Floats
    meaning: Floats


def likeness(
    lines: Lines, vocabulary: LineVocabulary, terms: Floats, query: Query, neighbourhood: Neighbourhood, dated: Floats
) -> Likeness:
    """Return the similarity of each line with the query, by the vectors of their words.

    A word of the query that a line holds in any form counts in full, whatever its vector says.

    Args:
        lines: The lines.
        vocabulary: Their words.
        terms: Which terms of the query each of them holds, as `LineVocabulary.terms`.
        query: The parsed query.
        neighbourhood: The distances between the lines.
        dated: How well each line's day agrees with the dates in the query; it also matches the words of these dates.
    """
    if not len(vocabulary.numbers) or not query.words:
        nothing = np.zeros(len(vocabulary.counts), np.float32)
        return Likeness(nothing, nothing)
    lexicon = vocabulary.lexicon
    asked, whole = lexicon.numbered(query.words), lexicon.numbered(split_words(query.text))
    vectors = lexicon.vectors
    both = np.concatenate([vectors[asked], vectors[whole].sum(axis=0, keepdims=True)])
    cosines = products(vectors, vocabulary.numbers, unit(both))
    for row, at in vocabulary.find_respellings(query):
        # What the query's own spelling adds to the meaning of the query, this one adds to that of its line.
        own = unit(vectors[asked[at], None]) @ unit(both)[-1] * lexicon.lengths[vocabulary.numbers[row]]
        cosines[row, -1] = max(float(cosines[row, -1]), own.item())
    said = vocabulary.total(cosines[:, -1]) / lines.lengths[:, 0]
    meaning = neighbourhood.blended(said, REACH_OF_MEANING) / lines.lengths[:, 1]
    np.maximum(cosines, 0, out=cosines)
    cosines /= lexicon.lengths[vocabulary.numbers, None]
    for at, word in enumerate(query.words):
        if any(sign.isdigit() for sign in word):  # numbers are the same or they are not
            cosines[:, at] = vocabulary.numbers == asked[at]
    best = np.maximum(vocabulary.best(cosines)[:, :-1], terms)
    for at, word in enumerate(query.words):
        if fold(word) in query.date_words:
            best[:, at] = np.maximum(best[:, at], dated)
    met = _weighted_mean(neighbourhood.strongest(best, REACH_OF_WORDS), query.weights)
    return Likeness(met, meaning)


def _weighted_mean(columns: Floats, weights: Sequence[float]) -> Floats:
    shares = np.array(weights, np.float32) / np.float32(sum(weights))
    mean: Floats = _products(shares[None], columns)[0]
    return mean


def _products(few: Floats, many: Floats) -> Floats:
    """Return all dot products, shape (few, many). Those of equal rows are equal to the last bit."""
    products: Floats = np.einsum("ij,kj->ik", few, many)
    return products


def products(table: Floats, numbers: Integers, few: Floats) -> Floats:
    """Return the dot products of the rows of these numbers with a few vectors, shape (numbers, few).

    They are taken in parts: of a size that caches hold, and too small for BLAS to use several threads.
    """
    step = max(1, ONE_THREAD // max(1, few.size))
    parts = [table.take(numbers[at : at + step], axis=0) @ few.T for at in range(0, len(numbers), step)]
    return np.concatenate(parts)


def date_matches(lines: Sequence[Line], query: Query) -> Floats:
    """Return how well the day of each line agrees with a date in the query, 0..1."""
    if not query.dates:
        return np.zeros(len(lines), np.float32)
    places: set[tuple[Source, str, str]] = {(line.source, line.path, line.context) for line in lines}
    written = {place: day_of(*place) for place in places}
    agreement = {place: max(named.agreement(day) for named in query.dates) for place, day in written.items() if day}
    return np.array([agreement.get((line.source, line.path, line.context), 0.0) for line in lines], np.float32)
