"""A host's own settings name the memory afterwards, and hold everything else that they held."""

import json
import os
import stat
import sys
from pathlib import Path

import anyio
import pytest

from openclaw_memory.cli import units
from openclaw_memory.cli.hosts import HOSTS
from openclaw_memory.cli.jsonc import read

FILES = {
    ("claude-desktop", "linux"): ".config/Claude/claude_desktop_config.json",
    ("claude-desktop", "darwin"): "Library/Application Support/Claude/claude_desktop_config.json",
    ("claude-desktop", "win32"): "AppData/Roaming/Claude/claude_desktop_config.json",
    ("claude-code", "linux"): ".claude.json",
    ("cursor", "darwin"): ".cursor/mcp.json",
    ("vscode", "linux"): ".config/Code/User/mcp.json",
    ("vscode", "darwin"): "Library/Application Support/Code/User/mcp.json",
    ("vscode", "win32"): "AppData/Roaming/Code/User/mcp.json",
    ("zed", "darwin"): ".config/zed/settings.json",
    ("zed", "win32"): "AppData/Roaming/Zed/settings.json",
    ("opencode", "linux"): ".config/opencode/opencode.json",
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in ("APPDATA", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "my notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Memory\n\n- The harbour is Den Helder.\n")
    return folder


def servers(host, file):
    return read(file.read_text(encoding="utf-8")).value[HOSTS[host].servers]


@pytest.mark.parametrize(("host", "system"), FILES)
def test_each_host_has_its_file_on_each_system(host, system, home, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    assert HOSTS[host].file() == home / FILES[host, system]


def test_folders_of_the_environment_are_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert HOSTS["opencode"].file() == tmp_path / "config/opencode/opencode.json"
    assert HOSTS["claude-code"].file() == tmp_path / "claude/.claude.json"
    (tmp_path / "config/opencode").mkdir(parents=True)
    (tmp_path / "config/opencode/opencode.jsonc").write_text("{}")
    assert HOSTS["opencode"].file().suffix == ".jsonc"


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_connected_once_and_what_it_starts_answers(host, notes, run):
    first = run("connect", host, "--workspace", notes)
    assert (first.code, "Added the memory" in first.out) == (0, True)
    file = HOSTS[host].file()
    there = file.read_bytes()
    again = run("connect", host, "--workspace", notes)
    assert (again.code, "already" in again.out, file.read_bytes()) == (0, True, there)

    entry = servers(host, file)["openclaw-memory"]
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert command[-3:] == ["mcp", "--workspace", str(notes)]
    assert Path(command[0]).is_absolute()


def test_what_is_written_starts_a_server_that_finds_the_notes(notes, run):
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    run("connect", "cursor", "--workspace", notes)
    entry = servers("cursor", HOSTS["cursor"].file())["openclaw-memory"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    async def ask():
        started = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment)
        async with Client(stdio_client(started, errlog=log)) as client:
            return await client.call_tool("memory_search", {"query": "Which harbour?"})

    with (notes.parent / "log").open("w") as log:  # what pytest has in the place of stderr is no file
        assert "Den Helder" in json.dumps(anyio.run(ask).structured_content)


def test_other_servers_comments_mode_and_links_stay(home, notes, run):
    real = home / "dotfiles" / "mcp.json"
    real.parent.mkdir(parents=True)
    text = '{\n  // mine\n  "servers": {\n    "other": {"command": "x"}, // keep\n  },\n  "inputs": []\n}\n'
    real.write_text(text)
    real.chmod(0o640)
    file = HOSTS["vscode"].file()
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    assert run("connect", "vscode", "--workspace", notes).code == 0
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    new = real.read_text()
    assert servers("vscode", real)["other"] == {"command": "x"}
    assert [line for line in text.splitlines() if line not in new.splitlines()] == []
    assert [one.name for one in real.parent.iterdir()] == ["mcp.json"]


def test_our_own_entry_is_updated_and_keeps_what_the_user_added(notes, run):
    run("connect", "cursor", "--workspace", notes)
    file = HOSTS["cursor"].file()
    settings = json.loads(file.read_text())
    settings["mcpServers"]["openclaw-memory"] |= {"env": {"A": "b"}, "args": ["mcp", "--workspace", "/elsewhere"]}
    file.write_text(json.dumps(settings))
    outcome = run("connect", "cursor", "--workspace", notes, "--json")
    assert json.loads(outcome.out)["outcome"] == "updated"
    entry = servers("cursor", file)["openclaw-memory"]
    assert (entry["env"], entry["args"][-1]) == ({"A": "b"}, str(notes))


def test_comments_in_our_own_entry_stay(notes, run):
    file = HOSTS["cursor"].file()
    file.parent.mkdir(parents=True)
    program = '"command": "/old/openclaw-memory", "args": ["mcp"]'
    file.write_text(f'{{"mcpServers": {{"openclaw-memory": {{\n  {program},\n  "env": {{"A": "b"}} // why\n}}}}}}')
    assert run("connect", "cursor", "--workspace", notes).code == 0
    assert '"env": {"A": "b"} // why\n' in file.read_text()
    assert servers("cursor", file)["openclaw-memory"]["args"][-1] == str(notes)
    assert run("connect", "cursor", "--workspace", notes, "--json").out.count('"unchanged"') == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {"openclaw-memory": {"command": "npx", "args": ["other"]}}}', "--name"),
        ('{"mcpServers": {"openclaw-memory": {"command": "/bin/openclaw-memory", "args": 5}}}', "--name"),
        ('{"mcpServers": [', "no JSON at line 1"),
        ('{"mcpServers": []}', "mcpServers is no object"),
        ("[]", "is no object"),
        ('{"mcpServers": ' * 5000, "left as it is"),
        ("\xff\xfe", "left as it is"),
    ],
)
def test_what_is_not_understood_or_not_ours_is_left_alone(text, why, notes, run):
    file = HOSTS["cursor"].file()
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    outcome = run("connect", "cursor", "--workspace", notes)
    assert (outcome.code != 0, why in outcome.err, "--print" in outcome.err) == (True, True, True)
    assert file.read_bytes() == text.encode("latin-1")
    if "npx" in text:
        assert run("connect", "cursor", "--workspace", notes, "--name", "notes").code == 0
        assert sorted(servers("cursor", file)) == ["notes", "openclaw-memory"]


