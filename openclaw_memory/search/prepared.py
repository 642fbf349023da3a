"""What is known of the lines of chunks without the query, worked out once for the chunks that come up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory import _forks
from openclaw_memory.search.lines import Line, asks, label_of, lines_of, unrepeated
from openclaw_memory.text.terms import word_stem, words
from openclaw_memory.types import StoredChunk

if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Integers: TypeAlias = NDArray[np.int64]
    _Rows = TypeVar("_Rows", bound=NDArray[Any])

_ASCII_TOKENS = re.compile("[a-z0-9]+|\n")  # as `words` finds them

# How far a line's content reaches, in characters: likeness fades to 1/e over this distance.
REACH_OF_TERMS = (300.0, 180.0)  # forward to the lines below, back to the lines above
REACH_OF_WORDS = (500.0, 300.0)
REACH_OF_MEANING = (200.0, 130.0)
NEIGHBOURS = 4

WordVectors = Callable[[Sequence[str]], "Floats"]

# With the vectors of the model that ships, 20,000 words and 20,000 lines.
MAX_WORD_BYTES = 24 << 20
MAX_LINE_BYTES = 32 << 20
GROWTH = 4096  # words
LINE_END, NEW = -1, -2  # in place of the number of a word
BYTES_OF_WORD = 200  # but for its vector: the text, its number in a dictionary
BYTES_OF_LINE = 600  # but for its vector: the text, which its chunk holds too, and some numbers


class Neighbourhood:
    """The distances between neighbouring lines, by the offsets of their middles and the numbers of their blocks."""

    def __init__(self, middles: Floats, blocks: NDArray[np.integer]) -> None:
        self.middles, self.blocks = middles, blocks

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


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines in the order of their places. Arrays have one entry for each line.

    Attributes:
        lines: The lines.
        blocks: Ascending numbers of the blocks that they are in.
        files: Ascending numbers of their files.
        numbers: Their numbers in these files.
        middles: The offsets of their middles in the file, in characters.
        labels: The numbers of their labels, 0 for none.
        questions: 1 for a question, else 0.
        counts: How many words they have.
        words: The numbers of these words, line by line, shape (sum of `counts`,).
        meanings: The unit vectors of what the lines and their neighbours say, shape (lines, dims).
    """

    lines: Sequence[Line]
    blocks: Integers
    files: Integers
    numbers: Integers
    middles: Floats
    labels: Integers
    questions: Floats
    counts: Integers
    words: Integers
    meanings: Floats


