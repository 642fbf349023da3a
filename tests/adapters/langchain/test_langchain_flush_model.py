"""What a model is shown in the silent turn, and how it is asked, whatever is put around it."""

import sys

import pytest
from chat_scripts import Listening, TextOnlyChatModel, notes, says_facts, writes_facts
from contract_flush import FACT, FlushModelContract, Request
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openclaw_memory._flush_model import bind_flush_model, load_chat_model
from langchain_openclaw_memory._messages import convert_messages
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call, respond_with
from pydantic import Field

from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import Flush, arun_flush, run_flush

CONVERSATION = (HumanMessage(FACT),)


async def hold(memory, model, talk=CONVERSATION, *, way="invoke", room=None, count=count_tokens_approximately):
    """Hold a turn about messages, and return how it ended."""
    flush, told = memory.sessions.flush("talk"), list(convert_messages(talk))
    bind = bind_flush_model(model, room=room, count=count, is_async=way != "invoke")
    if way == "invoke":
        return run_flush(flush, told, bind, compacting=True, flushed=False).outcome
    return (await arun_flush(flush, told, bind, compacting=True, flushed=False)).outcome


class TestContract(FlushModelContract):
    ways = "invoke", "ainvoke"
    writes, says = staticmethod(writes_facts), staticmethod(says_facts)

    def call(self, name, **arguments):
        return make_call(name, **arguments)

    async def turn(self, memory, way, script, talk, *, tools=True, room=None, cut_off=False):
        if cut_off:
            first = AIMessage(script[0]) if isinstance(script[0], str) else script[0]
            script = [first.model_copy(update={"response_metadata": {"finish_reason": "length"}}), *script[1:]]
        script = script[0] if callable(script[0]) else respond_with(*script)
        model = (ScriptedChatModel if tools else TextOnlyChatModel)(script=script)
        outcome = await hold(memory, model, [message(*said) for said in talk], way=way, room=room)
        roles = {"human": "user", "ai": "assistant"}
        shown = [[(roles.get(one.type, one.type), one.text) for one in asked.messages] for asked in model.requests]
        return outcome, [Request(said, asked.tools) for said, asked in zip(shown, model.requests, strict=True)]


def message(role, text):
    match role:
        case "call":
            return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": text}])
        case "answer":
            return ToolMessage("found", tool_call_id=text, name="look")
        case "recall":
            return AIMessage("", tool_calls=[{"name": "memory_search", "args": {}, "id": text}])
        case "recalled":
            return ToolMessage("The spare key is with Mrs. Groen.", tool_call_id=text)
    return {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}[role](text)


def failing(ear):
    return ScriptedChatModel(script=lambda _: RuntimeError("down"), callbacks=[ear])


LLM = ConfigurableField(id="llm")
WRAPPED = {
    "second fallback": lambda model, ear: failing(ear).with_fallbacks([model]),
    "config": lambda model, ear: model.with_config(callbacks=[ear]),
    "alternatives": lambda model, ear: model.configurable_alternatives(LLM, other=failing(ear)),
    "other tools": lambda model, _: model.bind_tools([{"name": "look"}], tool_choice="any"),
    "all": lambda model, ear: failing(ear).with_retry(stop_after_attempt=1).with_fallbacks([model.bind(a=1)]).with_retry(),
}  # fmt: skip


@pytest.mark.parametrize("way", TestContract.ways)
@pytest.mark.parametrize("wrap", WRAPPED)
async def test_whatever_is_put_around_a_model_it_has_the_tool_and_its_callbacks_hear_nothing(memory, wrap, way):
    ear = Listening()
    model = ScriptedChatModel(script=writes_facts, callbacks=[ear])
    assert await hold(memory, WRAPPED[wrap](model, ear), way=way) == "saved"
    assert [request.tools for request in model.requests] == [["memory_append"]] * 2
    assert ear.heard == []


@pytest.mark.parametrize("way", TestContract.ways)
async def test_a_chain_says_its_notes_and_its_callbacks_hear_nothing(memory, scripted, way):
    ear = Listening()
    model = scripted(says_facts, callbacks=[ear])
    for chain in ((model | StrOutputParser()).with_retry(), RunnableLambda(lambda shown: shown) | model):
        assert await hold(memory, chain, way=way) == "saved"
    assert await hold(memory, FakeListLLM(responses=["- The stove code is 4712."], callbacks=[ear]), way=way) == "saved"
    assert all(code in notes(memory) for code in ("4711", "4712"))
    assert ear.heard == []


class NeverBound(ScriptedChatModel):
    def bind_tools(self, *_, **__):
        raise AttributeError("a bug of the provider's package")


async def test_a_model_that_fails_at_taking_tools_is_not_taken_for_one_without(memory, scripted):
    model = scripted(says_facts, kind=NeverBound)
    assert await hold(memory, model) == "kept"
    assert model.requests == []
    assert "a bug of the provider's package" in str(memory.status())


class Watched(ScriptedChatModel):
    """Remembers what its calls were made with."""

    made: list = Field(default_factory=list)

    def _generate(self, messages, stop=None, run_manager=None, tools=(), **kwargs):
        self.made.append((run_manager.tags, run_manager.metadata, kwargs))
        return super()._generate(messages, stop, run_manager, tools, **kwargs)


def test_the_model_that_a_run_chose_is_asked_for_its_thread_and_kept_out_of_streams(memory, scripted):
    model = scripted(writes_facts, kind=Watched)
    chosen = failing(Listening()).configurable_alternatives(LLM, other=model.bind(temperature=0))
    bind, told = bind_flush_model(chosen, room=None, count=len), [{"role": "user", "content": FACT}]
    run = RunnableLambda(lambda _: run_flush(memory.sessions.flush(), told, bind, compacting=True).outcome)
    config = {"configurable": {"thread_id": "tuesday", "llm": "other"}, "tags": ["of the run"]}
    assert (run.invoke(None, config), len(model.made)) == ("saved", 2)
    for tags, metadata, kwargs in model.made:
        assert {Flush.TAG, "nostream"} <= set(tags)
        assert metadata.items() >= {"thread_id": "tuesday", "lc_source": "openclaw_flush"}.items()
        assert kwargs == {"temperature": 0}


def test_a_model_by_its_name_is_made_by_langchain(monkeypatch, scripted):
    made = scripted("ok")
    monkeypatch.setattr("langchain.chat_models.init_chat_model", {"house:large": made}.__getitem__)
    assert load_chat_model("house:large") is made
    for wrong, said in (("house:small", "'house:small' cannot be made"), (42, "model=42 is no chat model")):
        with pytest.raises(ConfigError, match=said):
            load_chat_model(wrong)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ConfigError, match=r"langchain-agents\]"):
        load_chat_model("openai:gpt-5-mini")
