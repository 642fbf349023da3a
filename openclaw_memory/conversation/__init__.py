"""Conversations: their messages, what one wants of the memory, when they are full, and how they are compacted."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "SILENT",
    "Message",
    "SilentStream",
    "adetect_intent",
    "ask_with_compaction",
    "call_parts",
    "calls_of",
    "compaction_threshold",
    "conversation",
    "cut",
    "detect_intent",
    "estimated_tokens",
    "flush_due",
    "for_model",
    "is_overflow",
    "is_silent",
    "logged",
    "own_words",
    "prune",
    "text_of",
    "without_silent",
]

if TYPE_CHECKING:
    from openclaw_memory.conversation.compaction import ask_with_compaction, conversation, cut, logged, prune
    from openclaw_memory.conversation.messages import (
        Message,
        call_parts,
        calls_of,
        estimated_tokens,
        for_model,
        own_words,
        text_of,
    )
    from openclaw_memory.conversation.window import compaction_threshold, flush_due, is_overflow
    from openclaw_memory.intent import adetect_intent, detect_intent
    from openclaw_memory.text.silent_reply import SILENT, SilentStream, is_silent, without_silent

# The module of each public name, imported at its first use.
_MODULES = {
    "compaction": ["ask_with_compaction", "conversation", "cut", "logged", "prune"],
    "messages": ["Message", "call_parts", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"],
    "openclaw_memory.text.silent_reply": ["SILENT", "SilentStream", "is_silent", "without_silent"],
    "openclaw_memory.intent": ["adetect_intent", "detect_intent"],
    "window": ["compaction_threshold", "flush_due", "is_overflow"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
