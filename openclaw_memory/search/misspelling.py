"""Read a misspelt word of a query as the words of the notes that are one letter away."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from openclaw_memory.embeddings.static import is_word
from openclaw_memory.search.query import Query, parse_query
from openclaw_memory.text.terms import COMPOUND, fold, is_run, locate_words, stem
from openclaw_memory.types import HitRequest

if TYPE_CHECKING:
    from datetime import date

    from openclaw_memory.types import Store

SHORTEST = 4  # letters of a word that may be misspelt
SHORT = 5  # letters: a word of no more begins as it should
# Words of a query that are read as others. One with more is in another language, or about something else.
MAX_MISSPELT = 5
MAX_READINGS = 2  # of one word
ALPHABET = 128  # characters: Unicode keeps those of a script together


def replace_misspelt(store: Store, query: Query, today: date | None) -> tuple[Query, str]:
    """Return a query with words of the notes in place of misspelt ones, and how they were read; "" if none is.

    A word is misspelt if no chunk holds it in any form, and the bundled model does not know it.
    """
    if not (readings := _find_readings(store, query)):
        return query, ""
    text = unicodedata.normalize("NFKC", query.text)
    for start, end, word in reversed(locate_words(text)):
        if word in readings:
            text = f"{text[:start]}{' '.join(readings[word])}{text[end:]}"
    reading = "; ".join(f"read {word!r} as {' or '.join(map(repr, own))}" for word, own in readings.items())
    return parse_query(text, query.languages, today), reading


def _find_readings(store: Store, query: Query) -> dict[str, list[str]]:
    """Return for each misspelt word of a query those one letter away that are in most chunks."""
    counts = _count(store, chain(*query.stems))
    pairs = zip(query.words, query.stems, strict=True)
    misspelt = [word for word, stems in pairs if not any(map(counts.get, stems)) and _is_misspelt(query, word)]
    if not misspelt:
        return {}
    edits = {word: _list_edits(word) for word in misspelt[:MAX_MISSPELT]}
    stems = {edit: [stem(edit, name) for name in query.languages] for own in edits.values() for edit in own}
    counts = _count(store, chain(*stems.values()))
    readings = {}
    for word, own in edits.items():
        present = {edit: count for edit in own if (count := max(map(counts.__getitem__, stems[edit])))}
        distinct: dict[tuple[str, ...], str] = {}
        for edit in sorted(present, key=lambda edit: (not is_word(own[edit]), -present[edit])):
            distinct.setdefault(tuple(stems[edit]), own[edit])
        if distinct:
            readings[word] = [*distinct.values()][:MAX_READINGS]
    return readings


def _count(store: Store, terms: Iterable[str]) -> Mapping[str, int]:
    return store.find_hits(HitRequest(terms=(), counted=tuple(dict.fromkeys(terms)))).frequencies


def _is_misspelt(query: Query, word: str) -> bool:
    """Return whether a word that no chunk holds can be one that is misspelt."""
    folded = fold(word)
    compounds = (part.lower() for part in query.text.split() if COMPOUND.search(part))
    is_exact = any(folded in part for part in (*query.date_words, *query.identifiers, *compounds))
    is_likely = len(folded) >= SHORTEST and not (is_exact or is_run(folded) or any(map(str.isdigit, folded)))
    return is_likely and not any(map(is_word, {word, *(stem(folded, name) for name in query.languages)}))


def _list_edits(word: str) -> dict[str, str]:
    """Return the words that differ by two swapped letters, or one more, less or other letter, by their folded forms."""
    folded = fold(word)
    letters = "".join(_list_letters(block) for block in {ord(sign) // ALPHABET for sign in folded})
    return dict(zip(_edit(folded, letters), _edit(word if len(word) == len(folded) else folded, letters), strict=True))


def _edit(word: str, letters: str) -> list[str]:
    first = 1 if len(word) <= SHORT else 0
    cuts = [(word[:at], word[at:]) for at in range(first, len(word) + 1)]
    swapped = [before + after[1] + after[0] + after[2:] for before, after in cuts if len(after) > 1]
    added = [before + letter + after for before, after in cuts for letter in letters]
    replaced = [before + letter + after[1:] for before, after in cuts if after for letter in letters]
    shortened = [before + after[1:] for before, after in cuts if after]
    return [*swapped, *added, *replaced, *shortened]


@lru_cache(maxsize=64)
def _list_letters(block: int) -> str:
    """Return the letters and vowel signs in a block of Unicode, as they are folded."""
    signs = map(chr, range(block * ALPHABET, (block + 1) * ALPHABET))
    return "".join(sign for sign in signs if unicodedata.category(sign)[0] in "LM" and fold(sign) == sign)
