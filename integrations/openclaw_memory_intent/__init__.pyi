from .detection import adetect_intent as adetect_intent, detect_intent as detect_intent
from .detector import IntentDetector as IntentDetector
from .phrases import is_worth_asking as is_worth_asking
from .languages import detect_language as detect_language
from .settings import IntentConfig as IntentConfig, read_settings as read_settings
from .suggestions import format_suggestion as format_suggestion, suggest as suggest
from .types import MemoryIntent as MemoryIntent, Suggestion as Suggestion
