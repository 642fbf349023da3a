"""Read the intent of a message from its phrases alone, without a model."""

from __future__ import annotations

import re
from functools import cache

from openclaw_memory_intent.gate import MOST_CHARS, normalize, shorten
from openclaw_memory_intent.languages import WORD, detect_language, list_stop_words
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


def match_phrases(message: str, rules: IntentConfig, reason: str) -> MemoryIntent:
    """Return the intent by phrases, with a confidence below the threshold and of at most 0.6.

    Args:
        message: The text of the user.
        rules: The languages, and the threshold.
        reason: Why no model says it.
    """
    ends = shorten(message, MOST_CHARS)
    language = detect_language(ends, rules.languages)
    tried = [language] if language in PHRASES else [name for name in rules.languages if name in PHRASES]
    plain = normalize(ends)
    order = _ORDER if "?" in plain else (*_ORDER[:3], _ORDER[4], _ORDER[3])
    for name in tried:
        for kind, intent in order:
            match = _compile_pattern(name, kind).search(plain)
            if match is None:
                continue
            if intent is None:
                break
            confidence = min(MOST_CONFIDENT, _BELOW * rules.confidence_threshold)
            return MemoryIntent(intent, _list_entities(ends, match[0], name), confidence, language, True, reason)
    return MemoryIntent(language=language, by_rules=True, reason=reason)


def _list_entities(message: str, phrase: str, language: str) -> tuple[str, ...]:
    """Return the first words of substance that the phrase itself does not have."""
    own = {*normalize(phrase).split(), *list_stop_words(language)}
    words = dict.fromkeys(WORD.findall(message.lower()))
    return tuple(word for word in words if normalize(word) not in own)[:_MOST_ENTITIES]


@cache
def _compile_pattern(language: str, kind: str) -> re.Pattern[str]:
    phrases = PHRASES[language]
    # Orders begin a message or a sentence, after a polite word; in the middle of one they are reported.
    before = rf"(?:^|[.!?;:,] ?)[¡¿\W]*(?:(?:{phrases.polite})\b[\s,:]*)*" if kind != "query" else r"\b"
    # To the end of its last word, which some phrases give the beginning of: it is none of the entities.
    return re.compile(rf"{before}(?:{getattr(phrases, kind)})\w*")
