"""Suggest an action for an intent; nothing acts on a suggestion by itself."""

from __future__ import annotations

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text import fence_text
from openclaw_memory_intent.languages import read_tables
from openclaw_memory_intent.settings import IntentConfig, check_settings
from openclaw_memory_intent.types import MemoryIntent, Suggestion


def suggest(intent: MemoryIntent, rules: IntentConfig | None = None, *, by_rules: bool = False) -> Suggestion | None:
    """Return the suggestion for an intent; None if it is too unsure, or there is none.

    It takes a confidence above `confidence_threshold`, and a model: on phrases alone nothing is suggested.

    Args:
        intent: The result of `detect_intent`.
        rules: The threshold, by default that of `IntentConfig()`.
        by_rules: Whether phrases are enough, since a model judges the suggestion before anything comes of it.

    Raises:
        InvalidInputError, ConfigError: `intent` or `rules` is something else.
    """
    if not isinstance(intent, MemoryIntent):
        raise InvalidInputError(f"intent must be what detect_intent returns, not a {type(intent).__name__}")
    rules = check_settings(rules)
    is_sure = by_rules if intent.by_rules else intent.confidence > rules.confidence_threshold
    if not (rules.enabled and is_sure):
        return None
    query = " ".join(intent.entities)
    if intent.intent == "remember":
        return Suggestion("memory_write", intent.entities, message=_ask_user(intent, 0))
    if intent.intent == "forget":
        return Suggestion("forget", intent.entities, query, _ask_user(intent, 2))
    return Suggestion("memory_search", intent.entities, query) if intent.intent == "query" and query else None


def format_suggestion(suggested: Suggestion, *, name: str | None = None) -> str:
    """Return a suggestion as instructions for a model, with its words fenced.

    Args:
        suggested: The result of `suggest`.
        name: The name of the memory, for an agent with several: the one that its tools begin with.
    """
    about = [f"Words: {suggested.query}"] if suggested.query else []
    about += [f"Question: {suggested.message}"] if suggested.message else []
    instruction = str(read_tables()["instructions"][suggested.kind])
    instruction = instruction if name is None else instruction.replace("memory_", f"{name}_memory_")
    return f"{instruction}\n{fence_text(chr(10).join(about), 'suggest')}"


def _ask_user(intent: MemoryIntent, at: int) -> str:
    questions = read_tables()["questions"]
    about, alone = questions.get(intent.language, questions["en"])[at : at + 2]
    return str(about.format(entities=", ".join(intent.entities)) if intent.entities else alone)
