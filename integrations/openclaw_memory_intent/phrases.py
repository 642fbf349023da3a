"""Judge a message by its phrases alone: if a model should be asked, and its intent where none is.

The first is made to miss nothing. A message is passed over only where something says that it wants none: it is a
greeting, or it asks for a piece of work or for common knowledge, in words that are neither about remembering nor about
the user.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from openclaw_memory.text import fold
from openclaw_memory_intent import languages
from openclaw_memory_intent.languages import CHINESE, UNKNOWN, WORD, list_stop_words, read_phrases
from openclaw_memory_intent.settings import IntentConfig
from openclaw_memory_intent.types import Intent, MemoryIntent

# Of a longer message the beginning and the end are looked at: what is between them was pasted.
MOST_CHARS = 4_000
_MOST_THANKS = 10  # words of a message that only thanks

# Like a name: a capital in the middle of a sentence. German writes all nouns so.
_NAME = re.compile(r"(?<=[^\W\d_.!?:]) +(?!I\b)[A-ZÀ-ÖØ-Þ]")
_FILE = re.compile(
    r"\b[\w-]+\.(?:py|pyi|ipynb|js|mjs|ts|tsx|jsx|css|html|json|ya?ml|toml|csv|sql|sh|c|h|cpp|rs|go|java|kt|rb|php)\b"
)


class _Patterns(NamedTuple):
    memory: re.Pattern[str]
    self: re.Pattern[str]
    delete: re.Pattern[str]
    code: re.Pattern[str]
    task: re.Pattern[str]
    generic: re.Pattern[str]


def is_worth_asking(message: str) -> bool:
    """Return True if a model should be asked for the intent of a message.

    It knows English, Dutch, German, French, Spanish and Chinese; a message in another language is always worth asking.

    Args:
        message: The text of the user, alone: no system prompt and no recalled text.
    """
    ends = shorten(message, MOST_CHARS)
    plain = normalize(ends).lstrip("¡!¿? ")
    if not any(map(str.isalpha, plain)) or _compile_talk()[0].fullmatch(plain):
        return False
    if not _is_latin(ends) or (language := languages.match_stop_words(ends, tuple(read_phrases()))) == UNKNOWN:
        return True
    of = _compile_patterns(language)
    if of.memory.search(plain) or of.self.search(plain):
        return True
    if of.delete.search(plain):
        return not (of.code.search(plain) or _FILE.search(plain))
    is_thanks = _compile_talk()[1].match(plain) and len(plain.split()) <= _MOST_THANKS
    is_generic = of.generic.match(plain) and (language == "de" or not _NAME.search(ends))
    return not (is_thanks or of.task.match(plain) or is_generic)


def shorten(message: str, most: int) -> str:
    """Return a message of at most so many characters: the beginning and the end of a longer one."""
    return message if len(message) <= most else f"{message[: most // 2 - 1]}\n{message[-(most // 2) :]}"


def normalize(message: str) -> str:
    """Return the text that the phrases are looked for in: folded, with plain apostrophes and single blanks."""
    return " ".join(fold(message).replace("\u2019", "'").split())


@cache
def _compile_patterns(language: str) -> _Patterns:
    phrases = read_phrases()[language]
    before = rf"(?:(?:{phrases['polite']})\b[\s,:]*)*"
    anywhere = (re.compile(rf"\b(?:{phrases[name]})") for name in ("memory", "self", "delete", "code"))
    return _Patterns(*anywhere, *(re.compile(rf"{before}(?:{phrases[name]})") for name in ("task", "generic")))


@cache
def _compile_talk() -> tuple[re.Pattern[str], re.Pattern[str]]:
    tables = languages.read_tables()
    talk, thanks = (tables[name].replace("\n", "") for name in ("small_talk", "thanks"))
    return re.compile(rf"(?:(?:{talk})(?:[\W_]+|$))+"), re.compile(rf"(?:{thanks})\b")


def _is_latin(text: str) -> bool:
    """Return True if most letters are of the Latin script, the script of five of the languages."""
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters if not letter.isascii())
    return 2 * foreign < len(letters)


# --- the intent, where no model says it
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


def match_phrases(
    message: str,
    rules: IntentConfig,
    reason: str,
    detect: Callable[[str, Sequence[str]], str] = languages.detect_language,
) -> MemoryIntent:
    """Return the intent by phrases, with a confidence below the threshold and of at most 0.6.

    Args:
        message: The text of the user.
        rules: The languages, and the threshold.
        reason: Why no model says it.
        detect: Detects the language, of a text and those that it may be in.
    """
    ends = shorten(message, MOST_CHARS)
    language = CHINESE if languages.is_chinese(ends) else detect(ends, rules.languages)
    tried = [language] if language in read_phrases() else [name for name in rules.languages if name in read_phrases()]
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
    if language == CHINESE:  # the word of a phrase goes on into its subject
        message = message.replace(phrase, " ")
    words = dict.fromkeys(WORD.findall(message.lower()))
    return tuple(word for word in words if normalize(word) not in own)[:_MOST_ENTITIES]


@cache
def _compile_pattern(language: str, kind: str) -> re.Pattern[str]:
    phrases = read_phrases()[language]
    # Orders begin a message or a sentence, after a polite word; in the middle of one they are reported.
    before = rf"(?:^|[.!?;:,] ?)[¡¿\W]*(?:(?:{phrases['polite']})\b[\s,:]*)*" if kind != "query" else r"\b"
    # To the end of its last word, which some phrases give the beginning of: it is none of the entities.
    end = "" if language == CHINESE else r"\w*"
    return re.compile(f"{before}(?:{phrases[kind]}){end}")
