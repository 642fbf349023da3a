from .detection import adetect_intent as adetect_intent, detect_intent as detect_intent
from .detector import IntentDetector as IntentDetector
from .gate import worth_asking as worth_asking
from .languages import language_of as language_of
from .settings import IntentConfig as IntentConfig, read_settings as read_settings
from .suggestions import suggestion as suggestion, suggestion_text as suggestion_text
from .types import MemoryIntent as MemoryIntent, Suggestion as Suggestion
