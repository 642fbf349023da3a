import hashlib
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import python

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, WriteError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import Workspace, atomic
from openclaw_memory.workspace.notes import Notes

NOTE = "memory/topic.md"
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "memory").mkdir()
    return Workspace.open(tmp_path)


def put(workspace, data, path=NOTE):
    (workspace.root / path).write_bytes(data if isinstance(data, bytes) else data.encode())


def got(workspace, path=NOTE):
    return (workspace.root / path).read_bytes()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_lines_that_were_seen_are_replaced_and_the_others_stay(workspace):
    put(workspace, "a\nb\nc\nd\n")
    seen = workspace.read_excerpt(NOTE, 2, 2)
    written = Notes(workspace).edit(NOTE, 2, 3, "B\nand C\nand more\n", expected=seen)
    assert written == Excerpt(NOTE, "B\nand C\nand more", 2, 4, hash=digest("B\nand C\nand more"))
    assert got(workspace) == b"a\nB\nand C\nand more\nd\n"


def test_what_an_edit_returns_allows_the_next_edit(workspace):
    put(workspace, "a\nb\n")
    first = Notes(workspace).edit(NOTE, 1, 1, "x\ny", expected=digest("a"))
    Notes(workspace).edit(NOTE, 1, 2, "z", expected=first)
    assert got(workspace) == b"z\nb\n"


@pytest.mark.parametrize("shown", [12, 20, 64])
def test_the_beginning_of_a_hash_is_enough(workspace, shown):
    put(workspace, "a\nb\n")
    Notes(workspace).edit(NOTE, 1, 1, "x", expected=digest("a")[:shown].upper())
    assert got(workspace) == b"x\nb\n"


def test_an_excerpt_allows_changes_to_any_of_its_lines(workspace):
    put(workspace, "a\nb\nc\nd\n")
    seen = workspace.read_excerpt(NOTE, 1, 3)
    Notes(workspace).delete(NOTE, 2, 2, expected=seen)
    assert got(workspace) == b"a\nc\nd\n"
    with pytest.raises(InvalidInputError, match="not in the excerpt"):
        Notes(workspace).delete(NOTE, 3, 4, expected=seen)


@pytest.mark.parametrize(
    ("before", "first", "last", "text", "after"),
    [
        ("a\r\nb\r\nc\r\n", 2, 2, "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb", 2, 2, "x\ny", "a\r\nx\r\ny"),
        ("a\r\nb", 2, 2, "", "a"),
        ("a\r\nb\r\nc", 1, 2, "x\r\n", "x\r\nc"),
        ("\ufeffa\n", 1, 1, "", "\ufeff"),
        ("a\nb", 2, 2, "", "a"),
        ("a\nb", 1, 2, "\n", "\n"),
        ("a\n\nb", 3, 3, "", "a\n\n"),
    ],
)
def test_marks_newlines_and_the_end_of_a_file_stay_as_they_are(workspace, before, first, last, text, after):
    put(workspace, before)
    seen = workspace.read_excerpt(NOTE, first, last - first + 1)
    if text:
        written = Notes(workspace).edit(NOTE, first, last, text, expected=seen)
        assert (
            workspace.read_excerpt(NOTE, written.start_line, written.end_line - written.start_line + 1).hash
            == written.hash
        )
    else:
        Notes(workspace).delete(NOTE, first, last, expected=seen)
    assert got(workspace).decode() == after


@pytest.mark.fault(12)
@pytest.mark.parametrize("seen", ["hash", "excerpt"])
@pytest.mark.parametrize("now", ["a\nother\nc\n", "a\n", "new\na\nb\nc\n", ""])
def test_lines_that_changed_meanwhile_are_a_conflict_and_stay(workspace, now, seen):
    put(workspace, "a\nb\nc\n")
    excerpt = workspace.read_excerpt(NOTE, 2, 1)
    put(workspace, now)
    with pytest.raises(ConflictError, match="not what you saw") as conflict:
        Notes(workspace).edit(NOTE, 2, 2, "mine", expected=excerpt if seen == "excerpt" else excerpt.hash)
    assert got(workspace).decode() == now
    error = conflict.value
    assert (error.path, error.start_line, error.proposed) == (NOTE, 2, "mine")
    assert error.current == "\n".join(now.split("\n")[:-1][1:2])
    assert "mine" in str(error)
    assert error.current in str(error)


@pytest.mark.fault(12)
def test_a_conflict_shows_what_became_of_an_excerpt(workspace):
    put(workspace, "a\nb\nc\n")
    seen = workspace.read_excerpt(NOTE)
    put(workspace, "a\nB\nc\n")
    with pytest.raises(ConflictError, match=r"--- seen\n.*\n.*\n a\n-b\n\+B\n c"):
        Notes(workspace).delete(NOTE, 1, 1, expected=seen)


