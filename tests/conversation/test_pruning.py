"""Pruning shortens old answers of tools in memory, where they fill much of the window, and touches nothing else."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.conversation.compaction import PLACEHOLDER, prune
from openclaw_memory.conversation.messages import estimate_tokens
from openclaw_memory.errors import InvalidInputError


def result(text, **extra):
    return {"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": text, **extra}


def reply(text="ok"):
    return {"role": "assistant", "content": text}


REPLIES = [reply(), reply(), reply()]


def long_text(length):
    return "".join(f"{number:06d} " for number in range(length // 7 + 1))[:length]


def test_a_long_answer_keeps_its_beginning_and_end_around_a_note_of_what_was_cut():
    text = long_text(10_000)
    (pruned, *rest) = prune([result(text), *REPLIES], window=5_000)
    head, tail = pruned["content"][:1_500], pruned["content"][-1_500:]
    assert (head, tail) == (text[:1_500], text[-1_500:])
    assert "7,000 of 10,000 characters" in pruned["content"][1_500:-1_500]
    assert pruned["toolCallId"] == "c"
    assert rest == REPLIES


@pytest.mark.parametrize(("window", "is_cut"), [(8_342, False), (8_340, True)])
def test_trimming_begins_at_three_tenths_of_the_window(window, is_cut):
    # 2,502 tokens are three tenths of 8,340.
    messages = [result("x" * 9_992), *REPLIES, {"role": "user", "content": "x"}]
    assert estimate_tokens(messages) == 2_502
    assert (prune(messages, window=window) != messages) is is_cut


def test_from_half_of_the_window_on_answers_are_cleared_the_oldest_first_until_less_is_filled():
    messages = [*(result("x" * 3_999, at=at) for at in range(20)), *REPLIES]
    pruned = prune(messages, window=37_000)  # 20,003 tokens: over half; 18,500 are half
    cleared = [one["at"] for one in pruned if one["content"] == PLACEHOLDER]
    assert cleared == [0, 1]
    assert estimate_tokens(pruned) < 18_500
    assert pruned[2:] == messages[2:]


@pytest.mark.parametrize(("last", "is_cleared"), [(1_999, False), (2_000, True)])
def test_answers_that_have_less_than_50000_characters_together_are_not_cleared(last, is_cleared):
    pruned = prune([*(result("x" * 4_000) for _ in range(12)), result("x" * last), *REPLIES], window=10_000)
    assert (pruned[0]["content"] == PLACEHOLDER) is is_cleared


@pytest.mark.parametrize("replies", [0, 1, 2])
def test_nothing_is_pruned_before_there_are_three_replies(replies):
    messages = [result(long_text(100_000)), *REPLIES[:replies]]
    assert prune(messages, window=1_000) == messages


@pytest.mark.parametrize("block", [{"type": "image", "data": "AAAA"}, {"type": "resource", "uri": "file:///x"}])
def test_an_answer_that_holds_more_than_text_is_never_touched(block):
    messages = [result([{"type": "text", "text": long_text(90_000)}, block]), *REPLIES]
    assert prune(messages, window=100) == messages


@pytest.mark.parametrize(
    ("idle_seconds", "is_cut"), [(0, False), (299.9, False), (-5, False), (300, True), (9_000.0, True), (None, True)]
)
def test_nothing_is_pruned_while_the_provider_holds_the_messages_in_its_cache(idle_seconds, is_cut):
    messages = [result(long_text(9_000)), *REPLIES]
    assert (prune(messages, window=1_000, idle_seconds=idle_seconds) != messages) is is_cut


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_of_nothing_is_refused(window):
    with pytest.raises(InvalidInputError, match="at least one token"):
        prune([], window=window)


SIZES = st.sampled_from([0, 20, 3_999, 4_001, 9_000, 50_001])
MESSAGES = st.lists(
    st.one_of(
        st.builds(result, SIZES.map(long_text)),
        st.builds(lambda size: result([{"type": "text", "text": long_text(size)}]), SIZES),
        st.just(result([{"type": "text", "text": long_text(9_000)}, {"type": "image", "data": "A"}])),
        st.builds(reply, st.integers(0, 100).map(long_text)),
        st.builds(lambda size: {"role": "user", "content": long_text(size)}, st.integers(0, 100)),
    ),
    max_size=25,
)


@given(MESSAGES, st.integers(1, 60_000))
def test_pruning_shortens_answers_of_tools_alone_once_and_for_all(messages, window):
    before = copy.deepcopy(messages)
    pruned = prune(messages, window=window)
    assert messages == before
    assert estimate_tokens(pruned) <= estimate_tokens(messages)
    assert len(pruned) == len(messages)
    for old, new in zip(messages, pruned, strict=True):
        if old["role"] != "toolResult":
            assert new is old
        assert {**new, "content": ""} == {**old, "content": ""}
    assert prune(pruned, window=window) == pruned
