"""What a model of LlamaIndex is shown in the silent turn, and how it is asked."""

from types import SimpleNamespace

import pytest
from contract_flush import FACT, FlushModelContract, Request
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory._messages import convert_messages
from llama_index_openclaw_memory.testing import ScriptedLLM, TextOnlyLLM, make_call, quote_sentence, respond_with
from llm_scripts import says_facts, writes_facts

from openclaw_memory.flush import Flush

CONVERSATION = (ChatMessage("Be kind.", role="system"), ChatMessage(FACT), ChatMessage("Noted.", role="assistant"))


def hold(memory, llm, conversation=CONVERSATION, room=None):
    """Hold a turn, and return how it ended."""
    flush, told = memory.sessions.flush("talk"), convert_messages(conversation)
    options = {"room": room, "count": lambda text: len(text) // 4, "compacting": True, "flushed": False}
    return _flush_model.flush(flush, llm, told, **options).outcome


def cut(kind, raw):
    """A kind of model whose first reply was cut off."""

    class Cut(kind):
        def _make_reply(self, *given):
            reply = super()._make_reply(*given)
            return reply.model_copy(update={"raw": raw}) if len(self.requests) == 1 else reply

    return Cut


class TestContract(FlushModelContract):
    writes, says = staticmethod(writes_facts), staticmethod(says_facts)

    def call(self, name, **arguments):
        return make_call(name, **arguments)

    async def turn(self, memory, _way, script, talk, *, tools=True, room=None, cut_off=False):
        script = script[0] if callable(script[0]) else respond_with(*script)
        kind = ScriptedLLM if tools else TextOnlyLLM
        llm = (cut(kind, RAW[0]) if cut_off else kind)(script=script)
        outcome = hold(memory, llm, [message(*said) for said in talk], room)
        shown = [[(one.role.value, one.content or "") for one in asked] for asked in llm.requests]
        offered = [[tool["function"]["name"] for tool in tools] for tools in llm.offered]
        return outcome, [Request(*both) for both in zip(shown, offered, strict=True)]


RAW = [
    {"choices": [{"finish_reason": "length"}]}, SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter")]),
    {"stop_reason": "max_tokens"}, {"done_reason": "length"}, {"stopReason": "max_tokens"},
]  # fmt: skip


def message(role, text):
    match role:
        case "call":
            return ChatMessage(
                role="assistant", blocks=[ToolCallBlock(tool_call_id=text, tool_name="look", tool_kwargs={})]
            )
        case "answer":
            return ChatMessage("found", role="tool", additional_kwargs={"tool_call_id": text})
        case "recall":
            calls = [ToolCallBlock(tool_call_id=text, tool_name="memory_search", tool_kwargs={})]
            return ChatMessage(role="assistant", blocks=calls)
        case "recalled":
            answer = "The spare key is with Mrs. Groen."
            return ChatMessage(answer, role="tool", additional_kwargs={"tool_call_id": text})
    return ChatMessage(text, role=role)


def test_an_answer_goes_with_its_call(memory):
    llm = ScriptedLLM(script=writes_facts)
    assert hold(memory, llm) == "saved"
    *_, asked, answered = llm.requests[-1]
    (call,) = [block for block in asked.blocks if isinstance(block, ToolCallBlock)]
    assert answered.additional_kwargs == {"tool_call_id": call.tool_call_id, "name": "memory_append"}


@pytest.mark.parametrize("raw", RAW, ids=str)
def test_each_way_in_which_providers_report_a_reply_that_was_cut_off_counts(memory, raw):
    assert hold(memory, cut(TextOnlyLLM, raw)(script=respond_with("It is 47"))) == "kept"
    assert "cut off" in memory.status().flush["talk"]


@pytest.mark.parametrize("kind", [ScriptedLLM, TextOnlyLLM])
@pytest.mark.parametrize("missing", [["chat"], ["chat", "stream_chat"], ["chat", "stream_chat", "achat"]], ids=str)
def test_a_model_is_asked_in_the_one_way_that_it_knows(memory, kind, missing):
    def refuse(*_, **__):
        raise NotImplementedError

    llm = type("Only", (kind,), dict.fromkeys(missing, refuse))(
        script=writes_facts if kind is ScriptedLLM else says_facts
    )
    assert hold(memory, llm) == ("kept" if "achat" in missing else "saved")


def test_the_calls_of_a_flush_bear_its_tag_and_those_of_the_run_around_it(memory, events):
    with instrument_tags({"run": "7"}):
        hold(memory, ScriptedLLM(script=writes_facts))
        ScriptedLLM(script=respond_with("Hi.")).chat(list(CONVERSATION))
    calls = [event.tags for event in events if isinstance(event, LLMChatStartEvent | LLMChatEndEvent)]
    assert calls == [{"run": "7", Flush.TAG: True}] * 4 + [{"run": "7"}] * 2


def test_the_script_of_the_notebook_quotes_what_it_is_shown_and_saves_numbers(memory, noted):
    llm = ScriptedLLM(script=quote_sentence)
    conversation = "User: Hello, you. The boiler code is 4711.\nAssistant: I see.\nUser: It rains."
    talk = [ChatMessage("Hello, you. The boiler code is 4711."), ChatMessage("I see.", role="assistant")]
    assert hold(memory, llm, [*talk, ChatMessage("It rains.")]) == "saved"
    assert noted().splitlines()[-1] == "- Hello, you. The boiler code is 4711."
    asked = ChatMessage("What is the code of the boiler?")
    assert llm.chat([ChatMessage(conversation), asked]).message.content == "The boiler code is 4711."
    assert llm.chat([ChatMessage("It rains."), asked]).message.content == "I do not know."
