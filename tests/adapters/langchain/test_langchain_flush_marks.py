"""Which part of a conversation had its flush, as it grows, is cut, is summarised, or comes back with other ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openclaw_memory._flush_marks import NO_SUMMARY, fingerprints_of, summary_of

SUMMARY = HumanMessage("Here is a summary.", id="s", additional_kwargs={"lc_source": "summarization"})


def conversation(*texts):
    return [(HumanMessage if at % 2 == 0 else AIMessage)(text) for at, text in enumerate(texts)]


def words(begin, end):
    return [HumanMessage(f"message {number}") for number in range(begin, end)]


@pytest.mark.parametrize(
    ("now", "had"),
    [
        (words(0, 6), True),
        (words(0, 40), True),
        ([SystemMessage("Another prompt."), *words(0, 7)], True),
        (words(4, 7), True),
        (words(4, 9), False),
        (words(5, 7), False),
        (words(7, 9), False),
        (words(0, 4), False),
        ([words(0, 1)[0], *words(6, 9)], False),
        ([SUMMARY, *words(4, 6)], False),
        ([SUMMARY, *words(4, 9)], False),
        ([SUMMARY, *words(1, 7)], False),
        ([HumanMessage("Written by a summarizer of one's own."), *words(4, 6)], True),
    ],
)
def test_a_cycle_goes_on_while_nothing_of_note_was_cut(now, had):
    mark = fingerprints_of(words(0, 6)).mark
    assert fingerprints_of(now).had_its_flush(mark) is had


def test_two_summaries_that_read_the_same_begin_two_cycles():
    mark = fingerprints_of([SUMMARY, *words(3, 6)]).mark
    assert fingerprints_of([SUMMARY, *words(3, 9)]).had_its_flush(mark)
    assert not fingerprints_of([SUMMARY, *words(4, 9)]).had_its_flush(mark)


def test_a_fingerprints_of_the_same_words_over_and_over_is_flushed_once_while_it_grows():
    mark = fingerprints_of(conversation(*["go on", "ok"] * 10)).mark
    assert fingerprints_of(conversation(*["go on", "ok"] * 30)).had_its_flush(mark)


def test_a_fingerprints_of_the_same_words_that_was_cut_is_flushed_again():
    mark = fingerprints_of(conversation(*["go on", "ok"] * 10)).mark
    assert not fingerprints_of(conversation(*["go on", "ok"] * 4)).had_its_flush(mark)


def test_what_a_summary_takes_is_flushed_before_it():
    mark = fingerprints_of(words(0, 6)).mark
    assert fingerprints_of(words(0, 8)).had_its_flush(mark, taken=6)
    assert not fingerprints_of(words(0, 8)).had_its_flush(mark, taken=7)


def test_answers_of_tools_that_read_the_same_are_kept_apart():
    polls = [ToolMessage("pending", tool_call_id=str(number)) for number in range(9)]
    assert not fingerprints_of(polls[4:]).had_its_flush(fingerprints_of(polls[:4]).mark)


def test_a_conversation_of_system_prompts_alone_is_none():
    assert fingerprints_of([SystemMessage("Be kind.")]) is None
    assert summary_of([]) == summary_of(words(0, 2)) == NO_SUMMARY
    assert summary_of([SystemMessage("Be kind."), SUMMARY]) == "s"


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 30), st.integers(1, 30), st.integers(20, 90))
def test_of_a_sliding_window_no_message_leaves_unread_and_each_half_is_flushed_once(window, trigger, turns):
    messages, marks, read, looks = [], [], set(), 0
    for turn in range(turns):
        messages += words(2 * turn, 2 * turn + 2)
        now = fingerprints_of(messages)
        if len(messages) >= min(trigger, window) and not any(now.had_its_flush(mark) for mark in marks):
            marks, looks = [now.mark], looks + 1
            read |= {message.text for message in messages}
        assert {message.text for message in messages[:-window]} <= read
        messages = messages[-window:]
    assert looks <= 2 + 2 * turns // (window // 2)
