"""The commands that write notes: what they change, what they say, and what they refuse."""

import hashlib
import io
import json
import sys

import pytest

KEY = "- The spare key is with Mrs. Groen."
SEEN = hashlib.sha256(KEY.encode()).hexdigest()


def memory_of(notes):
    return (notes / "MEMORY.md").read_text(encoding="utf-8")


def test_an_edit_is_found_by_the_next_search(run, notes):
    outcome = run("edit", "-w", notes, "MEMORY.md#L4", "--seen", SEEN[:12], "--", "- The", "spare key is with Eva.")
    assert (outcome.code, outcome.out) == (0, "changed MEMORY.md#L4\n")
    assert memory_of(notes).endswith("planes.\n- The spare key is with Eva.\n")
    assert "Eva" in run("search", "-w", notes, "--no-sync", "Who has the spare key?").out


def test_the_hash_that_get_shows_is_what_edit_and_delete_want(run, notes):
    seen = json.loads(run("get", "-w", notes, "--json", "MEMORY.md#L3-L4").out)["hash"]
    changed = json.loads(run("edit", "-w", notes, "MEMORY.md#L3-L4", "--seen", seen, "--json", "one\ntwo").out)
    assert (changed["citation"], changed["sync_error"]) == ("MEMORY.md#L3-L4", None)
    deleted = run("delete", "-w", notes, "MEMORY.md#L3-L4", "--seen", changed["hash"])
    assert (deleted.code, deleted.out) == (0, "deleted MEMORY.md#L3-L4\n")
    assert memory_of(notes) == "# Long-term memory\n\n"


def test_an_edit_reads_its_text_from_standard_input(run, notes, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("- one\n- two\n"))
    assert run("edit", "-w", notes, "MEMORY.md#L4", "--seen", SEEN, "-").out == "changed MEMORY.md#L4-L5\n"
    assert memory_of(notes).endswith("planes.\n- one\n- two\n")


@pytest.mark.parametrize("command", ["edit", "delete", "promote"])
def test_a_stale_hash_changes_nothing_and_both_versions_are_told(run, notes, command):
    before = memory_of(notes)
    text = ["my version"] if command == "edit" else []
    outcome = run(command, "-w", notes, "memory/household.md#L3", "--seen", "0" * 12, *text)
    assert outcome.code == 2
    assert outcome.err.startswith("error: lines 3 to 3 of memory/household.md are not what you saw")
    assert "serviced each October by Van Dam." in outcome.err
    assert all(word in outcome.err for word in text)
    assert memory_of(notes) == before


def test_lines_must_be_named(run, notes):
    outcome = run("delete", "-w", notes, "MEMORY.md", "--seen", SEEN)
    assert outcome.code == 2
    assert "'MEMORY.md' names no lines: write them as" in outcome.err


def test_what_was_seen_must_be_given(run, notes):
    outcome = run("edit", "-w", notes, "MEMORY.md#L4", "text")
    assert outcome.code == 2
    assert "--seen" in outcome.err


def test_lines_are_promoted_once(run, notes):
    arguments = ("promote", "-w", notes, "memory/household.md#L3", "--section", "House")
    assert run(*arguments).out == "kept MEMORY.md#L8\n"
    assert memory_of(notes).endswith("Groen.\n\n## House\n\nThe boiler is serviced each October by Van Dam.\n")
    assert run(*arguments).out == "already there: MEMORY.md#L8\n"
    assert json.loads(run(*arguments, "--json").out)["existed"] is True


def test_an_entry_is_appended_once_where_that_is_asked_for(run, notes):
    arguments = ("append", "-w", notes, "--date", "2026-02-09", "--skip-existing", "Anna moved the launch.")
    assert run(*arguments).out == "added memory/2026-02-09.md#L4\n"
    assert run(*arguments).out == "already there: memory/2026-02-09.md#L4\n"


def test_a_session_is_shown_what_it_starts_with(run, notes):
    (notes / "SOUL.md").write_text("Be kind.\n", encoding="utf-8")
    (notes / "MEMORY.md").write_text("x" * 19_999 + "\nmore\n", encoding="utf-8")
    private = run("bootstrap", "-w", notes)
    assert private.out.splitlines()[:3] == ["SOUL.md", "Be kind.", "MEMORY.md"]
    assert "note: MEMORY.md: the last 5 of 20,004 characters are not shown" in private.err
    shared = json.loads(run("bootstrap", "-w", notes, "--shared", "--json").out)
    assert [file["path"] for file in shared["files"]] == ["SOUL.md"]
