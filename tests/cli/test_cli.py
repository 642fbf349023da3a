"""The command line as a user meets it: answers, JSON, exit codes, errors in one line, safe output."""

import io
import json
import os
import re
import shlex
import subprocess
import sys

import click
import pytest
from every_command import COMMANDS
from index_files import index_file, index_folder

EVERY = sorted(COMMANDS)
PLACED = [name for name in EVERY if name != "demo"]


def example(name: str) -> list[str]:
    found = re.search(r"Example: openclaw-memory (.+)", COMMANDS[name].help or "")
    assert found, f"{name} has no example"
    return shlex.split(found[1])


# --- help
@pytest.mark.parametrize("name", EVERY)
def test_help_explains_all_arguments_and_options_and_ends_with_an_example(name, run):
    command = COMMANDS[name]
    assert (command.help or "").strip().splitlines()[-1].strip().startswith(f"Example: openclaw-memory {name}")
    text = " ".join(run(name, "--help").out.partition("\n")[2].split())
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    assert all(re.search(rf"\b{one.metavar or one.name.upper()} is\b", text) for one in arguments)
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert all(one.help for one in options)
    assert any("--json" in one.opts for one in options) or name == "demo"


# `mcp` and `web` serve until they are ended, see tests/integrations.
CALLS = [(name, as_json) for name in EVERY for as_json in (False, True) if name not in {"mcp", "web"}]


@pytest.mark.parametrize(("name", "as_json"), [call for call in CALLS if call != ("demo", True)])
@pytest.mark.sampled(10)
def test_the_example_in_the_help_works(name, as_json, run, notes, monkeypatch):
    monkeypatch.chdir(notes.parent)
    assert run("index", "--workspace", notes).code == 0
    if name == "rotate-key":
        assert run(*example("encrypt")).code == 0
    if name == "migrate":
        (notes / ".memory.md").write_text("# Old\n\nThe ferry leaves at eight.\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setenv("EDITOR", "true")
    outcome = run(*example(name), *(["--json"] if as_json else []))
    assert outcome.code == (name == "forget"), outcome.err  # 1: notes of no day are left to look at
    assert outcome.out
    if as_json:
        assert outcome.out.isascii()
        assert isinstance(json.loads(outcome.out), dict)


# --- answers
def test_search_prints_the_answering_line_with_its_place(run, notes):
    outcome = run("search", "--workspace", notes, "Who services the boiler?")
    assert outcome.code == 0
    first, *rest = outcome.out.splitlines()
    assert re.search(r"memory/household\.md#L\d", first)
    assert "    The boiler is serviced each October by Van Dam." in rest


def test_json_results_carry_their_citation_and_how_the_search_was_made(run, notes):
    answer = json.loads(run("search", "--workspace", notes, "--json", "GEO-1000").out)
    assert answer["mode"] == "hybrid"
    assert answer["query"] == "GEO-1000"
    assert answer["results"][0]["citation"].startswith("memory/2026-02-09.md#L")


def test_index_counts_what_it_did(run, notes):
    assert run("index", "--workspace", notes).out.startswith("4 added, 0 changed, 0 removed, 0 unchanged")
    assert run("index", "--workspace", notes).out.startswith("0 added, 0 changed, 0 removed, 4 unchanged")


def test_a_search_by_keywords_where_vectors_were_wanted_says_why(run, notes):
    settings = notes.parent / "settings.toml"
    settings.write_text('[defaults]\nembedding.provider = "none"\n')
    run("index", "--workspace", notes, "--config", settings)
    outcome = run("search", "--workspace", notes, "--no-sync", "boiler")
    assert "note: keywords alone were searched" in outcome.err
    answer = json.loads(run("search", "-w", notes, "--no-sync", "--json", "boiler").out)
    assert (answer["mode"], answer["provider"], answer["model"], answer["stale"]) == ("keyword", "none", "", True)
    assert "none (keywords only)" in answer["reason"]
    assert run("search", "--workspace", notes, "--config", settings, "boiler").err == ""


def test_a_note_can_come_from_standard_input(run, notes, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"First line.\nSecond line.\n")))
    assert run("add", "--workspace", notes, "--date", "2026-03-01", "-").code == 0
    assert "First line.\nSecond line.\n" in (notes / "memory" / "2026-03-01.md").read_text()


# --- init
def test_init_names_what_is_left_out(run, tmp_path):
    (tmp_path / "a.rst").write_text("Notes.\n")
    (tmp_path / "b.mdx").write_text("# Routes\n")
    (tmp_path / "c.md").symlink_to("b.mdx")
    made = run("init", "--all-markdown", "--workspace", str(tmp_path))
    assert "1 file to search" in made.out
    assert "c.md is left out: is a symlink" in made.err
    assert "files that end 1 in .rst are not read" in made.err


def test_a_mask_is_said_to_be_one(run, tmp_path):
    (tmp_path / "MEMORY.md").write_text(f"Deploy with ghp_{'a1B2' * 9}.\n")
    for words in (("show", "MEMORY.md"), ("search", "how to deploy")):
        shown = run(*words, "--workspace", str(tmp_path))
        assert "ghp_a1…a1B2" in shown.out
        assert "ghp_a1…a1B2 is a secret, masked: to see its line, open the file in an editor" in shown.err


