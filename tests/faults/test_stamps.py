"""A file that was changed behind its stamps is noticed, and one whose stamps alone changed costs no embedding."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw_memory import Memory

OLD, NEW = "The boat is kept in the harbour of Hoorn.", "The boat is kept in the harbour of Texel."


@pytest.fixture
def note(tmp_path):
    file = tmp_path / "notes" / "memory" / "boat.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"# Boat\n\n{OLD}\n")
    os.utime(file, ns=(10**18, 10**18))
    return file


def changed_in_secret(file: Path) -> None:
    """Change a file, but neither its size nor its mtime, as a tool that restores stamps may."""
    stamp = file.stat()
    with file.open("r+") as opened:
        opened.write(f"# Boat\n\n{NEW}\n")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (stamp.st_size, stamp.st_mtime_ns, stamp.st_ino)


@pytest.mark.fault(58)
def test_a_change_of_equal_size_with_a_restored_mtime_is_synced(note):
    with Memory.open(note.parents[1], embedder="hashing") as memory:
        memory.sync()
        changed_in_secret(note)
        assert set(memory.status().dirty) == {"memory/boat.md"}
        assert memory.sync().changed == ("memory/boat.md",)
        assert NEW in memory.search("where is the boat kept")[0].snippet


@pytest.mark.fault(58)
def test_a_search_says_that_it_is_behind_such_a_change(note):
    with Memory.open(note.parents[1], embedder="hashing") as memory:
        memory.sync()
        changed_in_secret(note)
        assert memory.search("where is the boat kept").stale


@pytest.mark.fault(58)
@pytest.mark.parametrize("change", ["mode", "name"])
def test_other_rights_or_another_name_cost_no_embedding(note, change):
    with Memory.open(note.parents[1], embedder="hashing") as memory:
        assert memory.sync().embedded == 1
        if change == "mode":
            note.chmod(0o640)
        else:
            note.rename(note.with_name("ship.md"))
        report = memory.sync()
        assert (report.ok, report.embedded) == (True, 0)
        assert len(memory.search("where is the boat kept")) == 1
