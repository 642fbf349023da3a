"""Give an agent a memory: tools that it calls, and text that it reads before it answers.

`memory_tools` makes the tools of one session, each a name, a description, a JSON schema and a function. `recall` finds
what is relevant before a model is asked. `recall_section` writes the text for its instructions, and
`compose_session_start` that with the notes that a session starts with.
"""

from openclaw_memory.text.fence import fence_results
from openclaw_memory.tools.handlers import memory_tools
from openclaw_memory.tools.prompt import compose_session_start, recall, recall_section, with_fewer_results
from openclaw_memory.tools.visibility import find_audience, search_for

__all__ = [
    "compose_session_start",
    "fence_results",
    "find_audience",
    "memory_tools",
    "recall",
    "recall_section",
    "search_for",
    "with_fewer_results",
]
