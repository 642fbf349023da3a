"""Conversations: their messages, when they are full, and how they are compacted and pruned."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "SILENT",
    "Message",
    "SilentStream",
    "ask_with_compaction",
    "call_parts",
    "calls_of",
    "compaction_threshold",
    "conversation",
    "cut",
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
    from openclaw_memory.conversation.silent_reply import SILENT, SilentStream, is_silent, without_silent
    from openclaw_memory.conversation.window import compaction_threshold, flush_due, is_overflow

# The module of each public name, imported at its first use.
_MODULES = {
    "compaction": ["ask_with_compaction", "conversation", "cut", "logged", "prune"],
    "messages": ["Message", "call_parts", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"],
    "silent_reply": ["SILENT", "SilentStream", "is_silent", "without_silent"],
    "window": ["compaction_threshold", "flush_due", "is_overflow"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
