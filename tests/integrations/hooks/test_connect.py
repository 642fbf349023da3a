"""The settings that are printed for a host name the memory, and start a server that finds its notes."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

KEYS = {
    "claude-desktop": "mcpServers",
    "claude-code": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
    "zed": "context_servers",
    "opencode": "mcp",
}


@pytest.mark.parametrize("host", KEYS)
def test_the_settings_of_a_host_name_the_memory_by_its_full_path(host, notes, run, monkeypatch):
    monkeypatch.chdir(notes.parent)
    outcome = run("connect", host, "--workspace", notes.name)
    assert outcome.code == 0
    entry = json.loads(outcome.out)[KEYS[host]]["openclaw-memory"]
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert command[-3:] == ["mcp", "--workspace", str(notes)]
    assert Path(command[0]).is_absolute()
    assert [one.name for one in notes.parent.iterdir()] == [notes.name]


@pytest.mark.nightly
def test_what_is_printed_starts_a_server_that_finds_the_notes(notes, run):
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    settings = json.loads(run("connect", "cursor", "--workspace", notes, "--json").out)["settings"]
    entry = settings["mcpServers"]["openclaw-memory"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    async def ask():
        started = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment)
        async with Client(stdio_client(started, errlog=log)) as client:
            return await client.call_tool("memory_search", {"query": "Which harbour?"})

    with (notes.parent / "log").open("w") as log:  # what pytest has in the place of stderr is no file
        assert "Den Helder" in json.dumps(anyio.run(ask).structured_content)


def test_the_plugin_of_opencode_is_named_with_its_memory(notes, run):
    outcome = run("connect", "opencode", "--plugin", "--workspace", notes)
    ((path, options),) = json.loads(outcome.out)["plugin"]
    assert (Path(path).name, options["workspace"]) == ("plugin.js", str(notes))
    assert Path(path).exists()


def test_the_plugin_of_claude_code_is_installed_by_its_own_commands(notes, run):
    outcome = run("connect", "claude-code", "--plugin", "--workspace", notes, "--json")
    add, install = json.loads(outcome.out)["commands"]
    assert (Path(add.rpartition(" ")[2]) / ".claude-plugin" / "plugin.json").exists()
    assert install.endswith(f"--config workspace='{notes}'")


def test_a_host_without_a_plugin_is_refused(notes, run):
    assert run("connect", "zed", "--plugin", "--workspace", notes).code == 2


def test_a_folder_that_does_not_exist_is_made_by_the_command_that_the_error_names(run, tmp_path):
    folder = tmp_path / "none yet"
    outcome = run("connect", "zed", "--workspace", folder)
    assert (outcome.code, f"`openclaw-memory init --workspace '{folder}'`" in outcome.err) == (2, True)
    assert run("init", "--workspace", folder).code == 0
    assert run("connect", "zed", "--workspace", folder).code == 0
