"""Keep the lines of chunks as arrays: their words as numbers, their lengths, labels and places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from openclaw_memory import _forks
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
from openclaw_memory.text.terms import HUMP, split_words, stem_word
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

# 20,000 words with the vectors of the model that ships; 40,000 lines of two dozen words; the lengths of 20,000 blocks.
MAX_WORD_BYTES, MAX_LINE_BYTES, MAX_BLOCKS = 24 << 20, 32 << 20, 20_000
WORD_BYTES = 200  # of a word, but for its vector
CHUNK_BYTES = 600  # of a chunk, but for its text and its arrays
GROWTH = 4096  # words
LINE_END, UNKNOWN = -1, -2  # in place of the number of a word

_ASCII_TOKENS = re.compile("[a-z0-9]+|\n")  # as `words` splits
# What tells two chunks apart: the id of one may be that of another chunk in another index.
_IDENTITY = attrgetter(
    "source", "path", "chunk.start_char", "chunk.start_line", "chunk.section", "chunk.context", "chunk.text"
)
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

    Each array has an entry for each line: `ids` are numbers of lines that are given once, `numbers` line numbers,
    `starts` and `sizes` offset and length in characters, `line_ends` the length of the line end, `labels` numbers of
    labels, 0 for none. `questions` and `contents` are 1 for a question, and for a line that is not blank and not a
    date. `counts` are numbers of words, and `words` holds these, line by line. `parts` are indices into `chunks`;
    `files`, `places` (of a day in a transcript) and `blocks` count up with each file, day and section.
    """

    def __init__(
        self, chunks: Sequence[StoredChunk], paths: Mapping[str, int], facts: Integers, words: NDArray[np.int32]
    ) -> None:
        self.chunks, self.paths, self.facts, self.words = chunks, paths, facts, words
        self.ids, self.numbers, self.starts, self.sizes, self.line_ends, self.labels = facts[:6]
        self.questions, self.contents, self.counts = facts[6:9]
        self.parts, self.files, self.places, self.blocks = facts[9:]
        self.middles: Floats = (self.starts + self.sizes / 2).astype(np.float32)
        self.note_count = int(np.searchsorted(self.parts, sum(chunk.source == "memory" for chunk in chunks)))
        self.vector_lengths: Floats  # of the sum of a line's vectors, and of a line of length 1 with its neighbours

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, at: NDArray[np.intp]) -> LineTable:
        """Return the lines at these indices, which ascend."""
        ends = np.cumsum(self.counts)[at]
        words = self.words[expand_ranges(ends - self.counts[at], self.counts[at])]
        return LineTable(self.chunks, self.paths, self.facts[:, at], words)

    def get_line(self, at: int) -> Line:
        """Return one line with its text."""
        stored = self.chunks[int(self.parts[at])]
        start, size = int(self.starts[at]), int(self.sizes[at])
        offset = start - stored.chunk.start_char
        text, number = stored.chunk.text[offset : offset + size], int(self.numbers[at])
        return Line(stored.path, stored.source, number, start, text, int(self.line_ends[at]))

    def get_texts(self, first: int = 0, last: int | None = None) -> list[str]:
        """Return the texts of all lines, or of those from one index to another."""
        starts = [stored.chunk.start_char for stored in self.chunks]
        texts = [stored.chunk.text for stored in self.chunks]
        facts = self.facts[[9, 2, 3], first:last].tolist()
        return [texts[part][start - starts[part] :][:size] for part, start, size in zip(*facts, strict=True)]


class ChunkLines(Struct, frozen=True, eq=False):
    """The lines of one chunk: the first nine rows of `LineTable.facts`, and their words.

    `first` and `last` are the offsets of the first line and the last, and `end` is where the chunk ends, or 1 more if
    its last line is blank.
    """

    facts: NDArray[np.int32]
    words: NDArray[np.int32]
    section: tuple[str, int]
    first: int
    last: int
    end: int

    @property
    def size(self) -> int:
        return CHUNK_BYTES + self.facts.nbytes + self.words.nbytes + self.end - self.first


