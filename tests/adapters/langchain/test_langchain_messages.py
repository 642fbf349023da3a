"""Messages of LangChain as OpenClaw writes them; what they have attached keeps its name."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openclaw_memory._messages import convert_message

CALL = {"name": "look", "args": {}, "id": "a"}
PDF = {"type": "file", "mime_type": "application/pdf", "base64": "AAAA"}
SEE = {"type": "text", "text": "See."}


def image(url):
    return {"type": "image_url", "image_url": {"url": url}}


def user(text, **more):
    return {"role": "user", "content": text, **more}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("Hi.", id="1"), user("Hi.", id="1")), (HumanMessage([SEE]), user("See.")), (HumanMessage(""), user("")),
        (HumanMessage([image("https://example.org/cat.png")]), user("https://example.org/cat.png")),
        (HumanMessage([image("data:image/png;base64,AAAA")]), user("[image]")),
        (HumanMessage([{"type": "video", "url": "data:video/mp4;base64,AAAA"}]), user("[video]")),
        (HumanMessage([SEE, image("x")]), user("See.")), (HumanMessage([SEE, PDF]), user("See.")),
        (HumanMessage([PDF]), user("[file]")),
        (AIMessage("See."), assistant(SEE)),
        (AIMessage("", tool_calls=[CALL]), assistant({"type": "toolCall", "id": "a", "name": "look", "arguments": {}})),
        (
            ToolMessage("See.", tool_call_id="a", name="look", status="error"),
            {"role": "toolResult", "content": [SEE], "toolCallId": "a", "toolName": "look", "isError": True},
        ),
        (SystemMessage("Be kind."), None),
    ],
)  # fmt: skip
def test_a_message_of_langchain_as_one_of_openclaw(message, expected):
    assert convert_message(message) == expected


@pytest.mark.parametrize(
    "block",
    [
        PDF | {"extras": {"filename": "offer.pdf"}},
        PDF | {"name": "offer\n.pdf"},
        {"type": "file", "mime_type": "application/pdf", "source_type": "base64", "data": "AAAA",
         "metadata": {"filename": "offer.pdf"}},
        {"type": "file", "file": {"filename": "offer.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    ],
    ids=["extras", "name", "metadata", "openai"],
)  # fmt: skip
def test_a_file_keeps_its_name_on_one_line_with_words_and_alone(block):
    for before, text in (([SEE], "See.\n"), ([], "")):
        content = convert_message(HumanMessage([*before, block]))["content"]
        assert content.replace("offer .pdf", "offer.pdf") == f"{text}[file offer.pdf]"
    returned = convert_message(ToolMessage([block], tool_call_id="1", name="fetch"))["content"]
    assert "\n" not in returned[0]["text"]