@pytest.mark.fault(12)
def test_a_file_that_another_program_changes_at_the_last_moment_is_left_to_it(workspace, monkeypatch):
    put(workspace, "a\n")
    real = atomic._fill

    def fill(*arguments):
        real(*arguments)
        put(workspace, "from an editor\n")

    monkeypatch.setattr(atomic, "_fill", fill)
    with pytest.raises(WriteError, match="changed by another program"):
        Notes(workspace).edit(NOTE, 1, 1, "b", expected=digest("a"))
    assert got(workspace) == b"from an editor\n"
    assert names(workspace) == [".lock", "topic.md"]


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (-1, -1), ("1", 2), (1, 1.5)])
def test_a_range_that_cannot_be_is_an_error(workspace, lines):
    put(workspace, "a\nb\n")
    with pytest.raises(InvalidInputError, match="not a range"):
        Notes(workspace).edit(NOTE, *lines, "x", expected=digest("a"))
    with pytest.raises(InvalidInputError, match="not a range"):
        Notes(workspace).promote(NOTE, *lines)


def test_lines_beyond_the_end_are_an_error(workspace):
    put(workspace, "a\nb\n")
    with pytest.raises(NotFoundError, match="has 2 lines, none numbered 3"):
        Notes(workspace).edit(NOTE, 2, 3, "x", expected=digest("b"))
    with pytest.raises(NotFoundError, match="has 2 lines, none numbered 3"):
        Notes(workspace).promote(NOTE, 2, 3)


@pytest.mark.parametrize("seen", ["", "abc", "not a hash at all", "0" * 65, Excerpt(NOTE, "a", 1, 1), None, 3])
def test_what_was_seen_must_be_told(workspace, seen):
    put(workspace, "a\n")
    with pytest.raises(InvalidInputError, match="not an excerpt or 12 digits"):
        Notes(workspace).edit(NOTE, 1, 1, "x", expected=seen)


@pytest.mark.parametrize(
    ("path", "error", "word"),
    [
        ("sessions/a.jsonl", PathNotAllowedError, "transcript"),
        ("memory/none.md", NotFoundError, "does not exist"),
        ("../outside.md", PathNotAllowedError, "not a memory file"),
        ("SOUL.md", PathNotAllowedError, "agent's own file"),
        ("memory/link.md", PathNotAllowedError, "symlink"),
        ("memory/hard.md", PathNotAllowedError, "hard links"),
        ("memory/utf16.md", WriteError, "utf-16"),
        ("memory/latin.md", WriteError, "cp1252: save it as UTF-8"),
    ],
)
def test_what_is_no_note_of_the_workspace_is_not_edited(workspace, path, error, word):
    root = workspace.root
    put(workspace, "a\n")
    put(workspace, "a\n", "other.txt")
    put(workspace, "a\n".encode("utf-16"), "memory/utf16.md")
    put(workspace, b"\xe9\n", "memory/latin.md")
    (root / "memory/link.md").symlink_to(root / "other.txt")
    os.link(root / "other.txt", root / "memory/hard.md")
    before = {file: file.read_bytes() for file in root.rglob("*.*") if file.is_file()}
    with pytest.raises(error, match=word):
        Notes(workspace).edit(path, 1, 1, "x", expected=digest("a"))
    assert {file: file.read_bytes() for file in before} == before


