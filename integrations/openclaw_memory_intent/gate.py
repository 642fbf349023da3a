"""Tell if a message may concern the memory, judging by its words alone.

It is made to miss nothing. A message is passed over only where something says that it wants none: it is a greeting, or
it asks for a piece of work or for common knowledge, in words that are neither about remembering nor about the user.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from openclaw_memory.text import fold
from openclaw_memory_intent.languages import UNKNOWN, match_stop_words
from openclaw_memory_intent.phrases import PHRASES, SMALL_TALK, THANKS

# Of a longer message the beginning and the end are looked at: what is between them was pasted.
MOST_CHARS = 4_000
_MOST_THANKS = 10  # words of a message that only thanks

_TALK_ONLY = re.compile(rf"(?:(?:{SMALL_TALK})(?:[\W_]+|$))+")
_THANKS = re.compile(rf"(?:{THANKS})\b")
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

    It knows English, Dutch, German, French and Spanish; a message in another language is always worth asking.

    Args:
        message: The text of the user, alone: no system prompt and no recalled text.
    """
    ends = shorten(message, MOST_CHARS)
    plain = normalize(ends).lstrip("¡!¿? ")
    if not any(map(str.isalpha, plain)) or _TALK_ONLY.fullmatch(plain):
        return False
    if not _is_latin(ends) or (language := match_stop_words(ends, tuple(PHRASES))) == UNKNOWN:
        return True
    of = _compile_patterns(language)
    if of.memory.search(plain) or of.self.search(plain):
        return True
    if of.delete.search(plain):
        return not (of.code.search(plain) or _FILE.search(plain))
    is_thanks = _THANKS.match(plain) and len(plain.split()) <= _MOST_THANKS
    is_generic = of.generic.match(plain) and (language == "de" or not _NAME.search(ends))
    return not (is_thanks or of.task.match(plain) or is_generic)


def shorten(message: str, most: int) -> str:
    """Return a message of at most so many characters: the beginning and the end of a longer one.

    Args:
        message: The message.
        most: The most characters, 2 or more.
    """
    return message if len(message) <= most else f"{message[: most // 2 - 1]}\n{message[-(most // 2) :]}"


def normalize(message: str) -> str:
    """Return the text that the phrases are looked for in: folded, with plain apostrophes and single blanks.

    Args:
        message: The message.
    """
    return " ".join(fold(message).replace("\u2019", "'").split())


@cache
def _compile_patterns(language: str) -> _Patterns:
    phrases = PHRASES[language]
    before = rf"(?:(?:{phrases.polite})\b[\s,:]*)*"
    return _Patterns(
        re.compile(rf"\b(?:{phrases.memory})"),
        re.compile(rf"\b(?:{phrases.self})"),
        re.compile(rf"\b(?:{phrases.delete})"),
        re.compile(rf"\b(?:{phrases.code})"),
        re.compile(rf"{before}(?:{phrases.task})"),
        re.compile(rf"{before}(?:{phrases.generic})"),
    )


def _is_latin(text: str) -> bool:
    """Return True if most letters are of the Latin script, the script of the five languages."""
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters if not letter.isascii())
    return 2 * foreign < len(letters)
