"""Read the phrases of languages, and detect that of a text: by py3langid if it is installed, else by stop words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from openclaw_memory.text import STOP_WORDS, fold

UNKNOWN = "und"  # ISO 639-2: undetermined
CHINESE = "zh"  # known by its script: no settings need name it
LANGUAGES = ("en", "nl", "de", "fr", "es")

_MOST_CHARS = 2_000  # enough to be sure of a language
WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile("[\u4e00-\u9fff]")
_NOT_CHINESE = re.compile("[\u3040-\u30ff]|(?:[^\\W\\d_\u3400-\u9fff]+ ){2}")
# Letters and signs that of these languages one alone has in common words. Each counts as one stop word.
_LETTERS: Mapping[str, re.Pattern[str]] = {
    "de": re.compile("[äöüß]"),
    "fr": re.compile("[çœêâîûëèà]|\\b(?:qu|[jdlnmtsc])['’]"),
    "es": re.compile("[ñ¿¡áíóú]"),
    "nl": re.compile("ij|[aeou](?:aa|ee|oo|uu)|(?:aa|oo|uu)[^\\Waeiou]"),
}


def detect_language(text: str, languages: Sequence[str] = LANGUAGES) -> str:
    """Return the most likely of some languages, as its ISO 639-1 code; "und" where nothing speaks for any.

    With the extra `language` py3langid decides, among these languages alone. It takes 0.7 s of CPU time to load, once.

    Args:
        text: A sentence or more.
        languages: The languages that it may be in, as ISO 639-1 codes.
    """
    text = text[:_MOST_CHARS]
    names = tuple(dict.fromkeys(languages))
    if not names or not WORD.search(text):
        return UNKNOWN
    by_model = _load_model(names)
    # A word or two are beyond a model of letters: it knows "ok" for German. Stop words that speak for one language do.
    if by_model is None or len(WORD.findall(text)) < 3:
        by_words = match_stop_words(text, names)
        if by_model is None or by_words != UNKNOWN:
            return by_words
    return by_model(text)


def match_stop_words(text: str, languages: Sequence[str] = LANGUAGES) -> str:
    """Return the language with the most stop words and letters in the text; "und" without any.

    A word that several languages share counts for each of them, the less the more they are.

    Args:
        text: A sentence or more.
        languages: The languages that it may be in, as ISO 639-1 codes.
    """
    candidates = [name for name in dict.fromkeys(languages) if name in STOP_WORDS]
    scores = dict.fromkeys(candidates, 0.0)
    for word in WORD.findall(fold(text)):
        having = [name for name in candidates if word in list_stop_words(name)]
        for name in having:
            scores[name] += 1 / len(having)
    lowered = text.lower()
    for name in candidates:
        if name in _LETTERS:
            scores[name] += len(_LETTERS[name].findall(lowered))
    best = max(scores.values(), default=0.0)
    return next((name for name, score in scores.items() if score == best), UNKNOWN) if best else UNKNOWN


def is_chinese(text: str) -> bool:
    """Return True if there are Chinese characters in the text, no kana, and no two words of other letters in a row."""
    return bool(_HAN.search(text)) and not _NOT_CHINESE.search(text)


@cache
def read_phrases() -> Mapping[str, Mapping[str, str]]:
    """Read the patterns of each language from `phrases.toml`."""
    languages = read_tables()["languages"].items()
    return {code: {name: text.replace("\n", "") for name, text in table.items()} for code, table in languages}


@cache
def read_tables() -> dict[str, Any]:
    """Read `phrases.toml`: phrases by language, questions, and instructions."""
    return tomllib.loads((files("openclaw_memory_intent") / "phrases.toml").read_text(encoding="utf-8"))


@cache
def list_stop_words(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing on their own, folded."""
    return STOP_WORDS[language] | frozenset(read_tables()["languages"].get(language, {}).get("common", "").split())


@cache
def _load_model(languages: tuple[str, ...]) -> Callable[[str], str] | None:
    """Return py3langid's classifier for these languages; None if it is not installed or lacks one."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:  # the extra `language` is not installed: stop words do
        return None
    model = LanguageIdentifier.from_model_file(MODEL_FILE)
    if not set(languages) <= set(model.labels):
        return None
    model.set_languages(list(languages))
    return lambda text: str(model.classify(text)[0])
