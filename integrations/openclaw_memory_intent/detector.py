"""Detect the intents of messages by the settings of one memory, for the adapters."""

from __future__ import annotations

from openclaw_memory import MemoryConfig
from openclaw_memory_intent.detection import Ask, AsyncAsk, adetect_intent, detect_intent
from openclaw_memory_intent.languages import match_stop_words
from openclaw_memory_intent.phrases import is_worth_asking, match_phrases
from openclaw_memory_intent.settings import read_settings
from openclaw_memory_intent.suggestions import format_suggestion, suggest
from openclaw_memory_intent.types import MemoryIntent, Suggestion


class IntentDetector:
    """Detect the intents of messages by the settings of one memory.

    Adapters load this class by `load_plugin("detectors", "intent")`.
    """

    def __init__(self, config: MemoryConfig) -> None:
        """Read the settings.

        Args:
            config: The settings of the memory.

        Raises:
            ConfigError: A setting of `[plugins.intent]` is unknown, or has a wrong type or is out of range.
        """
        self.settings = read_settings(config)

    def is_worth_asking(self, message: str) -> bool:
        """Return whether a model should be asked: see `is_worth_asking`."""
        return self.settings.enabled and is_worth_asking(message)

    def detect(self, message: str, ask: Ask) -> MemoryIntent:
        """Ask a model: see `detect_intent`."""
        return detect_intent(message, ask, self.settings)

    async def detect_async(self, message: str, ask: AsyncAsk) -> MemoryIntent:
        """Ask a model that is awaited: see `adetect_intent`."""
        return await adetect_intent(message, ask, self.settings)

    def suggest(self, intent: MemoryIntent) -> Suggestion | None:
        """Return a suggestion for an intent, if it is sure enough: see `suggest`."""
        return suggest(intent, self.settings)

    def suggest_by_rules(self, message: str) -> Suggestion | None:
        """Return a suggestion by phrases and stop words alone, for a model to judge: nothing is loaded or asked."""
        if not self.is_worth_asking(message):
            return None
        intent = match_phrases(message, self.settings, "a model judges the suggestion", match_stop_words)
        return suggest(intent, self.settings, by_rules=True)

    def write_instructions(self, suggested: Suggestion, *, name: str | None = None) -> str:
        """Return a suggestion for the instructions of a model: see `format_suggestion`."""
        return format_suggestion(suggested, name=name)
