"""Candidate chunks as lines, and what speaks for each line as an answer.

All features are arrays with one value for each line. A neighbouring line lends some of what it holds: the closer, the
more, and what stands before a line more than what follows it, because people answer below the question they answer.
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
from openclaw_memory.workspace.dates import is_date_title

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
    """A line of a file, or a piece of a very long one. `block` changes with the section and where lines are missing.

    `context` is that of the chunk which the line came from.
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
        """What is compared with the question: of a transcript, the words without the role that a turn begins with."""
        return self.text.removeprefix("User: ").removeprefix("Assistant: ") if self.source == "sessions" else self.text

    @property
    def says_something(self) -> bool:
        """False for a blank line, and for a title that is a date: the path of a daily note says that already."""
        return bool(self.text.strip()) and not is_date_title(self.text)


@dataclass(frozen=True, slots=True)
class Shape:
    """What can be said of a line without knowing the question."""

    words: tuple[str, ...]
    label: str
    is_question: bool


def lines_of(chunks: Sequence[StoredChunk]) -> list[Line]:
    """The lines of chunks, each once, in the order of path and place, notes before transcripts."""
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
    """Lines that follow one another as they stand in the file, blank ones between them included.

    Blank lines of a transcript stand for what it does not show, and are left out.
    """
    parts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        gap = line.start_char - above.end_char
        parts += ["\n" * (line.number - above.number) or " " * gap, line.text]
    text = "".join(parts)
    return without_blank_lines(text) if lines and lines[0].source == "sessions" else text


def without_blank_lines(text: str) -> str:
    """`text` with nothing but line breaks between its lines."""
    return _BLANK_LINES.sub("\n", text)


@lru_cache(maxsize=16384)
def shape_of(text: str) -> Shape:
    """The words of one line, its label ("Anna:") and whether it asks."""
    label = _LABEL.match(text)
    return Shape(
        words=tuple(words(text)),
        label=fold(label[1]) if label else "",
        is_question=text.rstrip(" *_\"')").endswith(("?", "？")),
    )


class LineVocabulary:
    """The words of a list of lines: each different word once in `vocabulary`, and which of them stands where."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.words = list(set().union(*(shape.words for shape in shapes)))
        rows = dict(zip(self.words, range(len(self.words)), strict=True))
        # For each place in the lines, one after another: the row of its word in the vocabulary, and its line.
        self.rows = np.fromiter(map(rows.__getitem__, chain.from_iterable(shape.words for shape in shapes)), np.intp)
        self.counts = np.array([len(shape.words) for shape in shapes], np.intp)
        self.lines = np.repeat(np.arange(len(shapes)), self.counts)
        self._filled = np.flatnonzero(self.counts)
        self._starts = (np.cumsum(self.counts) - self.counts)[self._filled]

    def numbered(self, stems: Sequence[str]) -> NDArray[np.intp]:
        """For each word of the vocabulary which of `stems` is its own, -1 for none of them."""
        return np.array(_numbered(self.words, stems), np.intp)

    def best(self, scores: Floats) -> Floats:
        """The largest score of a word of each line; `scores` has a column a word, the result a row a line."""
        found = np.zeros((len(self.counts), len(scores)), np.float32)
        if len(self._filled):
            found[self._filled] = np.maximum.reduceat(scores[:, self.rows], self._starts, axis=1).T
        return found

    def sums(self, vectors: Floats) -> Floats:
        """The sum of the vectors of each line's words; `vectors` has a row a word, the result a row a line."""
        found = np.zeros((len(self.counts), vectors.shape[1]), np.float32)
        for line, start in zip(self._filled.tolist(), self._starts.tolist(), strict=True):
            # Line by line: np.add.reduceat along rows takes ten times as long.
            found[line] = np.add.reduce(vectors[self.rows[start : start + self.counts[line]]])
        return found


class Neighbourhood:
    """Which lines are close to which, and how close, for a list of lines in order."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.middles = np.array([line.start_char + len(line.text) / 2 for line in lines], np.float32)
        self.blocks = np.array([line.block for line in lines], np.int32)

    def steps(self, reach: tuple[float, float]) -> list[tuple[int, Floats, Floats]]:
        """For each step 1..NEIGHBOURS: the step, and how much of a line reaches the one below and the one above."""
        found = []
        for step in range(1, min(NEIGHBOURS, len(self.middles) - 1) + 1):
            same = self.blocks[step:] == self.blocks[:-step]
            distance = np.where(same, self.middles[step:] - self.middles[:-step], np.inf)
            found.append((step, np.exp(-distance / reach[0]), np.exp(-distance / reach[1])))
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


def literal_share(lines: Iterable[Line], query: Query) -> float:
    """The share of the question's words that stand in these lines in any form, weighted by rarity; 0..1."""
    vocabulary = set().union(*(shape_of(line.said).words for line in lines))
    stems = query.stems
    met = {stems[at] for at in _numbered(vocabulary, stems) if at >= 0}
    met |= {term for term in stems if _is_sign(term) and any(term in word for word in vocabulary)}
    held = sum(weight for term, weight in zip(stems, query.weights, strict=True) if term in met)
    return held / sum(query.weights) if query.weights else 0.0


