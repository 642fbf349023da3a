"""The adapter's README cannot lie: its examples run in their order and print what it says."""

import sys
from pathlib import Path
from types import ModuleType

import llama_index_openclaw_memory
import pytest
from adapter_readmes import check_examples
from llama_index_openclaw_memory.testing import ScriptedLLM

README = (Path(llama_index_openclaw_memory.__file__).parent / "README.md").read_text(encoding="utf-8")


def script(messages, _tools):
    """Answers from what it is shown."""
    shown = "\n".join(message.content or "" for message in messages)
    if "When is the launch?" not in shown or "Anna moved the launch to Friday" not in shown:
        return "I do not know."
    return "On Friday [1]." if "Source 1:\nAnna moved" in shown else "On Friday."


@pytest.mark.nightly
def test_the_examples_run_in_their_order_and_print_what_is_said(tmp_path, monkeypatch):
    service = ModuleType("llama_index.llms.openai")
    service.OpenAI = lambda **_: ScriptedLLM(script=script)
    monkeypatch.setitem(sys.modules, service.__name__, service)
    monkeypatch.chdir(tmp_path)
    check_examples(README, {"__name__": "readme"})
