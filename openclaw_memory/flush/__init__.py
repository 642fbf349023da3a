"""The flush: save what a conversation must not lose, just before it is compacted."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "FLUSH_TAG",
    "MAX_STEPS",
    "ConversationDetector",
    "Flush",
    "FlushTurn",
    "ModelTurn",
    "Reading",
    "abort_flush",
    "adrive_flush",
    "answer_tool_call",
    "as_single_prompt",
    "drive_flush",
    "messages_since",
    "prompt_of",
    "run_flush",
    "transcribed",
]

if TYPE_CHECKING:
    from openclaw_memory.flush.detector import ConversationDetector, Reading
    from openclaw_memory.flush.driver import (
        MAX_STEPS,
        ModelTurn,
        abort_flush,
        adrive_flush,
        answer_tool_call,
        as_single_prompt,
        drive_flush,
        prompt_of,
        run_flush,
    )
    from openclaw_memory.flush.flush import FLUSH_TAG, Flush, FlushTurn
    from openclaw_memory.flush.verbatim import messages_since, transcribed

# The module of each public name, imported at its first use.
_MODULES = {
    "detector": ["ConversationDetector", "Reading"],
    "driver": [
        *("MAX_STEPS", "ModelTurn", "abort_flush", "adrive_flush", "answer_tool_call"),
        *("as_single_prompt", "drive_flush", "prompt_of", "run_flush"),
    ],
    "flush": ["FLUSH_TAG", "Flush", "FlushTurn"],
    "verbatim": ["messages_since", "transcribed"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
