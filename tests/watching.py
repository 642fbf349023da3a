"""What the tests of the watcher share: an index that is none, and waiting for what will come true."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import SessionsConfig, SyncConfig
from openclaw_memory.indexing.changes import compare
from openclaw_memory.store.lock import lock_file
from openclaw_memory.types import FileRecord, MemoryFile, SyncReport
from openclaw_memory.types.files import Skipped
from openclaw_memory.workspace import Workspace

CONFIG = MemoryConfig(
    sync=SyncConfig(debounce_seconds=0.1), sessions=SessionsConfig(delta_bytes=2_000, delta_messages=5)
)
MESSAGE = '{"type": "message", "message": {"role": "user", "content": "a memo of some length"}}\n'
LONG_ENOUGH = 60.0  # seconds in which anything happens on a busy machine, if it happens at all


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + LONG_ENOUGH
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.01)


class FakeIndex:
    """Remembers the stamps of files as an index would, and each sync that was asked for."""

    def __init__(self, workspace: Workspace, lock: Path | None = None) -> None:
        self.workspace, self._lock_file = workspace, lock
        self.records: dict[str, FileRecord] = {}
        self.reports: list[SyncReport] = []
        self.looks = 0
        self.before: Callable[[], object] = lambda: None  # what happens at the beginning of a sync
        self.failed: tuple[Skipped, ...] = ()

    def sync(self, **_: object) -> SyncReport:
        self.before()
        found = self.workspace.scan().files
        difference = compare(found, self.records)
        self.records = {file.path: self._record(file) for file in found}
        report = SyncReport(
            added=tuple(file.path for file in difference.fresh),
            changed=tuple(file.path for file in difference.touched),
            removed=difference.vanished,
            failed=self.failed,
        )
        self.reports.append(report)
        return report

    def store(self) -> FakeIndex:
        return self

    def get_files(self) -> dict[str, FileRecord]:
        self.looks += 1
        return self.records

    def lock(self, *_: object) -> AbstractContextManager[bool]:
        return nullcontext(True) if self._lock_file is None else lock_file(self._lock_file, 0)

    def follows_the_disk(self) -> bool:
        return not compare(self.workspace.scan().files, self.records).dirty

    def _record(self, file: MemoryFile) -> FileRecord:
        read = list(self.workspace.read_parts(file.path)) if file.source == "sessions" else []
        mark = str(read[-1].mark) if read else ""
        return FileRecord(
            file.path, file.source, mark, file.size, file.mtime_ns, file.inode, time.time_ns(), ctime_ns=file.ctime_ns
        )


def append(root: Path) -> None:
    with (root / "memory" / "a.md").open("a") as note:
        note.write("two\n")


def replace_atomically(root: Path) -> None:
    new = root / "memory" / ".a.md.tmp"
    new.write_text("one, replaced\n")
    new.replace(root / "memory" / "a.md")


def replace_all_notes(root: Path) -> None:
    (root / "memory").rename(root / "old")
    (root / "memory").mkdir()
    (root / "memory" / "c.md").write_text("another\n")