class LineIndex:
    """Numbers for words, their stems and vectors, and the lines of recent chunks in these numbers. Thread-safe.

    It only grows, so that a number stays valid; a full one is replaced by a `renew`ed one.
    """

    def __init__(self, word_vectors: WordVectors | None = None) -> None:
        """Begin without a word.

        Args:
            word_vectors: Returns the vectors of words, shape (words, dims). None compares words as they are written.
        """
        self.word_vectors = word_vectors
        self.words: list[str] = []
        self.stems = np.empty(0, np.int64)  # of each word the number of its stem
        self.are_numbers = np.empty(0, bool)  # of each word
        self.stem_numbers: dict[str, int] = {}
        self.label_numbers: dict[str, int] = {"": 0}
        self.vectors: Floats = np.empty((0, 0), np.float32)
        self.lengths: Floats = np.empty(0, np.float32)
        self._numbers: dict[str, int] = {"\n": LINE_END}
        self._chunks: dict[tuple[object, ...], ChunkLines] = {}
        self._line_bytes = self._next_id = 0
        self._block_lengths: dict[bytes, Floats] = {}  # by the ids of the block's lines
        self._lock = _forks.lock()

    def renew(self) -> LineIndex:
        """Return this index, or an empty one in its place if it is full."""
        is_full = len(self.words) * (self.vectors[:1].nbytes + WORD_BYTES) > MAX_WORD_BYTES
        return LineIndex(self.word_vectors) if is_full else self

    def number_words(self, texts: Sequence[str]) -> Integers:
        """Return the numbers of words; new ones are added."""
        with self._lock:
            return self._number(texts)

    def read(self, chunks: Iterable[StoredChunk]) -> LineTable:
        """Return the lines of chunks, each once, notes before transcripts, without lines that repeat a note."""
        ordered = sorted(chunks, key=_POSITION)
        with self._lock:
            table = _join(ordered, self._load_lines(ordered))
            if 0 < table.note_count < len(table):
                table = _remove_repeated(table)
            table.vector_lengths = self._measure(table)
            return table

    def share_words(self, query: Query, chunks: Sequence[StoredChunk]) -> dict[int, float]:
        """Return by chunk id the share of the query's words that each chunk holds, weighted by rarity; 0..1."""
        total = sum(query.weights)
        if not total:
            return {}
        with self._lock:
            stems = [{*self.stems[lines.words].tolist()} for lines in self._load_lines(chunks)]
        weights = dict(zip(query.stems, query.weights, strict=True))
        numbered = [(self.stem_numbers[stem], weight) for stem, weight in weights.items() if stem in self.stem_numbers]
        return {
            stored.id: sum(weight for stem, weight in numbered if stem in own) / sum(weights.values())
            for stored, own in zip(chunks, stems, strict=True)
        }

    def _load_lines(self, chunks: Sequence[StoredChunk]) -> list[ChunkLines]:
        keys = list(map(_IDENTITY, chunks))
        lines = list(map(self._chunks.get, keys))
        if None in lines:
            missing = {key: stored for key, stored, own in zip(keys, chunks, lines, strict=True) if own is None}
            new = dict(zip(missing, self._prepare(list(missing.values())), strict=True))
            self._chunks |= new
            self._line_bytes += sum(own.size for own in new.values())
            while self._line_bytes > MAX_LINE_BYTES and len(self._chunks) > 1:
                self._line_bytes -= self._chunks.pop(next(iter(self._chunks))).size
            lines = [own if own is not None else new[key] for key, own in zip(keys, lines, strict=True)]
        return lines  # type: ignore[return-value]  # none is missing

    def _prepare(self, chunks: Sequence[StoredChunk]) -> list[ChunkLines]:
        """Split chunks into lines; the words of all are numbered at once, which takes a fraction of the time."""
        tokens: list[str] = []
        rows: list[tuple[int, ...]] = []
        sizes: list[int] = []
        for stored in chunks:
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
        ends = np.flatnonzero(numbers == LINE_END)
        counts = np.diff(ends, prepend=-1) - 1
        ids = np.arange(self._next_id, self._next_id + len(rows))
        self._next_id += len(rows)
        facts = np.column_stack([ids, np.array(rows, np.int64), counts]).T.astype(np.int32)
        numbers = numbers[numbers != LINE_END].astype(np.int32)
        lines, first, word = [], 0, 0
        for stored, size in zip(chunks, sizes, strict=True):
            last = first + size
            own = facts[:, first:last].copy()
            end_word = word + int(own[8].sum())
            starts = int(own[2, 0]), int(own[2, -1])
            end = max(stored.chunk.start_char + len(stored.chunk.text), starts[1] + 1)
            section = stored.path, stored.chunk.section
            lines.append(ChunkLines(own, numbers[word:end_word].copy(), section, *starts, end))
            first, word = last, end_word
        return lines

    def _measure(self, table: LineTable) -> Floats:
        """Return `LineTable.vector_lengths`, which are computed once for the lines of a block."""
        starts = np.flatnonzero(np.diff(table.blocks, prepend=-1)).tolist()
        keys = [table.ids[start:end].tobytes() for start, end in pairwise([*starts, len(table)])]
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
            while len(self._block_lengths) > MAX_BLOCKS:
                del self._block_lengths[next(iter(self._block_lengths))]
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
        vectors = np.empty((len(new), 0), np.float32) if self.word_vectors is None else self.word_vectors(new)
        stems = [self.stem_numbers.setdefault(stem_word(word), len(self.stem_numbers)) for word in new]
        self.vectors = _extend(self.vectors, first, vectors)
        self.lengths = _extend(self.lengths, first, measure_rows(vectors))
        self.stems = _extend(self.stems, first, np.array(stems, np.int64))
        self.are_numbers = _extend(self.are_numbers, first, np.array([word.isdigit() for word in new], bool))
        self.words += new
        self._numbers.update(zip(new, range(first, last), strict=True))


