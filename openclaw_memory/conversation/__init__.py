"""Conversations: their messages, when they are full, and how they are compacted and pruned."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "SILENT",
    "AskResult",
    "ChatType",
    "Compacted",
    "Message",
    "SilentStream",
    "answers_to",
    "ask_with_compaction",
    "calls_of",
    "chat_type",
    "compact",
    "compaction_threshold",
    "conversation",
    "cut",
    "estimated_tokens",
    "flush_due",
    "flush_threshold",
    "for_model",
    "is_overflow",
    "is_silent",
    "logged",
    "own_words",
    "prune",
    "reserve",
    "should_compact",
    "text_of",
    "without_silent",
]

if TYPE_CHECKING:
    from openclaw_memory.conversation.compaction import Compacted, compact, conversation, cut, logged, should_compact
    from openclaw_memory.conversation.messages import (
        Message,
        answers_to,
        calls_of,
        estimated_tokens,
        for_model,
        own_words,
        text_of,
    )
    from openclaw_memory.conversation.overflow import AskResult, ask_with_compaction, is_overflow
    from openclaw_memory.conversation.pruning import prune
    from openclaw_memory.conversation.session_key import ChatType, chat_type
    from openclaw_memory.conversation.silent_reply import SILENT, SilentStream, is_silent, without_silent
    from openclaw_memory.conversation.thresholds import compaction_threshold, flush_due, flush_threshold, reserve

# The module of each public name, imported at its first use.
_MODULES = {
    "compaction": ["Compacted", "compact", "conversation", "cut", "logged", "should_compact"],
    "messages": ["Message", "answers_to", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"],
    "overflow": ["AskResult", "ask_with_compaction", "is_overflow"],
    "pruning": ["prune"],
    "session_key": ["ChatType", "chat_type"],
    "silent_reply": ["SILENT", "SilentStream", "is_silent", "without_silent"],
    "thresholds": ["compaction_threshold", "flush_due", "flush_threshold", "reserve"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
