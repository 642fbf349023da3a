"""The guides cannot lie: their examples run, and their tables are those of the code."""

import itertools
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from adapter_readmes import EXAMPLE
from every_command import COMMANDS

from openclaw_memory import MemoryConfig

ROOT = Path(__file__).parents[1]
# The guide to embedders needs services that are played to it: test_docs.py runs it.
GUIDES = {
    path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.name != "embedders.md"
}
# LlamaIndex looks at each attribute of an agent, old ones too; its Memory leaves a database open, its prompts a loop.
THEIRS = [f"ignore::ResourceWarning:{module}" for module in ("aiosqlite.core", "asyncio.base_events", "socket")]
THEIRS += ["ignore::DeprecationWarning:inspect"]
PLAYED = "import sys\nfrom played_models import SERVICES, played\nsys.modules.update(SERVICES)\n"
SECONDS = 120  # a guide whose watcher never finds the note would wait for ever
BLOCK = re.compile(r"^```(?:sh|bash|shell|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = {
    line
    for text in GUIDES.values()
    for block in BLOCK.findall(text)
    for line in re.findall(r"openclaw-memory (?!-).*", block.replace("\\\n", " "))
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, text in GUIDES.items() if EXAMPLE.search(text)])
def test_the_examples_of_a_guide_run_in_their_order_and_print_what_it_says(tmp_path, name):
    if "import LanceEntries" in GUIDES[name]:
        pytest.importorskip("lancedb", reason="lancedb is not installed: pip install -e '.[lancedb]'")
    examples = EXAMPLE.findall(GUIDES[name])
    script = tmp_path / "guide.py"
    code = "\n".join(code for code, _ in examples)
    if "gpt-5-mini" in code:  # played, so that no key is needed
        code = PLAYED + code.replace('init_chat_model("openai:gpt-5-mini")', "played")
    script.write_text(code, encoding="utf-8")
    places = os.pathsep.join(str(ROOT / name) for name in ("", "adapters", "integrations", "tests"))
    environment = {**os.environ, "PYTHONPATH": places, "PYTHONUTF8": "1"}
    command = [sys.executable, *(f"-W{rule}" for rule in ("error", *THEIRS)), script]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.stderr == ""
    said = done.stdout.replace(time.strftime("%Y-%m-%d"), "2026-11-23")  # the day of the guides
    assert said == "".join(printed for _, printed in examples)


@pytest.mark.parametrize("line", sorted(TYPED))
def test_what_a_guide_has_typed_is_understood(line):
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    _, name, *arguments = itertools.takewhile(lambda word: not set(word) <= set("|&;<>()"), words)
    COMMANDS[name].make_context(name, arguments, resilient_parsing=False)


# --- what is typed, from the first command to the last
@pytest.mark.nightly
def test_the_commands_of_the_tutorial_run_in_their_order_and_print_what_it_says(tmp_path):
    (tmp_path / "vault" / "Projects").mkdir(parents=True)
    (tmp_path / "vault" / "Projects" / "Boat.md").write_text("# Boat\n\nThe hull was painted in May.\n")
    commands = re.compile(r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
    installing, *examples = commands.findall(GUIDES["tutorial.md"])
    assert "pip install" in installing[0]
    for typed, printed in examples:
        done = run_in_shell(["bash", "-euo", "pipefail", "-c", typed], tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), typed
        assert not printed or done.stdout == printed, typed


@pytest.mark.nightly
def test_the_commands_of_the_guide_to_the_terminal_run_and_print_what_it_says(tmp_path):
    blocks = re.findall(r"^```console\n(.*?)^```$", GUIDES["how-to/command-line.md"], re.MULTILINE | re.DOTALL)
    commands = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    # Each command is shown as it is typed, and its output below it.
    script = "\n".join(f"cat <<'typed'\n$ {command}\ntyped\n{command}" for command in commands)
    done = run_in_shell(["sh", "-ec", script], tmp_path)
    assert done.stdout == "".join(blocks), done.stderr
    assert done.returncode == 0


def run_in_shell(command, folder):
    """Run a command of a shell where ours is on the PATH, with settings of its own."""
    (folder / "bin").mkdir(exist_ok=True)
    script = folder / "bin" / "openclaw-memory"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m openclaw_memory "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    path = os.pathsep.join([str(script.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "XDG_CONFIG_HOME": str(folder / "config")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_settings_of_the_guide_to_the_terminal_can_be_loaded(tmp_path):
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", GUIDES["how-to/command-line.md"], re.MULTILINE | re.DOTALL)
    (tmp_path / "config.toml").write_text(settings, encoding="utf-8")
    assert MemoryConfig.from_toml(tmp_path / "config.toml").search.max_results == 8
    assert tomllib.loads(settings)["workspaces"][tomllib.loads(settings)["workspace"]] == "~/notes"
