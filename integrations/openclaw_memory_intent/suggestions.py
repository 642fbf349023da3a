"""What may be done about what a message wants: a suggestion, which nothing acts on by itself."""

from __future__ import annotations

from collections.abc import Mapping

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text import fenced
from openclaw_memory_intent.catalogue import FORGET, REMEMBER
from openclaw_memory_intent.settings import IntentConfig, check_settings
from openclaw_memory_intent.types import MemoryIntent, Suggestion

_FOR_THE_MODEL = {
    "memory_write": (
        "The user's message may hold something to remember. If you agree, ask the question below before you save it "
        "with memory_append, unless the user has clearly asked for it; save nothing else."
    ),
    "memory_search": (
        "The user's message may be about what the memory holds. If you agree, call memory_search with the words below "
        "before you answer."
    ),
    "forget": (
        "The user's message may want something forgotten. Call memory_search with the words below, if there are any, "
        "show the lines with their citations, and ask the question. Delete nothing before the user has seen the very "
        "lines and agreed."
    ),
}


def suggestion(found: MemoryIntent, rules: IntentConfig | None = None) -> Suggestion | None:
    """Return what may be done about an intent; None where it is not sure enough, or nothing is wanted.

    It takes a confidence above `confidence_threshold`, and a model: on phrases alone nothing is suggested.

    Args:
        found: What `detect_intent` returned.
        rules: The threshold, by default that of `IntentConfig()`.

    Raises:
        InvalidInputError, ConfigError: `found` or `rules` is something else.
    """
    if not isinstance(found, MemoryIntent):
        raise InvalidInputError(f"found must be what detect_intent returns, not a {type(found).__name__}")
    rules = check_settings(rules)
    if not rules.enabled or found.by_rules or not found.confidence > rules.confidence_threshold:
        return None
    query = " ".join(found.entities)
    if found.intent == "remember":
        return Suggestion("memory_write", found.entities, message=_question(REMEMBER, found))
    if found.intent == "forget":
        return Suggestion("forget", found.entities, query, _question(FORGET, found))
    return Suggestion("memory_search", found.entities, query) if found.intent == "query" and query else None


def suggestion_text(suggested: Suggestion, *, name: str | None = None) -> str:
    """Return a suggestion for the instructions of a model: what to do, and fenced what it is about.

    Args:
        suggested: What `suggestion` returned.
        name: The name of the memory, for an agent with several: the one that its tools begin with.
    """
    about = [f"Words: {suggested.query}"] if suggested.query else []
    about += [f"Question: {suggested.message}"] if suggested.message else []
    said = _FOR_THE_MODEL[suggested.kind]
    said = said if name is None else said.replace("memory_", f"{name}_memory_")
    return f"{said}\n{fenced(chr(10).join(about), 'suggestion')}"


def _question(catalogue: Mapping[str, tuple[str, str]], found: MemoryIntent) -> str:
    about, alone = catalogue.get(found.language, catalogue["en"])
    return about.format(entities=", ".join(found.entities)) if found.entities else alone
