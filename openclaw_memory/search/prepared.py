"""What is known of the lines of chunks without the query, worked out once for the chunks that come up."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory import _forks
from openclaw_memory.search.lines import Line, asks, label_of, lines_of, repeated
from openclaw_memory.text.terms import HUMP, split_words, stem_word
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

# With the vectors of the model that ships, 20,000 words; 40,000 lines of two dozen words each.
MAX_WORD_BYTES = 24 << 20
MAX_LINE_BYTES = 32 << 20
MAX_BLOCKS = 20_000  # of which the lengths are known: 8 MB
GROWTH = 4096  # words
LINE_END, NEW = -1, -2  # in place of the number of a word
BYTES_OF_WORD = 200  # but for its vector: the text, its number in a dictionary
BYTES_OF_LINE = 600  # but for the numbers of its words: the text, which its chunk holds too, and some more numbers

# What tells two chunks apart: the id of one may be that of another chunk in another index.
_KEY = attrgetter(
    "source", "path", "chunk.start_char", "chunk.start_line", "chunk.section", "chunk.context", "chunk.text"
)
_START = attrgetter("start_char")
_PLACE = attrgetter("source", "path", "chunk.start_char")


class Neighbourhood:
    """The distances between neighbouring lines, by the offsets of their middles and the numbers of their blocks."""

    def __init__(self, middles: Floats, blocks: NDArray[np.integer]) -> None:
        self._distances = [
            (step, np.where(blocks[step:] == blocks[:-step], middles[step:] - middles[:-step], np.float32(np.inf)))
            for step in range(1, min(NEIGHBOURS, len(middles) - 1) + 1)
        ]

    def steps(self, reach: tuple[float, float]) -> list[tuple[int, Floats, Floats]]:
        """Return for each step 1..NEIGHBOURS the step, and the shares that lines pass on to the lines below and above.

        Args:
            reach: The distances in characters, forward and back, over which a share fades to 1/e.
        """
        return [(step, np.exp(-far / reach[0]), np.exp(-far / reach[1])) for step, far in self._distances]

    def strongest(self, values: Floats, reach: tuple[float, float]) -> Floats:
        """Return each value, or the faded value of a neighbour if that is larger; shape (lines, columns)."""
        best = values.T.copy()  # so that what is passed on lies side by side in memory
        own = best.copy()
        for step, below, above in self.steps(reach):
            np.maximum(best[:, step:], own[:, :-step] * below, out=best[:, step:])
            np.maximum(best[:, :-step], own[:, step:] * above, out=best[:, :-step])
        return best.T

    def blended(self, vectors: Floats, reach: tuple[float, float]) -> Floats:
        """Return each number or vector plus the faded ones of its neighbours."""
        total = vectors.copy()
        for step, below, above in self.steps(reach):
            total[step:] += (vectors[:-step].T * below).T
            total[:-step] += (vectors[step:].T * above).T
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines in the order of their places. Arrays have one entry for each line.

    Attributes:
        lines: The lines.
        paths: The numbers of their files by path, ascending.
        ids: Numbers that are each given once, to a line of a chunk.
        blocks: Numbers of the blocks that they are in, from 0.
        files: Numbers of their files.
        numbers: Their numbers in these files.
        middles: The offsets of their middles in the file, in characters.
        labels: The numbers of their labels, 0 for none.
        questions: 1 for a question, else 0.
        counts: How many words they have.
        words: The numbers of these words, line by line, shape (sum of `counts`,).
        lengths: The lengths of the sum of the vectors of these words, and of what a line of length 1 and its neighbours
            say together, shape (lines, 2).
    """

    lines: Sequence[Line]
    paths: Mapping[str, int]
    ids: Integers
    blocks: Integers
    files: Integers
    numbers: Integers
    middles: Floats
    labels: Integers
    questions: Floats
    counts: Integers
    words: Integers
    lengths: Floats

    def those(self, at: NDArray[np.intp]) -> Lines:
        """Return the lines of these indices, which ascend, without `lengths`."""
        ends = np.cumsum(self.counts)[at]
        return Lines(
            [self.lines[one] for one in at.tolist()],
            self.paths,
            self.ids[at],
            self.blocks[at],
            self.files[at],
            self.numbers[at],
            self.middles[at],
            self.labels[at],
            self.questions[at],
            self.counts[at],
            self.words[ranges(ends - self.counts[at], self.counts[at])],
            np.empty((0, 2), np.float32),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The lines of a chunk, or the last of them.

    `facts` has a row for each: its id, its number, its offset and its length, its label, whether it asks, how many
    words it has, and how many of the chunk are before them. `first` and `last` are the offsets of the chunk's first
    line and of its last, `end` is where it ends, or 1 more if the last is blank.
    """

    lines: Sequence[Line]
    facts: Integers
    words: Integers
    section: tuple[str, int]
    first: int
    last: int
    end: int

    def after(self, char: int) -> _Part:
        """Return the lines that begin at an offset or after it."""
        at = bisect_left(self.lines, char, key=_START)
        words = self.words[self.facts.item(at, -1) :]
        return _Part(self.lines[at:], self.facts[at:], words, self.section, self.first, self.last, self.end)


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
        self._parts: dict[tuple[object, ...], _Part] = {}
        self._line_bytes = 0
        self._next_id = 0
        self._lengths: dict[bytes, Floats] = {}  # of each block, by the ids of its lines
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
        ordered = sorted(chunks, key=_PLACE)
        with self._lock:
            found = _joined(ordered, self._parts_of(ordered))
            if found.lines[0].source != found.lines[-1].source:
                found = _unrepeated(found)
            return replace(found, lengths=self._lengths_of(found))

    def stems_of(self, chunks: Sequence[StoredChunk]) -> list[set[int]]:
        """Return for each chunk the numbers of the stems of its words."""
        with self._lock:
            return [{*self.stems[part.words].tolist()} for part in self._parts_of(chunks)]

    def _parts_of(self, chunks: Sequence[StoredChunk]) -> list[_Part]:
        keys = list(map(_KEY, chunks))
        found = {key: part for key in keys if (part := self._parts.get(key)) is not None}
        missing = {key: stored for key, stored in zip(keys, chunks, strict=True) if key not in found}
        for key, part in zip(missing, self._prepared(list(missing.values())), strict=True):
            self._parts[key] = found[key] = part
            self._line_bytes += _bytes_of(part)
        while self._line_bytes > MAX_LINE_BYTES and len(self._parts) > 1:
            self._line_bytes -= _bytes_of(self._parts.pop(next(iter(self._parts))))
        return [found[key] for key in keys]

    def _prepared(self, chunks: Sequence[StoredChunk]) -> list[_Part]:
        """Return the lines of each chunk: all of them at once, which takes a fraction of the time."""
        of_chunks = [lines_of([stored]) for stored in chunks]
        lines = list(chain.from_iterable(of_chunks))
        if not lines:
            return []
        numbers = self._numbered(_tokens([line.said for line in lines]))
        ends = np.flatnonzero(numbers == LINE_END)
        numbers, counts = numbers[numbers != LINE_END], np.diff(ends, prepend=-1) - 1
        rows = [(line.number, line.start_char, len(line.text), self._label(line), asks(line.said)) for line in lines]
        ids = np.arange(self._next_id, self._next_id + len(lines))
        self._next_id += len(lines)
        sizes = [len(own) for own in of_chunks]
        last = np.cumsum(sizes)[:-1]
        words_before = np.cumsum(counts) - counts
        of_words = np.split(numbers, words_before[last])
        in_chunk = words_before - np.repeat(words_before[[0, *last]], sizes)
        facts = np.column_stack([ids, np.array(rows, np.int64), counts, in_chunk])
        return list(map(_part, chunks, of_chunks, np.split(facts, last), of_words))

    def _label(self, line: Line) -> int:
        return self.label_numbers.setdefault(label_of(line.said), len(self.label_numbers))

    def _lengths_of(self, found: Lines) -> Floats:
        """Return `Lines.lengths`, which are worked out once for the lines of a block."""
        starts = np.flatnonzero(np.diff(found.blocks, prepend=-1)).tolist()
        keys = [found.ids[start:end].tobytes() for start, end in pairwise([*starts, len(found.ids)])]
        known = {key: lengths for key in keys if (lengths := self._lengths.get(key)) is not None}
        if len(known) < len(keys):
            is_new = np.array([key not in known for key in keys])
            new = found.those(np.flatnonzero(is_new[found.blocks]))
            sums = _sums(self.vectors, new.words, new.counts)
            own = lengths_of(sums)
            blended = Neighbourhood(new.middles, new.blocks).blended(sums / own[:, None], REACH_OF_MEANING)
            both = np.stack([own, lengths_of(blended)], axis=1)
            sizes = np.bincount(found.blocks)[is_new]
            new_keys = [key for key in keys if key not in known]
            known |= zip(new_keys, np.split(both, np.cumsum(sizes)[:-1]), strict=True)
            self._lengths |= known
            while len(self._lengths) > MAX_BLOCKS:
                del self._lengths[next(iter(self._lengths))]
        return np.concatenate([known[key] for key in keys])

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
        of_stems = [stems.setdefault(stem_word(word), len(stems)) for word in new]
        self.vectors = _grown(self.vectors, first, vectors)
        self.lengths = _grown(self.lengths, first, lengths_of(vectors))
        self.stems = _grown(self.stems, first, np.array(of_stems, np.int64))
        self.words += new
        self._numbers.update(zip(new, range(first, last), strict=True))


def ranges(starts: NDArray[np.integer], sizes: NDArray[np.integer]) -> Integers:
    """Return the numbers from each start on, as many as its size, one after the other."""
    before = np.cumsum(sizes) - sizes
    found: Integers = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
    return found


def unit(rows: Floats) -> Floats:
    """Return rows of length 1."""
    return rows / lengths_of(rows)[:, None]


def lengths_of(rows: Floats) -> Floats:
    """Return the length of each row, at least 1e-10 so that it can divide."""
    squares = np.einsum("ij,ij->i", rows, rows)
    lengths: Floats = np.maximum(np.sqrt(squares), np.float32(1e-10)).astype(np.float32, copy=False)
    return lengths


def _tokens(texts: Sequence[str]) -> list[str]:
    """Return the words of each text, and a line end after them."""
    whole = "\n".join(texts)
    if whole.isascii() and not HUMP.search(whole):  # the same words, in half the time
        return [*_ASCII_TOKENS.findall(whole.lower()), "\n"]
    return [token for text in texts for token in (*split_words(text), "\n")]


def _bytes_of(part: _Part) -> int:
    return BYTES_OF_LINE * len(part.lines) + part.words.nbytes


def _part(stored: StoredChunk, lines: Sequence[Line], facts: Integers, words: Integers) -> _Part:
    section, first, last = (stored.path, stored.chunk.section), lines[0].start_char, lines[-1].start_char
    end = stored.chunk.start_char + len(stored.chunk.text)
    return _Part(lines, facts, words, section, first, last, max(end, last + 1))


def _joined(chunks: Sequence[StoredChunk], parts: Sequence[_Part]) -> Lines:
    """Return the lines of chunks, in the order of their places, each once; `parts` are those of each chunk."""
    kept: list[_Part] = []
    blocks: list[int] = []
    block, before, end, ordinal = -1, ("", 0), -1, -1
    for stored, part in zip(chunks, parts, strict=True):
        if part.section[0] != before[0]:
            end = -1
        if part.last >= end:  # else it has no line of its own
            # Between chunks that follow one another there are blank lines at most.
            block += part.section != before or (part.first > end + 1 and stored.ordinal != ordinal + 1)
            kept.append(part if part.first >= end else part.after(end))
            blocks.append(block)
            before, end, ordinal = part.section, part.end, stored.ordinal
    sizes = [len(part.facts) for part in kept]
    paths: dict[str, int] = {}
    files = [paths.setdefault(part.section[0], len(paths)) for part in kept]
    facts = np.concatenate([part.facts for part in kept])
    ids, numbers, starts, lengths, labels, questions, counts, _ = facts.T.copy()
    return Lines(
        lines=list(chain.from_iterable(part.lines for part in kept)),
        paths=paths,
        ids=ids,
        blocks=np.repeat(blocks, sizes),
        files=np.repeat(files, sizes),
        numbers=numbers,
        middles=(starts + lengths / 2).astype(np.float32),
        labels=labels,
        questions=questions.astype(np.float32),
        counts=counts,
        words=np.concatenate([part.words for part in kept]),
        lengths=np.empty((0, 2), np.float32),
    )


def _unrepeated(lines: Lines) -> Lines:
    """Return lines without those of transcripts that repeat a note; what is before and after one are two blocks."""
    own = np.flatnonzero(~np.array(repeated(lines.lines)))
    found = lines.those(own)
    steps = (np.diff(found.blocks) > 0) | (np.diff(own) > 1)
    return replace(found, blocks=np.cumsum([0, *steps.tolist()]))


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
