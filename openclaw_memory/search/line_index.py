"""Keep the lines of chunks as arrays: their words as numbers, their lengths, labels and places."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.search.lines import (
    DAY_CHARS,
    Line,
    find_label,
    has_content,
    is_question,
    list_forms,
    normalise_line,
    strip_role,
)
from openclaw_memory.text.languages import DEFAULT_LANGUAGE
from openclaw_memory.text.terms import COMPOUND, split_words, stem_word
from openclaw_memory.types import StoredChunk

if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from numpy.typing import NDArray

    from openclaw_memory.search.query import Query

    Floats: TypeAlias = NDArray[np.float32]
    Integers: TypeAlias = NDArray[np.int64]
    Rows = TypeVar("Rows", bound=NDArray[Any])

WordVectors = Callable[[Sequence[str]], "Floats"]

# How far the content of a line reaches down and up, in characters: likeness fades to 1/e over this distance.
TERM_REACH = (300.0, 180.0)
WORD_REACH = (500.0, 300.0)
MEANING_REACH = (200.0, 130.0)
NEIGHBOURS = 4

# 72 MB of words with vectors of 256 dimensions, 33 MB of lines of two dozen words, or fewer with the lengths of blocks.
MAX_WORDS, MAX_LINES, LINES_OF_BLOCK = 60_000, 250_000, 12
NO_LENGTH = np.float32(1e-10)  # of a zero vector, so that it can divide
GROWTH = 4096  # words
LINE_END, UNKNOWN = -1, -2  # in place of the number of a word

_ASCII_TOKENS = re.compile("[a-z0-9]+|\n")  # as `words` splits
# What tells two chunks apart: the id of one may be that of another chunk in another index.
_IDENTITY = attrgetter(*"source path chunk.start_char chunk.start_line chunk.section chunk.context chunk.text".split())
_POSITION = attrgetter("source", "path", "chunk.start_char")


class Neighbourhood:
    """The distances between neighbouring lines, by the offsets of their middles and the numbers of their blocks."""

    def __init__(self, middles: Floats, blocks: NDArray[np.integer]) -> None:
        self._distances = [
            (step, np.where(blocks[step:] == blocks[:-step], middles[step:] - middles[:-step], np.float32(np.inf)))
            for step in range(1, min(NEIGHBOURS, len(middles) - 1) + 1)
        ]

    def compute_shares(self, reach: tuple[float, float]) -> list[tuple[int, Floats, Floats]]:
        """Return for each step 1..NEIGHBOURS the step, and the shares that lines pass on to the lines below and above.

        Args:
            reach: The distances in characters, down and up, over which a share fades to 1/e.
        """
        return [(step, np.exp(-far / reach[0]), np.exp(-far / reach[1])) for step, far in self._distances]

    def spread_maximum(self, values: Floats, reach: tuple[float, float]) -> Floats:
        """Return each value, or the faded value of a neighbour if that is larger; shape (lines, columns)."""
        best = values.T.copy()  # contiguous by column
        own = best.copy()
        for step, down, up in self.compute_shares(reach):
            np.maximum(best[:, step:], own[:, :-step] * down, out=best[:, step:])
            np.maximum(best[:, :-step], own[:, step:] * up, out=best[:, :-step])
        return best.T

    def spread_sum(self, vectors: Floats, reach: tuple[float, float]) -> Floats:
        """Return each number or vector plus the faded ones of its neighbours."""
        total = vectors.copy()
        for step, down, up in self.compute_shares(reach):
            total[step:] += (vectors[:-step].T * down).T
            total[:-step] += (vectors[step:].T * up).T
        return total


class LineTable:
    """The lines of candidate chunks in the order of their positions, notes before transcripts.

    Each array has an entry for each line: `numbers` are line numbers, `starts` and `sizes` offset and length in
    characters, `line_ends` the length of the line end, `labels` numbers of labels, 0 for none. `questions` and
    `contents` are 1 for a question, and for a line that is not blank and not a date. `counts` are numbers of words, and
    `words` holds these, line by line. `ids` are the numbers of lines in the index. `parts` are indices into `chunks`;
    `files`, `places` (of a day in a transcript) and `blocks` count up with each file, day and section.
    """

    def __init__(
        self, chunks: Sequence[StoredChunk], paths: Mapping[str, int], facts: Integers, words: NDArray[np.int32]
    ) -> None:
        self.chunks, self.paths, self.facts, self.words = chunks, paths, facts, words
        self.numbers, self.starts, self.sizes, self.line_ends, self.labels, self.questions = facts[:6]
        self.contents, self.counts, _, self.ids, self.parts, self.files, self.places, self.blocks = facts[6:]
        self.middles: Floats = (self.starts + self.sizes / 2).astype(np.float32)
        self.note_count = int(self.parts.searchsorted(sum(stored.source == "memory" for stored in chunks)))
        self.vector_lengths: Floats  # of the sum of a line's vectors, and of a line of length 1 with its neighbours

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, at: NDArray[np.intp]) -> LineTable:
        """Return the lines at these indices, which ascend."""
        ends = self.counts.cumsum()[at]
        words = self.words[expand_ranges(ends - self.counts[at], self.counts[at])]
        return LineTable(self.chunks, self.paths, self.facts[:, at], words)

    def get_line(self, at: int) -> Line:
        """Return one line with its text."""
        number, start, size, line_end = self.facts[:4, at].tolist()
        stored = self.chunks[int(self.parts[at])]
        offset = start - stored.chunk.start_char
        return Line(stored.path, stored.source, number, start, stored.chunk.text[offset : offset + size], line_end)

    def get_texts(self, first: int = 0, last: int | None = None) -> list[str]:
        """Return the texts of all lines, or of those from one index to another."""
        chunks = [stored.chunk for stored in self.chunks]
        places = zip(*(column[first:last].tolist() for column in (self.parts, self.starts, self.sizes)), strict=True)
        return [chunks[part].text[start - chunks[part].start_char :][:size] for part, start, size in places]


class LineIndex:
    """Numbers for words, their stems and vectors, and the lines of recent chunks in these numbers. Thread-safe.

    It only grows, so that a number stays valid; a full one is replaced by a `renew`ed one.

    `vectors` and `lengths` hold the vector of each word and its length.
    """

    def __init__(
        self, word_vectors: WordVectors | None = None, languages: tuple[str, ...] = (DEFAULT_LANGUAGE,)
    ) -> None:
        """Begin without a word.

        Args:
            word_vectors: Returns the vectors of words, shape (words, dims). None compares words as they are written.
            languages: The languages by which words are stemmed.
        """
        self.word_vectors, self.languages = word_vectors, languages
        self.words: list[str] = []
        self.stems = np.empty((0, len(languages)), np.int64)  # of each word the numbers of its stems, by language
        self.are_numbers = np.empty(0, bool)  # of each word
        self.stem_numbers: dict[tuple[int, str], int] = {}  # by index of the language and stem
        self.label_numbers: dict[str, int] = {"": 0}
        self.lengths: Floats = np.empty(0, np.float32)
        self.vectors: Floats = np.empty((0, 0), np.float32)
        self._numbers: dict[str, int] = {"\n": LINE_END}
        self._lock = threading.Lock()
        self._chunk_numbers: dict[object, int] = {}
        # First line and number of lines, offsets of the first and last line, the end, words before it and in it.
        self._chunks = np.empty((0, 7), np.int64)
        self._lines = np.empty((0, 9), np.int32)  # the first facts of `LineTable`, and how many words are before it
        self._line_words = np.empty(0, np.int32)
        self._line_count = self._word_count = 0
        self._block_lengths: dict[bytes, Floats] = {}  # by the numbers of the block's lines

    def renew(self, languages: Sequence[str]) -> LineIndex:
        """Return this index, or an empty one in its place if it is full or does not stem by all of these languages."""
        lines = self._line_count + LINES_OF_BLOCK * len(self._block_lengths)
        if set(languages) <= set(self.languages) and len(self.words) <= MAX_WORDS and lines <= MAX_LINES:
            return self
        return LineIndex(self.word_vectors, tuple(dict.fromkeys((*self.languages, *languages))))

    def number_stems(self, query: Query, stems: tuple[str, ...]) -> list[int]:
        """Return the numbers of the stems of one word in the languages of a query, -1 for those that no word has."""
        forms = zip(map(self.languages.index, query.languages), stems, strict=True)
        return [self.stem_numbers.get(form, -1) for form in forms]

    def number_words(self, texts: Sequence[str]) -> Integers:
        """Return the numbers of words; new ones are added."""
        with self._lock:
            return self._number(texts)

    def read(self, chunks: Iterable[StoredChunk]) -> LineTable:
        """Return the lines of chunks, each once, notes before transcripts, without lines that repeat a note."""
        ordered = sorted(chunks, key=_POSITION)
        with self._lock:
            table = self._join(ordered)
            if 0 < table.note_count < len(table):
                table = _remove_repeated(table)
            table.vector_lengths = self._measure(table)
            return table

    def _join(self, chunks: list[StoredChunk]) -> LineTable:
        """Put the lines of chunks together, in the order of their positions, each once."""
        numbers = self._number_chunks(chunks)
        facts = self._chunks[numbers]
        paths: dict[str, int] = {}
        files = np.array([paths.setdefault(stored.path, len(paths)) for stored in chunks])
        skips = self._count_skipped(facts, files)
        if (skips == facts[:, 1]).any():  # chunks without a line of their own
            whole = (skips < facts[:, 1]).nonzero()[0]
            chunks, facts, files, skips = [chunks[at] for at in whole], facts[whole], files[whole], skips[whole]
        places = [(stored.chunk.section, stored.ordinal) for stored in chunks]
        sections, ordinals = np.array(places).T
        days = ["" if stored.source == "memory" else stored.chunk.context[:DAY_CHARS] for stored in chunks]
        is_new_file = files[1:] != files[:-1]
        is_new_day = is_new_file | np.array([day != before for before, day in pairwise(days)], bool)
        # Between chunks that follow one another there are blank lines at most.
        is_apart = (facts[1:, 2] > facts[:-1, 4] + 1) & (ordinals[1:] != ordinals[:-1] + 1)
        is_new_block = is_new_file | (sections[1:] != sections[:-1]) | is_apart
        counts = np.cumsum([np.append(False, steps) for steps in (is_new_file, is_new_day, is_new_block)], axis=1)
        sizes = facts[:, 1] - skips
        ids = expand_ranges(facts[:, 0] + skips, sizes)
        lines = self._lines[ids]
        words = self._line_words[expand_ranges(lines[:, 8], lines[:, 7])]
        columns = np.concatenate([np.arange(len(chunks))[None], counts]).repeat(sizes, axis=1)
        return LineTable(chunks, paths, np.concatenate([lines.T, ids[None], columns], dtype=np.int64), words)

    def _count_skipped(self, facts: Integers, files: Integers) -> Integers:
        """Return how many lines at the beginning of each chunk are in the chunk before it."""
        skips = np.zeros(len(facts), np.int64)
        if not ((facts[1:, 2] < facts[:-1, 4]) & (files[1:] == files[:-1])).any():
            return skips
        file = end = -1
        for at, (first, size, start, last, stop) in enumerate(facts[:, :5].tolist()):
            if files[at] != file:
                file, end = int(files[at]), -1
            if last < end:
                skips[at] = size
            else:
                skips[at] = self._lines[first : first + size, 1].searchsorted(end) if start < end else 0
                end = stop
        return skips

    def _number_chunks(self, chunks: Sequence[StoredChunk]) -> Integers:
        """Return the numbers of chunks; the lines of new ones are added."""
        keys: list[object] = [stored.digest or _IDENTITY(stored) for stored in chunks]
        numbers = list(map(self._chunk_numbers.get, keys))
        if None in numbers:
            new = {key: stored for key, stored in zip(keys, chunks, strict=True) if key not in self._chunk_numbers}
            self._add_chunks(new)
            numbers = [self._chunk_numbers[key] for key in keys]
        return np.array(numbers)

    def _add_chunks(self, new: Mapping[object, StoredChunk]) -> None:
        """Split chunks into lines; the words of all are numbered at once, which takes a fraction of the time."""
        tokens: list[str] = []
        rows: list[tuple[int, ...]] = []
        sizes: list[int] = []
        for stored in new.values():
            chunk, start = stored.chunk, stored.chunk.start_char
            raw = chunk.text.split("\n")
            texts = [text.removesuffix("\r") for text in raw] if "\r" in chunk.text else raw
            contents = texts if stored.source == "memory" else list(map(strip_role, texts))
            tokens += _split_words("\n".join(contents))
            for number, (line, text, content) in enumerate(zip(raw, texts, contents, strict=True), chunk.start_line):
                label = self.label_numbers.setdefault(find_label(content), len(self.label_numbers))
                line_end = len(line) - len(text) + 1
                rows.append((number, start, len(text), line_end, label, is_question(content), has_content(text)))
                start += len(line) + 1
            sizes.append(len(raw))
        numbers = self._number(tokens)
        counts = np.diff((numbers == LINE_END).nonzero()[0], prepend=-1) - 1
        befores = counts.cumsum() - counts + self._word_count
        lines = np.column_stack([np.array(rows, np.int64), counts, befores])
        firsts = np.cumsum([0, *sizes[:-1]])
        starts, lasts = lines[firsts, 1], lines[firsts + np.array(sizes) - 1, 1]
        stops = [stored.chunk.start_char + len(stored.chunk.text) for stored in new.values()]
        stops = np.maximum(stops, lasts + 1)  # one more if the last line is blank
        columns = (
            firsts + self._line_count,
            sizes,
            starts,
            lasts,
            stops,
            befores[firsts],
            np.add.reduceat(counts, firsts),
        )
        count = len(self._chunk_numbers)
        self._chunk_numbers.update(zip(new, range(count, count + len(new)), strict=True))
        self._chunks = _extend(self._chunks, count, np.column_stack(columns))
        self._lines = _extend(self._lines, self._line_count, lines.astype(np.int32))
        self._line_words = _extend(self._line_words, self._word_count, numbers[numbers != LINE_END].astype(np.int32))
        self._line_count += len(lines)
        self._word_count += int(counts.sum())

    def _measure(self, table: LineTable) -> Floats:
        """Return `LineTable.vector_lengths`, which are computed once for the lines of a block."""
        starts = [0, *((table.blocks[1:] != table.blocks[:-1]).nonzero()[0] + 1).tolist(), len(table)]
        keys = [table.ids[start:end].tobytes() for start, end in pairwise(starts)]
        lengths = list(map(self._block_lengths.get, keys))
        is_new = np.array([own is None for own in lengths])
        if is_new.any():
            new = table.take(np.flatnonzero(is_new[table.blocks]))
            sums = _add_vectors(self.vectors, new.words, new.counts)
            own_lengths = measure_rows(sums)
            blended = Neighbourhood(new.middles, new.blocks).spread_sum(sums / own_lengths[:, None], MEANING_REACH)
            both = np.stack([own_lengths, measure_rows(blended)], axis=1)
            parts = np.split(both, np.cumsum(np.bincount(table.blocks)[is_new])[:-1])
            new_keys = [key for key, own in zip(keys, lengths, strict=True) if own is None]
            measured = dict(zip(new_keys, parts, strict=True))
            self._block_lengths |= measured
            lengths = [measured[key] if own is None else own for key, own in zip(keys, lengths, strict=True)]
        return np.concatenate(lengths)  # type: ignore[arg-type]  # none is missing

    def _number(self, texts: Sequence[str]) -> Integers:
        numbers = np.fromiter(map(self._numbers.get, texts, repeat(UNKNOWN)), np.int64, len(texts))
        if len(unknown := np.flatnonzero(numbers == UNKNOWN)):
            self._add(list(dict.fromkeys(texts[at] for at in unknown.tolist())))
            numbers[unknown] = [self._numbers[texts[at]] for at in unknown.tolist()]
        return numbers

    def _add(self, new: Sequence[str]) -> None:
        first, last = len(self.words), len(self.words) + len(new)
        forms = [(at, stem_word(word, name)) for word in new for at, name in enumerate(self.languages)]
        stems = [self.stem_numbers.setdefault(form, len(self.stem_numbers)) for form in forms]
        self.stems = _extend(self.stems, first, np.array(stems, np.int64).reshape(len(new), -1))
        self.are_numbers = _extend(self.are_numbers, first, np.array([word.isdigit() for word in new], bool))
        vectors = np.empty((len(new), 0), np.float32) if self.word_vectors is None else self.word_vectors(new)
        self.vectors = _extend(self.vectors, first, vectors)
        self.lengths = _extend(self.lengths, first, measure_rows(vectors))
        self.words += new
        self._numbers.update(zip(new, range(first, last), strict=True))


def expand_ranges(starts: NDArray[np.integer], sizes: NDArray[np.integer]) -> Integers:
    """Return the numbers from each start on, as many as its size, one range after the other."""
    ends = sizes.cumsum()
    expanded: Integers = (starts - ends + sizes).repeat(sizes) + np.arange(ends[-1] if len(ends) else 0)
    return expanded


def measure_rows(rows: Floats) -> Floats:
    """Return the length of each row, at least 1e-10 so that it can divide."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), NO_LENGTH).astype(np.float32, copy=False)
    return lengths


