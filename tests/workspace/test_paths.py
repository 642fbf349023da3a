import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import OpenClawMemoryError, PathNotAllowedError
from openclaw_memory.workspace.files import WorkspaceFiles


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("USER.md", "USER.md"),
        ("memory.md", "memory.md"),
        (" ./memory//a.md \n", "memory/a.md"),
        ("memory/a.md/", "memory/a.md"),
        ("memory/sub/../a.md", "memory/a.md"),
        ("memory/../MEMORY.md", "MEMORY.md"),
        ("notes/../memory/a.md", "memory/a.md"),
        ("{root}/memory/a.md", "memory/a.md"),
        ("{root}/../{name}/MEMORY.md", "MEMORY.md"),
        ("memory/a\\b.md", "memory/a\\b.md"),
    ],
)
def test_a_path_is_resolved_by_its_letters(tmp_path, path, canonical):
    given_path = path.format(root=tmp_path, name=tmp_path.name)
    assert WorkspaceFiles(tmp_path).locate(given_path).path == canonical


@pytest.mark.parametrize(
    ("extra", "path", "canonical"),
    [
        ("../ext", "../ext/sub/x.md", "../ext/sub/x.md"),
        ("../ext/", "../ext/x.md", "../ext/x.md"),
        ("../ext/x.md", "../ext/x.md", "../ext/x.md"),
        ("notes", "notes/x.md", "notes/x.md"),
        (".", "deep/down/x.md", "deep/down/x.md"),
        ("~/kept", "{home}/kept/x.md", "{home_from_root}/kept/x.md"),
    ],
)
def test_extra_paths_are_allowed_and_have_one_name(tmp_path, monkeypatch, extra, path, canonical):
    home = tmp_path / "home"
    root = tmp_path / "ws"
    monkeypatch.setenv("HOME", str(home))
    names = {"home": home, "home_from_root": os.path.relpath(home, root)}
    assert WorkspaceFiles(root, FilesConfig(extra_paths=(extra,))).locate(
        path.format(**names)
    ).path == canonical.format(**names)


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ("../ext", "../extra/x.md"),
        ("../ext", "../ext/../other/x.md"),
        ("../ext", "../ext/x.text"),
        ("../ext/x.md", "../ext/x.md/y/../../z.md"),
        (".", "../x.md"),
        (".", ".memory/x.md"),
        ("..", "../other/x.md"),
        ("", "x.md"),
        (" ", "x.md"),
    ],
)
def test_an_extra_path_opens_nothing_beside_it(tmp_path, extra, path):
    with pytest.raises(PathNotAllowedError):
        WorkspaceFiles(tmp_path, FilesConfig(extra_paths=(extra,))).locate(path)


@given(st.text(st.sampled_from("./\\ ~aM\0é") | st.characters(), max_size=12).map(lambda tail: f"memory/{tail}.md"))
def test_whatever_is_allowed_lies_in_the_workspace(tmp_path_factory, path):
    root = tmp_path_factory.getbasetemp()
    try:
        place = WorkspaceFiles(root).locate(path)
    except OpenClawMemoryError:
        return
    assert place.base == str(root)
    assert not {"", ".", ".."} & set(place.parts)
    assert place.path.startswith("memory/") or place.path in {"MEMORY.md", "USER.md", "memory.md"}


@pytest.mark.parametrize(
    ("include", "exclude", "kept"),
    [
        ((), (), {"MEMORY.md", "memory/a.md", "memory/old/b.md", "../ext/c.md"}),
        ((), ("old/",), {"MEMORY.md", "memory/a.md", "../ext/c.md"}),
        ((), ("/memory/**", "!/memory/a.md"), {"MEMORY.md", "memory/a.md", "../ext/c.md"}),
        (("memory/*.md",), (), {"memory/a.md"}),
        (("memory/**/*.md",), ("b.md",), {"memory/a.md"}),
        (("../ext/*.md", "/*.md"), (), {"MEMORY.md", "../ext/c.md"}),
    ],
)
def test_globs_choose_as_in_a_gitignore_file(tmp_path, include, exclude, kept):
    files = WorkspaceFiles(tmp_path, FilesConfig(include=include, exclude=exclude))
    every = ["MEMORY.md", "memory/a.md", "memory/old/b.md", "../ext/c.md"]
    assert {path for path in every if files.is_included(path)} == kept
