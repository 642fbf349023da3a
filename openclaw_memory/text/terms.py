"""Turn text into terms, for the index and for queries alike: fold, split and stem; queries lose stop words.

A term is a folded word, stemmed by the language of its text. An identifier (`GEO-1000`, `snake_case`, `camelCase`,
`config.toml`) is a term as a whole, without the signs within, and in parts; so are `#tag`, `@name` and `C++`, with
their sign. A run of Chinese, Japanese or Korean becomes its characters and pairs of characters; a run of Thai, Lao,
Khmer or Burmese its pairs of characters, each with its vowel signs. An emoji or status mark is a term.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, repeat
from operator import add

import Stemmer

from openclaw_memory.text.languages import DEFAULT_LANGUAGE, FOREIGN_LETTERS, SCRIPTS, STEMMERS, STOP_WORDS

_CJK = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Thai, Lao, Burmese and Khmer, and their signs above, below and after a letter.
_UNSPACED = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
_VOWEL_SIGNS = "\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
# Accents that Unicode does not compose with their letter, the vowel signs of Hebrew, Arabic and India's scripts, and
# signs that nobody sees: to `re` they are not part of a word, to a reader they are.
_MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0971-\u0dff\u200c\u200d"
)
_APOSTROPHES = "\u02b9-\u02bf"  # letters to `re`
_LETTERS_AND_DIGITS = f"[^\\W_{_CJK}{_UNSPACED}{_APOSTROPHES}]"
_EMOJI = "[\u203c\u2049\u2605\u2606\u2610-\u2612\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
# Joined words ("GEO-1000", "snake_case", "config.toml") are one token, so that the whole can be found as it is written.
_TOKEN = (
    f"[{_CJK}]+|[{_UNSPACED}]+|{_EMOJI}|(?:(?<![\\w#@])[#@](?={_LETTERS_AND_DIGITS}))?"
    f"(?:{_LETTERS_AND_DIGITS}+[{_MARKS}]*(?:[-_.]+(?={_LETTERS_AND_DIGITS}))?)+(?:\\+\\+|#)?"
)
_ASCII_TOKEN = re.compile(r"(?:(?<![\w#@])[#@](?=[A-Za-z0-9]))?[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*(?:\+\+|#)?")
_PARTS = re.compile("[^-_.#@+]+")
_JOINTS = re.compile("[-_.]+")
_ASCII_WORDS = re.compile("[a-z0-9]+")
# In every word in camelCase, and in every one of letters and digits that signs join ("GEO-1000").
# It begins with the sign or letter that is rare: with the one before it a search takes seven times as long.
COMPOUND = re.compile(
    r"[A-Z\-_.](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z])[A-Z][a-z]|(?<=[A-Za-z][-_.])[-_.]*[0-9]|(?<=[0-9][-_.])[-_.]*[A-Za-z])"
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FIRST_WORDS = re.compile(r"[^\W\d_]+")
_NAMED_LANGUAGE = re.compile(r"---\n(?:.*\n){0,20}?lang(?:uage)?:[ \t]*[\"']?([a-z]{2})\b", re.IGNORECASE)
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u03ff\u1e00-\u1fff]")
# Letters that Unicode does not decompose into a base letter and a mark.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
# One spelling for letters that are typed in several ways: without the vowel signs and the tatweel of Arabic, the points
# of Hebrew, the nuktas of India's scripts and signs that nobody sees, with the digits 0 to 9 in place of all others.
_LEFT_OUT = [*range(0x483, 0x488), *range(0x591, 0x5BE), *range(0x5BF, 0x5C8), *range(0x610, 0x61B), 0x640]
_LEFT_OUT += [*range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6EE), 0x93C, 0x9BC, 0xA3C, 0xABC, 0xAD, 0x200C, 0x200D]
_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0x1040, 0x17E0)
_SPELLINGS = str.maketrans("ёѐѝґأإآٱىیېئةہۀۃؤکھ", "ееигااااييييههههوكه") | dict.fromkeys(_LEFT_OUT)
_SPELLINGS |= {zero + digit: str(digit) for zero in _ZEROS for digit in range(10)}

# "And", "the", "in" and "to" are written as one with the word that follows; a word that begins so itself loses it, too.
_HEBREW_PREFIXES = "^[ושהכלבמ]+(?=.{3})"

MAX_TERM_CHARS = 64
LONGEST_YEAR = 4  # digits: a number of more is not a year but an identifier
SAMPLE_CHARS = 1000  # of a text, for a guess of its language
MIN_COMMON_WORDS = 2  # of a language other than English, for a guess


def split_terms(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Return all terms of a text, in its order; a whole identifier precedes its parts.

    Args:
        text: The text.
        language: Its language, as `detect_language` returns it.
    """
    composed = _compose(text)
    if composed.isascii():  # the same terms, in half the time
        return list(chain.from_iterable(map(_split_token_terms, _ASCII_TOKEN.findall(composed), repeat(language))))
    # A run of CJK seldom comes twice and has many terms: to remember them would cost more than to make them.
    return [
        term
        for token in _split_tokens(composed)
        for term in (_split_run(token) if is_run(token) else _split_token_terms(token, language))
    ]


