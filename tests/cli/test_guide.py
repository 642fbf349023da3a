"""The guide to the terminal cannot lie: its commands run in their order, and print what it says."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from openclaw_memory import MemoryConfig

GUIDE = (Path(__file__).parents[2] / "docs/how-to/command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="the guide is for a POSIX shell")
def test_the_commands_of_the_guide_run_and_print_what_it_says(tmp_path):
    stand_in = tmp_path / "bin/openclaw-memory"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m openclaw_memory "$@"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    where = {"PATH": f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    commands = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
    # Each command is shown as it is typed, and its output below it.
    script = "\n".join(f"cat <<'typed'\n$ {command}\ntyped\n{command}" for command in commands)
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        cwd=tmp_path,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "".join(BLOCKS), done.stderr
    assert done.returncode == 0


def test_the_settings_of_the_guide_can_be_loaded(tmp_path):
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(settings, encoding="utf-8")
    assert MemoryConfig.from_toml(file).search.max_results == 8
    assert tomllib.loads(settings)["workspaces"][tomllib.loads(settings)["workspace"]] == "~/notes"
