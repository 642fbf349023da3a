"""Suggest an action for an intent; nothing acts on a suggestion by itself."""

from __future__ import annotations

from collections.abc import Mapping

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text import fence_text
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


def suggest(intent: MemoryIntent, rules: IntentConfig | None = None) -> Suggestion | None:
    """Return the suggestion for an intent; None if it is too unsure, or there is none.

    It takes a confidence above `confidence_threshold`, and a model: on phrases alone nothing is suggested.

    Args:
        intent: The result of `detect_intent`.
        rules: The threshold, by default that of `IntentConfig()`.

    Raises:
        InvalidInputError, ConfigError: `intent` or `rules` is something else.
    """
    if not isinstance(intent, MemoryIntent):
        raise InvalidInputError(f"intent must be what detect_intent returns, not a {type(intent).__name__}")
    rules = check_settings(rules)
    if not rules.enabled or intent.by_rules or not intent.confidence > rules.confidence_threshold:
        return None
    query = " ".join(intent.entities)
    if intent.intent == "remember":
        return Suggestion("memory_write", intent.entities, message=_ask_user(REMEMBER, intent))
    if intent.intent == "forget":
        return Suggestion("forget", intent.entities, query, _ask_user(FORGET, intent))
    return Suggestion("memory_search", intent.entities, query) if intent.intent == "query" and query else None


def format_suggestion(suggested: Suggestion, *, name: str | None = None) -> str:
    """Return a suggestion as instructions for a model, with its words fenced.

    Args:
        suggested: The result of `suggest`.
        name: The name of the memory, for an agent with several: the one that its tools begin with.
    """
    about = [f"Words: {suggested.query}"] if suggested.query else []
    about += [f"Question: {suggested.message}"] if suggested.message else []
    instruction = _FOR_THE_MODEL[suggested.kind]
    instruction = instruction if name is None else instruction.replace("memory_", f"{name}_memory_")
    return f"{instruction}\n{fence_text(chr(10).join(about), 'suggest')}"


def _ask_user(catalogue: Mapping[str, tuple[str, str]], intent: MemoryIntent) -> str:
    about, alone = catalogue.get(intent.language, catalogue["en"])
    return about.format(entities=", ".join(intent.entities)) if intent.entities else alone
