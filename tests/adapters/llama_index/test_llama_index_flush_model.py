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
from openclaw_memory.text.fence import fence_text

FACT = "Please remember: the boiler code is 4711."
CONVERSATION = (ChatMessage("Be kind.", role="system"), ChatMessage(FACT), ChatMessage("Noted.", role="assistant"))


RECALLED = f"{fence_text('The spare key is with Mrs. Groen.', 'memory')}\nHi."


def count(text):
    return len(text) // 4


@pytest.fixture
def held(memory):
    """Holds a turn, and gives it back."""

    def hold(llm, conversation=CONVERSATION, room=None):
        said = [{"role": "user", "content": FACT}]
        turn = memory.sessions.flush("talk").begin(100, compacting=True, flushed=False, messages=lambda: said)
        turn.max_calls = turn.max_calls if room is None else 100
        _flush_model.flush("talk", lambda: turn, llm, conversation, room=room, count=count)
        return turn

    return hold


def test_a_model_is_shown_the_conversation_between_the_two_prompts_and_writes_with_the_one_tool(held, noted):
    llm = ScriptedLLM(script=writes_facts)
    recalled = ChatMessage(RECALLED, role="system")  # for the program: it costs the conversation nothing
    assert held(llm, (recalled, *CONVERSATION)).outcome == "saved"
    assert "the boiler code is 4711" in noted()
    assert [[tool["function"]["name"] for tool in tools] for tools in llm.offered] == [["memory_append"]] * 2
    assert llm.offered[0][0]["function"]["parameters"]["required"] == ["text"]
    system, *conversation, prompt = llm.seen[0]
    assert (system.role, prompt.role) == (MessageRole.SYSTEM, MessageRole.USER)
    assert [message.content for message in conversation] == [FACT, "Noted."]
    assert "NO_REPLY" in prompt.content
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

    assert held(Plain(script=saying("NO_REPLY"))).outcome == "nothing"
    assert noted() == ""
    llm = Plain(script=says_facts)
    assert held(llm).outcome == "saved"
    assert "- the boiler code is 4711" in noted()
    assert "You have no tools here" in llm.seen[0][-1].content
    assert len(llm.seen) == 1


class Never(TextOnlyLLM):
    """It can be asked in no way."""

    def chat(self, *_, **__):
        raise NotImplementedError

    stream_chat = achat = chat


@pytest.mark.parametrize(
    ("kind", "replies"),
    [
        (ScriptedLLM, [TimeoutError("too slow")]),
        (ScriptedLLM, [""]),
        (ScriptedLLM, [calling("rm", path="/"), "Done."]),
        (ScriptedLLM, [calling("memory_append", note=FACT), "NO_REPLY"]),
        (TextOnlyLLM, [ConnectionError("hung up")]),
        (Never, ["NO_REPLY"]),
    ],
    ids=str,
)
def test_of_a_model_that_fails_the_words_are_kept(held, memory, kind, replies):
    turn = held(kind(script=saying(*replies)))
    assert turn.outcome == "kept"
    assert [message["content"] for message in memory.sessions.flush("talk").log.read_messages()] == [FACT]
    assert "the messages are in" in memory.status().flush["talk"]


RAW = {
    "OpenAI": {"choices": [{"finish_reason": "length"}]},
    "an object": SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter")]),
    "Anthropic": {"stop_reason": "max_tokens"},
    "Ollama": {"done_reason": "length"},
    "Bedrock": {"stopReason": "max_tokens"},
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
def test_of_a_model_whose_reply_was_cut_off_the_words_are_kept(held, memory, noted, raw):
    for kind, reply in (
        (ScriptedLLM, calling("memory_append", text="The boiler code is 47")),
        (TextOnlyLLM, "It is 47"),
    ):

        class Cut(kind):
            def _reply(self, *given):
                return super()._reply(*given).model_copy(update={"raw": raw} if len(self.seen) == 1 else {})

        assert held(Cut(script=saying(reply, "NO_REPLY"))).outcome == "kept"
        assert [message["content"] for message in memory.sessions.flush("talk").log.read_messages()] == [FACT]
        assert "cut off" in memory.status().flush["talk"]
        assert noted() == ""


@pytest.mark.parametrize(
    "loose",
    [
        ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="a", tool_name="look", tool_kwargs={})]),
        ChatMessage("found", role="tool", additional_kwargs={"tool_call_id": "z"}),
        ChatMessage(RECALLED),
    ],
    ids=["a call without an answer", "an answer without a call", "what was recalled into it"],
)
def test_a_conversation_with_loose_ends_is_shown_as_text_in_one_message(held, loose):
    llm = ScriptedLLM(script=writes_facts)
    assert held(llm, (*CONVERSATION, loose)).outcome == "saved"
    (only,) = llm.seen[0]
    assert only.role == MessageRole.USER
    assert f"User: {FACT}\nAssistant: Noted." in only.content
    assert "Groen" not in only.content


@pytest.mark.parametrize("kind", [ScriptedLLM, TextOnlyLLM])
@pytest.mark.parametrize("missing", [["chat"], ["chat", "stream_chat"]], ids=["streams", "is awaited"])
def test_a_model_is_asked_in_the_one_way_that_it_knows(held, noted, kind, missing):
    def refuse(*_, **__):
        raise NotImplementedError

    only = type("Only", (kind,), dict.fromkeys(missing, refuse))
    llm = only(script=writes_facts if kind is ScriptedLLM else says_facts)
    assert held(llm).outcome == "saved"
    assert "the boiler code is 4711" in noted()


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