def test_a_file_outside_of_the_workspace_is_only_read(workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.md").write_text("a\n", encoding="utf-8")
    wider = Workspace.open(workspace.root, FilesConfig(extra_paths=(str(outside),)))
    path = wider.scan().files[-1].path
    with pytest.raises(PathNotAllowedError, match="outside of the workspace"):
        Notes(wider).edit(path, 1, 1, "x", expected=wider.read_excerpt(path))


def names(workspace):
    return sorted(os.listdir(workspace.root / "memory"))


def test_an_edit_keeps_the_mode_and_leaves_nothing_behind(workspace):
    put(workspace, "a\n")
    (workspace.root / NOTE).chmod(0o640)
    Notes(workspace).edit(NOTE, 1, 1, "b", expected=digest("a"))
    assert stat.S_IMODE((workspace.root / NOTE).stat().st_mode) == 0o640
    assert names(workspace) == [".lock", "topic.md"]


def test_a_mask_is_not_written_in_the_place_of_its_secret(workspace):
    put(workspace, f"token {SECRET}\nrest\n")
    seen = workspace.read_excerpt(NOTE)
    assert SECRET not in seen.text
    with pytest.raises(InvalidInputError, match="masks a secret"):
        Notes(workspace).edit(NOTE, 1, 2, seen.text, expected=seen)
    Notes(workspace).edit(NOTE, 2, 2, "changed", expected=seen)
    assert got(workspace).decode() == f"token {SECRET}\nchanged\n"


BODY = [f"MIIEowIBAAKCAQEAsecretsecretsecretsecretsecret{number:02}" for number in range(4)]
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"]


def shows_a_key(*texts):
    return any(line in text for text in texts for line in BODY)


@pytest.mark.parametrize("lines", [(3, 3), (3, 4), (2, 9)])
@pytest.mark.parametrize("seen", ["hash", "excerpt"])
def test_a_conflict_shows_no_part_of_a_private_key(workspace, lines, seen):
    put(workspace, "\n".join(["# keys", "old", *KEY, "end"]))
    known = digest("another") if seen == "hash" else workspace.read_excerpt(NOTE)
    put(workspace, "\n".join(["# keys", *KEY, "end", "new"]))
    with pytest.raises(ConflictError) as conflict:
        Notes(workspace).edit(NOTE, *lines, "x", expected=known)
    assert not shows_a_key(str(conflict.value), conflict.value.current)


@pytest.mark.parametrize(
    ("lines", "end"),
    [((1, 2), KEY[-1:]), ((2, 2), KEY[-1:]), ((3, 4), KEY[-1:]), ((7, 7), KEY[-1:]), ((3, 3), []), ((2, 3), [])],
    ids=["its beginning", "its first line", "its body", "its last line", "a body without end", "a key without end"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_key_is_changed_as_a_whole_or_not_at_all(workspace, lines, end, newline):
    text = newline.join(["# keys", *KEY[:-1], *end, "the end"])
    put(workspace, text)
    with pytest.raises(InvalidInputError, match="part of a secret"):
        Notes(workspace).edit(NOTE, *lines, "x", expected=workspace.read_excerpt(NOTE))
    with pytest.raises(InvalidInputError, match="part of a secret"):
        Notes(workspace).delete(NOTE, *lines, expected=workspace.read_excerpt(NOTE))
    assert got(workspace).decode() == text


contents = st.lists(st.text(st.sampled_from("ab #-\r\0é😀\u2028"), max_size=6), min_size=1, max_size=8)


@given(contents, st.booleans(), st.booleans(), contents, st.data())
def test_an_edit_changes_its_lines_alone(tmp_path_factory, lines, ends, mark, new, data):
    workspace = Workspace.open(tmp_path_factory.mktemp("edits"))
    (workspace.root / "memory").mkdir()
    put(workspace, "\ufeff" * mark + "\n".join(lines) + "\n" * ends)
    # A last line that is blank, and has no newline, is none.
    lines = lines if ends or lines[-1] else lines[:-1]
    if not lines:
        return
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    written = Notes(workspace).edit(
        NOTE, first, last, "\n".join(new) + "\n", expected=workspace.read_excerpt(NOTE, first, last - first + 1)
    )
    text = got(workspace).decode().removeprefix("\ufeff" * mark)
    result = text.removesuffix("\n").split("\n")

    def bare(some):
        return [line.rstrip("\r") for line in some]

    wanted = [line.replace("\0", "\ufffd") for line in new]
    assert result[: first - 1] == lines[: first - 1]
    assert bare(result) == bare([*lines[: first - 1], *wanted, *lines[last:]])
    assert (written.start_line, written.end_line) == (first, first + len(new) - 1)
    assert written.hash == workspace.read_excerpt(NOTE, first, len(new)).hash


MANY_EDITS = """
import sys
from openclaw_memory.errors import ConflictError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.notes import Notes

workspace, done = Workspace.open(sys.argv[1]), 0
while done < 20:
    seen = workspace.read_excerpt("memory/topic.md", 1, 1)
    try:
        Notes(workspace).edit("memory/topic.md", 1, 1, str(int(seen.text) + 1), expected=seen)
        done += 1
    except ConflictError:
        pass
"""


@pytest.mark.fault(10)
def test_processes_that_edit_one_line_at_once_lose_no_edit(workspace):
    put(workspace, "0\nrest\n")
    running = [python(MANY_EDITS, workspace.root, stdout=None) for _ in range(2)]
    assert [process.wait() for process in running] == [0] * 2
    assert got(workspace) == b"40\nrest\n"


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


@pytest.mark.parametrize("lines", [(1, 1), (2, 3), (6, 6), (1, 6), (1, 8), (8, 8)])
def test_a_secret_stays_where_it_is(workspace, lines):
    put(workspace, "\n".join([*KEY, "plain", f"token {SECRET}"]))
    with pytest.raises(InvalidInputError, match="hold a secret"):
        Notes(workspace).promote(NOTE, *lines)
    assert not (workspace.root / "MEMORY.md").exists()
    assert Notes(workspace).promote(NOTE, 7, 7).text == "plain"


def test_what_stands_above_the_text_of_a_document_is_not_kept(workspace):
    put(workspace, '---\nopenclaw_memory: 1\nid: "a"\nembedding: {"vector": "AACAPwAAAAA="}\n---\nThe mill.\n')
    for lines in ((1, 6), (4, 4), (5, 6)):
        with pytest.raises(InvalidInputError, match=r"the first 5 lines of memory/topic\.md are front matter"):
            Notes(workspace).promote(NOTE, *lines)
    assert not (workspace.root / "MEMORY.md").exists()
    assert Notes(workspace).promote(NOTE, 6, 6).text == "The mill."
