"""An export holds everything, and an import adds what is missing and overwrites nothing."""

import json
import stat

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import InvalidInputError, NotFoundError, WriteError
from openclaw_memory.types import Document


def files_of(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.suffix in {".md", ".jsonl"}
    }


@pytest.fixture
def filled(tmp_path):
    root = tmp_path / "here"
    root.mkdir()
    with Memory.open(root, embedder=None) as memory:
        (root / "MEMORY.md").write_bytes("# Long\r\n\r\n- Trains, é.\r\n".encode("utf-16"))
        memory.append("One.", date="2026-11-20")
        memory.documents.add([Document("one", "A document.")])
        memory.records.remember("fact", "tea", "green", user_id="anna")
        memory.session_log("talk").append("user", "Hello.")
        with (root / "sessions" / "talk.jsonl").open("ab") as file:
            file.write(b"\xff half a line\n")
        yield memory


def test_what_was_exported_is_imported_byte_for_byte_and_once(filled, tmp_path):
    file, there = tmp_path / "all.jsonl", tmp_path / "there"
    assert len(filled.export(file).files) == 5
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    there.mkdir()
    with Memory.open(there, embedder=None) as memory:
        report = memory.import_(file)
        assert (len(report.added), report.unchanged, report.refused) == (5, (), ())
        assert files_of(there) == files_of(filled.workspace.root)
        assert memory.records.get("fact", "tea", user_id="anna").value == "green"
        again = memory.import_(file)
        assert (again.added, len(again.unchanged), again.refused) == ((), 5, ())


def test_what_differs_is_reported_and_stays(filled, tmp_path):
    filled.export(tmp_path / "all.jsonl")
    filled.append("Two.", date="2026-11-20")
    before = files_of(filled.workspace.root)
    report = filled.import_(tmp_path / "all.jsonl")
    assert [one.path for one in report.refused] == ["memory/2026-11-20.md"]
    assert "says something else" in report.refused[0].reason
    assert files_of(filled.workspace.root) == before


@pytest.mark.parametrize("path", ["../out.md", "/tmp/out.md", "memory/../../out.md", "SOUL.md", "memory/x.py"])
def test_nothing_is_written_where_no_memory_is(filled, tmp_path, path):
    file = tmp_path / "all.jsonl"
    head = {"format": "openclaw-memory-export", "version": 1}
    file.write_text("".join(json.dumps(line) + "\n" for line in (head, {"path": path, "text": "x"})))
    before = files_of(tmp_path)
    assert [one.path for one in filled.import_(file).refused] == [path]
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"path": "MEMORY.md"}', '{"path": 1, "text": "x"}', '{"path":"a","base64":"!"}']
)
def test_a_damaged_file_writes_nothing(filled, tmp_path, line):
    file = tmp_path / "all.jsonl"
    head = '{"format": "openclaw-memory-export", "version": 1}\n'
    file.write_text(f'{head}{{"path": "memory/new.md", "text": "x"}}\n{line}\n')
    with pytest.raises(InvalidInputError):
        filled.import_(file)
    assert not (filled.workspace.root / "memory" / "new.md").exists()
    file.write_text("{}\n")
    with pytest.raises(InvalidInputError, match="no export"):
        filled.import_(file)


def test_what_cannot_be_read_or_written_is_said(filled, tmp_path):
    with pytest.raises(NotFoundError):
        filled.import_(tmp_path / "missing.jsonl")
    with pytest.raises(WriteError):
        filled.export(tmp_path / "missing" / "all.jsonl")


@pytest.mark.parametrize("is_link", [True, False])
def test_what_somebody_has_put_in_the_way_of_an_export_is_not_written_to(filled, tmp_path, is_link):
    theirs, planted = tmp_path / "theirs", tmp_path / ".everything.jsonl.part"
    theirs.touch(mode=0o666)
    if is_link:
        planted.symlink_to(theirs)
    else:
        planted.hardlink_to(theirs)
    file = tmp_path / "everything.jsonl"
    filled.export(file)
    assert theirs.read_bytes() == b""
    assert not file.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_snapshots_are_exported_and_imported_and_others_are_refused(filled, tmp_path):
    file, there = tmp_path / "all.jsonl", tmp_path / "there"
    made = filled.snapshot("agent:talk", [{"role": "user", "content": "Tea?"}])
    assert made.path in filled.export(file).files
    lines = file.read_text().splitlines()
    wrong = made.path.replace("Z-", "Z-7-other-")
    forged = [
        {"path": wrong, "text": json.dumps(made.to_dict() | {"id": "other"})},
        {"path": made.path.replace("2026", "2025"), "text": "{}"},
        {"path": ".memory/snapshots/../config.toml", "text": "x"},
        {"path": ".memory/snapshots/index.sqlite", "text": "x"},
    ]
    file.write_text("\n".join([*lines, *map(json.dumps, forged), ""]))
    there.mkdir()
    with Memory.open(there, embedder=None) as memory:
        report = memory.import_(file)
        assert [one.path for one in report.refused] == [one["path"] for one in forged]
        assert memory.snapshots() == (made,)
        assert (there / made.path).read_bytes() == (filled.workspace.root / made.path).read_bytes()
        assert stat.S_IMODE((there / made.path).stat().st_mode) == 0o600
        assert (there / ".memory" / ".gitignore").exists()
        assert made.path in memory.import_(file).unchanged