def _numbered(vocabulary: Iterable[str], stems: Sequence[str]) -> list[int]:
    """For each word which of `stems` is its own, -1 for none of them."""
    numbers = {term: at for at, term in enumerate(stems)}
    # Stemming takes time: only words that begin like one of the stems are stemmed (y may become i: dying, die).
    beginnings = {term[:2] for term in stems} | {term[:2].replace("i", "y") for term in stems}
    return [
        numbers.get(word_stem(word), -1) if word[:2] in beginnings or not word.isascii() else -1 for word in vocabulary
    ]


def _is_sign(term: str) -> bool:
    """Whether this is one sign of Chinese, Japanese or Korean, whose text is there in pairs."""
    return len(term) == 1 and not term.isascii()


def word_overlap(vocabulary: LineVocabulary, query: Query, neighbourhood: Neighbourhood) -> Floats:
    """The share of the question's words that stand in or near a line in any form, weighted by rarity; 0..1."""
    numbers = vocabulary.numbered(query.stems)
    held = (numbers == np.arange(len(query.stems))[:, None]).astype(np.float32)
    for at, term in enumerate(query.stems):
        if _is_sign(term):
            held[at] = [term in word for word in vocabulary.words]
    return _weighted_mean(neighbourhood.strongest(vocabulary.best(held), REACH_OF_TERMS), query.weights)


def pair_matches(vocabulary: LineVocabulary, query: Query) -> Floats:
    """How many neighbouring words of the question are neighbours in the line too, in any form."""
    stems = sorted(set(chain.from_iterable(query.pairs)))
    terms = vocabulary.numbered(stems)[vocabulary.rows]
    together = vocabulary.lines[1:] == vocabulary.lines[:-1]
    found = np.zeros(len(vocabulary.counts), np.float32)
    for first, second in query.pairs:
        places = (terms[:-1] == stems.index(first)) & (terms[1:] == stems.index(second)) & together
        found[np.unique(vocabulary.lines[:-1][places])] += 1
    return found


def exact_matches(lines: Sequence[Line], query: Query) -> Floats:
    """How many of the question's identifiers (`GEO-1000`, `config.toml`) stand in the line as they are written.

    One less everywhere for each code that stands in none of the lines: what is like `ERR_042` is not about `ERR_043`.
    """
    found = np.zeros(len(lines), np.float32)
    for identifier in query.identifiers:
        pattern = re.compile(rf"(?<![\w-]){re.escape(identifier)}(?![\w-])")
        holds = np.array([pattern.search(fold(line.text)) is not None for line in lines], np.float32)
        found += holds if holds.any() or not is_code(identifier) else -1
    return found


def name_matches(shapes: Sequence[Shape], query: Query) -> Floats:
    """+0.5 for a line labelled with a name from the question, -0.5 for one labelled otherwise, 0 when none is named."""
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
    """What a model of words says: `words` 0..1, the question's words met by like ones; `meaning`, a cosine."""

    words: Floats
    meaning: Floats


def likeness(
    vocabulary: LineVocabulary, query: Query, neighbourhood: Neighbourhood, dated: Floats, word_vectors: WordVectors
) -> Likeness:
    """Likeness of each line with the question, by the vectors of their words.

    The words of a date are met by the date of the note as well, as far as `dated` says that it agrees.
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
    """The length of each row, and hardly anything instead of nothing, to be divided by."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), np.float32(1e-10)).astype(np.float32, copy=False)
    return lengths


def _products(few: Floats, many: Floats) -> Floats:
    """All dot products, shape (few, many). Not by BLAS: its threads cost more than these small products do."""
    products: Floats = np.einsum("ij,kj->ik", few, many)
    return products


def date_matches(lines: Sequence[Line], query: Query) -> Floats:
    """How well the day that each line is from agrees with a date in the question, 0..1."""
    if not query.dates:
        return np.zeros(len(lines), np.float32)
    places: set[tuple[Source, str, str]] = {(line.source, line.path, line.context) for line in lines}
    written = {place: day_of(*place) for place in places}
    agreement = {place: max(named.agreement(day) for named in query.dates) for place, day in written.items() if day}
    return np.array([agreement.get((line.source, line.path, line.context), 0.0) for line in lines], np.float32)


_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")

_MARKS = "\"'“”„*_"


def unrepeated(lines: Sequence[Line]) -> list[Line]:
    """The lines without those of transcripts whose words stand in a line of a note, be it in a list or with a label.

    The lines around one that is left out do not follow one another any more: they are of different blocks.
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
    """A line of a note, and what stands behind each label in it ("10:30 Anna: "); nothing for a blank line."""
    rest = _plain(text)
    while rest:
        yield rest
        rest = rest.partition(": ")[2].strip(_MARKS)


def _plain(text: str) -> str:
    """Without list marker, emphasis and quotation marks around it; case and the width of spaces do not matter."""
    marker = _LIST_MARKER.match(text)
    words = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(words).strip(_MARKS).casefold()
