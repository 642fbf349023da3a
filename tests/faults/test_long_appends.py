"""A long text is appended whole or not at all, wherever its writer is killed, and takes nothing of other writers away."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_memory.errors import WriteError
from openclaw_memory.workspace import Workspace, atomic
from openclaw_memory.workspace.notes import Notes

NOTE, OLD, LINE = "memory/2026-11-21.md", "# 2026-11-21\n\nThe first line.\n", f"{'plum ' * 15}\n"
LONG = (LINE * 100).strip()  # more than one write(2) is trusted with
READY = "ready\n"
WRITER = """
import sys
from openclaw_memory.workspace import Workspace
import openclaw_memory.workspace.session_log, filelock
workspace, text = Workspace.open(sys.argv[1]), "plum " * (int(sys.argv[2]) // 5)
print("ready", flush=True)
sys.stdin.readline()
workspace.open_log("talk").append_entries(
    [{"type": "message", "message": {"role": "user", "content": part}} for part in ("first", text, "last")]
)
"""


def add(workspace: Workspace, text: str = LONG) -> None:
    Notes(workspace).append(text, date="2026-11-21")


@pytest.fixture
def workspace(tmp_path):
    file = tmp_path / NOTE
    file.parent.mkdir()
    file.write_text(OLD)
    return Workspace.open(tmp_path)


def grown(folder: Path) -> int:
    """The size of all files of a folder but locks."""
    total = 0
    for entry in os.scandir(folder):
        try:
            total += entry.stat().st_size
        except FileNotFoundError:
            continue
    return total


def killed(folder: Path, size: int) -> None:
    """Let a process write, and kill it as soon as any file of the folder grows."""
    command = [sys.executable, "-c", WRITER, str(folder), str(size)]
    place = folder / "sessions"
    place.mkdir(exist_ok=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == READY
        before = grown(place)
        writer.stdin.write("\n")
        writer.stdin.flush()
        while grown(place) <= before and writer.poll() is None:
            pass
        writer.send_signal(signal.SIGKILL)


@pytest.mark.fault(52)
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(("size", "kills"), [(500_000, 1), pytest.param(5_000_000, 25, marks=pytest.mark.nightly)])
def test_of_entries_of_a_transcript_a_kill_leaves_whole_ones(tmp_path, size, kills):
    every = ["first", "plum " * (size // 5), "last"]
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed(folder, size)
        log = Workspace.open(folder).open_log("talk")
        found = [message["content"] for message in log.read_messages()]
        assert found == every[: len(found)]
        log.append("user", "and on")
        assert [message["content"] for message in log.read_messages()] == [*found, "and on"]


@pytest.mark.fault(52)
def test_what_another_program_appends_meanwhile_is_kept(workspace, monkeypatch):
    """OpenClaw does not know our lock: it appends before, between and after the steps of ours."""
    file = workspace.root / NOTE
    theirs = iter(["Before.\n", "Between.\n", "After.\n"])

    def add_theirs() -> None:
        for line in theirs:
            with file.open("a") as opened:
                opened.write(line)
            return

    real_fill, real_replace = atomic._fill, os.replace

    def fill(*arguments: object) -> None:
        add_theirs()
        real_fill(*arguments)  # type: ignore[arg-type]

    def replace(*arguments: object, **options: object) -> None:
        with file.open("a") as opened:
            real_replace(*arguments, **options)  # type: ignore[arg-type]
            opened.write("Late.\n")

    monkeypatch.setattr(atomic, "_fill", fill)
    monkeypatch.setattr(os, "replace", replace)
    add(workspace)
    assert file.read_text() == f"{OLD}Before.\nBetween.\nAfter.\n{LONG}\nLate.\n"


def test_a_note_that_another_program_replaces_again_and_again_is_an_error_and_keeps_its_text(workspace, monkeypatch):
    file, real = workspace.root / NOTE, atomic._fill

    def fill(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        (workspace.root / "new").write_text("Another note.\n")
        (workspace.root / "new").replace(file)

    monkeypatch.setattr(atomic, "_fill", fill)
    with pytest.raises(WriteError, match="changed by another program"):
        add(workspace)
    assert file.read_text() == "Another note.\n"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EBUSY, errno.ENOSPC])
def test_a_note_that_can_be_written_but_not_replaced_is_added_to_in_place(workspace, monkeypatch, number):
    """The folder may be another user's, the note a mount of its own, or the disk too full for a copy."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    add(workspace)
    assert (workspace.root / NOTE).read_text() == f"{OLD}{LONG}\n"
    assert not list(workspace.root.rglob("*.tmp"))


def test_a_new_note_that_the_disk_did_not_confirm_stays(tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()

    def refuse(*_: object) -> None:
        raise WriteError("memory is written, but the disk did not confirm its name")

    monkeypatch.setattr(atomic.OpenFolder, "flush", refuse)
    with pytest.raises(WriteError, match="did not confirm"):
        add(Workspace.open(tmp_path))
    assert (tmp_path / NOTE).read_text().endswith(f"{LONG}\n")
