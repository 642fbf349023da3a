"""Models that say what they are told to."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from chat_scripts import writes_facts
from langchain_openclaw_memory.testing import ScriptedChatModel, respond_with


@pytest.fixture
def scripted():
    """Makes a chat model of a script, or of replies that are given one after the other."""

    def make(*script, kind=ScriptedChatModel, **fields):
        is_script = len(script) == 1 and callable(script[0])
        return kind(script=script[0] if is_script else respond_with(*script), **fields)

    return make


@pytest.fixture
def flush_model(scripted):
    return scripted(writes_facts)
