"""Messages are read in OpenClaw's shape and in OpenAI's."""

import pytest

from openclaw_memory.conversation.messages import (
    IMAGE_CHARS,
    answers_to,
    calls_of,
    chars_of,
    estimated_tokens,
    for_model,
    is_from_user,
    is_result,
    own_words,
    text_of,
)
from openclaw_memory.text.fence import fenced

OPENCLAW_CALLS = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "a", "name": "read", "arguments": {"path": "x"}},
        {"type": "toolUse", "id": "b", "name": "read", "input": {}},
    ],
}
OPENAI_CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
    ],
}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": "Hello"}, "Hello"),
        (OPENCLAW_CALLS, "I look."),
        (OPENAI_CALLS, ""),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"role": "user"}, ""),
    ],
)
def test_the_text_of_a_message_is_its_content_or_its_text_blocks(message, text):
    assert text_of(message) == text


@pytest.mark.parametrize(
    ("message", "ids"),
    [
        (OPENCLAW_CALLS, ("a", "b")),
        (OPENAI_CALLS, ("a", "b")),
        ({"role": "assistant", "content": "no calls", "tool_calls": None}, ()),
        ({"role": "assistant", "content": [{"type": "toolCall", "name": "without an id"}]}, ()),
        ({"role": "user", "content": "Hello"}, ()),
    ],
)
def test_the_calls_of_a_message_are_known_in_both_shapes(message, ids):
    assert calls_of(message) == ids


@pytest.mark.parametrize(
    ("message", "result", "answered"),
    [
        ({"role": "toolResult", "toolCallId": "a", "content": "x"}, True, "a"),
        ({"role": "toolResult", "toolUseId": "a", "content": "x"}, True, "a"),
        ({"role": "tool", "tool_call_id": "a", "content": "x"}, True, "a"),
        ({"role": "toolResult", "content": "x"}, True, None),
        ({"role": "user", "toolCallId": "a", "content": "x"}, False, None),
    ],
)
def test_an_answer_of_a_tool_names_its_call(message, result, answered):
    assert is_result(message) is result
    assert answers_to(message) == answered


@pytest.mark.parametrize(
    ("message", "is_users"),
    [
        ({"role": "user", "content": "Hello"}, True),
        ({"type": "message", "role": "user", "content": "Hello"}, True),
        ({"type": "compaction", "role": "user", "content": "a summary"}, False),
        ({"type": "custom_message", "role": "user", "content": "put in"}, False),
        ({"role": "assistant", "content": "Hello"}, False),
    ],
)
def test_only_what_the_user_said_is_from_the_user(message, is_users):
    assert is_from_user(message) is is_users


@pytest.mark.parametrize(
    ("message", "chars"),
    [
        ({"role": "user", "content": "Hello"}, 5),
        ({"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "image", "data": "A" * 9}]}, 4805),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}, IMAGE_CHARS),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}, len('{"id":"a"}')),
        ({"role": "assistant", "content": [{"type": "toolCall", "id": "ä"}]}, len('{"type":"toolCall","id":"ä"}')),
        ({"role": "assistant", "content": [{"type": "odd", "it": {1}}]}, len('{"type":"odd","it":"{1}"}')),
        ({"role": "assistant"}, 0),
    ],
)
def test_all_that_is_sent_counts(message, chars):
    assert chars_of(message) == chars


def test_four_characters_are_a_token_and_each_message_is_rounded_up():
    assert estimated_tokens([{"content": "x" * length} for length in (0, 1, 4, 5)]) == 0 + 1 + 1 + 2


@pytest.mark.parametrize("message", [OPENCLAW_CALLS, OPENAI_CALLS, {"role": "tool", "tool_call_id": "a", "name": "n"}])
def test_to_a_model_a_message_goes_without_what_a_transcript_says_of_it(message):
    entry = {"id": "e", "parentId": "d", "timestamp": "2026-11-21T09:00:00Z", "type": "compaction", "askedChars": 9}
    held = {**message, **entry}
    assert for_model([held]) == [message]
    assert held == {**message, **entry}


@pytest.mark.parametrize("text", ["", "Hi.", "  Hi.\n", "an open <recalled-memory is none"])
def test_words_into_which_nothing_was_recalled_are_left_as_they_are(text):
    assert own_words(text) == text


def test_what_was_recalled_into_a_message_is_none_of_its_words():
    assert own_words(f"{fenced('The code is 4711.', 'memory')}\n\nWhat is it?") == "What is it?"
    assert own_words(fenced("The code is 4711.", "memory")) == ""
