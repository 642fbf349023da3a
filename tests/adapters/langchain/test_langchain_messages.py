"""Messages of LangChain as OpenClaw writes them; what they have attached keeps its name."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openclaw_memory._messages import openclaw_message

CALL = {"name": "look", "args": {}, "id": "a"}
PDF = {"type": "file", "mime_type": "application/pdf", "base64": "AAAA"}


def image(url):
    return HumanMessage([{"type": "image_url", "image_url": {"url": url}}])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("Hi.", id="1"), {"role": "user", "content": "Hi.", "id": "1"}),
        (HumanMessage([{"type": "text", "text": "Hi."}]), {"role": "user", "content": "Hi."}),
        (image("https://example.org/cat.png"), {"role": "user", "content": "https://example.org/cat.png"}),
        (image("data:image/png;base64,AAAA"), {"role": "user", "content": "[image]"}),
        (
            HumanMessage([{"type": "video", "url": "data:video/mp4;base64,AAAA"}]),
            {"role": "user", "content": "[video]"},
        ),
        (HumanMessage([{"type": "text", "text": "Look!"}, *image("x").content]), {"role": "user", "content": "Look!"}),
        (HumanMessage(""), {"role": "user", "content": ""}),
        (AIMessage("Yes."), {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}),
        (
            AIMessage("", tool_calls=[CALL]),
            {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "look", "arguments": {}}]},
        ),
        (
            ToolMessage("no", tool_call_id="a", name="look", status="error"),
            {
                "role": "toolResult",
                "content": [{"type": "text", "text": "no"}],
                "toolCallId": "a",
                "toolName": "look",
                "isError": True,
            },
        ),
        (SystemMessage("Be kind."), None),
    ],
)
def test_a_message_of_langchain_as_one_of_openclaw(message, expected):
    assert openclaw_message(message) == expected


@pytest.mark.parametrize(
    "block",
    [
        PDF | {"extras": {"filename": "offer.pdf"}},
        PDF | {"filename": "offer.pdf"},
        PDF | {"name": "offer.pdf"},
        {"type": "file", "mime_type": "application/pdf", "source_type": "base64", "data": "AAAA",
         "metadata": {"filename": "offer.pdf"}},
        {"type": "file", "file": {"filename": "offer.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    ],
    ids=["extras", "filename", "name", "metadata", "openai"],
)  # fmt: skip
@pytest.mark.parametrize("text", ["Is it good?", ""], ids=["with words", "alone"])
def test_a_file_keeps_its_name(block, text):
    content = [*([{"type": "text", "text": text}] if text else []), block]
    assert openclaw_message(HumanMessage(content))["content"] == "\n".join(filter(None, [text, "[file offer.pdf]"]))


def test_what_tools_return_keeps_its_name_on_one_line_and_what_has_none_is_mentioned_where_there_are_no_words():
    returned = ToolMessage([PDF | {"name": "a\nb.pdf"}], tool_call_id="1", name="fetch")
    assert openclaw_message(returned)["content"] == [{"type": "text", "text": "[file a b.pdf]"}]
    assert openclaw_message(HumanMessage([{"type": "text", "text": "See."}, PDF]))["content"] == "See."
    assert openclaw_message(HumanMessage([PDF]))["content"] == "[file]"
