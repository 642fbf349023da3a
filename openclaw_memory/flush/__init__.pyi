from .detector import ConversationDetector as ConversationDetector, Reading as Reading
from .driver import (
    arun_flush as arun_flush,
    FlushModel as FlushModel,
    ModelReply as ModelReply,
    run_flush as run_flush,
)
from .flush import Flush as Flush, FLUSH_TAG as FLUSH_TAG, flush_prompt as flush_prompt, FlushTurn as FlushTurn
from .session import Session as Session
from .verbatim import (
    fit_entry as fit_entry,
    keep_named as keep_named,
    keep_transcript as keep_transcript,
    read_messages_since as read_messages_since,
    write_messages as write_messages,
)
