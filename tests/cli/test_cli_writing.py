"""The commands that write notes: what they change, what they say, and what they refuse."""

import hashlib
import json
import re

import pytest

from openclaw_memory.embeddings.static import StaticEmbedder

KEY = "- The spare key is with Mrs. Groen."
SEEN = hashlib.sha256(KEY.encode()).hexdigest()


def memory_of(notes):
    return (notes / "MEMORY.md").read_text(encoding="utf-8")


def test_an_edit_is_found_by_the_next_search(run, notes):
    outcome = run("edit", "-w", notes, "MEMORY.md#L4", "- The", "spare key is with Eva.", "--seen", SEEN[:12])
    assert (outcome.code, outcome.out) == (0, "changed MEMORY.md#L4\n")
    assert memory_of(notes).endswith("planes.\n- The spare key is with Eva.\n")
    assert "Eva" in run("search", "-w", notes, "--no-sync", "Who has the spare key?").out


def test_the_hash_that_get_shows_is_what_edit_and_delete_want(run, notes):
    seen = json.loads(run("get", "-w", notes, "--json", "MEMORY.md#L3-L4").out)["hash"]
    changed = json.loads(run("edit", "-w", notes, "MEMORY.md#L3-L4", "--seen", seen, "--json", "one\ntwo").out)
    assert [changed[name] for name in ("citation", "indexed", "sync_error")] == ["MEMORY.md#L3-L4", True, None]
    deleted = run("delete", "-w", notes, "MEMORY.md#L3-L4", "--seen", changed["hash"])
    assert (deleted.code, deleted.out) == (0, "deleted MEMORY.md#L3-L4\n")
    assert memory_of(notes) == "# Long-term memory\n\n"


@pytest.mark.parametrize("command", ["edit", "delete", "promote"])
def test_a_stale_hash_changes_nothing_and_both_versions_are_reported(run, notes, command):
    before = memory_of(notes)
    text = ["my version"] if command == "edit" else []
    outcome = run(command, "-w", notes, "memory/household.md#L3", "--seen", "0" * 12, *text)
    assert outcome.code == 2
    assert outcome.err.startswith("error: lines 3 to 3 of memory/household.md are not what you saw")
    assert "serviced each October by Van Dam." in outcome.err
    assert all(word in outcome.err for word in text)
    assert ("--- what you wanted to write" in outcome.err) == bool(text)
    assert memory_of(notes) == before


def test_a_conflict_shows_lines_as_lines_and_the_hash_to_name_next(run, notes):
    outcome = run("edit", "-w", notes, "MEMORY.md#L3-L4", "--seen", "0" * 12, "- one\n- two")
    error, *shown = outcome.err.splitlines()
    assert shown == [
        "--- what is there now",
        "- Ines prefers trains to planes.",
        KEY,
        "--- what you wanted to write",
        "- one",
        "- two",
    ]
    seen = re.search(r"whose hash is ([0-9a-f]{12})$", error)[1]
    assert run("edit", "-w", notes, "MEMORY.md#L3-L4", "--seen", seen, "- one\n- two").code == 0


def test_a_conflict_in_json_has_both_versions(run, notes):
    outcome = run("edit", "-w", notes, "MEMORY.md#L4", "--seen", "0" * 12, "--json", "- The key is mine.")
    reported = json.loads(outcome.out)
    assert reported.pop("error").startswith("lines 4 to 4 of MEMORY.md are not what you saw")
    assert reported == {
        "kind": "ConflictError",
        "path": "MEMORY.md",
        "start_line": 4,
        "current": KEY,
        "proposed": "- The key is mine.",
        "hash": SEEN,
    }
    assert outcome.code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["- one", "--date", "2026-03-01"],
        ["--date", "2026-03-01", "--", "- one"],
        ["--title", "- a title", "- one", "--date=2026-03-01"],
        ["- one", "--date", "2026-03-01", "--", "--two"],
        ["zero", "- one", "--date", "2026-03-01"],
        ["-\tone", "--date", "2026-03-01"],
    ],
    ids=" ".join,
)
def test_the_item_of_a_list_is_no_option(run, notes, arguments):
    assert run("append", "-w", notes, *arguments).code == 0
    text = (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")
    assert ("- a title\n" in text) == ("- a title" in arguments)
    wanted = {"zero": "zero - one\n", "--two": "- one --two\n", "-\tone": "-\tone\n"}
    assert text.endswith(next((line for word, line in wanted.items() if word in arguments), "- one\n"))


@pytest.mark.parametrize("arguments", [["-one"], ["- one", "--no-such"], ["- one", "-x"]], ids=" ".join)
def test_what_else_begins_with_a_dash_is_an_option(run, notes, arguments):
    outcome = run("append", "-w", notes, *arguments)
    assert (outcome.code, "No such option" in outcome.err) == (2, True)


def test_the_help_says_how_text_with_a_dash_is_written(run):
    assert "written last, after `--`" in " ".join(run("append", "--help").out.split())


def test_ctrl_c_after_the_writing_says_that_it_is_written(run, notes, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(StaticEmbedder, "embed_documents", end)
    outcome = run("append", "-w", notes, "--date", "2026-03-01", "The ferry leaves at seven.")
    assert (outcome.code, outcome.out) == (130, "added memory/2026-03-01.md#L3\n")
    assert outcome.err == "note: interrupted: the file is written, and indexed by the next sync\n"
    assert "ferry" in (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")
    outcome = run("append", "-w", notes, "--date", "2026-03-02", "The ferry leaves at seven.", "--json")
    reported = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (130, "")
    assert (reported["citation"], reported["indexed"]) == ("memory/2026-03-02.md#L3", False)
    assert "interrupted" in reported["sync_error"]


def test_where_a_note_was_written_is_said_before_it_is_indexed(run, notes, monkeypatch, capsys):
    said = []

    def look(embedder, texts):
        said.append(capsys.readouterr().out)
        return embed(embedder, texts)

    embed = StaticEmbedder.embed_documents
    monkeypatch.setattr(StaticEmbedder, "embed_documents", look)
    assert run("append", "-w", notes, "--date", "2026-03-01", "The ferry leaves at seven.").out == ""
    assert said[0] == "added memory/2026-03-01.md#L3\n"


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
