from .fence import fenced as fenced
from .markdown_blocks import blocks as blocks, title_of as title_of
from .stopwords import STOP_WORDS as STOP_WORDS
from .terms import content_words as content_words, fold as fold
