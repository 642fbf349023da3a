"""`NO_REPLY` reaches nobody: whole, or streamed in whatever pieces, and talk about it does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.text import SilentStream, strip_silent
from openclaw_memory.text.silent_reply import is_declining

SILENT = [
    "NO_REPLY", "no_reply", "No_Reply", " \n NO_REPLY\t\n", "**NO_REPLY**", "`NO_REPLY`.", '"NO_REPLY"', "_NO_REPLY_",
    "> NO_REPLY", "NO_REPLY\n\nNO_REPLY", "<think>Nothing new: NO_REPLY?</think>\nNO_REPLY",
    "<thinking>x</thinking>NO_REPLY", '{"action": "NO_REPLY"}', '{\n  "action": "no_reply"\n}', "\ufeffNO_REPLY",
    "(NO_REPLY)", "«NO_REPLY»", "NO_REPLY?", "‚NO_REPLY…‘", "NO_REPLY。", "```\nNO_REPLY\n```", "- NO_REPLY", "# NO_REPLY", "<THINK>x</THINK>NO_REPLY",
    "<think>a</think>\n<thinking>b</thinking>NO_REPLY", "```text\nNO_REPLY\n```", "NO\\_REPLY", "**no\\_reply**.",
    "<final>NO_REPLY</final>", "<b>NO_REPLY</b>", "<p><b>NO_REPLY</b></p>\n", "「NO_REPLY」", "1. NO_REPLY", "2) NO_REPLY",
    "NO_REPLY 🙂", "</think>NO_REPLY", "NO_REPLY ✅",
]  # fmt: skip
# What is said besides shows nothing either, though a program may want to know that it was said.
AS_IT_IS = [
    "", "***", "Good morning!", "NO", "no", "No, thanks.", "NO_REPLYING is no word", "NO_REPLY_TO is a header",
    "is`NO_REPLY", "<b>Saved.</b>", "```text\nall\n```", "🙂", "1", "<b", "NO\\_REPLYING", "```python\nprint(1)\n```",
    "a\nNO_REPLY is a token", "a\n\nNO", "<think>a</think>\nhi", "<think>NO_REPLY", '{"action": "REPLY"}',
]  # fmt: skip
SHOWN = {text: text for text in AS_IT_IS} | {
    "NO_REPLY: nothing to say": "nothing to say",
    "NO_REPLY. Nothing new.": "Nothing new.",
    "All saved. NO_REPLY": "All saved.",
    "**All saved.** (NO_REPLY)": "**All saved.**",
    "- a\n- NO_REPLY": "- a",
    "Nothing to store. NO_REPLY": "Nothing to store.",
    "NO_REPLY: nothing but the key": "nothing but the key",
    "NO_REPLY no\none": "no\none",
    "<think>a</think>NO_REPLY hi": "<think>a</think>hi",
    "<final>NO_REPLY</final> The key is behind the clock.": "The key is behind the clock.",
    "1. NO_REPLY\n2. Buy milk.": "2. Buy milk.",
    "NO_REPLY 42.": "42.",
    "NO_REPLY 1. ": "1. ",
    "123. NO_REPLY": "123.",
    "NO_REPLY but this": "but this",
    "**NO_REPLY** **Bold**": "**Bold**",
    "NO_REPLY NO_REPLY: done": "done",
    "All is saved.\n\nNO_REPLY": "All is saved.",
    "All is saved. \n NO_REPLY\n`no_reply`.\n": "All is saved.",
}
PIECES = st.sampled_from(
    [
        "NO_REPLY", "no_reply", "NO", "_", "REPLY", "\n", " ", "*", ".", "a", "<think>", "</think>", "é", "nothing",
        "- ", "(", "```", "text", "<b>", "</b>", "<", "/", "1", ". ", "\\", "「", "🙂",
    ]
)  # fmt: skip


def streamed(*pieces: str) -> str:
    stream = SilentStream()
    return "".join([*map(stream.feed, pieces), stream.end()])


@pytest.mark.fault(28)
@pytest.mark.parametrize(("reply", "shown"), [*((reply, "") for reply in SILENT), *SHOWN.items()], ids=repr)
@pytest.mark.sampled(20)
def test_of_a_reply_the_token_is_taken_however_it_is_split(reply, shown):
    assert is_declining(reply) or reply in SHOWN
    assert strip_silent(reply) == streamed(*reply) == shown
    for first in range(len(reply) + 1):
        for second in range(first, len(reply) + 1):
            assert streamed(reply[:first], reply[first:second], reply[second:]) == shown


@pytest.mark.fault(28)
@given(st.lists(PIECES, max_size=12))
def test_a_stream_shows_what_the_whole_reply_would(pieces):
    assert streamed(*pieces) == strip_silent("".join(pieces))


@given(st.text())
def test_a_reply_without_the_token_is_shown_as_it_is(reply):
    assert strip_silent(reply) == reply


def test_what_cannot_be_the_token_is_shown_at_once():
    stream = SilentStream()
    shown = [stream.feed(piece) for piece in ("N", "o", "w", " then", "\n", "NO", "ne")]
    assert shown == ["", "", "Now", " then", "", "", "\nNOne"]
    assert stream.end() == ""


@pytest.mark.parametrize(
    "reply", ["Nothing to store. NO_REPLY", "NO_REPLY. Nothing new.", "no_reply!", "None.\n**NO_REPLY**"]
)
def test_a_reply_declines_by_the_token_and_at_most_a_line_that_says_nothing(reply):
    assert is_declining(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "", "Done!", "I would say NO_REPLY, but", "NO_REPLYING", "NOREPLY", "Nothing to store.",
        "All saved. NO_REPLY", "No, the key is behind the clock. NO_REPLY",
        "- Anna moved the launch.\n- It is in the mill.\n\nNO_REPLY", "Nothing new.\nNothing to save. NO_REPLY",
        "NO_REPLY is not right here: the key hangs behind the clock, please store it",
        "NO_REPLY nothing nothing nothing nothing nothing nothing",
    ],
)  # fmt: skip
def test_a_reply_that_says_anything_else_does_not_decline(reply):
    assert not is_declining(reply)
