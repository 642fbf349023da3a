"""An event handler that has memories saved, for whatever talks with an LLM."""

import asyncio
import json
import threading
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import pytest
from contract_flush import FACT, WINDOW, WatchContract, words
from contract_flush import written as notes
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine, SimpleChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index_openclaw_memory import MemoryFlushEventHandler, OpenClawRetriever
from llama_index_openclaw_memory.testing import ScriptedLLM, TextOnlyLLM, make_call, respond_with
from llm_scripts import writes_facts

from openclaw_memory.errors import ConfigError

ASSISTANT = MessageRole.ASSISTANT


def scripted(*script, kind=ScriptedLLM, **fields):
    is_script = len(script) == 1 and callable(script[0])
    return kind(script=script[0] if is_script else respond_with(*script), **fields)


@pytest.fixture
def flush_llm():
    return scripted(writes_facts)


@pytest.fixture
def watching(memory):
    """Makes handlers, and adds them to the instrumentation for the length of a test."""
    made = []

    def make(llm, **options):
        handler = MemoryFlushEventHandler(options.pop("memory", memory), llm, **options)
        made.append(handler)
        get_dispatcher().add_event_handler(handler)
        return handler

    yield make
    for handler in made:
        get_dispatcher().event_handlers.remove(handler)
        handler.settle()


def flushes(flush_llm):
    """How many turns were held: the second request of a turn ends in the answer of the tool."""
    return sum(messages[-1].role == "user" for messages in flush_llm.requests)


async def ask(llm, conversation, how):
    """The reply of an LLM to a talk, in each of the ways that it can be asked."""
    match how:
        case "chat":
            return (await asyncio.to_thread(llm.chat, conversation)).message
        case "chat in a loop":
            return llm.chat(conversation).message
        case "achat":
            return (await llm.achat(conversation)).message
        case "stream_chat":
            return (await asyncio.to_thread(lambda: list(llm.stream_chat(conversation))))[-1].message
        case "astream_chat":
            return [piece async for piece in await llm.astream_chat(conversation)][-1].message


WAYS = ["chat", "chat in a loop", "achat", "stream_chat", "astream_chat"]


class TestContract(WatchContract):
    ways = WAYS
    too_long = RuntimeError("This model's maximum context length is 8192 tokens")
    writes = staticmethod(writes_facts)
    knows: ClassVar = ({"context_window": 8_000}, 6_000)

    @pytest.fixture(autouse=True)
    def _watching(self, watching):
        self.handlers = []
        self.watching = watching

    def model(self, *script, usage=None, **fields):
        return scripted(*script, **({} if usage is None else {"usage": usage}), **fields)

    def watch(self, memory, model, **settings):
        self.handlers.append(self.watching(model, memory=memory, **settings))
        return self.handlers[-1]

    async def ask(self, model, talk, way, session=None):
        with instrument_tags({} if session is None else {"session_key": session}):
            try:
                return (await ask(model, [ChatMessage(text, role=role) for role, text in talk], way)).content
            finally:
                for handler in self.handlers:
                    await handler.asettle()

    async def complete(self, text):
        Completes().complete(text)
        await self.handlers[-1].asettle()

    def turns(self, model):
        return flushes(model)

    def requests(self, model):
        return len(model.requests)


def test_a_stream_that_says_its_tokens_before_its_end_counts(watching, flush_llm):
    handler = watching(flush_llm, window=WINDOW)

    class SaysThemFirst(ScriptedLLM):
        def _make_reply(self, messages, tools=()):
            return super()._make_reply(messages, tools).model_copy(update={"raw": {"usage": {"total_tokens": 3_000}}})

    pieces = SaysThemFirst(script=respond_with("one two")).stream_chat([ChatMessage(FACT)])
    seen = next(pieces)
    seen.raw["usage"] = {}
    list(pieces)
    handler.settle()
    assert flushes(flush_llm) == 1


def tool_user(messages, tools):
    """The script of an agent that looks at a page wherever it is asked to."""
    if messages[-1].role == "user" and (messages[-1].content or "").startswith("Read") and "read_page" in tools:
        return make_call("read_page", f"call-{len(messages)}", page="x")
    return f"Noted, that was {sum(message.role == 'user' for message in messages)}."


def read_page(page: str) -> str:
    """Read a page."""
    return f"Page {page} is about hats."


def reasons(messages, _tools):
    """The script of an agent that thinks aloud, and looks at a page before each reply."""
    if (messages[-1].content or "").startswith("Observation"):
        return "Thought: I can answer now.\nAnswer: Noted."
    return 'Thought: I look at the page.\nAction: read_page\nAction Input: {"page": "x"}'


