"""Of a text, those blocks are added that a note does not have; nothing that it lacks is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.sessions.blocks import missing

NOTE = """# 2026-11-21

- Anna likes tea
- The launch is on Friday

## Anna

Told us at noon:

- coffee after lunch

## Decisions

- a
- b
"""
CASES = {
    "all of it": (NOTE, ""),
    "one item": ("- Anna likes tea", ""),
    "items in another order": ("- The launch is on Friday\n- Anna likes tea", ""),
    "an item between others": ("- Anna likes tea\n- Bob is ill\n- The launch is on Friday", "- Bob is ill"),
    "an item below its heading": ("## Decisions\n- a\n- c", "## Decisions\n\n- c"),
    "the same words below another heading": ("## Bob\n- coffee after lunch", "## Bob\n\n- coffee after lunch"),
    "the same words after another paragraph": ("Bob says:\n\n- a", "Bob says:\n\n- a"),
    "a heading and its paragraph": ("## Anna\n\nTold us at noon:\n\n- coffee after lunch", ""),
    "a title of the day": ("# 2026-11-21\n\n- Anna likes tea\n- New", "- New"),
    "blanks at the ends of lines": ("- Anna likes tea  \r\n- The launch is on Friday", ""),
    "an item with more below it": ("- Anna likes tea\n  - green tea", "- Anna likes tea\n  - green tea"),
    "code": ("```\n- a\n\n- b\n```", "```\n- a\n\n- b\n```"),
    "another case": ("- anna likes tea", "- anna likes tea"),
    "nothing": ("\n \n", ""),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_missing_is_what_the_note_does_not_say(text, expected):
    assert missing(text, NOTE) == expected


def test_code_is_one_block_though_it_has_blank_lines():
    code = "```\none\n\n- two\n```"

    assert missing(code, f"- two\n\n{code}") == ""
    assert missing(code, "```\none\n\n- three\n```\n- two") == code


LINES = st.sampled_from(["- a", "- b", "1. c", "# H", "## K", "one", "two:", "", "  more", "```", "# 2026-11-21"])
TEXTS = st.lists(LINES, max_size=10).map("\n".join)


@given(TEXTS, TEXTS)
def test_once_added_nothing_is_missing(text, note):
    note = f"{note}\n\n" if note.count("```") % 2 == 0 else ""
    added = missing(text, note)

    assert missing(added, f"{note}{added}\n") == ""


@given(TEXTS, TEXTS)
def test_no_line_is_lost(text, note):
    there = f"{note}\n{missing(text, note)}".split("\n")

    assert {line.rstrip() for line in text.split("\n") if line.strip() and not line.startswith("# 20")} <= set(there)


@given(TEXTS)
def test_of_an_empty_note_everything_is_missing(text):
    wanted = [line for line in text.split("\n") if line and not line.startswith("# 20")]

    assert [line for line in missing(text, "").split("\n") if line and not line.startswith("# 20")] == wanted
