"""A memory, models that say what they are told to, and agents that talk for three compaction cycles."""

import pytest
from langchain_openclaw_memory.testing import ScriptedChatModel, TextOnlyChatModel, saying
from scripted_chat import asks_memory, writes_facts


@pytest.fixture
def scripted():
    """Makes a chat model of a script, or of replies that are given one after the other."""

    def make(*script, kind=ScriptedChatModel, **fields):
        is_script = len(script) == 1 and callable(script[0])
        return kind(script=script[0] if is_script else saying(*script), **fields)

    return make


@pytest.fixture
def text_only(scripted):
    """Makes a chat model that cannot call tools."""
    return lambda *script, **fields: scripted(*script, kind=TextOnlyChatModel, **fields)


@pytest.fixture
def flush_model(scripted):
    return scripted(writes_facts)


@pytest.fixture
def chat_model(scripted):
    return scripted(asks_memory)
