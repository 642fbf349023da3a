"""Turn text into terms, for the index and for queries alike: fold, segment, stem, and drop stop words.

A term is a folded, stemmed word. An identifier (`GEO-1000`, `snake_case`, `camelCase`, `config.toml`) is a term as a
whole and in parts. A run of Chinese, Japanese or Korean becomes its characters and pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain
from operator import add

import Stemmer

from openclaw_memory.text.stopwords import STOP_WORDS

_CJK = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Accents that Unicode does not compose with their letter, and the vowel signs of Hebrew, Arabic and India's scripts: to
# `re` they are no part of a word, to a reader they are.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff"
_LETTERS_AND_DIGITS = f"[^\\W_{_CJK}]"
# Joined words ("GEO-1000", "snake_case", "config.toml") are one token, so that the whole can be found as it is written.
_TOKEN = f"[{_CJK}]+|(?:{_LETTERS_AND_DIGITS}+[{_MARKS}]*(?:[-_.]+(?={_LETTERS_AND_DIGITS}))?)+"
_ASCII_TOKEN = re.compile("[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*")
_PARTS = re.compile("[^-_.]+")
_ASCII_WORDS = re.compile("[a-z0-9]+")
HUMP = re.compile("[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # in every word in camelCase
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u03ff\u1e00-\u1fff]")
_STEMMABLE = re.compile("[a-z]{3,}")
# Letters that Unicode does not decompose into a base letter and a mark.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})

MAX_TERM_CHARS = 64


def split_terms(text: str) -> list[str]:
    """Return all terms of a text, in its order; a whole identifier precedes its parts."""
    composed = _compose(text)
    if composed.isascii():  # the same terms, in half the time
        return list(chain.from_iterable(map(_split_token_terms, _ASCII_TOKEN.findall(composed))))
    # A run of CJK seldom comes twice and has many terms: to remember them would cost more than to make them.
    return [
        term
        for token in _split_tokens(composed)
        for term in (_split_cjk(token) if _is_cjk(token) else _split_token_terms(token))
    ]


def join_terms(text: str) -> str:
    """Return the terms of a text, joined by spaces, as a keyword index stores them."""
    return " ".join(split_terms(text))


def split_query(text: str) -> list[str]:
    """Return the terms of a query, each once, without the stop words of its language.

    A query of stop words alone keeps them.
    """
    tokens = _split_tokens(text)
    stop = _stop_words(tokens)
    content = [term for token in dict.fromkeys(tokens) for term in _select_content_terms(token, stop)]
    return list(dict.fromkeys(content)) or list(dict.fromkeys(split_terms(text)))


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case with accents, CJK in pairs, as word vectors are looked up.

    After a word in camelCase come its parts.
    """
    if text.isascii() and not HUMP.search(text):  # the same words, in half the time
        return _ASCII_WORDS.findall(text.lower())
    return list(chain.from_iterable(map(_lower_words, _split_tokens(text))))


def locate_words(text: str) -> list[tuple[int, int, str]]:
    """Return where the words of a text are: first character, the one after the last, and the word as in `words`.

    Words in camelCase are whole.
    """
    spans: list[tuple[int, int, str]] = []
    for token in _select_token(text).finditer(text):
        at = token.start()
        if _is_cjk(token[0]):
            spans += [(at + n, at + n + len(pair), pair) for n, pair in enumerate(_lower_words(token[0]))]
        else:
            parts = _PARTS.finditer(token[0])
            spans += [(at + part.start(), at + part.end(), part[0].lower()) for part in parts]
    return spans


def select_content_words(text: str) -> list[str]:
    """Return the words of a query, each once, without the stop words of its language (unless it has no others).

    Args:
        text: The query.
    """
    tokens = _split_tokens(text)
    stop = _stop_words(tokens)
    content = [word for token in dict.fromkeys(tokens) for word in _lower_words(token) if fold(word) not in stop]
    return list(dict.fromkeys(content or split_words(text)))


def fold(text: str) -> str:
    """Return the text in lower case, without accents of Latin and Greek letters, and with NFKC normalisation.

    Args:
        text: Any text.
    """
    folded = _compose(text).casefold()
    return folded if folded.isascii() else _ACCENTED.sub(lambda match: _get_base_letter(match[0]), folded)


