"""A session at a terminal: colours, links, weak answers, a narrow window, an editor, questions, a picker, Ctrl-C."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals", allow_module_level=True)

from pseudo_terminal import Terminal, bare

from openclaw_memory.cli import editor
from openclaw_memory.config.terminal import takes_hyperlinks

LINKS = {"VTE_VERSION": "7000"}
PLAIN = dict.fromkeys(
    ["VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "WEZTERM_PANE", "TERM_PROGRAM", "DOMTERM"], ""
)


def shown(notes, *arguments, **options):
    environment = {**PLAIN, **options.pop("environment", {})}
    with Terminal(*arguments, cwd=notes, environment=environment, **options) as terminal:
        code = terminal.end()
        return code, terminal.seen


def test_the_words_that_were_asked_for_are_marked_in_their_other_forms_too(notes):
    code, seen = shown(notes, "search", "Who services boilers?")
    assert code == 0
    assert "The \x1b[31m\x1b[1mboiler\x1b[0m is \x1b[31m\x1b[1mserviced\x1b[0m each October" in seen
    assert "\x1b[36m\x1b[1mmemory/household.md#L" in seen


def test_weak_results_are_dimmed_and_told(notes):
    _, seen = shown(notes, "search", "--min-score", "0", "How do I change the oil of a motorcycle?")
    assert " weak\x1b[0m" in seen
    assert "\x1b[2m" in seen
    assert "note: all results are weak: the notes may not answer this" in bare(seen)


@pytest.mark.parametrize(
    ("environment", "takes"),
    [
        (LINKS, True),
        ({"KITTY_WINDOW_ID": "1"}, True),
        ({"TERM": "foot"}, True),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4a"}, True),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a", **LINKS}, False),
        ({}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({**LINKS, "FORCE_HYPERLINK": "0"}, False),
        ({**LINKS, "NO_COLOR": "1"}, False),
        ({**LINKS, "TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_a_terminal_takes_hyperlinks_if_it_says_so(monkeypatch, environment, takes):
    monkeypatch.delenv("FORCE_HYPERLINK", raising=False)
    for name, value in {"TERM": "xterm-256color", "NO_COLOR": "", **PLAIN, **environment}.items():
        monkeypatch.setenv(name, value)
    assert takes_hyperlinks() == takes


@pytest.mark.parametrize("environment", [LINKS, {}], ids=str)
def test_a_citation_is_a_hyperlink_on_terminals_that_take_them(notes, environment):
    _, seen = shown(notes, "search", "-n", "1", "boiler", environment=environment)
    link = re.search(r"\x1b\]8;;(file://[^\x1b]*)\x1b\\.*?household\.md#.*?\x1b\]8;;\x1b\\", seen)
    assert (link is not None) == bool(environment)
    assert link is None or link[1] == (notes / "memory/household.md").as_uri()


def test_without_colours_nothing_but_text_is_written(notes):
    _, seen = shown(notes, "search", "boiler", environment={"NO_COLOR": "1", **LINKS})
    assert "\x1b" not in seen.replace("\x1b[?25", "")


def test_a_pipe_gets_text_alone(run, notes, monkeypatch):
    monkeypatch.setenv("VTE_VERSION", "7000")
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    assert "\x1b" not in run("search", "--workspace", notes, "boiler").out


def test_nothing_is_wider_than_a_terminal_of_forty_columns(notes):
    text = "The boiler in the cellar is serviced each October by Van Dam, who comes by bicycle, 東京の鍵 in hand.\n"
    (notes / "memory/household.md").write_text(text * 3, encoding="utf-8")
    for options in ([], ["-C", "2"], ["--explain"]):
        _, seen = shown(notes, "search", "-n", "1", *options, "Who services the boiler?", columns=40)
        rows = [row for row in bare(seen).split("\n") if row.startswith("    ") and "_score" not in row]
        assert rows
        assert options == ["--explain"] or max(map(len, rows)) <= 40


def test_results_longer_than_the_terminal_go_through_a_pager(notes, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "paged:"\ncat\n', encoding="utf-8")
    pager.chmod(0o755)
    environment = {"PAGER": str(pager), **LINKS}
    shown(notes, "index")
    _, seen = shown(notes, "search", "--min-score", "0", "boiler", lines=8, environment=environment)
    assert bare(seen).lstrip().startswith("paged:")
    assert "\x1b]8" not in seen
    for lines, options in ((60, []), (8, ["--no-pager"])):
        _, seen = shown(notes, "search", *options, "boiler", lines=lines, environment=environment)
        assert "paged:" not in seen


def test_open_shows_the_best_result_in_the_editor_at_its_line(notes, tmp_path):
    vim = tmp_path / "vim"
    vim.write_text('#!/bin/sh\necho "edited: $*"\n', encoding="utf-8")
    vim.chmod(0o755)
    environment = {"VISUAL": "", "EDITOR": str(vim)}
    code, seen = shown(notes, "search", "-n", "1", "--open", "boiler", environment=environment, columns=200)
    assert code == 0
    line = re.search(r"household\.md#L(\d+)", bare(seen))[1]
    assert f"edited: +{line} {notes}/memory/household.md\n" in bare(seen)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("vim", ["+3", "a b.md"]),
        ("/usr/bin/nano", ["+3", "a b.md"]),
        ("code --wait", ["--wait", "--goto", "a b.md:3"]),
        ("hx", ["a b.md:3"]),
        ("notepad", ["a b.md"]),
    ],
)
def test_an_editor_is_told_the_line_as_it_wants_it(monkeypatch, name, given):
    monkeypatch.setenv("VISUAL", name)
    called = []
    monkeypatch.setattr(editor.subprocess, "run", lambda command, **_: called.append(command))
    editor.open_at(Path("a b.md"), 3)
    assert called == [[name.split()[0], *given]]


def test_an_editor_that_cannot_be_started_is_named(notes):
    code, seen = shown(notes, "search", "--open", "boiler", environment={"VISUAL": "/none/vim"})
    assert code == 2
    assert "error: the editor '/none/vim' cannot be started" in bare(seen)


def test_ctrl_c_ends_a_watch_without_a_traceback(notes):
    with Terminal("watch", cwd=notes, environment=PLAIN) as terminal:
        terminal.wait_for("note: watching").interrupt()
        assert terminal.end() == 0
        assert "Traceback" not in terminal.seen


KEY = "- The spare key is with Mrs. Groen."


def memory_of(notes):
    return (notes / "MEMORY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("answer", "code"), [("y\r", 0), ("\r", 2), (None, 130)])
def test_a_person_is_asked_in_place_of_a_hash(notes, answer, code):
    before = memory_of(notes)
    with Terminal("delete", "MEMORY.md#L4", cwd=notes, environment=PLAIN) as terminal:
        terminal.wait_for("Delete MEMORY.md#L4? [y/N]:")
        assert f"- {KEY}" in bare(terminal.seen)
        assert memory_of(notes) == before
        terminal.interrupt() if answer is None else terminal.type(answer)
        assert terminal.end() == code
        assert "Traceback" not in terminal.seen
    assert (KEY in memory_of(notes)) == (code != 0)


def test_an_edit_shows_what_goes_and_what_comes(notes):
    with Terminal("edit", "MEMORY.md#L4", "The spare key is with Eva.", cwd=notes, environment=PLAIN) as terminal:
        terminal.wait_for("Change MEMORY.md#L4? [y/N]:")
        assert f"- {KEY}\n+ The spare key is with Eva.\n" in bare(terminal.seen)
        terminal.type("y\r")
        assert terminal.end() == 0
    assert "Eva" in memory_of(notes)


def test_what_another_has_changed_while_the_question_stands_is_not_overwritten(notes):
    with Terminal("delete", "MEMORY.md#L4", cwd=notes, environment=PLAIN) as terminal:
        terminal.wait_for("[y/N]:")
        (notes / "MEMORY.md").write_text(memory_of(notes).replace("Groen", "Bakker"), encoding="utf-8")
        terminal.type("y\r")
        assert terminal.end() == 2
    assert "Bakker" in memory_of(notes)


@pytest.fixture
def writes(tmp_path):
    """An editor that puts a text in the place of what it is given, and keeps what that was."""

    def saving(text):
        script, before = tmp_path / "editor.py", tmp_path / "before"
        script.write_text(
            "import pathlib, sys, os\nfile = pathlib.Path(sys.argv[1])\n"
            f"pathlib.Path({str(before)!r}).write_text(file.read_text())\n"
            f"file.write_text({text!r})\nos.utime(file, (2e9, 2e9))\n"
        )
        return {**PLAIN, "VISUAL": "", "EDITOR": f"{sys.executable} {script}"}, before

    return saving


def test_lines_are_edited_in_the_editor_and_then_confirmed(notes, writes):
    environment, before = writes("- Eva has the spare key.\n")
    with Terminal("edit", "MEMORY.md#L4", cwd=notes, environment=environment) as terminal:
        terminal.wait_for("Change MEMORY.md#L4?").type("y\r")
        assert terminal.end() == 0
    assert before.read_text().rstrip("\n") == KEY
    assert memory_of(notes).endswith("planes.\n- Eva has the spare key.\n")


def test_lines_with_a_masked_part_are_not_put_into_an_editor(notes, writes):
    secret = "- The token is ghp_" + "a1B2" * 9 + "."
    (notes / "MEMORY.md").write_text(f"{secret}\n", encoding="utf-8")
    environment, before = writes("x")
    code, seen = shown(notes, "edit", "MEMORY.md#L1", environment=environment)
    assert code == 2
    assert "has parts that are masked here" in bare(seen)
    assert not before.exists()
    assert memory_of(notes) == f"{secret}\n"


def test_lines_of_an_encrypted_note_are_not_put_into_an_editor(notes, writes):
    environment, before = writes("x")
    environment["OPENCLAW_MEMORY_KEY"] = "ab" * 32
    for arguments in (("encrypt",), ("encrypt", "MEMORY.md")):
        assert shown(notes, *arguments, environment=environment)[0] == 0
    code, seen = shown(notes, "edit", "MEMORY.md.age#L4", environment=environment)
    assert code == 2
    assert "MEMORY.md.age is encrypted" in bare(seen)
    assert not before.exists()


def test_a_note_is_written_in_the_editor(notes, writes):
    environment, before = writes("Anna moved the launch.\n\nTo Friday.\n")
    code, _ = shown(notes, "append", "--edit", "--date", "2026-03-01", "Anna", environment=environment)
    assert code == 0
    assert before.read_text() == "Anna\n"
    assert "Anna moved the launch.\n\nTo Friday.\n" in (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")


def test_a_note_that_is_not_saved_is_not_written(notes, writes):
    environment, _ = writes("\n")
    code, seen = shown(notes, "append", "--edit", "--date", "2026-03-01", environment=environment)
    assert code == 2
    assert "nothing was saved in the editor" in bare(seen)
    assert not (notes / "memory/2026-03-01.md").exists()


def test_the_picker_searches_as_is_typed_and_prints_what_is_chosen(notes):
    pytest.importorskip("prompt_toolkit")
    with Terminal("find", cwd=notes, environment=PLAIN, columns=90, lines=30) as terminal:
        terminal.wait_for("Enter opens").type("boiler")
        terminal.wait_for("memory/household.md#L").wait_for("Van Dam")
        terminal.type("\x19")
        assert terminal.end() == 0
    assert re.search(r"memory/household\.md#L\d\S*\s*\Z", bare(terminal.seen))


def test_the_picker_opens_what_is_chosen_in_the_editor(notes, tmp_path):
    pytest.importorskip("prompt_toolkit")
    vim = tmp_path / "vim"
    vim.write_text('#!/bin/sh\necho "edited: $*"\n', encoding="utf-8")
    vim.chmod(0o755)
    environment = {**PLAIN, "VISUAL": str(vim)}
    with Terminal("find", '"spare key"', cwd=notes, environment=environment, columns=40, lines=20) as terminal:
        terminal.wait_for("MEMORY.md#L").type("\x1b[B\r").wait_for("edited: +")
        assert terminal.end() == 0


@pytest.mark.parametrize(("keys", "code"), [("\x03", 130), ("\x1b", 1), ("\x04", 1)])
def test_the_picker_ends_without_a_choice(notes, keys, code):
    pytest.importorskip("prompt_toolkit")
    with Terminal("find", "boiler", cwd=notes, environment=PLAIN) as terminal:
        terminal.wait_for("Enter opens").type(keys)
        assert terminal.end() == code
        assert "Traceback" not in terminal.seen


def completed(shell_words, notes, environment):
    """What click completes in bash for words, the last of which is unfinished."""
    words = ["openclaw-memory", *shell_words]
    environment = {**os.environ, **environment, "_OPENCLAW_MEMORY_COMPLETE": "bash_complete"}
    environment |= {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    code = "from openclaw_memory.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=notes, env=environment, capture_output=True, text=True, check=False
    )
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_commands_options_choices_and_workspaces_are_completed(notes, tmp_path):
    config = tmp_path / "config"
    file = config / "openclaw-memory/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[workspaces]\nhome = "{notes}"\nharbour = "{notes}"\n', encoding="utf-8")
    where = {"XDG_CONFIG_HOME": str(config)}
    assert {"search", "snapshots", "status"} <= completed(["s"], notes, where)
    assert completed(["search", "--so"], notes, where) == {"--source"}
    assert completed(["search", "--source", "s"], notes, where) == {"sessions"}
    if sys.platform == "linux":
        assert {"home", "harbour"} <= completed(["search", "-w", "h"], notes, where)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one(run, shell):
    script = run("completion", shell).out
    assert "_OPENCLAW_MEMORY_COMPLETE" in script
    assert f"{shell}_complete" in script
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
