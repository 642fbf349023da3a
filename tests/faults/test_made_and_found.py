"""What is made is for its owner alone, what is no file to be read is not read, and no test reaches a network."""

from __future__ import annotations

import os
import socket
import stat
import time
from pathlib import Path

import pytest
from index_files import index_file, index_folder
from processes import bind_socket, sync_traced
from pytest_socket import SocketConnectBlockedError

from openclaw_memory import Memory
from openclaw_memory.cli import main
from openclaw_memory.embeddings.hashing import HashingEmbedder


# --- what must not be read
@pytest.mark.fault(17)
def test_what_is_too_large_or_no_file_is_listed_and_never_read(notes):
    folder = notes / "memory"
    for name, size in (("line.md", 100 * 1024**2), ("sparse.md", 50 * 1024**3)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    os.mkfifo(folder / "pipe.md")
    bind_socket(folder / "socket.md")
    with Memory.open(notes, embedder=None) as memory:
        report, peak = sync_traced(memory)
        odd = {f"memory/{name}.md" for name in ("line", "sparse", "pipe", "socket")}
        assert {file.path for file in report.skipped} == {file.path for file in memory.status().skipped} == odd
    assert len(report.added) == 4
    assert peak < 64 * 1024**2


# --- no network
@pytest.mark.fault(43)
@pytest.mark.filterwarnings("ignore:A test tried to use")  # what blocks the call also warns of it
def test_no_test_can_reach_a_network():
    with socket.socket() as out, pytest.raises(SocketConnectBlockedError):
        out.connect(("192.0.2.1", 80))  # an address that is kept for documentation


# --- for the owner alone
@pytest.mark.fault(44)
def test_whatever_is_made_is_the_owners_alone_even_without_a_umask(tmp_path):
    umask = os.umask(0)
    try:
        with pytest.raises(SystemExit):
            main(["init", "--workspace", str(tmp_path / "new/agent")])
        made: dict[Path, tuple[bool, int]] = {}

        def look(*_: object) -> None:
            for path in (
                tmp_path / "new",
                *(tmp_path / "new").rglob("*"),
                *index_folder(tmp_path / "new/agent").rglob("*"),
            ):
                made[path] = path.is_dir(), stat.S_IMODE(path.lstat().st_mode)

        with Memory.open(tmp_path / "new/agent", embedder=HashingEmbedder()) as memory:
            line = memory.append("The zeppelin lands on Friday.", date="2026-03-01")
            memory.edit(line.path, line.start_line, line.end_line, "The zeppelin lands on Monday.", expected=line)
            memory.sessions.log("talk").append("user", "When does the zeppelin land?")
            memory.sync()
            memory.notes.promote(line.path, line.start_line, line.end_line)
            memory.sync(force=True, progress=look)
            memory.search("zeppelin")
            watcher = memory.watch()
            while watcher.syncs == 0:
                time.sleep(0.01)
            look()
        spoil(index_file(tmp_path / "new/agent"))
        with Memory.open(tmp_path / "new/agent", embedder=HashingEmbedder()) as memory:
            memory.search("zeppelin")
            look()
    finally:
        os.umask(umask)
    names = {path.name for path in made}
    assert names >= {"MEMORY.md", "memory", "2026-03-01.md", "index.sqlite", "talk.jsonl", "sessions", ".lock"}
    assert names >= {"index.sqlite-wal", "index.sqlite.sync-lock"}
    for part in (".rebuild-", "watch"):
        assert [name for name in names if part in name], part
    assert {path: mode for path, (is_folder, mode) in made.items() if mode != (0o700 if is_folder else 0o600)} == {}


def spoil(index: Path) -> None:
    with index.open("r+b") as file:
        file.write(b"no database at all" * 10)