def join_terms(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Return the terms of a text, joined by spaces, as a keyword index stores them."""
    return " ".join(split_terms(text, language))


def split_query(text: str, languages: Sequence[str] = (DEFAULT_LANGUAGE,)) -> list[str]:
    """Return the terms of a query, each once, without the stop words of its language.

    A query of stop words alone keeps them.

    Args:
        text: The query.
        languages: The languages of the notes: a word is stemmed by each of them.
    """
    tokens, stop = _split_question(text)
    content = [term for token in tokens for term in _select_content_terms(token, stop, languages)]
    return list(dict.fromkeys(content or [term for name in languages for term in split_terms(text, name)]))


def find_identifiers(text: str) -> list[str]:
    """Return the identifiers in a text, folded: joined words, long numbers, letters mixed with digits, and tags."""
    return [folded for token in _split_tokens(text) if _is_identifier(folded := fold(token))]


def match_identifier(identifier: str) -> re.Pattern[str]:
    """Return a pattern for an identifier in folded text, with or without signs between its parts."""
    parts = re.findall(r"[^\W\d_]+|\d+|[^-_.\w]+", identifier) if _has_letters_and_digits(identifier) else [identifier]
    return re.compile(rf"(?<![\w-]){'[-_.]*'.join(map(re.escape, parts))}(?![\w-])")


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case with accents, CJK in pairs, as word vectors are looked up.

    After a word in camelCase come its parts; after letters and digits that signs join comes the whole (`geo1000`).
    """
    if text.isascii() and not COMPOUND.search(text):  # the same words, in half the time
        return _ASCII_WORDS.findall(text.lower())
    return list(chain.from_iterable(map(_lower_words, _split_tokens(text))))


def locate_words(text: str) -> list[tuple[int, int, str]]:
    """Return where the words of a text are: first character, the one after the last, and the word as in `split_words`.

    Words in camelCase are whole.
    """
    spans: list[tuple[int, int, str]] = []
    for token in _select_token(text).finditer(text):
        at = token.start()
        if is_run(token[0]):
            for piece in _split_pairs(token[0]) or (token[0],):
                at = text.index(piece, at)
                spans.append((at, at + len(piece), piece))
                at += 1
        else:
            parts = _PARTS.finditer(token[0])
            spans += [(at + part.start(), at + part.end(), part[0].lower()) for part in parts]
    return spans


def select_content_words(text: str) -> list[str]:
    """Return the words of a query, each once, without the stop words of its language (unless it has no others)."""
    tokens, stop = _split_question(text)
    content = [word for token in tokens for word in _lower_words(token) if fold(word) not in stop]
    return list(dict.fromkeys(content or split_words(text)))


def split_at_query_words(text: str, query: str) -> list[str]:
    """Split a text around the words of a query, in any form: these are the parts at odd places.

    Args:
        text: The text.
        query: The query, whose language is that of the forms.
    """
    language = detect_language(query)
    stems = {stem_word(word, language) for word in select_content_words(query)}
    parts, at = [""], 0
    for start, end, word in locate_words(text):
        if stem_word(word, language) in stems:
            if start >= at:
                parts[-1:] = [text[at:start], text[start:end], ""]
            else:  # of overlapping pairs of characters
                parts[-2] += text[at:end]
            at = end
    return [*parts[:-1], text[at:]]


def fold(text: str) -> str:
    """Return the text in lower case and in one spelling: NFKC, without accents and signs that are often left out.

    Args:
        text: Any text.
    """
    folded = _compose(text).casefold()
    if folded.isascii():
        return folded
    return _ACCENTED.sub(lambda match: _get_base_letter(match[0]), folded).translate(_SPELLINGS)


def stem(word: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Return the stem of a folded word by the Snowball rules of a language, or a word with other signs itself."""
    if len(word) < 3 or not word.isalpha() or (language == DEFAULT_LANGUAGE and not word.isascii()):
        return word
    return _stem(word, language)


@lru_cache(maxsize=65536)
def stem_word(word: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Return the term of a single word of `split_words`."""
    return stem(fold(word), language)[:MAX_TERM_CHARS]


def detect_language(text: str) -> str:
    """Detect the language of a text by its letters and commonest words, as an ISO 639-1 code.

    Front matter may name it (`lang: de`). English is the default. A wrong guess hides nothing: a query is stemmed by
    all languages of an index.
    """
    text = text[:SAMPLE_CHARS]
    if field := _NAMED_LANGUAGE.match(text):
        return field[1].lower()
    if not text.isascii():
        count = sum(map(str.isalpha, text))
        name = next((name for name, script in SCRIPTS.items() if 2 * len(_compile(script).findall(text)) > count), None)
        if name is not None:
            return next((code for code, letters in FOREIGN_LETTERS[name].items() if set(letters) & set(text)), name)
    counts = Counter(chain.from_iterable(map(_find_languages, _FIRST_WORDS.findall(fold(text)))))
    best = max(STOP_WORDS, key=lambda name: counts[name])
    return best if counts[best] > counts[DEFAULT_LANGUAGE] and counts[best] >= MIN_COMMON_WORDS else DEFAULT_LANGUAGE


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
def _stem(word: str, language: str) -> str:
    if (algorithm := STEMMERS.get(language)) is None or algorithm not in _list_algorithms():
        return _compile(_HEBREW_PREFIXES).sub("", word) if language == "he" else word
    # A stemmer object holds a buffer and may not be shared between threads; making one costs a microsecond.
    return str(Stemmer.Stemmer(algorithm, 0).stemWord(word))


@cache
def _list_algorithms() -> frozenset[str]:
    return frozenset(Stemmer.algorithms())


@lru_cache(maxsize=65536)
def _split_token_terms(token: str, language: str) -> tuple[str, ...]:
    parts = [stem(word, language)[:MAX_TERM_CHARS] for word in _split_token_words(token)]
    whole = parts[0] if token.isalnum() else _join_whole(token, language)
    return tuple(parts) if whole == parts[0] else (whole, *parts)


@lru_cache(maxsize=65536)
def _join_whole(token: str, language: str) -> str:
    """Return the term of a whole token: letters without the signs that join them, numbers with theirs."""
    folded = fold(token)
    return stem(_JOINTS.sub("", folded) if any(map(str.isalpha, folded)) else folded, language)[:MAX_TERM_CHARS]


@lru_cache(maxsize=65536)
def _split_token_words(token: str) -> tuple[str, ...]:
    """Return the folded words of a token; a run counts as one word."""
    if is_run(token):
        return (token,)
    parts = _PARTS.findall(token)
    words = [fold(part) for part in parts]
    return tuple(dict.fromkeys([*words, *chain.from_iterable(map(_split_humps, parts))]))


def _split_humps(part: str) -> list[str]:
    """Return the parts of a word in camelCase, in lower case; nothing for any other word."""
    # Letters of both cases: a digest such as "e3b0c442" has no humps.
    is_plain = part.isupper() or part.islower() or (part.isalpha() and part[1:].islower())
    humps = [] if is_plain or not part.isascii() else _CAMEL.findall(part)
    return [hump.lower() for hump in humps] if sum(hump.isalpha() for hump in humps) > 1 else []


def _lower_words(token: str) -> tuple[str, ...]:
    return (_split_pairs(token) or (token,)) if is_run(token) else _lower_parts(token)


@lru_cache(maxsize=65536)
def _lower_parts(token: str) -> tuple[str, ...]:
    parts = _PARTS.findall(token)
    words = [word for part in parts for word in (part.lower(), *_split_humps(part))]
    return (*words, *(["".join(parts).lower()] if len(parts) > 1 and _has_letters_and_digits(token) else []))


def _split_run(run: str) -> tuple[str, ...]:
    pairs = _split_pairs(run)
    if not _is_cjk(run):
        return pairs or (run,)
    return (*chain.from_iterable(zip(run, pairs, strict=False)), run[-1])


def _split_pairs(run: str) -> tuple[str, ...]:
    units = run if _is_cjk(run) else _compile(f".[{_VOWEL_SIGNS}]*").findall(run)
    return tuple(map(add, units, units[1:]))


def _select_content_terms(token: str, stop: frozenset[str], languages: Sequence[str]) -> tuple[str, ...]:
    if is_run(token):
        return tuple(unit for unit in _split_run(token) if unit not in stop)
    words = _split_token_words(token)
    content = [stem(word, name)[:MAX_TERM_CHARS] for word in words if word not in stop for name in languages]
    if (len(words) == 1 and fold(token) == words[0]) or (not content and token.isalpha()):
        return tuple(content)
    return (*(_join_whole(token, name) for name in languages), *content)


@lru_cache(maxsize=16)
def _split_question(text: str) -> tuple[list[str], frozenset[str]]:
    """Return the tokens of a query, each once, and the stop words of its language and of CJK.

    One language only: `war` is a stop word in German and a content word in English. CJK units occur in no other
    language.
    """
    tokens = list(dict.fromkeys(_split_tokens(text)))
    counts = Counter(name for token in tokens for word in _split_token_words(token) for name in _find_languages(word))
    best = max(STOP_WORDS, key=lambda name: counts[name])
    names = {"zh", "ja", "ko", best if counts[best] else "zh"}
    return tokens, frozenset().union(*map(STOP_WORDS.__getitem__, names))


@lru_cache(maxsize=65536)
def _find_languages(word: str) -> tuple[str, ...]:
    """Return the languages with this stop word."""
    return tuple(name for name, listed in STOP_WORDS.items() if word in listed)


def is_run(token: str) -> bool:
    """Return whether a token is of a script without spaces between words."""
    return token >= _UNSPACED[0] and _compile(f"[{_CJK}{_UNSPACED}]").match(token) is not None


def _is_cjk(token: str) -> bool:
    return token >= _CJK[0] and _compile(f"[{_CJK}]").match(token) is not None


def _is_identifier(token: str) -> bool:
    """Return whether a folded token is joined words, a long number, letters and digits, or has a sign (`c++`)."""
    if token.isdigit():
        return len(token) > LONGEST_YEAR
    return any(sign in token for sign in "-_.#@+") or (token.isascii() and not token.isalpha())


def _has_letters_and_digits(text: str) -> bool:
    return any(map(str.isalpha, text)) and any(map(str.isdigit, text))