def _split_words(text: str) -> list[str]:
    """Return the words of a text, and a line end after those of each line."""
    if text.isascii() and not COMPOUND.search(text):  # the same words, in half the time
        return [*_ASCII_TOKENS.findall(text.lower()), "\n"]
    return [token for line in text.split("\n") for token in (*split_words(line), "\n")]


def _remove_repeated(table: LineTable) -> LineTable:
    """Remove lines of transcripts that repeat a note; the lines before and after one are two blocks."""
    notes = {form for text in table.get_texts(0, table.note_count) for form in list_forms(text)}
    messages = table.get_texts(table.note_count)
    own = [at for at, text in enumerate(messages, table.note_count) if normalise_line(strip_role(text)) not in notes]
    at = np.array([*range(table.note_count), *own])
    remaining = table.take(at)
    steps = (np.diff(remaining.blocks) > 0) | (np.diff(at) > 1)
    remaining.blocks[:] = np.cumsum([0, *steps.tolist()])
    return remaining


def _extend(rows: Rows, first: int, more: Rows) -> Rows:
    """Return rows with more rows from `first` on: in place where there is room."""
    last = first + len(more)
    if last > len(rows):
        grown = np.empty_like(more, shape=(last + max(GROWTH, last // 8), *more.shape[1:]))
        if first:
            grown[:first] = rows[:first]
        rows = grown
    rows[first:last] = more
    return rows


def _add_vectors(vectors: Floats, numbers: NDArray[np.int32], counts: Integers) -> Floats:
    """Return the sum of the vectors of each line's words: the first words of all lines, the second ones, and so on."""
    order = np.argsort(-counts, kind="stable")  # lines of many words first: those with one more are a slice
    firsts = (np.cumsum(counts) - counts)[order]
    sums = np.zeros((len(counts), vectors.shape[1]), np.float32)
    for at in range(int(counts.max())):
        longer = int(np.count_nonzero(counts > at))
        sums[:longer] += vectors.take(numbers[firsts[:longer] + at], axis=0)
    ordered = np.empty_like(sums)
    ordered[order] = sums
    return ordered