def expand_ranges(starts: NDArray[np.integer], sizes: NDArray[np.integer]) -> Integers:
    """Return the numbers from each start on, as many as its size, one range after the other."""
    before = np.cumsum(sizes) - sizes
    expanded: Integers = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
    return expanded


def measure_rows(rows: Floats) -> Floats:
    """Return the length of each row, at least 1e-10 so that it can divide."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), np.float32(1e-10)).astype(np.float32, copy=False)
    return lengths


def _split_words(text: str) -> list[str]:
    """Return the words of a text, and a line end after those of each line."""
    if text.isascii() and not HUMP.search(text):  # the same words, in half the time
        return [*_ASCII_TOKENS.findall(text.lower()), "\n"]
    return [token for line in text.split("\n") for token in (*split_words(line), "\n")]


def _join(chunks: Sequence[StoredChunk], lines: Sequence[ChunkLines]) -> LineTable:
    """Put the lines of chunks together, in the order of their positions, each once."""
    parts: list[StoredChunk] = []
    facts: list[NDArray[np.int32]] = []
    numbers: list[NDArray[np.int32]] = []
    columns: list[tuple[int, int, int, int]] = []  # of each part: `LineTable.parts` to `blocks`
    paths: dict[str, int] = {}
    block, place, section, day, end, ordinal = -1, -1, ("", 0), "", -1, -1
    for stored, own in zip(chunks, lines, strict=True):
        if own.section[0] != section[0]:
            end = -1
        if own.last < end:  # it has no line of its own
            continue
        # Between chunks that follow one another there are blank lines at most.
        block += own.section != section or (own.first > end + 1 and stored.ordinal != ordinal + 1)
        today = "" if stored.source == "memory" else stored.chunk.context[:DAY_CHARS]
        place += own.section[0] != section[0] or today != day
        skipped = int(np.searchsorted(own.facts[2], end)) if own.first < end else 0
        columns.append((len(parts), paths.setdefault(stored.path, len(paths)), place, block))
        parts.append(stored)
        facts.append(own.facts[:, skipped:])
        numbers.append(own.words[int(own.facts[8, :skipped].sum()) :] if skipped else own.words)
        section, day, end, ordinal = own.section, today, own.end, stored.ordinal
    sizes = [own.shape[1] for own in facts]
    rows = np.concatenate([np.concatenate(facts, axis=1), np.repeat(np.array(columns).T, sizes, axis=1)])  # int64
    return LineTable(parts, paths, rows, np.concatenate(numbers))


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
        grown = np.empty_like(more, shape=(last + GROWTH, *more.shape[1:]))
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
