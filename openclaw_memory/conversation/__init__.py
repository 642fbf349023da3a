"""Conversations: their messages, when they are full, and how they are compacted and pruned."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "SILENT",
    "Message",
    "SilentStream",
    "ask_with_compaction",
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
    from openclaw_memory.conversation.compaction import conversation, cut, logged
    from openclaw_memory.conversation.messages import (
        Message,
        calls_of,
        estimated_tokens,
        for_model,
        own_words,
        text_of,
    )
    from openclaw_memory.conversation.overflow import ask_with_compaction, is_overflow
    from openclaw_memory.conversation.pruning import prune
    from openclaw_memory.conversation.silent_reply import SILENT, SilentStream, is_silent, without_silent
    from openclaw_memory.conversation.thresholds import compaction_threshold, flush_due

# The module of each public name, imported at its first use.
_MODULES = {
    "compaction": ["conversation", "cut", "logged"],
    "messages": ["Message", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"],
    "overflow": ["ask_with_compaction", "is_overflow"],
    "pruning": ["prune"],
    "silent_reply": ["SILENT", "SilentStream", "is_silent", "without_silent"],
    "thresholds": ["compaction_threshold", "flush_due"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
