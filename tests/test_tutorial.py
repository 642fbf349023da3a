"""The tutorial's commands do what it says, in their order, from the first to the last."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = re.compile(r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.nightly
def test_the_commands_of_the_tutorial_run_in_their_order_and_print_what_it_says(tmp_path):
    (tmp_path / "vault" / "Projects").mkdir(parents=True)
    (tmp_path / "vault" / "Projects" / "Boat.md").write_text("# Boat\n\nThe hull was painted in May.\n")
    installing, *examples = COMMANDS.findall(TUTORIAL)
    assert "pip install" in installing[0]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for commands, printed in examples:
        shell = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), commands
        assert not printed or done.stdout == printed, commands
