"""Parse a query: its phrases, its terms, its words with their rarity, its names and dates."""

from __future__ import annotations

import math
import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import filterfalse, pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from openclaw_memory.text.days import Mention, split_dates
from openclaw_memory.text.front_matter import split_link
from openclaw_memory.text.languages import BOUND_WORDS, DAY_WORDS, DEFAULT_LANGUAGE
from openclaw_memory.text.terms import (
    find_identifiers,
    fold,
    is_run,
    select_content_words,
    split_query,
    split_words,
    stem_word,
)
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace.paths import rank_path_match

# A pasted page is not a query: of a longer text the questions at both ends are looked up, or else its end.
MAX_QUESTION_CHARS = 2000
END_CHARS = 400
SHORTEST_SENTENCE = 12  # characters; a shorter one, such as thanks, asks for nothing
# Two thousand characters of prose are 350 words. So many characters of Chinese would be 4,000 terms, and 160 ms.
MAX_TERMS = 500
MAX_NAME_CHARS = 200  # a longer question is not the name of a file
_NAME = re.compile(r"[^\W\d_]+")
_QUESTION = re.compile(r"[^.!?。！？؟\n]+[?？؟]")
_SENTENCE_END = re.compile(r"[.!?]\s+|\n+|[。！？]")
_FILE_NAME = re.compile(r"(?<![^\s\"'`<>()])[^\s\"'`<>()]+\.(?:md|markdown|txt)\b", re.IGNORECASE)
_PHRASE = re.compile(r'(?:(?<=\s)|^)"([^"]*)"(?=[\s.,;:!?]|$)')
_LEFT_OUT = re.compile(r"(?:(?<=\s)|^)-([^\W\d_][^\s\"]*)")


class TypedQuery(NamedTuple):
    """A query as a person types it, taken apart: its words, its phrases, and the words that are left out."""

    text: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def filter(self) -> dict[str, tuple[str, ...]]:
        """The phrases and words as the filter of a search."""
        return {"phrases": self.phrases, "without": self.without}


def read_query(typed: str) -> TypedQuery:
    """Return the parts of a query: its text, its phrases (`"a phrase"`) and the words that it leaves out (`-word`).

    The words of a phrase stay part of the text. A quotation mark or a minus within a word (`it's 5"`, `follow-up`),
    before a digit or with a blank behind it means nothing.

    Args:
        typed: The query.
    """
    phrases = tuple(dict.fromkeys(phrase.strip() for phrase in _PHRASE.findall(typed) if phrase.strip()))
    bare = _PHRASE.sub(" ", typed)
    words = {word.rstrip(".,;:!?"): None for word in _LEFT_OUT.findall(bare)}
    text = _PHRASE.sub(lambda match: match[1], typed) if phrases else typed
    text = _LEFT_OUT.sub(lambda match: "" if match[1].rstrip(".,;:!?") in words else match[0], text)
    return TypedQuery(" ".join(text.split()) if phrases or words else typed, phrases, tuple(words))


class Query(Struct, frozen=True):
    """A parsed query: `terms` are looked up in the keyword index, `words` in the lines of the chunks.

    `words` are lower case, without stop words; `stems` are their stems in each of the `languages` of the notes,
    `weights` their rarity (inverse document frequency). `pairs` are adjacent words, stop words included. `date_words`
    are the words of `dates`, folded. With `is_about_days` it asks for what there is of these days, and nothing else.
    """

    text: str
    terms: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    pairs: frozenset[tuple[tuple[str, ...], tuple[str, ...]]]
    identifiers: frozenset[str]
    names: frozenset[str]
    dates: tuple[Mention, ...]
    date_words: frozenset[str]
    is_about_days: bool = False
    languages: tuple[str, ...] = (DEFAULT_LANGUAGE,)
    weights: tuple[float, ...] = ()

    def weigh(self, frequencies: Mapping[str, int], chunk_count: int) -> Query:
        """Return the query with the rarity of each word; `frequencies` count the chunks with each stem."""
        counts = (max(frequencies.get(stem, 0) for stem in stems) for stems in self.stems)
        return replace(self, weights=tuple(compute_rarity(count, chunk_count) for count in counts))


