"""What a model is shown in the silent turn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately, get_buffer_string
from langchain_openclaw_memory._messages import openclaw_message, without_loose_ends
from langchain_openclaw_memory._trigger import reached
from langchain_openclaw_memory._turn import _parts


def calls(*ids, text=""):
    return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": call_id} for call_id in ids])


def answer(call_id):
    return ToolMessage("found", tool_call_id=call_id, name="look")


MESSAGES = st.lists(
    st.one_of(
        st.sampled_from([HumanMessage("Hi."), SystemMessage("Be kind."), AIMessage("Yes.")]),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(lambda ids: calls(*ids)),
        st.sampled_from("abc").map(answer),
    ),
    max_size=12,
)


@settings(max_examples=100)
@given(MESSAGES)
def test_every_answer_follows_its_call_and_nothing_else_is_lost(messages):
    whole = without_loose_ends(messages)
    called = set()
    for message in whole:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in called
        elif isinstance(message, AIMessage):
            called |= {call["id"] for call in message.tool_calls}
    said = [message for message in messages if message.text in {"Hi.", "Yes."}]
    assert [message for message in whole if message.text in {"Hi.", "Yes."}] == said
    assert not any(isinstance(message, SystemMessage) for message in whole)


def test_of_a_call_that_nobody_answered_the_words_are_kept():
    whole = without_loose_ends([HumanMessage("Hi."), calls("a", text="Let me look.")])
    assert [message.text for message in whole] == ["Hi.", "Let me look."]
    assert not whole[1].tool_calls


@settings(max_examples=60)
@given(st.lists(st.text(max_size=400), min_size=1, max_size=12), st.integers(256, 600))
def test_parts_are_the_whole_conversation_and_none_is_much_too_long(texts, room):
    talk = [HumanMessage(text) for text in texts]
    parts = _parts(talk, room, count_tokens_approximately)
    assert "".join(parts) == get_buffer_string(talk)
    assert all(count_tokens_approximately([HumanMessage(part)]) <= room + 4 for part in parts)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (("tokens", 100), True),
        (("tokens", 101), False),
        (("messages", 10), True),
        (("messages", 11), False),
        (("fraction", 0.5), True),
        (("fraction", 0.51), False),
        ({"tokens": 100, "messages": 10}, True),
        ({"tokens": 100, "messages": 11}, False),
        ([("tokens", 500), {"messages": 10}], True),
        ([("tokens", 500), {"messages": 11}], False),
        ([], False),
    ],
    ids=str,
)
def test_a_trigger_means_what_it_means_to_the_summarization(trigger, expected):
    assert reached(trigger, 10, 100, 200) is expected


def test_a_fraction_of_a_window_that_nobody_knows_is_never_reached():
    assert not reached(("fraction", 0.1), 10, 100, None)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("Hi.", id="1"), {"role": "user", "content": "Hi.", "id": "1"}),
        (HumanMessage([{"type": "text", "text": "Hi."}]), {"role": "user", "content": "Hi."}),
        (AIMessage("Yes."), {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}),
        (
            calls("a"),
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