def test_init_always_names_its_count_and_the_next_step(run, tmp_path):
    (tmp_path / "vault/deep").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / f"vault/deep/{name}.md").write_text("A note.\n", encoding="utf-8")
    for _ in range(2):
        outcome = run("init", "-w", tmp_path / "vault")
        assert f'1 file to search: openclaw-memory search --workspace {tmp_path}/vault "a question"' in outcome.out
        assert "2 Markdown files lie in" in outcome.err
    outcome = run("init", "-w", tmp_path / "all", "--all-markdown")
    assert outcome.code == 2
    (tmp_path / "all").mkdir()
    outcome = run("init", "-w", tmp_path / "all", "--all-markdown")
    assert f'no file yet to search: openclaw-memory add --workspace {tmp_path}/all "a note"' in outcome.out


# --- wrong use
@pytest.mark.parametrize(
    ("arguments", "words", "kind"),
    [
        (["search"], "QUERY", "UsageError"),
        (["search", ""], "ask a question", "UsageError"),
        (["serach", "x"], "did you mean 'search'", "UsageError"),
        (["search", "--explai", "x"], "Did you mean '--explain'", "UsageError"),
        (["search", "--max-results", "0", "x"], "'--max-results': 0 is not in the range 1<=x<=1000", "UsageError"),
        (["show", "MEMORY.md#L9-L3"], "'MEMORY.md#L9-L3' ends before it begins: write L3-L9", "InvalidInputError"),
        (["add", "caf\udce9"], "TEXT is not UTF-8 at character 4", "UsageError"),
        (["search", "--min-score", "1.5", "x"], "--min-score", "UsageError"),
        (["show", "../secret.md"], "secret.md", "PathNotAllowedError"),
        (["show", "memory/none.md"], "memory/none.md", "NotFoundError"),
        (["add", "--date", "yesterday", "x"], "yesterday", "InvalidInputError"),
        (["status", "--config", "none.toml"], "none.toml does not exist", "ConfigError"),
        (["status", "--workspace", "none"], "none", "WorkspaceError"),
        (["search", "--agent", "../x", "x"], "../x", "ConfigError"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_use_ends_with_one_line_that_names_it_and_in_json_with_an_object(
    arguments, words, kind, run, notes, monkeypatch
):
    monkeypatch.chdir(notes)
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert words in outcome.err
    outcome = run(arguments[0], "--json", *arguments[1:])
    reported = json.loads(outcome.out)
    assert (outcome.code, reported["kind"], outcome.err) == (2, kind, f"error: {reported['error']}\n")


# `init` makes it, `doctor` reports it, and `hook` never fails the agent that calls it.
@pytest.mark.parametrize("name", [name for name in PLACED if name not in {"init", "doctor", "hook"}])
@pytest.mark.parametrize("kind", ["missing", "file"])
@pytest.mark.sampled(4)
def test_a_workspace_that_is_no_folder_is_named(name, kind, run, tmp_path):
    folder = tmp_path / "place"
    if kind == "file":
        folder.write_text("")
    arguments = [argument if argument != "notes" else folder for argument in example(name)]
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert str(folder) in outcome.err


@pytest.mark.fault(5)
def test_a_damaged_index_is_reported_and_built_again(run, notes):
    assert run("index", "--workspace", notes).code == 0
    index = index_file(notes)
    for companion in index_folder(notes).glob("index.sqlite-*"):
        companion.unlink()
    index.write_bytes(b"this is not a database, and never was" * 1000)
    healed = run("search", "--workspace", notes, "boiler")
    assert (healed.code, "household.md" in healed.out, "damaged" in healed.err) == (0, True, True)
    assert "household.md" in run("search", "--workspace", notes, "boiler").out


# --- terminals
def test_notes_cannot_steer_the_terminal(run, notes):
    (notes / "memory" / "evil.md").write_text(
        "The zebra \x1b[2Jclears \x9b31m the \u202escreen\x07.\n", encoding="utf-8"
    )
    out = run("search", "--workspace", notes, "zebra").out
    assert "zebra" in out
    assert not set(out) & set("\x1b\x9b\u202e\x07")


@pytest.mark.parametrize("words", ["status", "search boiler trains gauge key"])
@pytest.mark.sampled(1)
def test_a_reader_that_leaves_early_is_no_error(run, notes, words):
    run("index", "--workspace", notes)
    script = f"{shlex.quote(sys.executable)} -m openclaw_memory {words} -w {shlex.quote(str(notes))} | true"
    script += "; exit ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert (done.stderr, done.returncode) == (b"", 0)


def test_output_in_a_pipe_has_no_colours_and_where_there_is_no_unicode_question_marks(run, notes):
    (notes / "memory" / "hokusai.md").write_text("Hokusai 北斎 painted waves.\n", encoding="utf-8")
    run("index", "--workspace", notes)
    command = [sys.executable, "-m", "openclaw_memory", "search", "--workspace", str(notes), "Hokusai"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"Hokusai ?? painted waves." in done.stdout
    assert b"\x1b" not in done.stdout


def test_each_question_of_the_demo_is_answered_as_announced_and_can_be_read_in_a_pipe(run):
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
