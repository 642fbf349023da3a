"""Which folder of notes a command works on: named, in the environment, above the current folder, or by default."""

import json
import os

import pytest

from openclaw_memory.cli import find_workspace


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """Writes the user's settings; there are none before."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(find_workspace, "locate_settings", lambda: tmp_path / "config/openclaw-memory/config.toml")
    monkeypatch.delenv("OPENCLAW_MEMORY_WORKSPACE", raising=False)

    def write(text):
        file = find_workspace.locate_settings()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    return write


def found(run, *options):
    shown = run("search", "--json", *options, "Who services the boiler?")
    return {one["path"] for one in json.loads(shown.out)["results"]}


@pytest.mark.parametrize("below", ["memory", "memory/deep/er", "docs/notes"])
def test_a_search_below_a_workspace_finds_the_workspace_above(run, notes, monkeypatch, below):
    (notes / below).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(notes / below)
    assert "memory/household.md" in found(run)
    assert not (notes / below / ".memory").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system knows no owners")
@pytest.mark.parametrize("theirs", ["folder", "MEMORY.md"])
def test_what_others_have_put_above_is_no_workspace_of_this_user(notes, monkeypatch, theirs):
    looked_up = os.stat

    def as_another(path, *arguments, **options):
        found = looked_up(path, *arguments, **options)
        is_theirs = str(path) == str(notes if theirs == "folder" else notes / theirs)
        return os.stat_result([*found[:4], os.geteuid() + 1, *found[5:]]) if is_theirs else found

    (notes / "docs").mkdir()
    assert find_workspace.find_workspace_above(notes / "docs") == notes
    monkeypatch.setattr(os, "stat", as_another)
    assert find_workspace.find_workspace_above(notes / "docs") is None


@pytest.mark.parametrize("options", [[], ["--no-sync"], ["--json"]])
def test_a_search_in_a_folder_that_is_no_workspace_leaves_nothing_there(run, tmp_path, monkeypatch, options):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    outcome = run("search", *options, "anything")
    assert outcome.code == 1
    assert "holds no memory file yet: add a note" in outcome.out + outcome.err
    assert "sync" not in (outcome.out + outcome.err).replace("sync_error", "")
    assert not list(folder.iterdir())


def test_the_environment_names_the_workspace(run, notes, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENCLAW_MEMORY_WORKSPACE", str(notes))
    assert "memory/household.md" in found(run)


def test_a_workspace_has_a_name_and_one_is_the_default(run, notes, settings, monkeypatch, tmp_path):
    settings(f'workspace = "home"\n[workspaces]\nhome = "{notes}"\nother = "{tmp_path / "other"}"\n')
    monkeypatch.chdir(tmp_path)
    assert "memory/household.md" in found(run)
    assert "memory/household.md" in found(run, "-w", "home")
    (tmp_path / "other/memory").mkdir(parents=True)
    (tmp_path / "other/memory/work.md").write_text("The boiler of the office is serviced by Bo.\n", encoding="utf-8")
    assert found(run, "--workspace", "other") == {"memory/work.md"}
    monkeypatch.setenv("OPENCLAW_MEMORY_WORKSPACE", "other")
    assert found(run) == {"memory/work.md"}
    monkeypatch.chdir(notes)
    assert found(run) == {"memory/work.md"}, "the environment goes before the current folder"


def test_a_new_workspace_is_made_where_one_is_whatever_lies_above(run, notes, monkeypatch):
    (notes / "inner").mkdir()
    monkeypatch.chdir(notes / "inner")
    assert run("init").code == 0
    assert (notes / "inner/MEMORY.md").is_file()


def test_an_unknown_name_is_an_error_that_names_the_nearest(run, notes, settings):
    settings(f'[workspaces]\nhome = "{notes}"\n')
    outcome = run("search", "-w", "hone", "boiler")
    assert outcome.code == 2
    assert "--workspace is 'hone', which is not a folder and not a workspace of" in outcome.err
    assert "home" in outcome.err.rpartition("config.toml")[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workspace = 3\n", "workspace must be a name or a folder, not 3"),
        ('[workspaces]\n"a/b" = "x"\n', "names without a slash"),
        ("workspaces = 3\n", "names without a slash"),
        ("workspace = \n", "cannot be read as TOML"),
    ],
)
def test_settings_that_cannot_be_read_are_an_error_that_names_the_file(run, settings, tmp_path, text, words):
    settings(text)
    outcome = run("search", "-w", tmp_path, "boiler")
    assert outcome.code == 2
    assert words in outcome.err
    assert "config.toml" in outcome.err


def test_the_users_settings_hold_for_every_memory_unless_others_are_named(run, notes, settings, tmp_path):
    settings('[defaults]\nembedding.provider = "none"\n')
    assert json.loads(run("status", "-w", notes, "--json").out)["requested_provider"] == "none"
    other = tmp_path / "other.toml"
    other.write_text("[defaults]\n", encoding="utf-8")
    assert json.loads(run("status", "-w", notes, "--json", "-c", other).out)["requested_provider"] == "static"
