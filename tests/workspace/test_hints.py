"""Markdown that is no memory: which files count as it, how much is looked at, and what is advised."""

from __future__ import annotations

import hashlib
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.path_rules import AGENT_FILES
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import PathNotAllowedError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.notes import Notes

EVERYTHING = FilesConfig(extra_paths=(".",))


def lay_out(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    return root


def found(root: Path, rules: FilesConfig = EVERYTHING) -> list[str]:
    return [file.path for file in Workspace.open(root, rules).scan().files]


def is_readable(root: Path, rules: FilesConfig, path: str) -> bool:
    try:
        return WorkspaceFiles(root, rules).locate(path).path == path
    except PathNotAllowedError:
        return False


# --- all Markdown of a workspace ---

VAULT = ("Welcome.md", "Projects/bridge.md", "memory/2026-11-21.md")
NOT_NOTES = (
    ".obsidian/x.md", ".trash/gone.md", "code/.venv/lib/x.md", "code/node_modules/left-pad/README.md",
    "code/venv/lib/x.md", "lib/site-packages/numpy/x.md",
)  # fmt: skip


def test_the_whole_workspace_as_an_extra_path_leaves_out_hidden_folders_and_those_of_programs(tmp_path):
    lay_out(tmp_path, *VAULT, *NOT_NOTES, "Projects/plan.text")
    assert sorted(found(tmp_path)) == sorted(VAULT)
    assert [path for path in NOT_NOTES if is_readable(tmp_path, EVERYTHING, path)] == []


# --- what is the agent's own
@pytest.mark.parametrize("name", sorted(AGENT_FILES))
def test_the_agents_own_rules_are_no_memory_where_all_markdown_is(tmp_path, name):
    lay_out(tmp_path, name, f"docs/{name}", "Welcome.md")
    assert sorted(found(tmp_path)) == sorted([f"docs/{name}", "Welcome.md"])
    workspace = Workspace.open(tmp_path, EVERYTHING)
    seen = hashlib.sha256(name.encode()).hexdigest()
    for use in (workspace.read, lambda path: Notes(workspace).edit(path, 1, 1, "obey", expected=seen)):
        with pytest.raises(PathNotAllowedError, match="the agent's own"):
            use(f"docs/../{name}")


def test_the_agents_own_rules_are_read_where_they_are_named_themselves_and_changed_nowhere(tmp_path):
    workspace = Workspace.open(lay_out(tmp_path, "AGENTS.md"), FilesConfig(extra_paths=(".", "AGENTS.md")))
    assert [file.path for file in workspace.scan().files] == ["AGENTS.md"]
    seen = workspace.read_excerpt("AGENTS.md")
    for change in (partial(Notes(workspace).edit, text="obey"), Notes(workspace).delete):
        with pytest.raises(PathNotAllowedError, match="the agent's own"):
            change("AGENTS.md", start=1, end=1, expected=seen)
    assert (tmp_path / "AGENTS.md").read_text() == "AGENTS.md\n"


def test_another_spelling_of_the_agents_own_rules_is_not_allowed_either(tmp_path):
    """It opens the same file on disks that ignore case."""
    lay_out(tmp_path, "AGENTS.md", "Tools.md")
    assert not is_readable(tmp_path, EVERYTHING, "agents.md")
    assert found(tmp_path) == ["Tools.md"]
    assert is_readable(tmp_path, EVERYTHING, "Tools.md")


FOLDERS = ("a", "memory", ".git", ".memory", "node_modules", "d")
NAMES = st.sampled_from([*FOLDERS, "MEMORY.md", "memory.md", "b.md", ".c.md", "AGENTS.md", "tools.md"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
EXTRA = st.sampled_from([".", *FOLDERS, "a/b.md", "a/node_modules", "d/.git", "AGENTS.md"])


@given(files=st.lists(PATHS, max_size=12), extra=st.lists(EXTRA, max_size=3))
def test_what_is_found_is_what_may_be_read(files, extra):
    with tempfile.TemporaryDirectory() as folder:
        root, rules = Path(folder), FilesConfig(extra_paths=tuple(extra))
        for name in files:
            place = root / name
            if not place.exists() and not any(parent.is_file() for parent in place.parents):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("x")
        there = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        assert sorted(found(root, rules)) == sorted(path for path in there if is_readable(root, rules, path))


# --- what is advised
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ((), "holds no memory file yet"),
        (("one.md",), "a Markdown file lies in {root} outside of memory/"),
        (VAULT[:2], "2 Markdown files lie in {root} outside of memory/"),
        (("MEMORY.md", "a.md", "b.md"), "2 Markdown files lie in {root}"),
        (("MEMORY.md", "a.md"), ""),
        (("MEMORY.md",), ""),
    ],
)
def test_where_more_lies_outside_of_the_memory_than_in_it_there_is_advice(tmp_path, files, words):
    workspace = Workspace.open(lay_out(tmp_path, *files))
    advice = workspace.suggest_setup(len(workspace.scan().files))
    assert words.format(root=tmp_path) in advice
    assert bool(advice) is bool(words)


def test_nobody_is_advised_to_index_a_whole_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    advice = Workspace.open(lay_out(tmp_path, *VAULT[:2])).suggest_setup(0)
    assert "name the folder of your notes" in advice
    assert "--all-markdown" not in advice
