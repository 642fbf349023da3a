"""What a message has attached keeps its name in the transcript."""

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openclaw_memory._messages import openclaw_message

PDF = {"type": "file", "mime_type": "application/pdf", "base64": "AAAA"}


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


def test_a_file_that_a_tool_returns_keeps_its_name():
    message = ToolMessage([PDF | {"name": "offer.pdf"}], tool_call_id="1", name="fetch")
    assert openclaw_message(message)["content"] == [{"type": "text", "text": "[file offer.pdf]"}]


def test_a_name_stays_on_one_line():
    assert openclaw_message(HumanMessage([PDF | {"name": "a\nb.pdf"}]))["content"] == "[file a b.pdf]"


def test_what_has_no_name_is_mentioned_only_where_there_are_no_words():
    assert openclaw_message(HumanMessage([{"type": "text", "text": "See."}, PDF]))["content"] == "See."
    assert openclaw_message(HumanMessage([PDF]))["content"] == "[file]"
