"""The features that rank the lines of candidate chunks.

A feature is an array with one value for each line. A line passes part of its values on to its neighbours: more to
closer ones, and more to lines below than above, because people answer below the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from openclaw_memory.search.line_index import MEANING_REACH, WORD_REACH, expand_ranges, measure_rows
from openclaw_memory.search.query import Query
from openclaw_memory.text.days import get_chunk_day
from openclaw_memory.text.terms import fold, match_identifier, split_words, stem_word
from openclaw_memory.types import StoredChunk
from openclaw_memory.types.conditions import DOCUMENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types.index import TokenVectors

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]
    from openclaw_memory.search.line_index import LineIndex, LineTable, Neighbourhood


# OpenBLAS leaves products of so many multiplications to one thread: others would go on spinning, and cost more.
ONE_THREAD = 1 << 17
# A label ("Anna:", "Status:") is taken for one when it heads at least so many of the lines.
MIN_LABELLED_LINES = 3
# A chunk shares in the matches of its neighbours: the answer is often next to the words of the question.
NEIGHBOUR_SHARE = 0.3
# A word of the query in the path of a note is worth so much of one in the metadata of a document.
PATH_SHARE = 0.8
# Of so many of the best lines, one is a repeat if a better one holds this share of their words, and the same numbers.
COMPARED, SAME_SHARE = 60, 0.6


class LineVocabulary:
    """The distinct words of lines: their `numbers`, and for each word of each line its row in them, and its line."""

    def __init__(self, table: LineTable, index: LineIndex) -> None:
        self.index, self.counts = index, table.counts
        self.numbers, self.rows = _find_distinct(table.words, len(index.words))
        self.lines = np.arange(len(self.counts)).repeat(self.counts)
        self._filled = self.counts.nonzero()[0]
        self._starts = (self.counts.cumsum() - self.counts)[self._filled]

    def match_stems(self, query: Query, stems: Sequence[tuple[str, ...]]) -> NDArray[np.intp]:
        """Return for each distinct word the index of its stem, in any language, in `stems`, or -1."""
        places = np.full(len(self.index.stem_numbers) + 1, -1, np.intp)
        for at, forms in enumerate(stems):
            places[self.index.number_stems(query, forms)] = at
        places[-1] = -1  # of stems that no word has
        matches: NDArray[np.intp] = places[self.index.stems[self.numbers]].max(axis=1)
        return matches

    def take_best(self, scores: Floats) -> Floats:
        """Return the largest score of any word in each line, shape (lines, columns of `scores`), 0 without a word.

        Args:
            scores: Scores by distinct word, shape (words, columns).
        """
        best = np.zeros((len(self.counts), scores.shape[1]), np.float32)
        if len(self._filled):
            best[self._filled] = np.maximum.reduceat(scores.take(self.rows, axis=0), self._starts, axis=0)
        return best

    def add_up(self, scores: Floats) -> Floats:
        """Return the sum of the scores of each line's words; shape (lines,)."""
        total = np.zeros(len(self.counts), np.float32)
        if len(self._filled):
            total[self._filled] = np.add.reduceat(scores[self.rows], self._starts)
        return total

    def find_terms(self, query: Query) -> Floats:
        """Return 1 for each term of the query that a line holds in any form, else 0; shape (lines, stems)."""
        matches = np.zeros((len(self.counts), len(query.stems)), np.float32)
        places = self.match_stems(query, query.stems)[self.rows]
        matching = (places >= 0).nonzero()[0]
        matches[self.lines[matching], places[matching]] = 1
        for at, (term, *_) in enumerate(query.stems):
            if len(term) == 1 and not term.isascii():  # a Chinese, Japanese or Korean sign: words are pairs of them
                has_sign = np.array([term in self.index.words[number] for number in self.numbers.tolist()], bool)
                matches[self.lines[has_sign[self.rows]], at] = 1
        return matches


