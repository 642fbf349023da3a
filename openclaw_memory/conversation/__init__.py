"""Conversations: their messages, what one wants of the memory, when they are full, and how they are compacted."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.text.silent_reply import SILENT, SilentStream, is_silent, without_silent

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
    "for_model",
    "is_overflow",
    "is_silent",
    "logged",
    "own_words",
    "prepare_snapshot",
    "prune",
    "text_of",
    "without_silent",
    "write_snapshot",
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
    from openclaw_memory.conversation.snapshots import prepare_snapshot, write_snapshot
    from openclaw_memory.conversation.window import compaction_threshold, is_overflow

# The module of each public name, imported at its first use.
_MODULES = {
    "compaction": ["ask_with_compaction", "conversation", "cut", "logged", "prune"],
    "messages": ["Message", "call_parts", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"],
    "snapshots": ["prepare_snapshot", "write_snapshot"],
    "window": ["compaction_threshold", "is_overflow"],
}

__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs=_MODULES)[0], __all__.copy
