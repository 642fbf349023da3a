"""Markdown that is no memory: which files count as it, how much is looked at, and what is advised."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config import Files
from openclaw_memory.errors import PathNotAllowedError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.files import scan
from openclaw_memory.workspace.overlooked import overlooked
from openclaw_memory.workspace.paths import locate

EVERYTHING = Files(extra_paths=(".",))


def lay_out(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    return root


def found(root: Path, rules: Files = EVERYTHING) -> list[str]:
    return [file.path for file in scan(root, rules).files]


def is_readable(root: Path, rules: Files, path: str) -> bool:
    try:
        return locate(root, rules, path).path == path
    except PathNotAllowedError:
        return False


# --- all Markdown of a workspace ---------------------------------------------------------------------------------------

VAULT = ("Welcome.md", "Projects/bridge.md", "memory/2026-11-21.md")
NOT_NOTES = (
    ".obsidian/x.md",
    ".trash/gone.md",
    "code/.venv/lib/x.md",
    "code/node_modules/left-pad/README.md",
    "code/venv/lib/x.md",
    "lib/site-packages/numpy/x.md",
)


def test_the_whole_workspace_as_an_extra_path_leaves_out_hidden_folders_and_those_of_programs(tmp_path):
    lay_out(tmp_path, *VAULT, *NOT_NOTES, "Projects/plan.txt")
    assert sorted(found(tmp_path)) == sorted(VAULT)
    assert [path for path in NOT_NOTES if is_readable(tmp_path, EVERYTHING, path)] == []


@pytest.mark.parametrize("folder", [".obsidian", "code/node_modules", "../.kept"])
def test_such_a_folder_counts_where_it_is_named_itself(tmp_path, folder):
    root = tmp_path / "ws"
    lay_out(root, f"{folder}/x.md", "Welcome.md")
    rules = Files(extra_paths=(".", folder))
    assert sorted(found(root, rules)) == sorted(["Welcome.md", f"{folder}/x.md"])
    assert is_readable(root, rules, f"{folder}/x.md")


NAMES = st.sampled_from(
    ["a", "memory", ".git", ".memory", "node_modules", "MEMORY.md", "memory.md", "b.md", ".c.md", "d"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
EXTRA = st.sampled_from([".", "a", "a/b.md", ".git", "memory", "node_modules", "a/node_modules", ".memory", "d/.git"])


@given(files=st.lists(PATHS, max_size=12), extra=st.lists(EXTRA, max_size=3))
def test_what_is_found_is_what_may_be_read(files, extra):
    with tempfile.TemporaryDirectory() as folder:
        root, rules = Path(folder), Files(extra_paths=tuple(extra))
        for name in files:
            place = root / name
            if not place.exists() and not any(parent.is_file() for parent in place.parents):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("x")
        there = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        assert sorted(found(root, rules)) == sorted(path for path in there if is_readable(root, rules, path))


# --- what is counted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "rules", "count"),
    [
        (VAULT, Files(), 2),
        (VAULT, EVERYTHING, 0),
        (VAULT, Files(extra_paths=("Projects",)), 1),
        (VAULT, Files(exclude=("Projects/",)), 1),
        (NOT_NOTES, Files(), 0),
        (("MEMORY.md", "USER.md", "memory/a.md", "notes.txt"), Files(), 0),
        (("AGENTS.md", "SOUL.md", "TOOLS.md"), Files(), 0),
        (("docs/AGENTS.md",), Files(), 1),
    ],
)
def test_markdown_counts_that_is_no_memory_and_could_be(tmp_path, files, rules, count):
    assert overlooked(lay_out(tmp_path, *files), rules) == count


def test_links_do_not_count(tmp_path):
    lay_out(tmp_path / "far", "a.md")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "folder").symlink_to(tmp_path / "far")
    (tmp_path / "ws" / "link.md").symlink_to(tmp_path / "far" / "a.md")
    assert overlooked(tmp_path / "ws", Files()) == 0


def test_no_more_is_looked_at_than_so_many_names(tmp_path):
    lay_out(tmp_path, *(f"{folder}/{number}.md" for folder in "abcdef" for number in range(10)))
    assert overlooked(tmp_path, Files(), most=20) == 20  # six folders, and two of them
    assert overlooked(tmp_path, Files()) == 60


# --- what is advised ---------------------------------------------------------------------------------------------------


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
    advice = workspace.advice(len(workspace.scan().files))
    assert words.format(root=tmp_path) in advice
    assert bool(advice) is bool(words)


def test_nobody_is_advised_to_index_a_whole_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    advice = Workspace.open(lay_out(tmp_path, *VAULT[:2])).advice(0)
    assert "name the folder of your notes" in advice
    assert "--all-markdown" not in advice
