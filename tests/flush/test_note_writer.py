"""Of a text, those sections are added that a note does not have; nothing is left out, or put below another heading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.flush.note_writer import find_missing

TITLE = "# 2026-11-21"
NOTE = """# 2026-11-21

- Anna likes tea
- The launch is on Friday

## Anna

Told us at noon:

- coffee after lunch

## Decisions

- Q: Move to Berlin?
- A: No
- Q: Sell the car?
- A: Yes
"""
CASES = {
    "all of it": (NOTE, ""),
    "some lines, one after the other": ("## Decisions\n- A: No\n- Q: Sell the car?", ""),
    "the title of the note": ("# 2026-11-21\n\n- Anna likes tea", ""),
    "items in another order": ("1. The launch is on Friday\n* Anna likes tea", ""),
    "a new item between others": ("## Anna\nTold us at noon:\n- coffee after lunch\n- rye for breakfast", "## Anna\n\n- rye for breakfast"),
    "an item between others": ("## Decisions\n- A: No\n- c\n- A: Yes", "- A: No\n- c\n- A: Yes"),
    "an answer that another question has": ("## Decisions\n\n- Q: Sell the flat?\n- A: No", "- Q: Sell the flat?\n- A: No"),
    "answers that stand apart": ("## Decisions\n- Q: Sell the car?\n- A: No", "- Q: Sell the car?\n- A: No"),
    "the same words below another heading": ("## Bob\n- coffee after lunch", "## Bob\n\n- coffee after lunch"),
    "the same words below no heading": ("- coffee after lunch", "# 2026-11-21\n\n- coffee after lunch"),
    "the same words below the same heading of another one": ("## Bob\n### Decisions\n- A: No", "## Bob\n\n### Decisions\n\n- A: No"),
    "a heading below the last one": ("## Decisions\n### Later\n- c", "### Later\n\n- c"),
    "the same words after another paragraph": ("## Anna\nBob says:\n\n- coffee after lunch", "## Anna\n\nBob says:\n\n- coffee after lunch"),
    "another day": ("## 2026-03-04\n- Anna's wedding", "## 2026-03-04\n\n- Anna's wedding"),
    "an item with more below it": ("- Anna likes tea\n  - green", "# 2026-11-21\n\n- Anna likes tea\n  - green"),
    "headings in code": ("## Decisions\n```\n## Anna\n\n- b\n```", "```\n## Anna\n\n- b\n```"),
    "code that is not closed": ("## Decisions\n~~~~\n```\n## Anna", "~~~~\n```\n## Anna\n~~~~"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_missing_is_what_the_note_does_not_say(text, expected):
    assert find_missing(text, NOTE, TITLE) == expected


def test_code_that_a_note_left_open_is_closed_before_something_is_added():
    assert find_missing("- b", "# 2026-11-21\n\n```\n- a\n## Anna", TITLE) == "```\n\n- b"


def test_what_another_note_says_in_its_place_is_not_missing():
    other = ("# 2026-11-20\n\n- a\n\n## Anna\n\n- b", "# 2026-11-20")
    assert find_missing("- a\n\n## Anna\n- b\n\n## Bob\n- b", "", TITLE, [other]) == "## Bob\n\n- b"


LINES = st.sampled_from(
    ["- a", "- b", "1. c", "# H", "## K", "## L", "### M", "one", "two:", "", "  more", "```", TITLE, "## 2026-03-04"]
)
TEXTS = st.lists(LINES, max_size=10).map("\n".join)


def after(text: str, note: str) -> str:
    """The note to which what is missing was added, as `Workspace.append` adds it."""
    added = find_missing(text, note, TITLE)
    return f"{note}\n{added}\n" if added else note


def places(text: str) -> set[tuple[str, ...]]:
    """Each line with the headings above it, read in another way than the code under test does."""
    found, above, in_code = set(), {}, False
    for line in text.split("\n"):
        hashes = len(line) - len(line.lstrip("#"))
        if line.startswith("```"):
            in_code = not in_code
        elif hashes and not in_code:
            above = {level: words for level, words in above.items() if level < hashes}
            if line != TITLE:
                above[hashes] = line
                found.add(tuple(above.values()))
        elif line:
            found.add((*above.values(), line))
    return found


@pytest.mark.fault(30)
@given(TEXTS, TEXTS)
def test_afterwards_each_line_is_in_its_place(text, note):
    now = places(after(text, note))
    assert places(text) <= now
    assert places(note) <= now
    assert now <= places(text) | places(note)


@given(TEXTS, TEXTS, TEXTS)
def test_once_added_nothing_is_missing_whatever_was_added_since(text, other, note):
    once = after(text, note)
    assert find_missing(text, once, TITLE) == ""
    assert find_missing(text, after(other, once), TITLE) == ""
