"""What happens to a conversation: its memories are saved, it is compacted, and old answers of tools are pruned."""

from typing import TYPE_CHECKING

from openclaw_memory.late import late_names

__all__ = [
    "FLUSH_TAG",
    "SILENT",
    "Answered",
    "ChatType",
    "Compacted",
    "Flush",
    "FlushTurn",
    "Message",
    "SessionState",
    "SilentStream",
    "answered",
    "answers_to",
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
    "prune",
    "read_states",
    "reserve",
    "should_compact",
    "text_of",
    "update_state",
    "without_silent",
]

if TYPE_CHECKING:
    from openclaw_memory.sessions.compaction import Compacted, compact, conversation, cut, logged, should_compact
    from openclaw_memory.sessions.flush import FLUSH_TAG, Flush, FlushTurn
    from openclaw_memory.sessions.keys import ChatType, chat_type
    from openclaw_memory.sessions.messages import Message, answers_to, calls_of, estimated_tokens, for_model, text_of
    from openclaw_memory.sessions.overflow import Answered, answered, is_overflow
    from openclaw_memory.sessions.pruning import prune
    from openclaw_memory.sessions.silent import SILENT, SilentStream, is_silent, without_silent
    from openclaw_memory.sessions.state import SessionState, read_states, update_state
    from openclaw_memory.sessions.thresholds import compaction_threshold, flush_due, flush_threshold, reserve

# Where each public name lives: imported when it is first asked for.
_MODULES = {
    "compaction": ("Compacted", "compact", "conversation", "cut", "logged", "should_compact"),
    "flush": ("FLUSH_TAG", "Flush", "FlushTurn"),
    "keys": ("ChatType", "chat_type"),
    "messages": ("Message", "answers_to", "calls_of", "estimated_tokens", "for_model", "text_of"),
    "overflow": ("Answered", "answered", "is_overflow"),
    "pruning": ("prune",),
    "silent": ("SILENT", "SilentStream", "is_silent", "without_silent"),
    "state": ("SessionState", "read_states", "update_state"),
    "thresholds": ("compaction_threshold", "flush_due", "flush_threshold", "reserve"),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
