"""The command that writes notes: what it changes, what it says, and what it refuses."""

import io
import json

import pytest

from openclaw_memory.embeddings.static import StaticEmbedder


@pytest.mark.parametrize(
    "arguments",
    [
        ["- one", "--date", "2026-03-01"],
        ["--date", "2026-03-01", "--", "- one"],
        ["- one", "--date", "2026-03-01", "--", "--two"],
        ["zero", "- one", "--date", "2026-03-01"],
        ["-\tone", "--date", "2026-03-01"],
    ],
    ids=" ".join,
)
def test_the_item_of_a_list_is_no_option(run, notes, arguments):
    assert run("add", "-w", notes, *arguments).code == 0
    text = (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")
    wanted = {"zero": "zero - one\n", "--two": "- one --two\n", "-\tone": "-\tone\n"}
    assert text.endswith(next((line for word, line in wanted.items() if word in arguments), "- one\n"))


@pytest.mark.parametrize("arguments", [["-one"], ["- one", "--no-such"], ["- one", "-x"]], ids=" ".join)
def test_what_else_begins_with_a_dash_is_an_option(run, notes, arguments):
    outcome = run("add", "-w", notes, *arguments)
    assert (outcome.code, "No such option" in outcome.err) == (2, True)


def test_ctrl_c_after_the_writing_says_that_it_is_written(run, notes, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(StaticEmbedder, "embed_documents", end)
    outcome = run("add", "-w", notes, "--date", "2026-03-01", "The ferry leaves at seven.")
    assert (outcome.code, outcome.out) == (130, "added memory/2026-03-01.md#L3\n")
    assert outcome.err == "note: interrupted: the file is written, and indexed by the next sync\n"
    assert "ferry" in (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")
    outcome = run("add", "-w", notes, "--date", "2026-03-02", "The ferry leaves at seven.", "--json")
    reported = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (130, "")
    assert (reported["citation"], reported["indexed"]) == ("memory/2026-03-02.md#L3", False)
    assert "interrupted" in reported["sync_error"]


def test_standard_input_that_is_not_utf_8_is_told_with_its_place(run, notes, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"tea\ncaf\xe9 au lait\n")))
    outcome = run("add", "--workspace", notes, "-")
    assert outcome.code == 2
    assert "TEXT is not UTF-8 at character 8" in outcome.err
