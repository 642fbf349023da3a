"""The flush: what a conversation must not lose is saved just before it is compacted."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "FLUSH_TAG",
    "MAX_STEPS",
    "Conversations",
    "Flush",
    "FlushTurn",
    "Look",
    "Reading",
    "SessionState",
    "called",
    "driven",
    "gave_up",
    "hold",
    "in_one_message",
    "messages_since",
    "prompt_of",
    "read_states",
    "transcribed",
    "update_state",
]

if TYPE_CHECKING:
    from openclaw_memory.flush.detector import Conversations, Reading
    from openclaw_memory.flush.driver import MAX_STEPS, Look, called, driven, gave_up, hold, in_one_message, prompt_of
    from openclaw_memory.flush.flush import FLUSH_TAG, Flush, FlushTurn
    from openclaw_memory.flush.state import SessionState, read_states, update_state
    from openclaw_memory.flush.verbatim import messages_since, transcribed

# Where each public name lives: imported when it is first asked for.
_MODULES = {
    "detector": (
        "Conversations",
        "Reading",
    ),
    "driver": (
        "Look",
        "MAX_STEPS",
        "called",
        "driven",
        "gave_up",
        "hold",
        "in_one_message",
        "prompt_of",
    ),
    "flush": (
        "FLUSH_TAG",
        "Flush",
        "FlushTurn",
    ),
    "state": (
        "SessionState",
        "read_states",
        "update_state",
    ),
    "verbatim": (
        "messages_since",
        "transcribed",
    ),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
