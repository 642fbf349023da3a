import datetime
import os

import pytest

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.workspace import Workspace, notes
from openclaw_memory.workspace.notes import Notes

NOW = datetime.datetime(2026, 11, 21, 9, 5)  # noqa: DTZ001  the day on the user's clock is what counts
YESTERDAY, TODAY = "memory/2026-11-20.md", "memory/2026-11-21.md"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "memory").mkdir()
    for path in ("SOUL.md", "MEMORY.md", YESTERDAY, TODAY, "memory/2026-11-19.md", "USER.md"):
        (tmp_path / path).write_text(f"# {path}\n\nwords\n", encoding="utf-8")
    return tmp_path


def paths(started):
    return [file.path for file in started.files]


def test_a_private_session_starts_with_all_that_an_agent_should_know(root):
    started = Notes(Workspace.open(root)).bootstrap(now=NOW)
    assert paths(started) == ["SOUL.md", "MEMORY.md", YESTERDAY, TODAY]
    assert started.files[1] == notes.BootstrapFile("MEMORY.md", "# MEMORY.md\n\nwords", 18, 20_000)
    assert started.text.startswith('## SOUL.md\n\n# SOUL.md\n\nwords\n\n<recalled-memory id="')
    assert '" from="MEMORY.md">\n# MEMORY.md\n\nwords\n</recalled-memory id="' in started.text


def test_a_shared_session_does_not_see_the_long_term_memory(root):
    started = Notes(Workspace.open(root)).bootstrap(private=False, now=NOW)
    assert paths(started) == ["SOUL.md", YESTERDAY, TODAY]


def test_the_lower_case_name_counts_where_it_is_the_only_one(root):
    workspace = Workspace.open(root)
    (root / "memory.md").write_text("lower\n", encoding="utf-8")
    assert "memory.md" not in paths(Notes(workspace).bootstrap(now=NOW))
    (root / "MEMORY.md").unlink()
    assert "memory.md" in paths(Notes(workspace).bootstrap(now=NOW))


def test_what_is_too_long_is_cut_at_a_line_and_says_so(root):
    for path in ("MEMORY.md", TODAY):
        (root / path).write_text("# Title\n\nfirst line\nsecond line\nthird line\n", encoding="utf-8")
    started = Notes(Workspace.open(root)).bootstrap(now=NOW, max_chars=25)
    shown = {file.path: file for file in started.files}
    assert shown["MEMORY.md"].text == "# Title\n\nfirst line"
    assert shown["MEMORY.md"].note == (
        "the last 23 of 42 characters are not shown: move what matters less to notes in memory/"
    )
    assert shown[TODAY].text == "second line\nthird line"
    assert shown[TODAY].note == "the first 20 of 42 characters are not shown: search finds them"
    assert shown[TODAY].chars == 42
    assert f"({shown[TODAY].note})" in started.text


@pytest.mark.parametrize("max_chars", [0, -1, 1.5, "9"])
def test_a_budget_that_cannot_be_is_an_error(root, max_chars):
    with pytest.raises(InvalidInputError, match="max_chars"):
        Notes(Workspace.open(root)).bootstrap(max_chars=max_chars)


def test_traps_are_told_and_not_followed(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("hidden words\n", encoding="utf-8")
    for path in ("SOUL.md", "MEMORY.md", YESTERDAY):
        (root / path).unlink()
    (root / "SOUL.md").symlink_to(outside)
    (root / "MEMORY.md").write_bytes(b"\xff\xc0\n")
    os.mkfifo(root / YESTERDAY)
    started = Notes(Workspace.open(root)).bootstrap(now=NOW)
    notes = {file.path: file.note for file in started.files}
    assert "symlink" in notes["SOUL.md"]
    assert "not text" in notes["MEMORY.md"]
    assert "pipe" in notes[YESTERDAY]
    assert notes[TODAY] == ""
    assert "hidden" not in started.text
    assert "(not shown: SOUL.md passes a symlink" in started.text
