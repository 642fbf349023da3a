"""The demonstration shows what it promises: an answer by meaning, one by exact name, and weak ones where there is none."""

import re

import pytest


def test_each_question_is_answered_as_announced_and_can_be_read_in_a_pipe(run):
    code, out, _ = run("demo")
    assert code == 0
    meaning, name, nothing = out.partition("Your own notes")[0].split("\n? ")[1:]
    assert ("meat" in meaning.partition("\n")[0], "vegetarian" in meaning, meaning.count("meat")) == (True, True, 1)
    assert name.count("E_CAL_DRIFT") > 1
    assert nothing.partition("\n")[2].count(" in other words\n") == len(re.findall(r"#L\d", nothing))
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("name", "count", "following"), [("notes", "4 notes", 'search "a question"'), (".", "0 notes", "demo")]
)
def test_without_a_command_it_says_what_the_folder_has_and_what_to_do_next(
    run, notes, monkeypatch, name, count, following
):
    monkeypatch.chdir(notes.parent / name)
    code, out, _ = run()
    assert (code, count in out, f"openclaw-memory {following}\n" in out) == (0, True, True)