def share_literal(terms: Floats, query: Query) -> float:
    """Return the share of the query's words that lines contain in any form, weighted by rarity; 0..1.

    Args:
        terms: Which terms each of the lines holds, as `LineVocabulary.find_terms`.
        query: The parsed query.
    """
    present = {query.stems[at] for at in np.flatnonzero(terms.any(axis=0)).tolist()}
    total = sum(weight for term, weight in zip(query.stems, query.weights, strict=True) if term in present)
    return total / sum(query.weights) if query.weights else 0.0


def match_pairs(vocabulary: LineVocabulary, query: Query) -> Floats:
    """Return how many pairs of adjacent query words are adjacent in each line too, in any form."""
    stems = sorted(set(chain.from_iterable(query.pairs)))
    terms = vocabulary.match_stems(query, stems)[vocabulary.rows]
    matches = np.zeros(len(vocabulary.counts), np.float32)
    # Hardly any two words of a line are both in the query.
    likely = ((terms[:-1] >= 0) & (terms[1:] >= 0) & (vocabulary.lines[1:] == vocabulary.lines[:-1])).nonzero()[0]
    pairs = zip(vocabulary.lines[likely].tolist(), terms[likely].tolist(), terms[likely + 1].tolist(), strict=True)
    for line, first, second in set(pairs):
        matches[line] += (stems[first], stems[second]) in query.pairs
    return matches


def match_identifiers(table: LineTable, query: Query) -> Floats:
    """Return how many identifiers of the query (`GEO-1000`, `config.toml`) each line contains as they are written.

    For each code that is in none of the lines, all lose one: a line with `ERR_042` is not about `ERR_043`.
    """
    matches = np.zeros(len(table), np.float32)
    texts = list(map(fold, table.get_texts())) if query.identifiers else []
    for identifier in query.identifiers:
        pattern = match_identifier(identifier)
        holds = np.array([pattern.search(text) is not None for text in texts], np.float32)
        # A code names one thing (`GEO-1000`, `retry_limit`), unlike joined words (`follow-up`).
        is_code = "_" in identifier or any(map(str.isdigit, identifier))
        matches += holds if holds.any() or not is_code else -1
    return matches


def match_names(table: LineTable, index: LineIndex, query: Query) -> Floats:
    """Return for each line +0.5 for a label that is a name in the query, -0.5 for another label, else 0.

    All are 0 if the query names no label.
    """
    counts = np.bincount(table.labels)
    is_label = counts >= MIN_LABELLED_LINES
    is_label[0] = False
    labels = [number for name in query.names if 0 < (number := index.label_numbers.get(name, 0)) < len(counts)]
    if not is_label[labels].any():
        return np.zeros(len(table), np.float32)
    worth = np.where(is_label, np.float32(-0.5), np.float32(0))
    worth[labels] = np.abs(worth[labels])
    matches: Floats = worth[table.labels]
    return matches


def match_metadata(table: LineTable, query: Query, terms: Floats) -> Floats:
    """Return the share of the query's words in the metadata of each line's document, or in its note's path alone; 0..1.

    A path counts in part, and if it holds two of the words: one may be in the names of many notes. Words near the line
    do not count again.
    """
    matches = np.zeros((len(table.chunks), len(query.stems)), np.float32)
    own_share = np.zeros((len(table.chunks), 1), np.float32)
    forms = {form for stems in query.stems for form in enumerate(stems)}
    for row, stored in enumerate(table.chunks):
        is_document = DOCUMENT in stored.chunk.metadata
        text = stored.chunk.context if is_document else stored.path.removeprefix("memory/")
        if not (own := _stem_words(text, query.languages)).isdisjoint(forms):
            words = [not own.isdisjoint(enumerate(stems)) for stems in query.stems]
            matches[row] = words if is_document else PATH_SHARE * np.array(words) * (sum(words) > 1)
            own_share[row] = not is_document
    lacking = 1 - own_share[table.parts] * terms
    return compute_mean(np.multiply(matches[table.parts], lacking, dtype=np.float32), query.weights)


