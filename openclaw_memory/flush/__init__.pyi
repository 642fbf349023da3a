from .detector import ConversationDetector as ConversationDetector
from .driver import arun_flush as arun_flush, FlushModel as FlushModel, ModelReply as ModelReply, run_flush as run_flush
from .flush import Flush as Flush
from .session import Session as Session
