"""The demonstration shows what it promises: an answer by meaning, one by exact name, and weak ones where there is none."""

import json
import re

import pytest

from openclaw_memory.cli import main


def printed(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as leaving:
        main(["demo", *arguments])
    assert leaving.value.code == 0
    return capsys.readouterr().out


def test_each_question_is_answered_as_announced(capsys):
    meaning, name, nothing = json.loads(printed(capsys, "--json"))["questions"]
    assert "vegetarian" in meaning["results"][0]["snippet"]
    assert "meat" in meaning["query"]
    assert "meat" not in meaning["results"][0]["snippet"].lower()
    assert "E_CAL_DRIFT" in name["results"][0]["snippet"]
    assert {result["confidence"] for result in nothing["results"]} <= {"weak"}


def test_the_demonstration_is_readable_in_a_pipe(capsys):
    out = printed(capsys)
    assert "\x1b" not in out
    assert re.search(r"memory/\S+\.md#L\d", out)
    assert max(map(len, out.splitlines())) <= 120
