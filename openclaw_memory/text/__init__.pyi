from .days import parse_day as parse_day
from .fence import fence_text as fence_text
from .markdown_blocks import split_blocks as split_blocks
from .languages import STOP_WORDS as STOP_WORDS
from .terms import fold as fold, split_at_query_words as split_at_query_words
from .silent_reply import SilentStream as SilentStream, strip_silent as strip_silent
