"""Messages are read in OpenClaw's shape and in OpenAI's."""

import pytest

from openclaw_memory.conversation import messages
from openclaw_memory.text.fence import fence_text

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
    assert messages.get_text(message) == text


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
    assert messages.get_call_ids(message) == ids


def test_four_characters_are_a_token_and_each_message_is_rounded_up():
    assert messages.estimate_tokens([{"content": "x" * length} for length in (0, 1, 4, 5)]) == 0 + 1 + 1 + 2


@pytest.mark.parametrize("message", [OPENCLAW_CALLS, OPENAI_CALLS, {"role": "tool", "tool_call_id": "a", "name": "n"}])
def test_to_a_model_a_message_goes_without_what_a_transcript_says_of_it(message):
    entry = {"id": "e", "parentId": "d", "timestamp": "2026-11-21T09:00:00Z", "type": "compaction"}
    held = {**message, **entry}
    assert messages.prepare_for_model([held]) == [message]
    assert held == {**message, **entry}


@pytest.mark.parametrize("text", ["", "Hi.", "  Hi.\n", "an open <recalled-memory is none"])
def test_words_into_which_nothing_was_recalled_are_left_as_they_are(text):
    assert messages.strip_recalled(text) == text


def test_what_was_recalled_into_a_message_is_none_of_its_words():
    assert messages.strip_recalled(f"{fence_text('The code is 4711.', 'memory')}\n\nWhat is it?") == "What is it?"
    assert messages.strip_recalled(fence_text("The code is 4711.", "memory")) == ""