def stem(word: str) -> str:
    """Return the stem of a folded word by the English Snowball rules, or the word itself if it has more than a-z."""
    return _stem_english(word) if _STEMMABLE.fullmatch(word) else word


@lru_cache(maxsize=65536)
def stem_word(word: str) -> str:
    """Return the term of a single word of `split_words`.

    Args:
        word: The word.
    """
    return stem(fold(word))[:MAX_TERM_CHARS]


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for the first text that is not ASCII: it takes some milliseconds."""
    return re.compile(pattern)


def _select_token(text: str) -> re.Pattern[str]:
    return _ASCII_TOKEN if text.isascii() else _compile(_TOKEN)


def _split_tokens(text: str) -> list[str]:
    composed = _compose(text)
    return _select_token(composed).findall(composed)


def _compose(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=2048)
def _get_base_letter(letter: str) -> str:
    base = "".join(mark for mark in unicodedata.normalize("NFD", letter) if not unicodedata.combining(mark))
    return base.translate(_LETTERS)


@lru_cache(maxsize=65536)
def _stem_english(word: str) -> str:
    # A stemmer object holds a buffer and may not be shared between threads; making one costs a microsecond.
    return str(Stemmer.Stemmer("english", 0).stemWord(word))


@lru_cache(maxsize=65536)
def _split_token_terms(token: str) -> tuple[str, ...]:
    words = _split_token_words(token)
    parts = [stem(word)[:MAX_TERM_CHARS] for word in words]
    whole = fold(token)[:MAX_TERM_CHARS]
    return tuple(parts) if whole == words[0] else (whole, *parts)


@lru_cache(maxsize=65536)
def _split_token_words(token: str) -> tuple[str, ...]:
    """Return the folded words of a token; a run of CJK counts as one word."""
    if _is_cjk(token):
        return (token,)
    parts = _PARTS.findall(token)
    words = [fold(part) for part in parts]
    return tuple(dict.fromkeys([*words, *chain.from_iterable(map(_split_humps, parts))]))


def _split_humps(part: str) -> list[str]:
    """Return the parts of a word in camelCase, in lower case; nothing for any other word."""
    # Letters of both cases: a digest such as "e3b0c442" has no humps.
    humps = _CAMEL.findall(part) if part.isascii() and not part.islower() and not part.isupper() else []
    return [hump.lower() for hump in humps] if sum(hump.isalpha() for hump in humps) > 1 else []


def _lower_words(token: str) -> tuple[str, ...]:
    if _is_cjk(token):
        return _split_pairs(token) or (token,)
    return _lower_parts(token)


@lru_cache(maxsize=65536)
def _lower_parts(token: str) -> tuple[str, ...]:
    parts = _PARTS.findall(token)
    return tuple(word for part in parts for word in (part.lower(), *_split_humps(part)))


def _split_cjk(run: str) -> tuple[str, ...]:
    return (*chain.from_iterable(zip(run, _split_pairs(run), strict=False)), run[-1])


def _split_pairs(run: str) -> tuple[str, ...]:
    return tuple(map(add, run, run[1:]))


def _select_content_terms(token: str, stop: frozenset[str]) -> tuple[str, ...]:
    if _is_cjk(token):
        return tuple(unit for unit in _split_cjk(token) if unit not in stop)
    content = [stem(word)[:MAX_TERM_CHARS] for word in _split_token_words(token) if word not in stop]
    whole = fold(token)[:MAX_TERM_CHARS]
    return (whole, *content) if whole != _split_token_words(token)[0] else tuple(content)


def _stop_words(tokens: list[str]) -> frozenset[str]:
    """Return the stop words of the language that has most of a query's words, and those of CJK.

    One language only: `war` is a stop word in German and a content word in English. CJK units occur in no other
    language.
    """
    words = [word for token in tokens for word in _split_token_words(token)]
    counts = {name: sum(word in listed for word in words) for name, listed in STOP_WORDS.items()}
    most = max(counts.values())
    best = [STOP_WORDS[name] for name, count in counts.items() if count == most and count > 0]
    return frozenset().union(*best[:1], STOP_WORDS["zh"], STOP_WORDS["ja"], STOP_WORDS["ko"])


def _is_cjk(token: str) -> bool:
    return token >= _CJK[0] and _compile(f"[{_CJK}]").match(token) is not None
