"""What a model of LlamaIndex is shown in the silent turn, and how it is asked."""

from types import SimpleNamespace

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory.testing import ScriptedLLM, TextOnlyLLM, calling, quoting, saying
from scripted_llm import says_facts, writes_facts

from openclaw_memory.flush import FLUSH_TAG
from openclaw_memory.text.fence import fenced

FACT = "Please remember: the boiler code is 4711."
CONVERSATION = (ChatMessage("Be kind.", role="system"), ChatMessage(FACT), ChatMessage("Noted.", role="assistant"))


def count(text):
    return len(text) // 4


@pytest.fixture
def held(memory):
    """Holds a turn, and gives it back."""

    def hold(llm, conversation=CONVERSATION, room=None):
        turn = memory.flush("talk").due(100, compacting=True, messages=lambda: [{"role": "user", "content": FACT}])
        turn.max_calls = turn.max_calls if room is None else 100
        _flush_model.flush(turn, llm, conversation, room=room, count=count)
        return turn

    return hold


def test_a_model_writes_with_the_one_tool_what_should_last(held, noted):
    llm = ScriptedLLM(script=writes_facts)
    assert held(llm).outcome == "saved"
    assert "the boiler code is 4711" in noted()
    assert [[tool["function"]["name"] for tool in tools] for tools in llm.offered] == [["memory_append"]] * 2
    assert llm.offered[0][0]["function"]["parameters"]["required"] == ["text"]


def test_a_model_is_shown_the_conversation_between_the_two_prompts(held):
    llm = ScriptedLLM(script=saying("NO_REPLY"))
    assert held(llm).outcome == "nothing"
    system, *conversation, prompt = llm.seen[0]
    assert (system.role, prompt.role) == (MessageRole.SYSTEM, MessageRole.USER)
    assert [message.content for message in conversation] == [FACT, "Noted."]
    assert "NO_REPLY" in prompt.content


def test_the_answer_of_the_tool_follows_its_call(held):
    llm = ScriptedLLM(script=writes_facts)
    held(llm)
    *_, asked, answered = llm.seen[-1]
    (call,) = [block for block in asked.blocks if isinstance(block, ToolCallBlock)]
    assert answered.additional_kwargs == {"tool_call_id": call.tool_call_id, "name": "memory_append"}
    assert '"status":"ok"' in answered.content


@pytest.mark.parametrize("kind", [TextOnlyLLM, ScriptedLLM])
def test_a_model_without_tools_is_asked_for_the_notes_themselves(held, noted, kind):
    class Plain(kind):
        @property
        def metadata(self):
            return super().metadata.model_copy(update={"is_function_calling_model": False})

    llm = Plain(script=says_facts)
    assert held(llm).outcome == "saved"
    assert "- the boiler code is 4711" in noted()
    assert "You have no tools here" in llm.seen[0][-1].content
    assert len(llm.seen) == 1


def test_of_a_model_without_tools_silence_writes_nothing(held, noted):
    assert held(TextOnlyLLM(script=saying("NO_REPLY"))).outcome == "nothing"
    assert noted() == ""


@pytest.mark.parametrize(
    ("kind", "replies"),
    [
        (ScriptedLLM, [ConnectionError("hung up")]),
        (ScriptedLLM, [TimeoutError("too slow")]),
        (ScriptedLLM, ["I am sorry, I cannot do that."]),
        (ScriptedLLM, [""]),
        (ScriptedLLM, [calling("memory_append", text=3)]),
        (ScriptedLLM, [calling("memory_append")]),
        (ScriptedLLM, [calling("rm", path="/"), "Done."]),
        (ScriptedLLM, [calling("rm", path="/"), "NO_REPLY"]),
        (ScriptedLLM, [calling("memory_append"), "NO_REPLY"]),
        (ScriptedLLM, [calling("memory_append", note=FACT), "NO_REPLY"]),
        (TextOnlyLLM, [ConnectionError("hung up")]),
        (TextOnlyLLM, [""]),
    ],
    ids=str,
)
def test_of_a_model_that_fails_the_words_are_kept(held, memory, kind, replies):
    turn = held(kind(script=saying(*replies)))
    assert turn.outcome == "kept"
    assert [message["content"] for message in memory.flush("talk").log.messages()] == [FACT]
    assert "the messages are in" in memory.status().flush["talk"]


RAW = {
    "OpenAI": {"choices": [{"finish_reason": "length"}]},
    "an object": SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter")]),
    "Anthropic": {"stop_reason": "max_tokens"},
    "Ollama": {"done_reason": "length"},
    "Bedrock": {"stopReason": "max_tokens"},
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (ScriptedLLM, calling("memory_append", text="The boiler code is 47")),
        (ScriptedLLM, "NO_REPLY"),
        (TextOnlyLLM, "NO_REPLY"),
        (TextOnlyLLM, "The boiler code is 47"),
    ],
    ids=str,
)
@pytest.mark.sampled(6)
def test_of_a_model_whose_reply_was_cut_off_the_words_are_kept(held, memory, noted, kind, reply, raw):
    class Cut(kind):
        def _reply(self, *given):
            return super()._reply(*given).model_copy(update={"raw": raw} if len(self.seen) == 1 else {})

    assert held(Cut(script=saying(reply, "NO_REPLY"))).outcome == "kept"
    assert [message["content"] for message in memory.flush("talk").log.messages()] == [FACT]
    assert "cut off" in memory.status().flush["talk"]
    assert noted() == ""


