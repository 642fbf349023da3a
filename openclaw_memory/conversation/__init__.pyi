from .compaction import cut as cut, load_conversation as load_conversation, prune as prune
from .messages import (
    estimate_tokens as estimate_tokens,
    format_messages as format_messages,
    get_text as get_text,
    prepare_for_model as prepare_for_model,
    read_calls as read_calls,
    strip_recalled as strip_recalled,
)
from .snapshots import prepare_snapshot as prepare_snapshot, write_snapshot as write_snapshot
from .thresholds import is_overflow as is_overflow
