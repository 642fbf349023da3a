"""Completion in the shells themselves, as a person presses Tab; each is skipped where it is not installed."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from pseudo_terminal import Terminal, bare

PROGRAM = "openclaw-memory"

# What is typed, and the line after Tab: one completion each, which shells write out in full.
LINES = {
    "a command": ("sea", "search"),
    "an option": ("search --so", "search --source"),
    "a choice": ("search --source m", "search --source memory"),
    "a choice after an equals sign": ("search --source=m", "search --source=memory"),
    "a workspace": ("search -w ho", "search -w home"),
    "a workspace after an equals sign": ("search --workspace=ho", "search --workspace=home"),
    "a workspace with a space": ("search -w my", r"search -w my\ notes"),
    "a folder": ("search -w ./har", "search -w ./harbour/"),
    "a folder after an equals sign": ("search --workspace=./har", "search --workspace=./harbour/"),
    "a file": ("search --config set", "search --config settings.toml"),
    "a file after an equals sign": ("search --config=set", "search --config=settings.toml"),
    "after a question in quotes": ('search "spare key" --so', 'search "spare key" --source'),
}
LINE = re.compile("LINE<(.*?)>END", re.DOTALL)


@pytest.fixture
def place(tmp_path):
    """A folder to be in, with what is completed, a program of our name, and settings that name workspaces."""
    here = tmp_path / "here"
    (here / "harbour").mkdir(parents=True)
    (here / "settings.toml").write_text("")
    settings = tmp_path / "config/openclaw-memory/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[workspaces]\nhome = "{here}"\nwork = "{here}"\n"my notes" = "{here}"\n')
    program = tmp_path / "bin" / PROGRAM
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m openclaw_memory "$@"\n')
    program.chmod(0o755)
    return here


def environment(place):
    top = place.parent
    path = f"{top / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "XDG_CONFIG_HOME": str(top / "config"), "XDG_DATA_HOME": str(top / "data"), "HOME": str(top)}


def shell(name):
    if (found := shutil.which(name)) is None:
        pytest.skip(f"{name} is not installed")
    return found


def script(name, place):
    """The script of a shell, in a file."""
    done = subprocess.run(
        [place.parent / "bin" / PROGRAM, "completion", name], capture_output=True, text=True, check=True,
        env={**os.environ, **environment(place)},
    )  # fmt: skip
    file = place.parent / f"script.{name}"
    file.write_text(done.stdout)
    return file


def line_after_tab(terminal, typed):
    """The line that the shell has after Tab; it is bound to show it at Ctrl-X, and an empty one after that."""
    known = len(LINE.findall(bare(terminal.seen)))
    terminal.type(f"{PROGRAM} {typed}\t\x18")
    terminal.wait(lambda: len(LINE.findall(bare(terminal.seen))) > known)
    return LINE.findall(bare(terminal.seen))[-1].removeprefix(f"{PROGRAM} ").rstrip()


def all_lines(terminal):
    return {name: line_after_tab(terminal, typed) for name, (typed, _) in LINES.items()}


WANTED = {name: line for name, (_, line) in LINES.items()}


@pytest.mark.nightly
def test_zsh_completes_what_is_typed(place):
    zsh = shell("zsh")
    begin = f"""
PS1= ; unsetopt prompt_cr prompt_sp; autoload -Uz compinit; compinit -u -D; source {script("zsh", place)}
show() {{ zle -I; print -r -- "LINE<$BUFFER>END"; BUFFER= }}; zle -N show; bindkey '^X' show; echo rea''dy
"""
    with Terminal("-f", "-i", cwd=place, columns=300, environment=environment(place), program=[zsh]) as terminal:
        terminal.type(begin).wait_for("ready")
        assert all_lines(terminal) == WANTED
        terminal.type(f"{PROGRAM} s\t").wait_for("Ask a question; get the lines that answer")


def test_bash_completes_what_is_typed(place):
    bash = shell("bash")
    begin = f"""
PS1= ; source {script("bash", place)}
show() {{ printf 'LINE<%s>END' "$READLINE_LINE"; READLINE_LINE=; }}; bind -x '"\\C-x": show'; echo rea""dy
"""
    inside = {**environment(place), "INPUTRC": "/dev/null"}
    with Terminal(
        "--norc", "--noprofile", "-i", cwd=place, columns=300, environment=inside, program=[bash]
    ) as terminal:
        terminal.type(begin).wait_for("ready")
        assert all_lines(terminal) == WANTED


@pytest.mark.nightly
def test_fish_completes_what_is_typed(place):
    fish, begin = shell("fish"), f"source {script('fish', place)}"

    def completed(typed):
        asks = f"{begin}; complete -C {PROGRAM + ' ' + typed!r}"
        done = subprocess.run(
            [fish, "--no-config", "-c", asks], cwd=place, env={**os.environ, **environment(place)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.splitlines()

    for name, (typed, line) in LINES.items():
        last = line.replace("\\ ", "_").split(" ")[-1].replace("_", " ")
        assert [one.partition("\t")[0] for one in completed(typed)] == [last], name
    assert "--source\tOnly notes, or only transcripts (sessions)." in completed("search --so")
