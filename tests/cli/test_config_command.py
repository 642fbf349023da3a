"""Which settings hold, a file of the user's own, and units for systemd and launchd."""

import json
import plistlib
import shutil
import subprocess
import tomllib

import pytest

from openclaw_memory.cli import places
from openclaw_memory.cli.units import unit


@pytest.fixture
def file(tmp_path, monkeypatch):
    file = tmp_path / "config/config.toml"
    monkeypatch.setattr(places, "settings_file", lambda: file)
    return file


def test_the_settings_that_hold_are_shown_with_where_they_are_from(run, notes, file):
    file.parent.mkdir()
    file.write_text(f'[workspaces]\nhome = "{notes}"\n[defaults]\nsearch.max_results = 3\n', encoding="utf-8")
    (notes / ".memory").mkdir()
    (notes / ".memory/config.toml").write_text('[files]\nexclude = ["drafts/"]\n', encoding="utf-8")
    shown = run("config", "-w", "home").out
    assert f"workspace  {notes} (--workspace names it 'home')" in shown
    assert f"settings   {file}" in shown
    assert "[search]\nmax_results = 3\n" in shown
    assert '[files]\nexclude = ["drafts/"]\n' in shown
    assert "min_score" not in shown
    assert "min_score = 0.06" in run("config", "show", "--all", "-w", "home").out
    known = json.loads(run("config", "--json", "-w", "home").out)
    assert known["settings"] == {"search": {"max_results": 3}, "files": {"exclude": ["drafts/"]}}


def test_a_key_in_the_settings_is_not_shown(run, notes, file):
    file.parent.mkdir()
    file.write_text('[defaults.embedding.providers.openai]\napi_key = "hunter2-hunter2"\n', encoding="utf-8")
    for options in ([], ["--json"], ["--all"]):
        outcome = run("config", "-w", notes, *options)
        assert "api_key" in outcome.out
        assert "hunter2" not in outcome.out + outcome.err


def test_a_file_of_the_users_own_is_begun_once(run, notes, file):
    outcome = run("config", "init", "-w", notes)
    assert outcome.out == f"created {file}\n"
    assert tomllib.loads(file.read_text()) == {
        "workspace": "notes", "workspaces": {"notes": str(notes)}, "defaults": {},
    }  # fmt: skip
    assert file.stat().st_mode & 0o077 == 0
    assert places.user_settings().workspace == "notes"
    before = file.read_bytes()
    assert run("config", "init").out == f"{file} is there already; nothing was changed\n"
    assert file.read_bytes() == before


def test_a_bare_file_is_valid_and_changes_nothing(run, file):
    assert run("config", "init").code == 0
    assert tomllib.loads(file.read_text()) == {"workspaces": {}, "defaults": {}}
    assert places.user_settings() == (file, True, None, {})


def test_a_file_that_cannot_be_made_is_an_error(run, tmp_path, monkeypatch):
    (tmp_path / "config").write_text("in the way", encoding="utf-8")
    monkeypatch.setattr(places, "settings_file", lambda: tmp_path / "config/config.toml")
    outcome = run("config", "init")
    assert outcome.code == 2
    assert "cannot be" in outcome.err


@pytest.mark.parametrize("name", ["notes", "50% off $HOME", 'with "quotes" and \\'])
def test_systemd_understands_the_unit(tmp_path, name):
    (tmp_path / name).mkdir()
    made = unit("systemd", tmp_path / name, ["--workspace", str(tmp_path / name)])
    assert made.text.count("\n[") == 2
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd")
    file = tmp_path / "watch.service"
    file.write_text(made.text, encoding="utf-8")
    done = subprocess.run([analyze, "verify", "--man=no", "--user", file], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "watch.service" in line]
    assert told == []


def test_launchd_gets_a_property_list(run, notes):
    outcome = run("watch", "-w", notes, "--daemon", "launchd")
    plist = plistlib.loads(outcome.out.encode())
    assert plist["ProgramArguments"][-3:] == ["watch", "--workspace", str(notes)]
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert "launchctl bootstrap" in outcome.err


def test_the_unit_alone_goes_to_stdout(run, notes):
    outcome = run("watch", "-w", notes, "--daemon", "systemd")
    assert outcome.out.startswith("[Unit]\n")
    assert outcome.out.endswith("WantedBy=default.target\n")
    assert "systemctl --user enable --now openclaw-memory-notes" in outcome.err
    assert json.loads(run("watch", "-w", notes, "--daemon", "systemd", "--json").out)["text"] == outcome.out
