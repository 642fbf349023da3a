"""What happens to a conversation: its memories are saved, it is compacted, and old answers of tools are pruned."""

from typing import TYPE_CHECKING

from openclaw_memory.late import late_names

__all__ = [
    "FLUSH_TAG",
    "MAX_STEPS",
    "SILENT",
    "Answered",
    "ChatType",
    "Compacted",
    "Conversations",
    "Flush",
    "FlushTurn",
    "Look",
    "Message",
    "Reading",
    "SessionState",
    "SilentStream",
    "answered",
    "answers_to",
    "called",
    "calls_of",
    "chat_type",
    "compact",
    "compaction_threshold",
    "conversation",
    "cut",
    "driven",
    "estimated_tokens",
    "flush_due",
    "flush_threshold",
    "for_model",
    "gave_up",
    "hold",
    "in_one_message",
    "is_overflow",
    "is_silent",
    "logged",
    "messages_since",
    "own_words",
    "prompt_of",
    "prune",
    "read_states",
    "reserve",
    "should_compact",
    "text_of",
    "transcribed",
    "update_state",
    "without_silent",
]

if TYPE_CHECKING:
    from openclaw_memory.sessions.compaction import Compacted, compact, conversation, cut, logged, should_compact
    from openclaw_memory.sessions.conversations import Conversations, Reading
    from openclaw_memory.sessions.driving import MAX_STEPS, Look, called, driven, in_one_message, prompt_of
    from openclaw_memory.sessions.flush import FLUSH_TAG, Flush, FlushTurn
    from openclaw_memory.sessions.holding import gave_up, hold
    from openclaw_memory.sessions.keeping import messages_since, transcribed
    from openclaw_memory.sessions.keys import ChatType, chat_type
    from openclaw_memory.sessions.messages import (
        Message,
        answers_to,
        calls_of,
        estimated_tokens,
        for_model,
        own_words,
        text_of,
    )
    from openclaw_memory.sessions.overflow import Answered, answered, is_overflow
    from openclaw_memory.sessions.pruning import prune
    from openclaw_memory.sessions.silent import SILENT, SilentStream, is_silent, without_silent
    from openclaw_memory.sessions.state import SessionState, read_states, update_state
    from openclaw_memory.sessions.thresholds import compaction_threshold, flush_due, flush_threshold, reserve

# Where each public name lives: imported when it is first asked for.
_MODULES = {
    "compaction": ("Compacted", "compact", "conversation", "cut", "logged", "should_compact"),
    "driving": ("MAX_STEPS", "Look", "called", "driven", "in_one_message", "prompt_of"),
    "conversations": ("Conversations", "Reading"),
    "flush": ("FLUSH_TAG", "Flush", "FlushTurn"),
    "holding": ("gave_up", "hold"),
    "keeping": ("messages_since", "transcribed"),
    "keys": ("ChatType", "chat_type"),
    "messages": ("Message", "answers_to", "calls_of", "estimated_tokens", "for_model", "own_words", "text_of"),
    "overflow": ("Answered", "answered", "is_overflow"),
    "pruning": ("prune",),
    "silent": ("SILENT", "SilentStream", "is_silent", "without_silent"),
    "state": ("SessionState", "read_states", "update_state"),
    "thresholds": ("compaction_threshold", "flush_due", "flush_threshold", "reserve"),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