class Lexicon:
    """Numbers for words, their stems and vectors, and the lines of chunks in these numbers. Safe to use from threads.

    It only grows, so that a number stays what it is; a full one is replaced by a `fresh` one.
    """

    def __init__(self, word_vectors: WordVectors | None = None) -> None:
        """Begin without a word.

        Args:
            word_vectors: Returns the vectors of words, shape (words, dims). None compares words as they are written.
        """
        self.word_vectors = word_vectors
        self.words: list[str] = []
        self.stems = np.empty(0, np.int64)  # of each word the number of its stem
        self.stem_numbers: dict[str, int] = {}
        self.label_numbers: dict[str, int] = {"": 0}
        self.vectors: Floats = np.empty((0, 0), np.float32)
        self.lengths: Floats = np.empty(0, np.float32)
        self._numbers: dict[str, int] = {"\n": LINE_END}
        self._blocks: dict[tuple[object, ...], Lines] = {}
        self._line_bytes = 0
        self._lock = _forks.lock()

    def fresh(self) -> Lexicon:
        """Return this lexicon, or an empty one in its place if it is full."""
        is_full = len(self.words) * (self.vectors[:1].nbytes + BYTES_OF_WORD) > MAX_WORD_BYTES
        return Lexicon(self.word_vectors) if is_full else self

    def numbered(self, some: Sequence[str]) -> Integers:
        """Return the numbers of words; new ones are added."""
        with self._lock:
            return self._numbered(some)

    def lines(self, chunks: Iterable[StoredChunk]) -> Lines:
        """Return the lines of chunks, each once, notes before transcripts, without what transcripts repeat of notes."""
        runs = list(_runs(chunks))
        keys = [tuple(map(_key, run)) for run in runs]
        with self._lock:
            found = {key: block for key in keys if (block := self._blocks.get(key)) is not None}
            missing = [(key, lines_of(run)) for key, run in zip(keys, runs, strict=True) if key not in found]
            for (key, _), block in zip(missing, self._prepared([lines for _, lines in missing]), strict=True):
                found[key] = block
                self._keep(key, block)
            blocks = [found[key] for key in keys]
            if len({block.lines[0].source for block in blocks}) > 1:
                blocks = self._unrepeated(blocks)
        return _joined(blocks)

    def _unrepeated(self, blocks: Sequence[Lines]) -> list[Lines]:
        known = {id(block.lines): block for block in blocks}
        left = unrepeated([block.lines for block in blocks])
        parts = [lines for lines in left if id(lines) not in known]
        known.update(zip(map(id, parts), self._prepared(parts), strict=True))
        return [known[id(lines)] for lines in left]

    def _keep(self, key: tuple[object, ...], block: Lines) -> None:
        self._blocks[key] = block
        self._line_bytes += _bytes_of(block)
        while self._line_bytes > MAX_LINE_BYTES and len(self._blocks) > 1:
            self._line_bytes -= _bytes_of(self._blocks.pop(next(iter(self._blocks))))

    def _prepared(self, blocks: Sequence[Sequence[Line]]) -> list[Lines]:
        """Return the lines of each block: all of them at once, which takes a fraction of the time."""
        lines = list(chain.from_iterable(blocks))
        if not lines:
            return []
        numbers = self._numbered(_tokens([line.said for line in lines]))
        ends = np.flatnonzero(numbers == LINE_END)
        numbers, counts = numbers[numbers != LINE_END], np.diff(ends, prepend=-1) - 1
        labels = self.label_numbers
        middles = np.array([line.start_char + len(line.text) / 2 for line in lines], np.float32)
        sizes = [len(block) for block in blocks]
        of_blocks = np.repeat(np.arange(len(blocks)), sizes)
        sums = _sums(self.vectors, numbers, counts)
        meanings = unit(Neighbourhood(middles, of_blocks).blended(unit(sums), REACH_OF_MEANING))
        whole = Lines(
            lines=lines,
            blocks=of_blocks,
            files=of_blocks,
            numbers=np.array([line.number for line in lines], np.int64),
            middles=middles,
            labels=np.array([labels.setdefault(label_of(line.said), len(labels)) for line in lines], np.int64),
            questions=np.array([asks(line.said) for line in lines], np.float32),
            counts=counts,
            words=numbers,
            meanings=meanings,
        )
        last = np.cumsum(sizes).tolist()
        of_words = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return [
            _part(whole, block, slice(end - len(block), end), slice(of_words[end - len(block)], of_words[end]))
            for block, end in zip(blocks, last, strict=True)
        ]

    def _numbered(self, some: Sequence[str]) -> Integers:
        found = np.fromiter(map(self._numbers.get, some, repeat(NEW)), np.int64, len(some))
        if len(new := np.flatnonzero(found == NEW)):
            self._add(list(dict.fromkeys(some[at] for at in new.tolist())))
            found[new] = [self._numbers[some[at]] for at in new.tolist()]
        return found

    def _add(self, new: Sequence[str]) -> None:
        first, last = len(self.words), len(self.words) + len(new)
        vectors = np.empty((len(new), 0), np.float32) if self.word_vectors is None else self.word_vectors(new)
        stems = self.stem_numbers
        of_stems = [stems.setdefault(word_stem(word), len(stems)) for word in new]
        self.vectors = _grown(self.vectors, first, vectors)
        self.lengths = _grown(self.lengths, first, lengths_of(vectors))
        self.stems = _grown(self.stems, first, np.array(of_stems, np.int64))
        self.words += new
        self._numbers.update(zip(new, range(first, last), strict=True))


def unit(rows: Floats) -> Floats:
    """Return rows of length 1."""
    return rows / lengths_of(rows)[:, None]


