from .detector import ConversationDetector as ConversationDetector, Reading as Reading
from .driver import (
    adrive_flush as adrive_flush,
    arun_flush as arun_flush,
    drive_flush as drive_flush,
    FlushModel as FlushModel,
    ModelReply as ModelReply,
    run_flush as run_flush,
)
from .flush import FLUSH_TAG as FLUSH_TAG, Flush as Flush, flush_prompt as flush_prompt, FlushTurn as FlushTurn
from .host_transcript import keep_transcript as keep_transcript
from .verbatim import (
    fit_entry as fit_entry,
    keep_named as keep_named,
    read_messages_since as read_messages_since,
    write_messages as write_messages,
)
