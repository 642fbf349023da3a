"""Define the intent of a message, and the suggestion for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Intent: TypeAlias = Literal["remember", "query", "forget"]
SuggestionKind: TypeAlias = Literal["memory_write", "memory_search", "forget"]


@dataclass(frozen=True, slots=True)
class MemoryIntent:
    """The intent of a message towards the memory; `intent` is None if it has none.

    `entities` are its subjects, `confidence` is 0..1, `language` an ISO 639-1 code, or "und" where it is unknown.
    `by_rules` says that no model was asked or none gave a usable answer, and `reason` why: nothing is ever suggested on
    that.
    """

    intent: Intent | None = None
    entities: tuple[str, ...] = ()
    confidence: float = 0.0
    language: str = "und"
    by_rules: bool = False
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON, with the names of the reply that a model gives."""
        return {
            "intent": self.intent,
            "entities": list(self.entities),
            "confidence": self.confidence,
            "language": self.language,
        }


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested action, for the user or the model to agree to; it does nothing by itself.

    `kind` is `memory_write` (`message` asks the user first), `memory_search` (for `query`), or `forget`: show the
    results of `memory_search` for `query`, and ask `message`. `message` is in the user's language.
    """

    kind: SuggestionKind
    entities: tuple[str, ...] = ()
    query: str = ""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON: `suggestion`, and the fields of its kind."""
        if self.kind == "memory_write":
            return {"suggestion": self.kind, "entities": list(self.entities), "message": self.message}
        if self.kind == "memory_search":
            return {"suggestion": self.kind, "query": self.query}
        return {"suggestion": self.kind, "query": self.query, "message": self.message}
