import hashlib

import pytest

from openclaw_memory.errors import NotFoundError, WorkspaceError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import Workspace


def test_a_missing_folder_is_an_error_that_says_how_to_make_one(tmp_path):
    with pytest.raises(
        WorkspaceError, match=r"gone does not exist: correct its path, or create it with `openclaw-memory init"
    ):
        Workspace.open(tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "words"), [("link", "is not a folder"), ("loop", "cannot be reached"), ("a\0b", "cannot be reached")]
)
def test_what_cannot_be_a_workspace_says_why(tmp_path, name, words):
    (tmp_path / "link").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(WorkspaceError, match=words):
        Workspace.open(f"{tmp_path}/{name}")


def test_an_excerpt_starts_where_it_is_asked_to(tmp_path):
    (tmp_path / "MEMORY.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    memory = Workspace.open(tmp_path)
    digest = hashlib.sha256(b"two").hexdigest()
    assert memory.read_excerpt("./MEMORY.md", start=2, lines=1) == Excerpt("MEMORY.md", "two", 2, 2, 3, hash=digest)
    assert memory.read_excerpt("MEMORY.md").text == "one\ntwo\nthree"
    assert memory.read("MEMORY.md") == "one\ntwo\nthree\n"


def test_a_start_beyond_the_end_says_how_long_the_file_is(tmp_path):
    (tmp_path / "MEMORY.md").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(NotFoundError, match=r"MEMORY\.md has 2 lines, none numbered 3"):
        Workspace.open(tmp_path).read_excerpt("MEMORY.md", start=3)


def test_an_excerpt_shows_no_secret_and_has_the_hash_of_the_lines_as_they_are(tmp_path):
    token = "ghp_" + "a1B2" * 9
    (tmp_path / "MEMORY.md").write_text(f"one\nuse {token} now\nthree\n")
    memory = Workspace.open(tmp_path)
    excerpt = memory.read_excerpt("MEMORY.md", start=2, lines=1)
    assert excerpt.text == "use ghp_a1…a1B2 now"
    assert excerpt.hash == hashlib.sha256(f"use {token} now".encode()).hexdigest()
    assert token in memory.read("MEMORY.md")
