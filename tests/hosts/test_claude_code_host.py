"""The real Claude Code with the plugin: a conversation that is compacted, ends, and is remembered in the next one.

The program is that of the package `claude-agent-sdk`, or the one that CLAUDE_CODE_BINARY names. It runs in a home of its
own and without the environment of this process; its model is a server on this machine.
"""

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from anthropic_server import REPLY, serving

pytestmark = pytest.mark.hosts

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "claude_code"
PACKAGE = "claude-agent-sdk"  # the one of today
FIRST, NEXT = "aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    if named := os.environ.get("CLAUDE_CODE_BINARY"):
        return Path(named)
    folder = tmp_path_factory.mktemp("claude")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    subprocess.run(pip, check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(one for one in wheel.namelist() if one.endswith("_bundled/claude"))
        file = Path(wheel.extract(name, folder))
    file.chmod(0o755)
    return file


class Claude:
    """Claude Code in a project and a home of its own."""

    def __init__(self, binary: Path, root: Path, url: str) -> None:
        self.binary, self.home, self.project = binary, root / "home", root / "project"
        commands = root / "bin"
        for folder in (self.home, self.project, commands):
            folder.mkdir()
        for name, module in (("", "openclaw_memory"), ("-hook", "openclaw_memory_hooks.background")):
            command = commands / f"openclaw-memory{name}"
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            command.chmod(0o755)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{commands}:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in (".", "adapters", "integrations")),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.binary), *arguments],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def say(self, prompt: str, *session: str) -> str:
        return self.run("-p", prompt, *session, "--plugin-dir", str(PLUGIN), "--setting-sources", "project")

    def log(self) -> str:
        return "".join(file.read_text() for file in self.home.rglob("hooks.log"))


@pytest.fixture
def service():
    with serving() as asked:
        yield asked


@pytest.fixture
def claude(binary, tmp_path, service):
    return Claude(binary, tmp_path, service.url)


def test_the_plugin_is_valid_by_the_hosts_own_rules(claude):
    assert "Validation passed" in claude.run("plugin", "validate", str(PLUGIN), "--strict")


def test_a_conversation_that_was_compacted_and_has_ended_is_remembered_in_the_next(claude, service):
    (claude.project / "MEMORY.md").write_text("# Memory\n\n- The user sails from Den Helder.\n")
    assert REPLY in claude.say("When does the ferry to Texel leave? My token=Hk29fjQ03mzLw81xP4", "--session-id", FIRST)
    assert "The user sails from Den Helder." in service.since(0)  # at the start of the session
    claude.say("/compact", "--resume", FIRST)
    before = len(service.requests)
    claude.say("Go on.", "--resume", FIRST)
    going_on = service.since(before)
    assert "They spoke of travel." in going_on
    assert "This conversation was just compacted" in going_on
    assert "User: When does the ferry to Texel leave?" in going_on
    assert "Hk29fjQ03mzLw81xP4" not in going_on
    before = len(service.requests)
    claude.say("What do you know of the ferry to Texel?", "--session-id", NEXT)
    later = service.since(before)
    assert f"sessions/{FIRST}.jsonl#L" in later
    assert REPLY in later
    assert f"{FIRST}.json" in (next((claude.project / "memory").glob("*.md"))).read_text()  # of its snapshot
    kept = [json.loads(line) for line in (claude.project / "sessions" / f"{FIRST}.jsonl").read_text().splitlines()]
    said = [entry["message"]["content"][0]["text"] for entry in kept if entry["type"] == "message"]
    assert [said[1], *said[2:]] == [REPLY, "Go on.", REPLY]
    assert claude.log() == ""


def test_a_project_without_a_memory_is_left_alone(claude):
    assert REPLY in claude.say("Hello", "--session-id", FIRST)
    assert not [*claude.project.iterdir()]


def test_the_plugin_is_installed_and_the_server_started_by_what_connect_says(claude):
    def connect(*arguments: str) -> str:
        command = [sys.executable, "-m", "openclaw_memory", "connect", "claude-code", *arguments]
        return subprocess.run(
            command, cwd=claude.project, env=claude.environment, text=True, stdout=-1, check=True
        ).stdout

    (claude.project / "MEMORY.md").write_text("# Memory\n")
    for command in connect("--plugin", "--workspace", ".").splitlines():
        program, *arguments = shlex.split(command)
        assert program == "claude"
        claude.run(*arguments)
    assert "enabled" in claude.run("plugin", "list")
    settings = claude.home / ".claude.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | json.loads(connect("--workspace", "."))))
    assert "Connected" in claude.run("mcp", "list")