def lengths_of(rows: Floats) -> Floats:
    """Return the length of each row, at least 1e-10 so that it can divide."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), np.float32(1e-10)).astype(np.float32, copy=False)
    return lengths


def _runs(chunks: Iterable[StoredChunk]) -> Iterator[list[StoredChunk]]:
    """Yield the chunks whose lines make one block, as `lines_of` says; notes before transcripts."""
    run: list[StoredChunk] = []
    section, end, last = ("", 0), -1, -1
    for stored in sorted(chunks, key=lambda stored: (stored.source, stored.path, stored.chunk.start_char)):
        chunk = stored.chunk
        size = len(chunk.text) - chunk.text.rfind("\n") - 1
        last_line = chunk.start_char + len(chunk.text) - size
        is_same_file = stored.path == section[0]
        if not is_same_file or last_line >= end:  # else it has no line of its own
            is_apart = chunk.start_char > end + 1 and stored.ordinal != last + 1
            if run and (is_apart or (stored.path, chunk.section) != section):
                yield run
                run = []
            section, end, last = (stored.path, chunk.section), last_line + max(size, 1), stored.ordinal
            run.append(stored)
    if run:
        yield run


def _key(stored: StoredChunk) -> tuple[object, ...]:
    """Return what the lines of a chunk are made of: its id may be that of another chunk in another index."""
    chunk = stored.chunk
    return stored.source, stored.path, chunk.start_line, chunk.start_char, chunk.context, chunk.text


def _tokens(texts: Sequence[str]) -> list[str]:
    """Return the words of each text, and a line end after them."""
    whole = "\n".join(texts)
    if whole.isascii():  # the same words, in half the time
        return [*_ASCII_TOKENS.findall(whole.lower()), "\n"]
    return [token for text in texts for token in (*words(text), "\n")]


def _bytes_of(block: Lines) -> int:
    return BYTES_OF_LINE * len(block.lines) + block.meanings.nbytes


def _part(whole: Lines, lines: Sequence[Line], part: slice, of_words: slice) -> Lines:
    return Lines(
        lines,
        whole.blocks[part],
        whole.files[part],
        whole.numbers[part],
        whole.middles[part],
        whole.labels[part],
        whole.questions[part],
        whole.counts[part],
        whole.words[of_words],
        whole.meanings[part],
    )


def _joined(blocks: Sequence[Lines]) -> Lines:
    """Return blocks, in their order, as one."""
    sizes = [len(block.lines) for block in blocks]
    paths: dict[str, int] = {}
    files = [paths.setdefault(block.lines[0].path, len(paths)) for block in blocks]
    return Lines(
        list(chain.from_iterable(block.lines for block in blocks)),
        np.repeat(np.arange(len(blocks)), sizes),
        np.repeat(files, sizes),
        np.concatenate([block.numbers for block in blocks]),
        np.concatenate([block.middles for block in blocks]),
        np.concatenate([block.labels for block in blocks]),
        np.concatenate([block.questions for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
        np.concatenate([block.words for block in blocks]),
        np.concatenate([block.meanings for block in blocks]),
    )


def _grown(rows: _Rows, first: int, more: _Rows) -> _Rows:
    """Return rows with more of them from `first` on: in place where there is room."""
    last = first + len(more)
    if last > len(rows):
        grown = np.empty_like(more, shape=(last + GROWTH, *more.shape[1:]))
        if first:
            grown[:first] = rows[:first]
        rows = grown
    rows[first:last] = more
    return rows


def _sums(vectors: Floats, numbers: Integers, counts: Integers) -> Floats:
    """Return the sum of the vectors of each line's words: the first words of all lines, the second ones, and so on."""
    order = np.argsort(-counts, kind="stable")  # lines of many words first: those with one more are a slice
    firsts = (np.cumsum(counts) - counts)[order]
    sums = np.zeros((len(counts), vectors.shape[1]), np.float32)
    for at in range(int(counts.max())):
        longer = int(np.count_nonzero(counts > at))
        sums[:longer] += vectors.take(numbers[firsts[:longer] + at], axis=0)
    found = np.empty_like(sums)
    found[order] = sums
    return found
