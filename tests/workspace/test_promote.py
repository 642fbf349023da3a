import hashlib
import stat

import pytest

from openclaw_memory.errors import ConflictError, InvalidInputError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.notes import Notes

NOTE = "memory/topic.md"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "memory").mkdir()
    return Workspace.open(tmp_path)


def put(workspace, text, path=NOTE):
    (workspace.root / path).write_bytes(text.encode())


def got(workspace, path=NOTE):
    return (workspace.root / path).read_bytes()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_lines_are_kept_in_a_new_long_term_memory(workspace):
    put(workspace, "# Day\n\n\n- Ines likes trains.\n\n")
    kept = Notes(workspace).promote(NOTE, 2, 5)
    assert got(workspace, "MEMORY.md") == b"# Long-term memory\n\n- Ines likes trains.\n"
    assert kept == Excerpt("MEMORY.md", "- Ines likes trains.", 3, 3, hash=digest("- Ines likes trains."))
    assert got(workspace) == b"# Day\n\n\n- Ines likes trains.\n\n"
    assert stat.S_IMODE((workspace.root / "MEMORY.md").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("before", "section", "after"),
    [
        ("# M\n\n- a\n", None, "# M\n\n- a\n- new\n"),
        ("# M\n\ntext\n", None, "# M\n\ntext\n\n- new\n"),
        ("# M\n\n- a", None, "# M\n\n- a\n- new"),
        ("", None, "# Long-term memory\n\n- new\n"),
        ("# M\n\n## A\n\n- a\n\n## B\n\n- b\n", "A", "# M\n\n## A\n\n- a\n- new\n\n## B\n\n- b\n"),
        ("# M\n\n## A\n- a\n## B\n- b\n", "a", "# M\n\n## A\n- a\n- new\n\n## B\n- b\n"),
        ("# M\n\n## A\n\n### Deep\n\n- d\n\n## B\n", "## A", "# M\n\n## A\n\n### Deep\n\n- d\n- new\n\n## B\n"),
        ("# M\n\n## A\n\n## B\n", "A", "# M\n\n## A\n\n- new\n\n## B\n"),
        ("# M\n\n- a\n", "New  one", "# M\n\n- a\n\n## New one\n\n- new\n"),
        ("# M\r\n\r\n- a\r\n", "B", "# M\r\n\r\n- a\r\n\r\n## B\r\n\r\n- new\r\n"),
        ("```\n## A\n```\n", "A", "```\n## A\n```\n\n## A\n\n- new\n"),
        ("\ufeff# A\n", "A", "\ufeff# A\n\n- new\n"),
    ],
)
def test_lines_go_to_the_end_of_their_section(workspace, before, section, after):
    put(workspace, before, "MEMORY.md")
    put(workspace, "- new\n")
    kept = Notes(workspace).promote(NOTE, 1, 1, section=section)
    assert got(workspace, "MEMORY.md").decode() == after
    assert workspace.read_excerpt("MEMORY.md", kept.start_line, 1).hash == kept.hash
    assert kept.text.rstrip("\r") == "- new"


def test_what_is_kept_already_is_not_added_again(workspace):
    put(workspace, "# M\n\n## 08:00 - Trip\n\n- new\n", "MEMORY.md")
    put(workspace, "## 9:05 - Trip\n\n- new\n")
    kept = Notes(workspace).promote(NOTE, 1, 3)
    assert (kept.citation, kept.existed) == ("MEMORY.md#L3-L5", True)
    assert got(workspace, "MEMORY.md") == b"# M\n\n## 08:00 - Trip\n\n- new\n"


def test_lines_that_changed_meanwhile_are_not_kept(workspace):
    put(workspace, "a\n")
    seen = workspace.read_excerpt(NOTE)
    put(workspace, "b\n")
    with pytest.raises(ConflictError):
        Notes(workspace).promote(NOTE, 1, 1, expected=seen)
    assert not (workspace.root / "MEMORY.md").exists()


def test_nothing_to_keep_is_an_error(workspace):
    put(workspace, "\n \n")
    put(workspace, "a\n", "MEMORY.md")
    with pytest.raises(InvalidInputError, match="blank"):
        Notes(workspace).promote(NOTE, 1, 2)
    with pytest.raises(InvalidInputError, match="itself"):
        Notes(workspace).promote("MEMORY.md", 1, 1)
    with pytest.raises(InvalidInputError, match="section is empty"):
        Notes(workspace).promote(NOTE, 1, 1, section=" # ")


KEY = ["-----BEGIN PRIVATE KEY-----", *["MIIEowIBAAKCAQEAsecretsecretsecret"] * 3, "-----END PRIVATE KEY-----"]


@pytest.mark.parametrize("lines", [(1, 1), (2, 3), (5, 5), (1, 5), (1, 7), (7, 7)])
def test_a_secret_stays_where_it_is(workspace, lines):
    put(workspace, "\n".join([*KEY, "plain", "token ghp_0123456789abcdefghijklmnopqrstuvwxyz"]))
    with pytest.raises(InvalidInputError, match="hold a secret"):
        Notes(workspace).promote(NOTE, *lines)
    assert not (workspace.root / "MEMORY.md").exists()
    assert Notes(workspace).promote(NOTE, 6, 6).text == "plain"


def test_what_stands_above_the_text_of_a_document_is_not_kept(workspace):
    put(workspace, '---\nopenclaw_memory: 1\nid: "a"\nembedding: {"vector": "AACAPwAAAAA="}\n---\nThe mill.\n')
    for lines in ((1, 6), (4, 4), (5, 6)):
        with pytest.raises(
            InvalidInputError, match=r"the first 5 lines of memory/topic\.md are front matter of a document"
        ):
            Notes(workspace).promote(NOTE, *lines)
    assert not (workspace.root / "MEMORY.md").exists()
    assert Notes(workspace).promote(NOTE, 6, 6).text == "The mill."