def rewrites(messages, _tools):
    """The script of a chat engine: makes a question of the conversation where it is asked to."""
    prompt = messages[-1].content or ""
    return "What of it?" if "standalone question" in prompt.lower() else f"Noted. {words(20)}"


async def speaking(kind, llm, history, memory):
    """A program of a kind, with a history that is cut: a function that says a text to it."""
    if kind.startswith("condense"):
        memory.append("The harbour has a number of boats.", date="2026-11-21")
        retriever = OpenClawRetriever(memory, min_score=0)
        if kind == "condense and add":
            return CondensePlusContextChatEngine.from_defaults(retriever, llm=llm, memory=history).achat
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm)
        return CondenseQuestionChatEngine.from_defaults(engine, llm=llm, memory=history).achat
    if kind.endswith("agent"):
        make = ReActAgent if kind == "reasoning agent" else FunctionAgent
        agent = make(tools=[read_page], llm=llm, system_prompt="Be kind.")
        return lambda text: agent.run(text, memory=history)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=history, system_prompt="Be kind.")

    async def stream(text):
        assert [piece async for piece in (await engine.astream_chat(text)).async_response_gen()]

    return engine.achat if kind == "achat" else stream


# The window of the handler is the limit of the buffer, of which four characters are a token.
@pytest.mark.parametrize(
    ("kind", "script", "limit", "summarises"),
    [
        ("agent", tool_user, 1_100, False),
        ("reasoning agent", reasons, 1_100, False),
        ("astream_chat", "ok", 64, False),
        ("achat", "ok", 1_100, True),
        ("condense and add", rewrites, 1_100, False),
        ("condense", rewrites, 1_100, False),
    ],
)
async def test_of_a_buffer_that_drops_messages_nothing_is_lost(
    watching, memory, flush_llm, kind, script, limit, summarises
):
    handler = watching(flush_llm, window=limit)
    llm = scripted(script, kind=TextOnlyLLM if script is reasons else ScriptedLLM)
    make = (
        partial(ChatSummaryMemoryBuffer.from_defaults, llm=scripted("They spoke of numbers.")) if summarises else None
    )
    make = make or ChatMemoryBuffer.from_defaults
    say = await speaking(
        kind, llm, make(token_limit=limit, tokenizer_fn=lambda text: list(range(len(text) // 4))), memory
    )
    for number in range(20):
        does = "Read a page" if number % 3 == 0 else "Well"
        await say(f"{does}. Please remember: number {number} is blue.\n{words(limit // 16)}")
    await handler.aflush()
    facts = [f"number {number} is blue." for number in range(20)]
    shown = "" if kind.startswith("condense") else "".join(message.content or "" for message in llm.requests[-1])
    assert [fact for fact in facts if fact not in notes(memory) and fact not in shown] == []
    assert all(notes(memory).count(fact) <= 1 for fact in facts)
    assert 0 < flushes(flush_llm) < 12


class Completes(CustomLLM):
    """A model that takes text alone, as many local ones do."""

    @property
    def metadata(self):
        return LLMMetadata(context_window=8_000)

    @llm_completion_callback()
    def complete(self, _prompt, **_):
        return CompletionResponse(text="ok")

    @llm_completion_callback()
    def stream_complete(self, _prompt, **_):
        yield CompletionResponse(text="ok", delta="ok")


@pytest.mark.parametrize("how", WAYS)
async def test_a_chat_that_is_put_as_text_is_heard_of_once(watching, flush_llm, how):
    handler = watching(flush_llm, window=WINDOW)
    conversation = [ChatMessage("Be kind.", role="system"), ChatMessage(FACT), ChatMessage(words(2_000))]
    for number in range(3):
        conversation = [*conversation, await ask(Completes(), conversation, how), ChatMessage(f"Number {number}.")]
        await handler.asettle()
    assert flushes(flush_llm) == 1


def test_a_handler_of_one_session_leaves_the_calls_of_others_alone(watching, memory, flush_llm):
    watching(flush_llm, window=WINDOW, session_key="one")
    conversation = [ChatMessage(FACT), ChatMessage(words(2_000))]
    with instrument_tags({"session_key": "two"}):
        scripted("ok").chat(conversation)
    assert flush_llm.requests == []
    with instrument_tags({"session_key": "one"}):
        scripted("ok").chat(conversation)
    scripted("ok").chat([*conversation, ChatMessage("ok", role=ASSISTANT), ChatMessage("Go on.")])
    assert flushes(flush_llm) == 1
    assert '"one"' in (memory.workspace.root / "sessions" / "sessions.json").read_text()


def test_of_handlers_for_one_memory_and_session_the_one_that_was_added_last_hears(watching, flush_llm):
    before = scripted(writes_facts)
    watching(before, window=WINDOW)
    watching(flush_llm, window=WINDOW)
    other = scripted(writes_facts)
    watching(other, window=WINDOW, session_key="one")
    scripted("ok").chat([ChatMessage(FACT), ChatMessage(words(2_000))])
    assert [flushes(one) for one in (before, flush_llm, other)] == [0, 1, 1]


@pytest.mark.parametrize("in_loop", [False, True])
async def test_at_the_end_of_a_session_what_no_flush_was_shown_is_flushed_once(watching, memory, flush_llm, in_loop):
    handler = watching(flush_llm, window=WINDOW)
    for name in ("one", "two"):
        with instrument_tags({"session_key": name}):
            await scripted("ok").achat([ChatMessage(f"{FACT} It is of {name}.")])
    assert flushes(flush_llm) == 0
    for key, expected in (("nobody", 0), ("one", 1), ("one", 1), (None, 2), (None, 2)):
        await (handler.aflush(key) if in_loop else asyncio.to_thread(handler.flush, key))
        assert flushes(flush_llm) == expected
    assert "4711" in notes(memory)


LONG = [ChatMessage(FACT), ChatMessage(words(2_000))]


async def test_a_memory_that_is_closed_before_the_turn_comes_loses_nothing(watching, memory):
    may_end = threading.Event()
    handler = watching(scripted(lambda *given: may_end.wait(60) and writes_facts(*given)), window=WINDOW)
    await scripted("ok").achat(LONG)
    memory.close()
    may_end.set()
    await handler.asettle()
    assert "4711" in notes(memory)


def test_what_fails_in_the_handler_is_said_and_breaks_no_call(watching, flush_llm, caplog):
    def broken(_text):
        raise ValueError("no such encoding")

    watching(flush_llm, window=WINDOW, token_counter=broken)
    for _ in range(3):
        assert scripted("ok").chat([ChatMessage(FACT)]).message.content == "ok"
    assert caplog.text.count("no such encoding") == 1


def test_what_is_no_llm_or_has_no_window_is_an_error_and_a_dump_holds_no_open_parts(memory):
    class Unknown(ScriptedLLM):
        @property
        def metadata(self):
            raise ValueError("Unknown model 'x'")

    unknown = scripted("ok")
    unknown.__class__ = Unknown
    for wrong, said in (("gpt-5", "llm='gpt-5'"), (None, "llm=None"), (unknown, "window=200_000")):
        with pytest.raises(ConfigError, match=said):
            MemoryFlushEventHandler(memory, wrong)
    handler = MemoryFlushEventHandler(memory, unknown, window=9_000, session_key="one")
    assert handler.model_dump() == {"window": 9_000, "session_key": "one"}


OPENAI = {"prompt_tokens": 100, "completion_tokens": 7}


@pytest.mark.parametrize(
    ("raw", "more"),
    [
        ({"usage": OPENAI | {"total_tokens": 107}}, {}),
        (SimpleNamespace(usage=SimpleNamespace(**OPENAI)), {}),
        (None, OPENAI),
        ({"usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 7}}, {}),
        ({"usage_metadata": {"prompt_token_count": 100, "candidates_token_count": 7}}, {}),
        ({"prompt_eval_count": 100, "eval_count": 7}, {}),
        ({"usage": {"inputTokens": 90, "cacheWriteInputTokens": 10, "outputTokens": 7}}, {}),
    ],
    ids=["OpenAI", "OpenAI, an object", "OpenAI, apart", "Anthropic", "Gemini", "Ollama", "Bedrock"],
)
async def test_what_replies_have_read_and_said_is_counted_for_each_session(watching, memory, flush_llm, raw, more):
    class Reports(ScriptedLLM):
        def _make_reply(self, messages, tools=()):
            return super()._make_reply(messages, tools).model_copy(update={"raw": raw, "additional_kwargs": more})

    handler, llm = watching(flush_llm, window=100_000), Reports(script=respond_with("ok"))

    async def talk(session, how, turns):
        with instrument_tags({"session_key": session}):
            for number in range(turns):
                await ask(llm, [ChatMessage(f"{session} {number}")], how)

    await asyncio.gather(talk("alice", "chat", 3), talk("bob", "achat", 2), talk("carol", "chat in a loop", 1))
    await handler.asettle()
    states = [memory.sessions.flush(name).state for name in ("alice", "bob", "carol")]
    assert [(state.input_tokens, state.output_tokens) for state in states] == [(300, 21), (200, 14), (100, 7)]
    await handler.aflush()
    fields = "sessionId updatedAt compactionCount memoryFlushAt memoryFlushCompactionCount inputTokens outputTokens"
    kept = json.loads((memory.workspace.root / "sessions" / "sessions.json").read_text())
    assert all({*fields.split(), "contextTokens"} <= kept[name].keys() for name in ("alice", "bob", "carol"))
