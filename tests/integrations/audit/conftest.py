"""What the tests of the access log share: a log of a folder, and what is in its files."""

import pytest
from openclaw_memory_audit import AccessLog, AuditConfig

from openclaw_memory.config.environment import locate_workspace_data
from openclaw_memory.events import Event
from openclaw_memory.workspace import Workspace

PLACE = ("memory/2026-11-21.md", "3-9")


class Log:
    """The access log of a folder, and its files."""

    def __init__(self, root):
        root.mkdir(exist_ok=True)
        self.root, self.folder = root, locate_workspace_data(root) / "audit"
        self.head = self.folder / "head.json"

    def open(self, **settings):
        return AccessLog(Workspace.open(self.root), AuditConfig(enabled=True, **settings))

    def write(self, *places, log=None, op="get", **settings):
        (log or self.open(**settings))(Event(op, places or (PLACE,)))

    def fill(self, count=10, **settings):
        """Write so many entries."""
        log = self.open(**settings)
        for number in range(count):
            log(Event("get", ((f"memory/{number}.md", "1-2"),)))

    def verify(self):
        return self.open().verify()

    @property
    def files(self):
        return sorted(self.folder.glob("access.*.jsonl"))

    @property
    def lines(self):
        return [line for file in self.files for line in file.read_bytes().splitlines(keepends=True)]


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "notes")
