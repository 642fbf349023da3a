"""A disk that is full, fails or turns read-only, and a system without descriptors: refused in words, and nothing is torn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, traced, why_not_traced

SCRIPT = ROOT / "tests/refusing.py"
# As root of a name space of its own, any user may mount.
MOUNT = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
UNSHARE = shutil.which("unshare")


def why_no_mounts() -> str | None:
    if UNSHARE is None:
        return "unshare is not installed"
    tried = subprocess.run(
        [UNSHARE, "-Urm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, text=True, check=False
    )
    return f"nothing can be mounted here: {tried.stderr}" if tried.returncode else None


needs_mounts = pytest.mark.skipif(why_no_mounts() is not None, reason=str(why_no_mounts()))


def seen(scene: str, folder: Path, *before: str) -> Any:
    """What a scene of `refusing.py` saw."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}",
        "OPENCLAW_MEMORY_HOME": str(folder / "home"),
    }
    command = [*before, sys.executable, str(SCRIPT), scene, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def mounted(scene: str, tmp_path: Path, options: str) -> Any:
    """What a scene saw in a file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return seen(scene, folder, str(UNSHARE), "-Urm", "sh", "-c", MOUNT, "sh", options, str(folder))


@pytest.mark.fault(8)
@needs_mounts
@pytest.mark.parametrize(
    "scene",
    ["full by many pages", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("full", "full by each page"))],
)
def test_a_full_disk_is_told_at_every_size_and_nothing_is_torn(tmp_path, scene):
    outcomes = mounted(scene, tmp_path, "size=24m")
    some = {"edit", "say", "sync", "rebuild", "first index"}
    assert outcomes.keys() == (some if "many" in scene else some | {"append", "append to a new note"})
    assert all(found["done"] == 1 and found["refused"] >= 2 for found in outcomes.values()), outcomes


@pytest.mark.fault(8)
@needs_mounts
def test_where_not_even_a_name_has_room_the_index_is_not_taken_for_damaged(tmp_path):
    said = mounted("no names left", tmp_path, "size=24m,nr_inodes=40")
    assert "the disk is full" in said["search"]
    assert said["answers"]


WRITER = """
import os, sys
from pathlib import Path
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.notes import Notes
workspace = Workspace.open(sys.argv[1])
os.getpgid(0)
{code}
"""
WRITERS = {
    "append": "Notes(workspace).append('memo new', date='2026-11-21')",
    "add many": "documents.write(workspace.files, [documents.Fields(f'memory/notes/{n}.md', {}, '') for n in range(50)])",
    "edit": "Notes(workspace).edit('memory/2026-11-21.md', 1, 1, 'memo new', expected=workspace.read_excerpt('memory/2026-11-21.md', 1, 1))",
    "say": "workspace.open_log('talk').append('user', 'memo new')",
}


@pytest.mark.fault(9)
@pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))
@pytest.mark.parametrize("code", WRITERS.values(), ids=WRITERS)
@pytest.mark.sampled(2)
def test_what_the_disk_does_not_confirm_is_not_acknowledged(tmp_path, code):
    files = {"memory/2026-11-21.md": b"memo old\n", "memory/notes/.keep": b""}
    files["sessions/talk.jsonl"] = b'{"type": "session", "id": "talk"}\n'
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)
    for number in (1, 2, 3):  # the first is of the text, later ones of the folder: by then the text is on the disk
        failing = ("-o", os.devnull, "-e", f"inject=fsync,syncfs:error=EIO:when={number}")
        done = traced(WRITER.format(code=code), tmp_path, options=failing)
        if number == 1:
            assert "errors.WriteError" in done.stderr
            assert "Input/output error" in done.stderr
            assert {path: (tmp_path / path).read_bytes() for path in files} == files
            assert os.listdir(tmp_path / "memory/notes") == [".keep"]
        elif done.returncode:
            assert "is written, but the disk did not confirm" in done.stderr
        for path, text in files.items():
            (tmp_path / path).write_bytes(text)


@pytest.mark.fault(9)
@needs_mounts
def test_on_a_disk_that_turned_read_only_nothing_is_acknowledged_and_searches_answer(tmp_path):
    told = mounted("read-only", tmp_path, "size=24m")
    assert len(told) == 9
    assert all("ead-only" in words or "annot be" in words for words in told.values()), told


@pytest.mark.fault(9)
@pytest.mark.nightly
def test_without_descriptors_nothing_is_torn_and_all_goes_on_afterwards(tmp_path):
    outcomes = seen("no descriptors", tmp_path / "disk")
    for name in ("append", "append to a new note", "edit", "say", "search", "sync"):
        assert outcomes[f"{name} refused"] >= 2, outcomes
        assert outcomes[f"{name} done"] >= 2, outcomes
