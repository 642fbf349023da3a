"""The flush: save what a conversation must not lose, just before it is compacted."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = [
    "FLUSH_TAG",
    "ConversationDetector",
    "Flush",
    "FlushModel",
    "FlushTurn",
    "ModelReply",
    "Reading",
    "adrive_flush",
    "arun_flush",
    "drive_flush",
    "flush_prompt",
    "holdable",
    "keep_named",
    "keep_transcript",
    "messages_since",
    "run_flush",
    "transcribed",
]

if TYPE_CHECKING:
    from openclaw_memory.flush.detector import ConversationDetector, Reading
    from openclaw_memory.flush.driver import FlushModel, ModelReply, adrive_flush, arun_flush, drive_flush, run_flush
    from openclaw_memory.flush.flush import FLUSH_TAG, Flush, FlushTurn, flush_prompt
    from openclaw_memory.flush.host_transcript import keep_transcript
    from openclaw_memory.flush.verbatim import holdable, keep_named, messages_since, transcribed

# The module of each public name, imported at its first use.
_MODULES = {
    "detector": ["ConversationDetector", "Reading"],
    "driver": ["FlushModel", "ModelReply", "adrive_flush", "arun_flush", "drive_flush", "run_flush"],
    "flush": ["FLUSH_TAG", "Flush", "FlushTurn", "flush_prompt"],
    "host_transcript": ["keep_transcript"],
    "verbatim": ["holdable", "keep_named", "messages_since", "transcribed"],
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
