"""A session at a terminal: colours, weak answers, a narrow window, Ctrl-C."""

import sys

import pytest

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals", allow_module_level=True)

from pseudo_terminal import Terminal, bare


def shown(notes, *arguments, **options):
    with Terminal(*arguments, cwd=notes, **options) as terminal:
        code = terminal.end()
        return code, terminal.seen


def test_the_words_that_were_asked_for_are_marked_in_their_other_forms_too(notes):
    code, seen = shown(notes, "search", "Who services boilers?")
    assert code == 0
    assert "The \x1b[31m\x1b[1mboiler\x1b[0m is \x1b[31m\x1b[1mserviced\x1b[0m each October" in seen
    assert "\x1b[36m\x1b[1mmemory/household.md#L" in seen


@pytest.mark.nightly
def test_weak_results_are_dimmed_and_told(notes):
    _, seen = shown(notes, "search", "--min-score", "0", "How do I change the oil of a motorcycle?")
    assert " in other words\x1b[0m" in seen
    assert "\x1b[2m" in seen
    assert "note: all results say it in other words: the notes may not answer this" in bare(seen)


@pytest.mark.nightly
def test_nothing_is_wider_than_a_terminal_of_forty_columns(notes):
    text = "The boiler in the cellar is serviced each October by Van Dam, who comes by bicycle, 東京の鍵 in hand.\n"
    (notes / "memory/household.md").write_text(text * 3, encoding="utf-8")
    _, seen = shown(notes, "search", "-n", "1", "Who services the boiler?", columns=40)
    rows = [row for row in bare(seen).split("\n") if row.startswith("    ")]
    assert rows
    assert max(map(len, rows)) <= 40
