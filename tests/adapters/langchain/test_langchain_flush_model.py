"""What a model is shown in the silent turn, and how it is asked."""

import sys

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openclaw_memory._flush_model import asking, chat_model
from langchain_openclaw_memory._messages import openclaw_message
from langchain_openclaw_memory.testing import ScriptedChatModel
from pydantic import Field
from scripted_chat import FACT, Listening, notes, says_facts, writes_facts

from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import FLUSH_TAG, arun_flush, run_flush

CONVERSATION = (HumanMessage(FACT),)


def calls(*ids, text=""):
    return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": call_id} for call_id in ids])


def answer(call_id):
    return ToolMessage("found", tool_call_id=call_id, name="look")


@pytest.mark.parametrize(
    "conversation",
    [
        [answer("a"), HumanMessage(FACT)],
        [HumanMessage(FACT), calls("a", text="Let me look.")],
        [HumanMessage(FACT), calls("a", "b"), answer("a"), HumanMessage("Never mind.")],
        [SystemMessage("Be kind."), HumanMessage("Hi."), ToolMessage(FACT, tool_call_id="gone")],
    ],
    ids=["an answer alone", "a call alone", "half answered", "a fact in an answer alone"],
)
async def test_what_providers_refuse_is_shown_as_text_with_every_answer(memory, scripted, hold, conversation):
    model = scripted(writes_facts)
    assert await hold(model, conversation) == "saved"
    assert "4711" in notes(memory)
    assert [message.type for message in model.requests[0].messages] == ["human"]
    assert all(message.text in model.requests[0].text for message in conversation if message.type != "system")
    assert "Be kind." not in model.requests[0].text


def kept(memory):
    return "".join(path.read_text() for path in sorted((memory.workspace.root / "sessions").glob("*.jsonl")))


def flush_at_once(turn, model, conversation, **options):
    run_flush("main", lambda: turn, lambda turn: asking(turn, model, conversation, **options))


async def flush_waiting(turn, model, conversation, **options):
    await arun_flush("main", lambda: turn, lambda turn: asking(turn, model, conversation, is_async=True, **options))


@pytest.fixture(params=[flush_at_once, flush_waiting])
def hold(request, memory):
    """Holds a turn about `talk`, and says how it ended."""

    async def held(model, conversation=CONVERSATION, *, room=None, count=count_tokens_approximately):
        turn = memory.sessions.flush().begin(
            10, compacting=True, flushed=False, messages=lambda: [openclaw_message(message) for message in conversation]
        )
        waited = request.param(turn, model, list(conversation), room=room, count=count)
        if waited is not None:
            await waited
        return turn.outcome

    return held


LLM = ConfigurableField(id="llm")
WRAPPED = {
    "retry": lambda model, _: model.with_retry(),
    "second fallback": lambda model, ear: failing(ear).with_fallbacks([model]),
    "config": lambda model, ear: model.with_config(callbacks=[ear]),
    "bound": lambda model, _: model.bind(temperature=0),
    "alternatives": lambda model, ear: model.configurable_alternatives(LLM, other=failing(ear)),
    "other tools": lambda model, _: model.bind_tools([{"name": "look"}], tool_choice="any"),
    "all": lambda model, ear: (
        failing(ear).with_retry(stop_after_attempt=1).with_fallbacks([model.bind(a=1)]).with_retry()
    ),
}


def failing(ear):
    return ScriptedChatModel(script=lambda _: RuntimeError("down"), callbacks=[ear])


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
async def test_whatever_is_put_around_a_model_it_has_the_tool_and_its_callbacks_hear_nothing(
    memory, scripted, hold, wrap
):
    ear = Listening()
    model = scripted(writes_facts, callbacks=[ear])
    assert await hold(wrap(model, ear)) == "saved"
    assert "4711" in notes(memory)
    assert [request.tools for request in model.requests] == [["memory_append"]] * 2
    assert ear.heard == []


@pytest.mark.parametrize(
    "around",
    [lambda model: (model | StrOutputParser()).with_retry(), lambda model: RunnableLambda(lambda shown: shown) | model],
    ids=["a parser and retries", "a step before it"],
)
async def test_a_chain_says_its_notes_and_its_callbacks_hear_nothing(memory, scripted, hold, around):
    ear = Listening()
    assert await hold(around(scripted(says_facts, callbacks=[ear]))) == "saved"
    assert await hold(FakeListLLM(responses=["- The stove code is 4712."], callbacks=[ear])) == "saved"
    assert "4711" in notes(memory)
    assert "4712" in notes(memory)
    assert ear.heard == []


async def test_a_run_that_chose_another_model_is_flushed_by_that_one(memory, scripted):
    other = scripted(writes_facts)
    model = failing(Listening()).configurable_alternatives(LLM, other=other)
    turn = memory.sessions.flush().begin(10, compacting=True)
    run = RunnableLambda(lambda _: flush_at_once(turn, model, [HumanMessage(FACT)], room=None, count=len))
    run.invoke(None, {"configurable": {"llm": "other"}})
    assert turn.outcome == "saved"
    assert len(other.requests) == 2


class NeverBound(ScriptedChatModel):
    def bind_tools(self, *_, **__):
        raise AttributeError("a bug of the provider's package")


async def test_a_model_that_fails_at_taking_tools_is_not_taken_for_one_without(memory, scripted, hold):
    model = scripted(says_facts, kind=NeverBound)
    assert await hold(model) == "kept"
    assert model.requests == []
    assert "a bug of the provider's package" in str(memory.status())


class Watched(ScriptedChatModel):
    """Remembers what its calls were made with."""

    made: list = Field(default_factory=list)

    def _generate(self, messages, stop=None, run_manager=None, tools=(), **kwargs):
        self.made.append((run_manager.tags, run_manager.metadata, kwargs))
        return super()._generate(messages, stop, run_manager, tools, **kwargs)


async def test_the_calls_of_a_flush_name_their_thread_and_are_kept_out_of_streams(memory, scripted):
    model = scripted(writes_facts, kind=Watched)
    turn = memory.sessions.flush().begin(10, compacting=True)
    run = RunnableLambda(
        lambda _: flush_at_once(turn, model.bind(temperature=0), [HumanMessage(FACT)], room=None, count=len)
    )
    run.invoke(None, {"configurable": {"thread_id": "tuesday"}, "tags": ["of the run"]})
    assert len(model.made) == 2
    for tags, metadata, kwargs in model.made:
        assert {FLUSH_TAG, "nostream"} <= set(tags)
        assert metadata.items() >= {"thread_id": "tuesday", "lc_source": "openclaw_flush"}.items()
        assert kwargs == {"temperature": 0}


def miscounting(_messages):
    raise LookupError("no such encoding")


@pytest.mark.parametrize("room", [None, 1_000])
async def test_a_counter_that_fails_costs_no_message(memory, scripted, hold, room):
    model = scripted(ContextOverflowError("too long"))
    assert await hold(model, room=room, count=miscounting) == "kept"
    assert "4711" in kept(memory)
    assert "no such encoding" in str(memory.status())


def test_a_model_by_its_name_is_made_by_langchain(monkeypatch, scripted):
    made = scripted("ok")
    monkeypatch.setattr("langchain.chat_models.init_chat_model", {"house:large": made}.__getitem__)
    assert chat_model("house:large") is made
    for wrong, said in (("house:small", "'house:small' cannot be made"), (42, "model=42 is no chat model")):
        with pytest.raises(ConfigError, match=said):
            chat_model(wrong)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ConfigError, match=r"langchain-agents\]"):
        chat_model("openai:gpt-5-mini")