@lru_cache(maxsize=4096)
def _stem_words(text: str, languages: tuple[str, ...]) -> frozenset[tuple[int, str]]:
    """Return the stems of the words of a text, each with the index of its language."""
    return frozenset((at, stem_word(word, name)) for word in split_words(text) for at, name in enumerate(languages))


def match_dates(table: LineTable, query: Query) -> Floats:
    """Return how well the day of each line agrees with a date in the query, 0..1."""
    if not query.dates:
        return np.zeros(len(table), np.float32)
    days = [get_chunk_day(own.path, own.chunk.metadata) for own in table.chunks]
    shares = [max(mention.rate_agreement(day) for mention in query.dates) if day else 0.0 for day in days]
    matches: Floats = np.array(shares, np.float32)[table.parts]
    return matches


def compare_words(
    table: LineTable, words: LineVocabulary, terms: Floats, query: Query, neighbourhood: Neighbourhood, dates: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compare each line with the query by the vectors of their words.

    A word of the query that a line holds in any form counts in full, whatever its vector says.

    Args:
        table: The lines.
        words: Their words.
        terms: Which terms of the query each of them holds, as `LineVocabulary.find_terms`.
        query: The parsed query.
        neighbourhood: The distances between the lines.
        dates: How well each line's day agrees with the dates in the query; it also matches the words of these dates.

    Returns:
        How well similar words match those of the query, 0..1; the cosine of the meanings of the query and of each line
        with its neighbours; and that of the query's content words and of the line alone.
    """
    if not len(words.numbers) or not query.words:
        nothing = np.zeros(len(table), np.float32)
        return nothing, nothing, nothing
    index = words.index
    own_numbers, whole = index.number_words(query.words), index.number_words(split_words(query.text))
    sums = [index.vectors[numbers].sum(axis=0, keepdims=True) for numbers in (own_numbers, whole)]
    both: Floats = np.concatenate([index.vectors[own_numbers], *sums])
    units: Floats = np.divide(both, measure_rows(both)[:, None], dtype=np.float32)
    cosines = compute_products(index.vectors, words.numbers, units)
    alone, whole_line = (words.add_up(cosines[:, at]) / table.vector_lengths[:, 0] for at in (-2, -1))
    meaning = neighbourhood.spread_sum(whole_line, MEANING_REACH) / table.vector_lengths[:, 1]
    np.maximum(cosines, 0, out=cosines)
    cosines /= index.lengths[words.numbers, None]
    for at, word in enumerate(query.words):
        if any(sign.isdigit() for sign in word):  # numbers are the same or they are not
            cosines[:, at] = words.numbers == own_numbers[at]
    best = np.maximum(words.take_best(cosines[:, :-2]), terms)
    for at, word in enumerate(query.words):
        if fold(word) in query.date_words:
            best[:, at] = np.maximum(best[:, at], dates)
    return compute_mean(neighbourhood.spread_maximum(best, WORD_REACH), query.weights), meaning, alone


def mark_repeats(table: LineTable, values: Floats, index: LineIndex) -> Floats:
    """Return 1 for each line that repeats a better one with other names or things, else 0."""
    best = (-values).argsort(kind="stable")[:COMPARED]
    counts = table.counts[best]
    numbers = table.words[expand_ranges(table.counts.cumsum()[best] - counts, counts)]
    distinct, columns = _find_distinct(numbers, len(index.words))
    holds = np.zeros((len(best), len(distinct)), np.float32)
    rows = np.arange(len(best))
    holds[rows.repeat(counts), columns] = 1
    digits, sizes = holds[:, index.are_numbers[distinct]], holds.sum(axis=1)
    both, unlike = (
        compute_products(holds, rows, holds),
        compute_products(digits, rows, np.subtract(np.float32(1), digits)),
    )
    same = (both >= SAME_SHARE * (sizes[:, None] + sizes - both)) & (unlike + unlike.T == 0) & (sizes > 0)
    same &= rows < rows[:, None]
    repeats = np.zeros(len(values), np.float32)
    for row in same.any(axis=1).nonzero()[0].tolist():
        repeats[best[row]] = np.any(repeats[best[same[row]]] == 0)
    return repeats


# --- scores of chunks --------------------------------------------------------------------------------------------


class ChunkSpans:
    """The lines that each of some chunks contains."""

    def __init__(self, chunks: Sequence[StoredChunk], table: LineTable) -> None:
        # Files are numbered in the order of the lines: with them as high digits, line numbers ascend in all files.
        base = int(table.numbers.max()) + 1
        edges = [
            table.paths[stored.path] * base + min(line, base)
            for stored in chunks
            for line in (stored.chunk.start_line, stored.chunk.end_line + 1)
        ]
        places = (table.files * base + table.numbers).searchsorted(edges)
        self._sizes = places[1::2] - places[::2]
        self._lines = expand_ranges(places[::2], self._sizes)
        self._count = len(table)

    def take_best(self, scores: Sequence[float]) -> Floats:
        """Return for each line the best score of a chunk that contains it, at least 0."""
        best = np.zeros(self._count, np.float32)
        np.maximum.at(best, self._lines, np.array(scores, np.float32).repeat(self._sizes))
        return best


def score_keywords(chunks: Sequence[StoredChunk], spans: ChunkSpans, text_scores: Mapping[int, float]) -> Floats:
    """Return for each line the best keyword score of a chunk that contains it, as a share of the best of all; 0..1."""
    own = {(stored.path, stored.ordinal): text_scores.get(stored.id, 0.0) for stored in chunks}
    scores = []
    for stored in chunks:
        path, ordinal = stored.path, stored.ordinal
        near = own.get((path, ordinal - 1), 0.0) + own.get((path, ordinal + 1), 0.0)
        scores.append(text_scores.get(stored.id, 0.0) + NEIGHBOUR_SHARE * near)
    best = spans.take_best(scores)
    best /= np.float32(max(float(best.max()), 1e-9))
    return best


def score_nearness(chunks: Sequence[StoredChunk], spans: ChunkSpans, cosines: Mapping[int, float]) -> Floats:
    """Return for each line how near its chunk is to the query, from the farthest chunk, 0, to the nearest, 1.

    Each model has its own scale for cosines; relative distances are comparable.
    """
    present = [cosines[stored.id] for stored in chunks if stored.id in cosines]
    farthest, nearest = min(present, default=0.0), max(present, default=0.0)
    reach = max(nearest - farthest, 1e-9)
    return spans.take_best([(cosines.get(stored.id, farthest) - farthest) / reach for stored in chunks])


# --- tokens: late interaction (MaxSim) ---------------------------------------------------------------------------


class QueryTokens(Struct, frozen=True, eq=False):
    """The tokens of a query in the space of the codes, shape (n, BITS), and their shares in its meaning, shape (n,)."""

    vectors: Floats
    shares: Floats


def weigh_tokens(query: Query, tokens: TokenVectors) -> QueryTokens | None:
    """Return the tokens of the words that count, weighted by the rarity of these words; None if there are none."""
    from openclaw_memory.embeddings.token_codes import NOTHING, rotate, weigh_tokens

    vectors, spans = tokens
    words = (stems[0] for stems in query.stems)
    weights = weigh_tokens(query.text, spans, dict(zip(words, query.weights, strict=True)))
    heavy = np.flatnonzero(weights > NOTHING)
    if not len(heavy):
        return None
    shares = (weights[heavy] / weights[heavy].sum()).astype(np.float32)
    return QueryTokens(rotate(vectors[heavy]), shares)


def compare_tokens(
    tokens: QueryTokens, chunks: Sequence[StoredChunk], table: LineTable, neighbourhood: Neighbourhood
) -> tuple[Floats, list[float]]:
    """Return how near each line is to the tokens of the query, and each chunk; 0..1.

    A line is as near as the nearest of its tokens to each token of the query: its own and, faded, those of its
    neighbours. A chunk also counts those of its context.
    """
    best, chunk_numbers, places = _compare_rows(tokens, chunks)
    paths = [stored.path for stored in table.chunks]
    lines = zip(table.parts.tolist(), table.starts.tolist(), strict=True)
    at = np.array([places.get((paths[part], start), -1) for part, start in lines])
    own = np.where((at >= 0)[:, None], best[at], np.float32(0))
    near: Floats = np.einsum("ij,j->i", neighbourhood.spread_maximum(own, WORD_REACH), tokens.shares)
    starts = np.searchsorted(chunk_numbers, np.arange(len(chunks)))
    whole = np.einsum("ij,j->i", np.maximum.reduceat(best, starts, axis=0), tokens.shares)
    return near, whole.tolist()


def _compare_rows(
    tokens: QueryTokens, chunks: Iterable[StoredChunk]
) -> tuple[Floats, NDArray[np.intp], dict[tuple[str, int], int]]:
    """Return the best cosine for each row and token of the query, the chunk of each row, and the row at each place.

    Rows are the lines of all embedded texts, places are paths and offsets.
    """
    from openclaw_memory.embeddings.token_codes import BITS, unpack_tokens

    codes, counts, chunk_numbers = [], [], []
    places: dict[tuple[str, int], int] = {}
    row = 0
    for number, stored in enumerate(chunks):
        chunk = stored.chunk
        rows = chunk.embedding_text.count("\n") + 1
        own_codes, own_counts = unpack_tokens(stored.token_codes, rows)
        codes.append(own_codes)
        counts.append(own_counts)
        chunk_numbers += [number] * rows
        start, texts = chunk.start_char, chunk.text.split("\n")
        for at, text in enumerate(texts, row + rows - len(texts)):
            places.setdefault((stored.path, start), at)
            start += len(text) + 1
        row += rows
    filled = np.concatenate(counts)
    best = np.zeros((row, len(tokens.shares)), np.float32)
    used = np.flatnonzero(filled)
    if len(used):
        # The product of numbers with signs is twice that with bits, less the sum of the numbers.
        bits = np.unpackbits(np.concatenate(codes), axis=1).astype(np.float32)
        products = 2 * np.einsum("ij,kj->ik", tokens.vectors, bits) - tokens.vectors.sum(axis=1)[:, None]
        starts = (np.cumsum(filled) - filled)[used]
        best[used] = np.maximum.reduceat(products / np.float32(np.sqrt(BITS)), starts, axis=1).T
    return np.maximum(best, 0), np.array(chunk_numbers, np.intp), places


# --- products ----------------------------------------------------------------------------------------------------


def compute_products(rows: Floats, numbers: NDArray[np.integer], few: Floats) -> Floats:
    """Return the dot products of the rows of these numbers with a few vectors, shape (numbers, few).

    They are taken in parts: of a size that caches hold, and too small for BLAS to use several threads.
    """
    step = max(1, ONE_THREAD // max(1, few.size))
    parts = [rows.take(numbers[at : at + step], axis=0) @ few.T for at in range(0, len(numbers), step)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _find_distinct(numbers: NDArray[np.integer], limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct numbers, all below a limit, and the place of each number in them, sooner than np.unique."""
    places = np.zeros(limit, np.intp)
    places[numbers] = 1
    distinct = places.nonzero()[0]
    places[distinct] = np.arange(len(distinct))
    return distinct, places[numbers]


def compute_mean(columns: Floats, weights: Sequence[float]) -> Floats:
    """Return the mean of columns, shape (n, weights), by their weights; shape (n,)."""
    shares = np.array(weights, np.float32) / np.float32(sum(weights))
    # By einsum, those of equal rows are equal to the last bit.
    mean: Floats = np.einsum("ij,kj->ik", shares[None], columns)[0]
    return mean
