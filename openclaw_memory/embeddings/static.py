"""The static embedder that ships: a text's vector is the sum of its pieces' vectors, looked up in one mapped file."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.embeddings import static_file
from openclaw_memory.embeddings.vectors import normalize, quote_name
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector

MODEL = "multilingual-static-256"
# Of the whole file that ships. The one in its header is part of what could be exchanged.
SHA256 = "033f310d4a8a21d3dbc4377b27de2e4ba08a02cac2f6022f8c1cdda0ca916f79"
DATA = Path(__file__).parent.parent / "data"

# The cache takes about 20 MB when full. A word longer than this is a URL or a run of CJK and seldom comes twice.
MAX_CACHED_WORDS = 100_000
MAX_CACHED_CHARS = 40
# Pieces that are summed at a time: 8 MB of float32 however long the text is.
BLOCK_PIECES = 8192
# Hardly any word has more.
MAX_PIECES_TOGETHER = 16

# What parts words and has no vector: punctuation, currencies, arrows and the like, so that **boiler** and (boiler) are
# boilers, and l'eau is eau. In the form of a character class, for `re` and for the regular expressions of Hugging
# Face's tokenizers: the model is trained on texts that are cut by it, so that a change here needs a new model file.
PUNCTUATION = (
    "!-/:-@\\[-`{-~\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    "\u2010-\u205e\u20a0-\u20bf\u2190-\u2bff\u3001-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb"
)
WORD = re.compile(rf"[^\s{PUNCTUATION}]+")
# Soft hyphens, joiners, marks of direction and order: nothing of a word that one can see.
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff]")


def create(model: str | None = None, *, path: str | Path | None = None) -> StaticEmbedder:
    """Return the model that ships, or the one in the file `path`; raise EmbedderError if there is no such model."""
    if path is None and model not in (None, MODEL):
        raise EmbedderError(f"unknown static model {quote_name(model)}; use {MODEL!r}, or name a model file with path=")
    return StaticEmbedder(path)


def is_word(word: str) -> bool:
    """Return whether the model that ships has a whole word as one piece, as it has those that are common in a language.

    Args:
        word: The word, in lower case; without the file of the model, every one counts as known.
    """
    try:
        return _load_cutter().is_piece(static_file.WORD_START + word)
    except EmbedderError:
        return True


@cache
def _load_cutter() -> static_file.PieceCutter:
    return static_file.PieceCutter(static_file.open_model(DATA / f"{MODEL}.oms"))


class StaticEmbedder:
    """Vectors of `dims` (256) float32 without a network, a fraction of a millisecond a text, from any thread.

    Making one maps the file and checks its header; the rest is read where a text needs it. A text of which the model
    knows nothing has the zero vector. `identity` covers every byte of the file, by the digest in its header. All bytes
    of the file that ships are checked before the first vectors of documents are made, since those are kept; a question
    does not wait for that (11 ms).
    """

    provider = "static"
    leaves_machine = False

    def __init__(self, path: str | Path | None = None) -> None:
        self._file = static_file.open_model(DATA / f"{MODEL}.oms" if path is None else Path(path))
        self._is_checked = path is not None
        self.dims = self._file.layout.dims
        self.model = self._file.path.stem
        self.identity = f"{self.provider}:{self.model}:{self.dims}:{self._file.layout.digest}"
        self._pieces_by_word: dict[str, tuple[int, ...]] = {}

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not self._is_checked:
            static_file.check_bytes(self._file, SHA256)
            self._is_checked = True
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        sums = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, pieces in zip(sums, self._split_texts(texts), strict=True):
            row[:] = self._add(pieces)
        return normalize(sums)

    def close(self) -> None:
        """Do nothing: the mapped file is freed with this object."""

    def embed_words(self, words: Sequence[str]) -> Matrix:
        """Return the sum of each word's pieces, as after a space; shape (len(words), dims), float32, not normalised.

        The length of a row is the word's weight in a text: a frequent word's is short.
        """
        cache = self._pieces_by_word
        # What was once cut out of a text in ASCII is cut out of itself as it is.
        cached = [cache.get(word) if word.isascii() else None for word in words]
        new = [word for word, pieces in zip(words, cached, strict=True) if pieces is None]
        cut = self._split_texts(new)
        return self._add_all([next(cut) if pieces is None else pieces for pieces in cached])

    def _split_texts(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Yield the numbers of each text's known pieces, in their order."""
        words = [split_words(text) for text in texts]
        pieces = {word: self._split(word) for word in dict.fromkeys(chain.from_iterable(words))}
        return (list(chain.from_iterable(map(pieces.__getitem__, some))) for some in words)

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the numbers of a word's known pieces; a full cache is emptied, and no long word is kept."""
        if (cached := self._pieces_by_word.get(word)) is not None:
            return cached
        numbers = self._cutter.cut(static_file.WORD_START + word)
        pieces = () if numbers == self._bare_start else tuple(numbers)
        if len(word) <= MAX_CACHED_CHARS:
            if len(self._pieces_by_word) >= MAX_CACHED_WORDS:
                self._pieces_by_word.clear()
            self._pieces_by_word[word] = pieces
        return pieces

    def _add(self, pieces: Sequence[int]) -> Vector:
        import numpy as np

        total = np.zeros(self.dims, dtype=np.float32)
        for start in range(0, len(pieces), BLOCK_PIECES):
            scales, rows = self._get_rows(pieces[start : start + BLOCK_PIECES])
            total += scales @ rows.astype(np.float32)
        return total

    def _add_all(self, words: Sequence[Sequence[int]]) -> Matrix:
        """Return the sum of each word's pieces; words of as many pieces are added up together."""
        import numpy as np

        sums = np.zeros((len(words), self.dims), dtype=np.float32)
        by_count: dict[int, list[int]] = {}
        for at, pieces in enumerate(words):
            by_count.setdefault(len(pieces), []).append(at)
        for count, places in by_count.items():
            if count > MAX_PIECES_TOGETHER:
                for at in places:
                    sums[at] = self._add(words[at])
                continue
            # Piece by piece, so that a word's vector is the same to the last bit in any company.
            total = np.zeros((len(places), self.dims), dtype=np.float32)
            for pieces in zip(*(words[at] for at in places), strict=True):
                scales, rows = self._get_rows(pieces)
                total += rows * scales[:, None]
            sums[places] = total
        return sums

    def _get_rows(self, pieces: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return scales (k,) and rows (k, dims) of these pieces."""
        scales, rows = self._tables
        return scales.take(pieces), static_file.unpack(rows.take(pieces, axis=0), self._file.layout.bits)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.float32], NDArray[np.integer]]:
        return static_file.read_scales(self._file), static_file.map_rows(self._file)

    @cached_property
    def _cutter(self) -> static_file.PieceCutter:
        return static_file.PieceCutter(self._file)

    @cached_property
    def _bare_start(self) -> list[int]:
        """Return the number of the piece that is a word's start and nothing else, if there is one."""
        return self._cutter.cut(static_file.WORD_START)


# --- a text in pieces --------------------------------------------------------------------------------------------


def split_words(text: str) -> list[str]:
    """Return the words of a text in NFKC and lower case, without the punctuation between them."""
    words: list[str] = WORD.findall(INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower()))
    return words