def test_a_model_that_calls_without_end_is_stopped(held, noted):
    llm = ScriptedLLM(script=saying(calling("memory_append", text="The boiler code is 4711.")))
    assert held(llm).outcome == "saved"
    assert len(llm.seen) == 8
    assert noted().count("4711") == 1


def test_a_call_of_another_tool_is_answered_so_and_the_model_goes_on(held, noted):
    llm = ScriptedLLM(script=saying(calling("search", q="x"), calling("memory_append", text="It is 4711."), "NO_REPLY"))
    assert held(llm).outcome == "saved"
    assert "memory_append is the only one" in llm.seen[1][-1].content
    assert "It is 4711." in noted()


@pytest.mark.parametrize(
    "loose",
    [
        ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="a", tool_name="look", tool_kwargs={})]),
        ChatMessage("found", role="tool", additional_kwargs={"tool_call_id": "z"}),
    ],
    ids=["a call without an answer", "an answer without a call"],
)
def test_a_conversation_with_loose_ends_is_shown_as_text_in_one_message(held, loose):
    llm = ScriptedLLM(script=writes_facts)
    assert held(llm, (*CONVERSATION, loose)).outcome == "saved"
    (only,) = llm.seen[0]
    assert only.role == MessageRole.USER
    assert f"User: {FACT}\nAssistant: Noted." in only.content


RECALLED = f"{fenced('The spare key is with Mrs. Groen.', 'memory')}\nHi."


def test_what_was_recalled_into_a_conversation_is_not_shown(held):
    llm = ScriptedLLM(script=writes_facts)
    assert held(llm, (*CONVERSATION, ChatMessage(RECALLED))).outcome == "saved"
    (only,) = llm.seen[0]
    assert f"User: {FACT}\nAssistant: Noted.\nUser: Hi." in only.content
    assert "Groen" not in only.content


def test_what_was_recalled_for_the_program_costs_the_conversation_nothing(held):
    llm = ScriptedLLM(script=writes_facts)
    held(llm, (ChatMessage(RECALLED, role="system"), *CONVERSATION))
    assert [message.content for message in llm.seen[0][1:-1]] == [FACT, "Noted."]


@pytest.mark.parametrize("kind", [ScriptedLLM, TextOnlyLLM])
@pytest.mark.parametrize("missing", [["chat"], ["chat", "stream_chat"]], ids=["streams", "is awaited"])
def test_a_model_is_asked_in_the_one_way_that_it_knows(held, noted, kind, missing):
    def refuse(*_, **__):
        raise NotImplementedError

    only = type("Only", (kind,), dict.fromkeys(missing, refuse))
    llm = only(script=writes_facts if kind is ScriptedLLM else says_facts)
    assert held(llm).outcome == "saved"
    assert "the boiler code is 4711" in noted()


def test_a_model_that_cannot_be_asked_at_all_is_one_that_fails(held):
    def refuse(*_, **__):
        raise NotImplementedError

    only = type("Never", (TextOnlyLLM,), dict.fromkeys(["chat", "stream_chat", "achat"], refuse))
    assert held(only(script=says_facts)).outcome == "kept"


@pytest.mark.parametrize("kind", [ScriptedLLM, TextOnlyLLM])
def test_what_does_not_fit_is_shown_in_parts_and_nothing_is_left_out(held, noted, kind):
    conversation = [ChatMessage(f"Please remember: fact {number} of many.\n" + "filler " * 40) for number in range(40)]
    llm = kind(script=writes_facts if kind is ScriptedLLM else says_facts)
    assert held(llm, conversation, room=600).outcome == "saved"
    assert all(f"fact {number} of many" in noted() for number in range(40))
    assert all(count(messages[0].content) < 1_000 for messages in llm.seen)


def test_the_calls_of_a_flush_bear_its_tag_and_those_of_the_run_around_it(held, events):
    with instrument_tags({"run": "7"}):
        held(ScriptedLLM(script=writes_facts))
        ScriptedLLM(script=saying("Hi.")).chat(list(CONVERSATION))
    calls = [event.tags for event in events if isinstance(event, LLMChatStartEvent | LLMChatEndEvent)]
    assert calls == [{"run": "7", FLUSH_TAG: True}] * 4 + [{"run": "7"}] * 2


def test_the_script_of_the_notebook_quotes_what_it_is_shown_and_saves_numbers(held, noted):
    llm = ScriptedLLM(script=quoting)
    conversation = "User: Hello, you. The boiler code is 4711.\nAssistant: I see.\nUser: It rains."
    assert held(llm, conversation).outcome == "saved"
    assert noted().splitlines()[-1] == "- Hello, you. The boiler code is 4711."
    asked = ChatMessage("What is the code of the boiler?")
    assert llm.chat([ChatMessage(conversation), asked]).message.content == "The boiler code is 4711."
    assert llm.chat([ChatMessage("It rains."), asked]).message.content == "I do not know."
