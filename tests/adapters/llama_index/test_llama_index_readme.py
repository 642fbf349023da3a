"""The adapter's README cannot lie: its examples run in their order and print what it says."""

from pathlib import Path

import llama_index_openclaw_memory
import pytest
from adapter_readmes import check_examples
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.instrumentation import get_dispatcher
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call
from llm_scripts import writes_facts
from some_nodes import WordEmbedding

README = (Path(llama_index_openclaw_memory.__file__).parent / "README.md").read_text(encoding="utf-8")
LAUNCH, PROJECTOR = "When is the launch?", "Who brings the projector?"


def script(messages, tools):
    """Writes what it is asked to remember, answers from what it is shown, and looks up what that does not tell."""
    last, shown = messages[-1], "\n".join(message.content or "" for message in messages)
    if list(tools) == ["memory_append"]:
        return writes_facts(messages, tools)
    if LAUNCH in last.content and "Anna moved the launch to Friday" in shown:
        return "On Friday [1]." if "Source 1:\nAnna moved" in shown else "On Friday."
    if last.content == PROJECTOR and "<recalled-memory" in shown and "- Ines brings the projector." in shown:
        return "Ines does."
    if last.role == MessageRole.USER and last.content.endswith("?") and "memory_search" in tools:
        return make_call("memory_search", query=last.content)
    return "In the old mill." if last.role == MessageRole.TOOL and "the old mill" in last.content else "Noted."


@pytest.fixture
def handlers():
    """The handlers of events, which are as before when the test is over."""
    handlers = get_dispatcher().event_handlers
    before = list(handlers)
    yield
    handlers[:] = before


@pytest.mark.usefixtures("handlers")
@pytest.mark.nightly
def test_the_examples_run_in_their_order_and_print_what_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_examples(README, {"__name__": "readme", "llm": ScriptedLLM(script=script), "embed_model": WordEmbedding()})
