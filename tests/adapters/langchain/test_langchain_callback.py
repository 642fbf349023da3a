"""A callback handler that has memories saved, for whatever talks with a chat model."""

import sys
from pathlib import Path
from typing import ClassVar

import pytest
from chat_scripts import FACT, SUMMARY, chat_with, flushes, notes, says, thread, writes_facts
from contract_flush import WINDOW, WatchContract, words
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, get_buffer_string
from langchain_openclaw_memory import OpenClawFlushCallback
from langchain_openclaw_memory.testing import make_call

from openclaw_memory.errors import ConfigError

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from told_facts import TROUBLES, tell_facts


class TestContract(WatchContract):
    ways = "invoke", "ainvoke"
    too_long = ContextOverflowError("too long")
    writes = staticmethod(writes_facts)
    knows: ClassVar = ({"profile": {"max_input_tokens": 8_000}}, 8_000)

    @pytest.fixture(autouse=True)
    def _scripted(self, scripted):
        self.model = scripted

    def watch(self, memory, model, **settings):
        model.callbacks = [OpenClawFlushCallback(memory, model, **settings)]
        self.callbacks = model.callbacks
        return self.callbacks[0]

    async def ask(self, model, talk, way, session=None):
        config = {"callbacks": self.callbacks, "metadata": {} if session is None else {"thread_id": session}}
        said = await model.ainvoke(talk, config) if way == "ainvoke" else model.invoke(talk, config)
        return said.text

    async def complete(self, text):
        FakeListLLM(responses=["ok"]).invoke(text, {"callbacks": self.callbacks})

    def turns(self, model):
        return flushes(model)

    def requests(self, model):
        return len(model.requests)

    def test_an_unknown_window_is_an_error_that_says_what_to_do(self, memory):
        with pytest.raises(ConfigError, match="window=200_000"):
            OpenClawFlushCallback(memory, self.model("ok"))


@pytest.fixture
def model(scripted):
    """A chat model whose provider says nothing of tokens."""
    return scripted("ok", usage=None)


def test_a_stream_counts_like_a_reply(memory, scripted, flush_model):
    callback = OpenClawFlushCallback(memory, flush_model, window=WINDOW)
    model = scripted("ok", usage=lambda _: 3_000)
    assert "".join(piece.text for piece in model.stream([HumanMessage(FACT)], {"callbacks": [callback]})) == "ok"
    assert flushes(flush_model) == 1


def summarise(scripted, callback, messages, form="xml"):
    """As `SummarizationMiddleware` asks for a summary."""
    prompt = f"Summarise.\n<messages>{get_buffer_string(messages, format=form)}</messages>"
    scripted(SUMMARY).invoke(prompt, {"callbacks": [callback], "metadata": {"lc_source": "summarization"}})


@pytest.mark.parametrize("form", ["xml", "prefix"])
def test_what_is_flushed_before_a_summary_is_what_is_summarised(memory, model, scripted, flush_model, form):
    callback = OpenClawFlushCallback(memory, flush_model, window=200_000)
    config = {"callbacks": [callback]}
    conversation = [HumanMessage(f"{FACT} A < B & C."), AIMessage("Noted."), HumanMessage("Read the page.")]
    model.invoke(conversation, config)
    model.invoke([HumanMessage(f"What is this page about? {words(2_000)}")], config)
    model.invoke([HumanMessage("Give this talk a title.")], config)
    summarise(scripted, callback, conversation[:1], form)
    assert f"as text:\n\nUser: {conversation[0].text}\nAssistant: Noted.\n" in flush_model.requests[0].text
    assert "this page" not in flush_model.requests[0].text
    assert "4711" in notes(memory)


def test_a_tool_that_asks_a_model_about_a_long_page_does_not_hide_the_conversation(memory, scripted, flush_model):
    callback = OpenClawFlushCallback(memory, flush_model, window=200_000)
    helper = scripted("the page is about hats")

    def read_page(page: str) -> str:
        """Read a page."""
        return helper.invoke([HumanMessage(f"What is page {page} about? {words(2_000)}")]).text

    def script(request):
        return make_call("read_page", page="x") if request.messages[-1].text == "Read it." else "ok"

    shortens = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 8), keep=("messages", 2))
    agent = chat_with(shortens, model=scripted(script), tools=[read_page])
    for text in (FACT, "Read it.", "Go on.", "And on."):
        agent.invoke(says(text), thread() | {"callbacks": [callback]})
    assert len(helper.requests) == 1
    assert "4711" in notes(memory)


@pytest.mark.parametrize("kept", [4, 20])
@pytest.mark.parametrize(
    ("way", "trouble"), [(way, trouble) for way, troubles in TROUBLES.items() for trouble in troubles]
)
@pytest.mark.sampled(8)
def test_of_facts_that_go_out_of_view_none_is_lost_and_none_is_noted_twice(memory, way, trouble, kept):
    lost, twice, held = tell_facts(memory, 20, kept=kept, way=way, trouble=trouble)
    assert (lost, twice) == ([], [])
    assert 0 < held < 25
