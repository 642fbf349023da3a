"""Memory for an agent: the tools that it calls, and what it reads before it answers.

`memory_tools` returns the tools of one session, each a name, a description, a JSON schema and a function; `recall` what
is relevant before a model is asked; `recall_section` the text for its instructions, and `session_start` that with what
a session starts with.
"""

from openclaw_memory.text.fence import fenced_results
from openclaw_memory.tools.handlers import memory_tools
from openclaw_memory.tools.prompt import question_in, recall, recall_section, with_fewer_results
from openclaw_memory.tools.session_start import session_start
from openclaw_memory.tools.visibility import checked_memory, cites, is_shown, record_fields, search_for

__all__ = [
    "checked_memory",
    "cites",
    "fenced_results",
    "is_shown",
    "memory_tools",
    "question_in",
    "recall",
    "recall_section",
    "record_fields",
    "search_for",
    "session_start",
    "with_fewer_results",
]
