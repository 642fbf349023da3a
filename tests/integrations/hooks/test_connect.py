"""The settings that are printed for a host name the memory, and start a server that finds its notes."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

KEYS = {
    "claude-desktop": "mcpServers",
    "claude-code": "mcpServers",
    "codex": "mcp_servers",
    "cursor": "mcpServers",
    "gemini": "mcpServers",
    "vscode": "servers",
    "zed": "context_servers",
    "opencode": "mcp",
}


@pytest.mark.parametrize("host", KEYS)
def test_the_settings_of_a_host_name_the_memory_by_its_full_path(host, notes, run, monkeypatch):
    monkeypatch.chdir(notes.parent)
    outcome = run("connect", host, "--workspace", notes.name, "--json")
    assert outcome.code == 0
    entry = json.loads(outcome.out)["settings"][KEYS[host]]["openclaw-memory"]
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert command[-3:] == ["mcp", "--workspace", str(notes)]
    assert Path(command[0]).is_absolute()
    assert [one.name for one in notes.parent.iterdir()] == [notes.name]


def test_what_is_printed_is_read_by_codex_and_was_started(notes, run, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    outcome = run("connect", "codex", "--workspace", notes)
    assert (outcome.code, "was started, and answers" in outcome.err) == (0, True)
    assert tomllib.loads(outcome.out)["mcp_servers"]["openclaw-memory"]["args"][-1] == str(notes)


def test_a_server_that_does_not_start_is_told_with_its_error(notes, run, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "wrong.toml").write_text("[defaults]\nchunking = 7\n")
    outcome = run("connect", "cursor", "--workspace", notes, "--config", tmp_path / "wrong.toml")
    assert (outcome.code, "does not answer: error: " in outcome.err) == (1, True)


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
    outcome = run("connect", "zed", "--workspace", folder, "--json")
    assert (outcome.code, f"`openclaw-memory init --workspace '{folder}'`" in outcome.err) == (2, True)
    assert run("init", "--workspace", folder).code == 0
    assert run("connect", "zed", "--workspace", folder, "--json").code == 0