@pytest.mark.parametrize("host", HOSTS)
def test_arguments_that_the_user_has_added_stay(host, notes, run, tmp_path):
    run("connect", host, "--workspace", notes)
    file = HOSTS[host].file()
    written = file.read_text().replace('"mcp",', '"mcp", "--read-only", "--session-key", "a",')
    file.write_text(written)
    run("connect", host, "--workspace", notes)
    entry = servers(host, file)["openclaw-memory"]
    words = entry["command"] if isinstance(entry["command"], list) else entry["args"]
    assert words[words.index("mcp") :] == ["mcp", "--workspace", str(notes), "--read-only", "--session-key", "a"]
    there = file.read_bytes()
    run("connect", host, "--workspace", notes)
    assert file.read_bytes() == there
    run("connect", host, "--workspace", tmp_path)
    assert "--read-only" in file.read_text()


@pytest.mark.parametrize("host", HOSTS)
def test_printing_writes_nothing(host, home, notes, run):
    outcome = run("connect", host, "--print", "--workspace", notes)
    assert outcome.code == 0
    assert json.loads(outcome.out)[HOSTS[host].servers]["openclaw-memory"]
    assert str(HOSTS[host].file()) in outcome.err
    assert not home.exists()


def test_the_settings_of_a_project_are_written_where_there_are_some(home, notes, run, tmp_path):
    for host in sorted({*HOSTS} - {"claude-desktop"}):
        assert run("connect", host, "--project", tmp_path / "project", "--workspace", notes).code == 0
        assert servers(host, tmp_path / "project" / HOSTS[host].project)["openclaw-memory"]
    assert not home.exists()
    refused = run("connect", "claude-desktop", "--project", tmp_path, "--workspace", notes)
    assert (refused.code, "leave --project out" in refused.err) == (2, True)


def test_the_plugin_of_opencode_is_named_beside_others_and_once(notes, run, tmp_path):
    file = HOSTS["opencode"].file()
    file.parent.mkdir(parents=True)
    file.write_text('{"plugin": ["other"]}')
    for _ in range(2):
        assert run("connect", "opencode", "--plugin", "--workspace", notes).code == 0
        (path, options), other = json.loads(file.read_text())["plugin"]
        assert (Path(path).name, options["workspace"], other) == ("plugin.js", str(notes), "other")
    settings = json.loads(file.read_text())
    settings["plugin"][0][1]["memory"] = {"search": {"maxResults": 3}}
    file.write_text(json.dumps(settings))
    assert run("connect", "opencode", "--plugin", "--workspace", tmp_path).code == 0
    (_, options), other = json.loads(file.read_text())["plugin"]
    assert (options["memory"], options["workspace"], other) == ({"search": {"maxResults": 3}}, str(tmp_path), "other")


def test_the_plugin_of_claude_code_is_installed_by_its_own_commands(notes, run):
    outcome = run("connect", "claude-code", "--plugin", "--workspace", notes, "--json")
    add, install = json.loads(outcome.out)["commands"]
    assert (Path(add.rpartition(" ")[2]) / ".claude-plugin" / "plugin.json").exists()
    assert install.endswith(f"--config workspace='{notes}'")
    assert run("connect", "zed", "--plugin", "--workspace", notes).code == 2


def test_a_folder_that_does_not_exist_is_not_connected_and_is_made_by_what_is_said(run, tmp_path):
    folder = tmp_path / "none yet"
    outcome = run("connect", "zed", "--workspace", folder)
    assert (outcome.code, f"`openclaw-memory init --workspace '{folder}'`" in outcome.err) == (2, True)
    assert run("init", "--workspace", folder).code == 0
    assert run("connect", "zed", "--workspace", folder).code == 0


def test_without_the_script_beside_python_the_module_is_run(monkeypatch, notes, run, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert units.program() == [str(tmp_path / "python"), "-m", "openclaw_memory"]
    run("connect", "zed", "--workspace", notes)
    assert run("connect", "zed", "--workspace", notes).out.endswith(" already.\n")
