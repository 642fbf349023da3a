"""The adapter's README cannot lie: its examples run in their order and print what it says."""

import re
from pathlib import Path

import langchain_openclaw_memory
import pytest
from adapter_readmes import check_examples
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call

README = (Path(langchain_openclaw_memory.__file__).parent / "README.md").read_text(encoding="utf-8")
REAL, WHEN = '"openai:gpt-5-mini"', "When is the launch?"


def script(request):
    """Answers from what it is shown, and looks up what that does not tell."""
    last = request.messages[-1]
    if WHEN in last.text and (shown := re.search(r"\[(\S+) \w+\]\nAnna moved the launch to Friday", last.text)):
        return f"On Friday [{shown[1]}]."
    if isinstance(last, HumanMessage) and last.text.endswith("?") and "memory_search" in request.tools:
        return make_call("memory_search", query=last.text)
    return "In the old mill." if isinstance(last, ToolMessage) else "Noted."


@pytest.mark.nightly
def test_the_examples_run_in_their_order_and_print_what_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme", "played": ScriptedChatModel(script=script, profile={"max_input_tokens": 200_000})}
    check_examples(README.replace(f"init_chat_model({REAL})", "played").replace(REAL, "played"), names)
