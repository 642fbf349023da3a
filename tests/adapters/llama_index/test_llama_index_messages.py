"""Messages of LlamaIndex as OpenClaw writes them, and as a model is shown them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index_openclaw_memory._messages import as_text, calls_of, openclaw_message, openclaw_messages

from openclaw_memory.conversation import get_call_ids as ids_of
from openclaw_memory.conversation import get_text
from openclaw_memory.conversation.messages import get_answered_call
from openclaw_memory.text.fence import fence_text


def said(text):
    return [{"type": "text", "text": text}]


def called(call_id="a", name="look", **arguments):
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def call(call_id="a", text="", **arguments):
    block = ToolCallBlock(tool_call_id=call_id, tool_name="look", tool_kwargs=arguments)
    return ChatMessage(role="assistant", blocks=[*([TextBlock(text=text)] if text else []), block])


def answer(call_id="a", text="found", **known):
    return ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": call_id, **known})


def user(*blocks):
    return ChatMessage(role="user", blocks=list(blocks))


def older(*calls):
    return ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": list(calls)})


class Function:
    name, arguments = "look", '{"at": "sky"}'


class Call:
    id, function = "a", Function()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ChatMessage("Hi."), {"role": "user", "content": "Hi."}),
        (user(TextBlock(text="Hi."), TextBlock(text="You?")), {"role": "user", "content": "Hi.\nYou?"}),
        (ChatMessage(""), {"role": "user", "content": ""}),
        (user(), {"role": "user", "content": ""}),
        (user(ImageBlock(url="https://example.org/cat.png")), {"role": "user", "content": "https://example.org/cat.png"}),
        (user(ImageBlock(url="data:image/png;base64,AAAA")), {"role": "user", "content": "[image]"}),
        (user(AudioBlock(audio=b"AAAA"), VideoBlock(video=b"AAAA")), {"role": "user", "content": "[audio] [video]"}),
        (user(DocumentBlock(data=b"AAAA")), {"role": "user", "content": "[document]"}),
        (user(TextBlock(text="Look!"), ImageBlock(image=b"AAAA")), {"role": "user", "content": "Look!\n[image]"}),
        (
            user(TextBlock(text="See."), ImageBlock(url="https://a.org/b.png"), DocumentBlock(url="https://a.org/c.pdf")),
            {"role": "user", "content": "See.\nhttps://a.org/b.png https://a.org/c.pdf"},
        ),
        (
            user(CitableBlock(title="T", source="S", content=[ImageBlock(url="https://a.org/b.png")])),
            {"role": "user", "content": "https://a.org/b.png"},
        ),
        (user(TextBlock(text=fence_text("4711", "memory")), TextBlock(text="Hi.")), {"role": "user", "content": "Hi."}),
        (user(CitableBlock(title="T", source="S", content="Read.")), {"role": "user", "content": "Read."}),
        (ChatMessage("Yes.", role="assistant"), {"role": "assistant", "content": said("Yes.")}),
        (ChatMessage("Yes.", role="chatbot"), {"role": "assistant", "content": said("Yes.")}),
        (ChatMessage("Yes.", role="model"), {"role": "assistant", "content": said("Yes.")}),
        (
            ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="Yes.")]),
            {"role": "assistant", "content": said("Yes.")},
        ),
        (
            ChatMessage(
                role="assistant",
                blocks=[
                    CitationBlock(
                        cited_content=TextBlock(text="It rains."), source="S", title="T", additional_location_info={}
                    )
                ],
            ),
            {"role": "assistant", "content": said("It rains.")},
        ),
        (call(at="sky"), {"role": "assistant", "content": [called(at="sky")]}),
        (call(text="Let me."), {"role": "assistant", "content": [*said("Let me."), called()]}),
        (answer(name="look"), {"role": "toolResult", "toolCallId": "a", "toolName": "look", "content": said("found")}),
        (ChatMessage("x", role="function"), {"role": "toolResult", "toolCallId": "", "toolName": "", "content": said("x")}),
        (ChatMessage("Be kind.", role="system"), None),
        (ChatMessage("Be kind.", role="developer"), None),
    ],
)  # fmt: skip
def test_a_message_says_in_a_transcript_what_it_said(message, expected):
    assert openclaw_message(message) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": "a", "function": {"name": "look", "arguments": '{"at": "sky"}'}}, ("a", "look", {"at": "sky"})),
        (Call(), ("a", "look", {"at": "sky"})),
        ({"id": "a", "name": "look", "input": {"at": "sky"}}, ("a", "look", {"at": "sky"})),
        ({"id": None, "function": {"name": "look", "arguments": ""}}, ("", "look", {})),
        ({"id": "a", "function": {"name": "look", "arguments": '{"at": '}}, ("a", "look", {"text": '{"at": '})),
        ({"id": "a", "function": {"name": "look", "arguments": "[1]"}}, ("a", "look", {"text": "[1]"})),
        ({"id": "a", "name": "look", "input": {"at": float("nan")}}, ("a", "look", {"at": "NaN"})),
        ({"id": "a", "name": "look", "input": {"at": {1}}}, ("a", "look", {"at": "{1}"})),
    ],
    ids=["OpenAI", "objects", "Anthropic", "without arguments", "cut off", "no object", "no number", "no JSON"],
)
def test_calls_are_read_where_older_integrations_put_them(given, expected):
    message = older(given)
    assert calls_of(message) == [expected]
    message.blocks = [ToolCallBlock(tool_call_id=expected[0], tool_name="look", tool_kwargs=expected[2])]
    assert calls_of(message) == [expected], "what is in both places is one"


@pytest.mark.parametrize("calls", [None, "look", [None], [{"id": "a"}], [3]], ids=str)
def test_what_is_no_call_is_none(calls):
    assert calls_of(ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls})) == []


def test_an_answer_has_the_name_of_the_tool_that_was_called():
    *_, found = openclaw_messages([call("a"), ChatMessage("Be kind.", role="system"), answer("a")])
    assert (found["toolName"], found["toolCallId"]) == ("look", "a")


MESSAGES = st.lists(
    st.one_of(
        st.text(max_size=20).map(ChatMessage),
        st.text(max_size=20).map(lambda text: ChatMessage(text, role="assistant")),
        st.builds(call, st.sampled_from("abc"), st.text(max_size=9)),
        st.builds(answer, st.sampled_from("abc"), st.text(max_size=9)),
    ),
    max_size=10,
)


@settings(max_examples=15)
@given(MESSAGES)
def test_no_message_of_a_conversation_is_lost_and_all_can_be_written(messages):
    converted = openclaw_messages(messages)
    assert len(converted) == len(messages)
    assert json.loads(json.dumps(converted)) == converted
    assert [get_text(message) for message in converted] == [message.content or "" for message in messages]
    assert [ids_of(message) for message in converted] == [
        tuple(call_id for call_id, *_ in calls_of(message)) for message in messages
    ]
    answers = [message.additional_kwargs["tool_call_id"] for message in messages if message.role == "tool"]
    assert [found for message in converted if (found := get_answered_call(message))] == answers
    assert all(message.content in as_text(converted) for message in messages if message.content)
