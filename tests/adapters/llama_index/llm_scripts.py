"""Scripts for `ScriptedLLM`: models that flush what they are asked to remember."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index_openclaw_memory.testing import Reply, make_call


def facts_in(messages: Sequence[ChatMessage]) -> list[str]:
    """What the messages ask to be remembered, each once, in order."""
    said = (
        fact for message in messages for fact in re.findall(r"(?i)remember(?: that)?:? (.+)", message.content or "")
    )
    return list(dict.fromkeys(said))


def writes_facts(messages: Sequence[ChatMessage], tools: Sequence[str]) -> Reply:
    """The script of a flush model: with `memory_append`, it writes every line it is shown that asks to be remembered."""
    facts = facts_in(messages)
    if messages[-1].role == MessageRole.TOOL or not facts or "memory_append" not in tools:
        return "NO_REPLY"
    return make_call("memory_append", "flush-1", text="\n".join(f"- {fact}" for fact in facts))


def says_facts(messages: Sequence[ChatMessage], _tools: Sequence[str]) -> Reply:
    """The script of a flush model that cannot call tools: it says the notes."""
    return "\n".join(f"- {fact}" for fact in facts_in(messages)) or "NO_REPLY"