def parse_query(text: str, languages: Sequence[str] = (DEFAULT_LANGUAGE,), today: date | None = None) -> Query:
    """Return the query in a text, without `weights`: `Query.weigh` adds them once term frequencies are known.

    Of more than 2,000 characters only the questions in the first and last 400 count, or without one the last sentence.

    Args:
        text: The query.
        languages: The languages of the notes, by which words are stemmed.
        today: The day to which "yesterday" and its like relate; None leaves them out.
    """
    whole = text if len(text) <= MAX_QUESTION_CHARS else _take_question(text)
    text = unicodedata.normalize("NFKC", whole)[:MAX_QUESTION_CHARS]  # one character may become eighteen
    parts = split_dates(text, today)
    dates, date_text = tuple(dict.fromkeys(day for day, _ in parts)), " ".join(part for _, part in parts)
    date_terms = [term for mention in dates for term in mention.list_terms()]
    content_terms = split_query(text, languages)[:MAX_TERMS]
    content = tuple(select_content_words(text)[:MAX_TERMS])
    words = split_words(text)
    stems = {word: tuple(stem_word(word, name) for name in languages) for word in (*content, *words)}
    own = {stems[word] for word in content}
    return Query(
        text=whole,
        terms=tuple(dict.fromkeys([*content_terms, *date_terms])),
        words=content,
        stems=tuple(stems[word] for word in content),
        pairs=frozenset(pair for pair in pairwise(map(stems.__getitem__, words)) if own & {*pair}),
        identifiers=frozenset(find_identifiers(text)) - {*filterfalse(str.isdigit, find_identifiers(date_text))},
        names=frozenset(fold(word) for word in _NAME.findall(whole) if word[0].isupper()),
        dates=dates,
        date_words=frozenset(map(fold, split_words(date_text))),
        is_about_days=bool(date_terms) and _has_general_words(text, content, [part for _, part in parts]),
        languages=tuple(languages),
    )


def match_file_name(text: str) -> Callable[[Collection[str]], list[str]] | None:
    """Return a function that selects the paths of the notes that a query names, or None if it names no file.

    A query names a note if it is its path or file name, or contains its file name with the ending. It never names a
    transcript, whose beginning answers nothing and may be too long to read.
    """
    names = split_link(text) if len(text) <= MAX_NAME_CHARS and not text.rstrip().endswith(("?", "？")) else []
    names += _FILE_NAME.findall(text)
    parts = [posixpath.basename(name.strip().replace("\\", "/")).casefold() for name in names]
    if not any(parts):
        return None

    find_name = re.compile("|".join(map(re.escape, filter(None, parts)))).search

    def select_named(paths: Collection[str]) -> list[str]:
        every = "\n".join(paths)
        some = paths if not every.isascii() or find_name(every.lower()) else ()  # none of many, as a rule
        likely = (path for path in some if not path.isascii() or find_name(path.lower()))
        notes = (path for path in likely if not get_plain_name(path).endswith(".jsonl"))
        return [path for path in notes if any(rank_path_match(name, path) for name in names)]

    return select_named


def compute_rarity(frequency: int, count: int) -> float:
    """Return the inverse document frequency in Lucene's form, above zero: log(1 + (N - n + 0.5) / (n + 0.5))."""
    return math.log(1 + (max(count, frequency) - frequency + 0.5) / (frequency + 0.5))


def _has_general_words(text: str, content: Sequence[str], dates: Sequence[str]) -> bool:
    """Return whether a query has no content words beside its dates but those of a question for a whole day."""
    text = fold(text)
    for part in dates:
        text = text.replace(part, " ")
    beside = set(split_words(text))
    if beside & BOUND_WORDS:
        return False
    return all(word in DAY_WORDS or word not in beside for word in map(fold, content))


def _take_question(text: str) -> str:
    """Return the questions at the beginning and the end of a long text; without one its last sentence."""
    beginning, end = text.lstrip()[:END_CHARS], text.rstrip()[-END_CHARS:]
    questions = [*_QUESTION.findall(beginning), *_QUESTION.findall(end)]
    last = next((part for part in reversed(_SENTENCE_END.split(end)) if len(part) >= SHORTEST_SENTENCE), end)
    return " ".join(questions) or last


def has_phrases(text: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Return whether a text holds each phrase.

    Args:
        text: The text.
        patterns: The phrases, as `compile_phrase` returns them.
    """
    folded = fold(text)
    return all(pattern.search(folded) for pattern in patterns)


def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Compile a phrase to a pattern of folded text: case, accents, punctuation and line breaks do not count.

    In a script without spaces a phrase may begin and end anywhere.

    Args:
        phrase: The phrase, which has a letter or a digit.
    """
    parts = re.findall(r"[^\W_]+", fold(phrase))
    start = "" if is_run(parts[0][0]) else r"(?<![^\W_])"
    end = "" if is_run(parts[-1][-1]) else r"(?![^\W_])"
    return re.compile(start + r"[\W_]+".join(map(re.escape, parts)) + end)
