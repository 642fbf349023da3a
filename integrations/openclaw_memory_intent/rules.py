"""What a message wants by its phrases alone, where no model says it."""

from __future__ import annotations

import re
from functools import cache

from openclaw_memory.text import content_words
from openclaw_memory_intent.gate import MOST_CHARS, bounded, folded
from openclaw_memory_intent.languages import language_of
from openclaw_memory_intent.phrases import PHRASES
from openclaw_memory_intent.settings import IntentConfig
from openclaw_memory_intent.types import Intent, MemoryIntent

MOST_CONFIDENT = 0.6
_MOST_ENTITIES = 5
_BELOW = 0.9  # of the threshold, where that is lower than the above: strictly below it

# In the order in which they are tried: the first that is found counts. What asks nothing is rather a fact than a query.
_ORDER: tuple[tuple[str, Intent | None], ...] = (
    ("idiom", None),
    ("keep", "remember"),
    ("forget", "forget"),
    ("query", "query"),
    ("remember", "remember"),
)


def by_rules(message: str, rules: IntentConfig, reason: str) -> MemoryIntent:
    """Return what a message wants by its phrases, with a confidence below the threshold and of at most 0.6.

    Args:
        message: What the user says.
        rules: The languages, and the threshold.
        reason: Why no model says it.
    """
    ends = bounded(message, MOST_CHARS)
    language = language_of(ends, rules.languages)
    tried = [language] if language in PHRASES else [name for name in rules.languages if name in PHRASES]
    said = folded(ends)
    order = _ORDER if "?" in said else (*_ORDER[:3], _ORDER[4], _ORDER[3])
    for name in tried:
        for kind, intent in order:
            found = _pattern(name, kind).search(said)
            if found is None:
                continue
            if intent is None:
                break
            confidence = min(MOST_CONFIDENT, _BELOW * rules.confidence_threshold)
            return MemoryIntent(intent, _entities(ends, found[0]), confidence, language, True, reason)
    return MemoryIntent(language=language, by_rules=True, reason=reason)


def _entities(message: str, phrase: str) -> tuple[str, ...]:
    """The first words of substance that the phrase itself does not have."""
    own = set(folded(phrase).split())
    return tuple(word for word in content_words(message) if folded(word) not in own)[:_MOST_ENTITIES]


@cache
def _pattern(language: str, kind: str) -> re.Pattern[str]:
    phrases = PHRASES[language]
    # Orders begin a message or a sentence, after a polite word; in the middle of one they are reported.
    before = rf"(?:^|[.!?;:,] ?)[¡¿\W]*(?:(?:{phrases.polite})\b[\s,:]*)*" if kind != "query" else r"\b"
    # To the end of its last word, which some phrases give the beginning of: it is none of the entities.
    return re.compile(rf"{before}(?:{getattr(phrases, kind)})\w*")
