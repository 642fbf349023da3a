"""Which pieces the model has a vector for: XLM-RoBERTa's in lower case, and whole words that it would have cut."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from openclaw_memory.embeddings.static import INVISIBLE, WORD
from openclaw_memory.embeddings.static_file import WORD_START
from tools.static_model.model_file import CONTROL_PIECES
from tools.static_model.teachers import Vocabulary

# Letters of these scripts; Cyrillic, Arabic and the others take 130,000 pieces more.
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH")

PIECES = 109_000  # as many as fit into 16 MB with 256 dimensions of 4 bits
EAST_ASIAN_PIECES = 13_000
OTHER_PIECES = 2_200  # digits and signs
LATIN_PIECES = 30_000
# Of Latin pieces, these are kept however little the texts have of them: other languages are written with them.
COMMON_LATIN_PIECES = 20_000

# A whole word costs no more than this, and half a nat less than its cut: so it always wins.
MAX_WORD_COST = 16.5
WORD_GAIN = 0.5
# A word of the lexicon counts as if it stood so often in the texts.
LEXICON_COUNT = 6
MIN_COUNT = 2
MAX_WORD_CHARS = 24

LETTERS = re.compile(r"[^\W\d_]+")


class Pieces(NamedTuple):
    """The pieces of a model, and of each the natural logarithm of its probability."""

    pieces: list[str]
    scores: NDArray[np.float64]


def chosen(vocabulary: Vocabulary, texts: Iterable[str], lexicon: Iterable[str]) -> Pieces:
    """The pieces for a model, chosen by unigram scores and by what the texts are written in."""
    known = in_lower_case(vocabulary)
    latin, east_asian, other = (_by_score(known, group) for group in ("LATIN", "EAST ASIAN", "OTHER"))
    counts = _words(texts)
    lexical = set(_words(lexicon))
    words = list(counts)
    cuts = dict(zip(words, cut(Pieces(latin + other, scores_of(known, latin + other)), words), strict=True))
    used = {piece for cut_word in cuts.values() for piece in cut_word}
    short = {piece for piece in latin if len(piece.strip(WORD_START)) <= 2}
    kept = [
        *latin[:COMMON_LATIN_PIECES],
        *(piece for piece in latin if piece in short),
        *(piece for piece in latin if piece in used),
        *latin,
    ]
    kept = list(dict.fromkeys(kept))[:LATIN_PIECES] + east_asian[:EAST_ASIAN_PIECES] + other[:OTHER_PIECES]
    missing = set(map(WORD_START.__add__, words)) - set(kept)
    likelihood = {word: sum(known[piece] for piece in cuts[word]) for word in words if WORD_START + word in missing}
    whole = [
        word
        for word in likelihood
        if (counts[word] >= MIN_COUNT or word in lexical) and "".join(cuts[word]) == WORD_START + word
    ]
    whole.sort(key=lambda word: (-(counts[word] + LEXICON_COUNT * (word in lexical)), -likelihood[word], word))
    whole = whole[: PIECES - len(kept)]
    scores = [max(-MAX_WORD_COST, likelihood[word] + WORD_GAIN) for word in whole]
    return Pieces(
        kept + [WORD_START + word for word in whole],
        np.concatenate([scores_of(known, kept), np.array(scores, dtype=np.float64)]),
    )


def in_lower_case(vocabulary: Vocabulary) -> dict[str, float]:
    """The pieces in lower case with their scores; those that differed only in case share their probability."""
    scores: dict[str, float] = {}
    for piece, score in zip(vocabulary.pieces, vocabulary.scores.tolist(), strict=True):
        lower = unicodedata.normalize("NFKC", piece).lower()
        if piece not in CONTROL_PIECES and lower and " " not in lower:
            scores[lower] = float(np.logaddexp(scores[lower], score)) if lower in scores else score
    return scores


def scores_of(known: Mapping[str, float], pieces: Iterable[str]) -> NDArray[np.float64]:
    """The scores of these pieces, shape (n,)."""
    return np.array([known[piece] for piece in pieces], dtype=np.float64)


def tokenizer(pieces: Pieces) -> Tokenizer:
    """A tokenizer that cuts texts as the loader of the model does; id 0 is what it does not know."""
    scored = [("<unk>", 0.0), *zip(pieces.pieces, pieces.scores.tolist(), strict=True)]
    made = Tokenizer(models.Unigram(scored, 0, byte_fallback=False))
    seen = normalizers.Replace(Regex(INVISIBLE.pattern), "")
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), seen])
    words = pre_tokenizers.Split(Regex(WORD.pattern), "removed", invert=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Metaspace()])
    return made


def cut(pieces: Pieces, texts: Iterable[str]) -> list[list[str]]:
    """Each text in the pieces it is written in, those that are not known left out."""
    known = set(pieces.pieces)
    return [[piece for piece in each.tokens if piece in known] for each in tokenizer(pieces).encode_batch(list(texts))]


def _words(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(LETTERS.findall(unicodedata.normalize("NFKC", text).lower()))
    return Counter({word: count for word, count in counts.items() if 2 < len(word) <= MAX_WORD_CHARS})


def _by_score(known: Mapping[str, float], group: str) -> list[str]:
    """The pieces of a group of scripts, the likeliest first."""
    return sorted((piece for piece in known if _group(piece) == group), key=lambda piece: (-known[piece], piece))


def _group(piece: str) -> str:
    letter = next((char for char in piece if char.isalpha()), None)
    if letter is None:
        return "OTHER"
    name = unicodedata.name(letter, "?")
    if name.startswith("LATIN"):
        return "LATIN"
    return "EAST ASIAN" if name.startswith(EAST_ASIAN) else "ELSEWHERE"
