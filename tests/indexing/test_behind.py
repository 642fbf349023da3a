"""Why a file is dirty: each reason is told of exactly the files that have it, and never of one the index follows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pytest

from openclaw_memory.indexing.status import CHANGED, GONE, NEW, why_behind
from openclaw_memory.types import FileRecord


@pytest.fixture
def synced(place):
    """Three notes, old enough to be beyond doubt, and their index."""
    for name in ("MEMORY.md", "memory/a.md", "memory/b.md"):
        os.utime(place.write(name, f"memo {name}"), (1_790_000_000, 1_790_000_000))
    assert place.sync().ok
    return place


def why(place, failed: Mapping[str, str] | None = None, known: Mapping[str, FileRecord] | None = None):
    return why_behind(place.workspace, place.workspace.scan(), known or place.store.files(), failed or {})


def in_doubt(place) -> dict[str, FileRecord]:
    """What the index knows, as if each file had been read right after it was written."""
    return {path: replace(record, checked_ns=record.mtime_ns) for path, record in place.store.files().items()}


def test_new_changed_and_gone_files_are_told_apart(synced):
    synced.write("memory/new.md", "memo")
    synced.write("memory/a.md", "memo", "more")
    (synced.root / "memory/b.md").unlink()
    assert why(synced) == {"memory/a.md": CHANGED, "memory/b.md": GONE, "memory/new.md": NEW}


def test_a_file_in_doubt_is_behind_only_if_its_text_is_another_one(synced):
    known = in_doubt(synced)
    assert why(synced, known=known) == {}
    file = synced.root / "memory/a.md"
    stamp = file.stat()
    file.write_text(file.read_text().replace("memo", "mime"))
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert why(synced, known=known) == {"memory/a.md": CHANGED}


def test_what_kept_the_last_sync_from_a_file_is_told_as_long_as_it_is_behind(synced):
    failed = {"memory/a.md": "is locked", "memory/b.md": "was locked", "memory/none.md": "is nowhere"}
    synced.write("memory/a.md", "memo", "more")
    assert why(synced, failed) == {"memory/a.md": "failed: is locked"}


def test_what_lies_behind_an_unreadable_folder_is_not_said_to_be_gone(synced):
    scan = synced.workspace.scan()
    scan = replace(scan, files=scan.files[:1], unreadable=("memory",))
    found = why_behind(synced.workspace, scan, synced.store.files(), {})
    assert found == {"memory/a.md": "cannot be looked at", "memory/b.md": "cannot be looked at"}
