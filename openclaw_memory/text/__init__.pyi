from .days import find_dates as find_dates
from .fence import fence_text as fence_text
from .markdown_blocks import split_blocks as split_blocks
from .languages import STOP_WORDS as STOP_WORDS
from .terms import (
    fold as fold,
    select_content_words as select_content_words,
    split_at_query_words as split_at_query_words,
)
from .silent_reply import (
    SilentStream as SilentStream,
    is_silent as is_silent,
    strip_silent as strip_silent,
)
