"""What a message wants of a memory: to remember, to look something up, to forget, or nothing.

`worth_asking` decides cheaply whether a model need be asked, `detect_intent` asks it, and `suggestion` says what may be
done about the answer. Nothing here writes or deletes.
"""

from openclaw_memory.intent.detection import adetect_intent, detect_intent
from openclaw_memory.intent.gate import worth_asking
from openclaw_memory.intent.languages import language_of
from openclaw_memory.intent.suggestions import suggestion, suggestion_text
from openclaw_memory.types.intent import MemoryIntent, Suggestion

__all__ = [
    "MemoryIntent",
    "Suggestion",
    "adetect_intent",
    "detect_intent",
    "language_of",
    "suggestion",
    "suggestion_text",
    "worth_asking",
]
