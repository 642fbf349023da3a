"""Output to a device that is full ends a command in one line, whatever the command, and with an exit code that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")

COMMANDS = {
    "search": ["search", "boiler"],
    "search as JSON": ["search", "--json", "boiler"],
    "status": ["status"],
    "show": ["show", "memory/household.md"],
    "doctor": ["doctor"],
    "an error as JSON": ["show", "--json", "memory/none.md"],
    "help": ["status", "--help"],
}


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    with FULL.open("w") as full:
        return subprocess.run(
            [sys.executable, "-m", "openclaw_memory", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.sampled(1)
def test_a_full_device_ends_a_command_in_one_line(notes, command):
    name, *rest = command
    done = run([name, "--workspace", str(notes), *rest])
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: the output could not be written: No space left on device"
    assert "Traceback" not in done.stderr
    assert not any(line.startswith("Exception ignored") for line in done.stderr.splitlines())
