"""The README cannot lie: its example runs, its commands exist, its links and limits hold."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_memory.cli.commands import commands

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_readme_says(tmp_path):
    (example,) = blocks("python")
    (expected,) = blocks("text")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == expected


def test_the_first_screen_holds_the_commands_and_the_example():
    lines = README.splitlines()
    assert lines.index("```python") < 22
    assert len(lines) <= 180
    assert "pip install . && openclaw-memory demo" in README
    assert 'pip install -e ".[dev]" && pytest -n 2' in README


@pytest.mark.parametrize("command", sorted(commands.commands))
def test_every_command_is_in_the_table(command):
    assert re.search(rf"^\| `{command}\b", README, re.MULTILINE)


def test_every_command_in_the_table_exists():
    named = set(re.findall(r"^\| `([a-z]+)[^|]*\|", README, re.MULTILINE))
    assert named <= set(commands.commands)


def test_every_file_that_is_linked_or_named_exists():
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README)
    named = re.findall(r"`((?:openclaw_memory|tests|benchmarks|adapters|\.ci)/[a-z0-9_./-]*)`", README)
    assert linked
    assert named
    missing = [path for path in [*linked, *named] if not (ROOT / path).exists()]
    assert not missing
