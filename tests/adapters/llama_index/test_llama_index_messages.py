"""Messages of LlamaIndex as OpenClaw writes them, and as a model is shown them."""

from types import SimpleNamespace

import pytest
from llama_index.core.base.llms import types
from llama_index_openclaw_memory._messages import convert_message, convert_messages, list_calls

from openclaw_memory.text.fence import fence_text


def said(text):
    return [{"type": "text", "text": text}]


def called(call_id="a", name="look", **arguments):
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def call(call_id="a", text="", **arguments):
    block = types.ToolCallBlock(tool_call_id=call_id, tool_name="look", tool_kwargs=arguments)
    return types.ChatMessage(role="assistant", blocks=[*([types.TextBlock(text=text)] if text else []), block])


def answer(call_id="a", text="found", **known):
    return types.ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": call_id, **known})


def found(call_id="a", name="look", text="found"):
    return {"role": "toolResult", "toolCallId": call_id, "toolName": name, "content": said(text)}


def text(words):
    return types.TextBlock(text=words)


def image(url):
    return types.ImageBlock(url=url)


CAT, DATA = "https://a.org/cat.png", "data:image/png;base64,AAAA"
CITED = types.CitationBlock(cited_content=text("It rains."), source="S", title="T", additional_location_info={})


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([text("Hi."), text("You?")], "Hi.\nYou?"), ([], ""), ([text("")], ""), ([image(CAT)], CAT), ([image(DATA)], "[image]"),
        ([types.AudioBlock(audio=b"AAAA"), types.VideoBlock(video=b"AAAA")], "[audio] [video]"), ([types.DocumentBlock(data=b"AAAA")], "[document]"),
        ([text("Look!"), types.ImageBlock(image=b"AAAA")], "Look!\n[image]"),
        ([text("See."), image(CAT), types.DocumentBlock(url="https://a.org/c.pdf")], f"See.\n{CAT} https://a.org/c.pdf"),
        ([types.CitableBlock(title="T", source="S", content=[image(CAT)])], CAT),
        ([types.CitableBlock(title="T", source="S", content="Read.")], "Read."),
        ([text(fence_text("4711", "memory")), text("Hi.")], "Hi."), ([types.ThinkingBlock(content="hm"), text("Yes.")], "Yes."),
        ([CITED], "It rains."),
    ],
)  # fmt: skip
def test_a_message_says_in_a_transcript_what_it_said(blocks, words):
    assert convert_message(types.ChatMessage(role="user", blocks=blocks)) == {"role": "user", "content": words}
    expected = {"role": "assistant", "content": said(words) if words else []}
    for role in ("assistant", "chatbot", "model"):
        assert convert_message(types.ChatMessage(role=role, blocks=blocks)) == expected


def test_calls_and_answers_go_with_each_other_and_the_program_says_nothing():
    assert convert_message(call(text="Let me.", at="sky"))["content"] == [*said("Let me."), called(at="sky")]
    assert convert_message(answer(name="look")) == found()
    assert convert_message(types.ChatMessage("x", role="function")) == found("", "", "x")
    assert convert_messages([call("a"), types.ChatMessage("Be kind.", role="system"), answer("a")])[1:] == [found()]
    for role in ("system", "developer"):
        assert convert_message(types.ChatMessage("Be kind.", role=role)) is None


LOOK = SimpleNamespace(name="look", arguments='{"at": "sky"}')


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": "a", "function": {"name": "look", "arguments": '{"at": "sky"}'}}, ("a", "look", {"at": "sky"})),
        (SimpleNamespace(id="a", function=LOOK), ("a", "look", {"at": "sky"})),
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
    message = types.ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [given]})
    assert list_calls(message) == [expected]
    message.blocks = [types.ToolCallBlock(tool_call_id=expected[0], tool_name="look", tool_kwargs=expected[2])]
    assert list_calls(message) == [expected], "what is in both places is one"


def test_what_is_no_call_is_none():
    for calls in (None, "look", [None], [{"id": "a"}], [3]):
        assert list_calls(types.ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls})) == []
