from .fence import fenced as fenced
from .markdown_blocks import blocks as blocks, title_of as title_of
from .silent_reply import (
    is_silent as is_silent,
    SILENT as SILENT,
    SilentStream as SilentStream,
    without_silent as without_silent,
)
from .stopwords import STOP_WORDS as STOP_WORDS
from .terms import content_words as content_words, fold as fold
