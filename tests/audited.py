"""What the tests of the access log share: a log in a folder, and what is in its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from openclaw_memory.audit.head import head_file
from openclaw_memory.audit.log import AccessLog
from openclaw_memory.audit.reading import Verdict, verify
from openclaw_memory.config import AuditConfig

ON = AuditConfig(enabled=True)
PLACE = [("memory/2026-11-21.md", "3-9")]


def log_of(root: Path, **rules: Any) -> AccessLog:
    return AccessLog(root, AuditConfig(enabled=True, **rules))


def filled(root: Path, count: int = 10, **rules: Any) -> None:
    """A log with so many entries."""
    log = log_of(root, **rules)
    for number in range(count):
        log.write("get", [(f"memory/{number}.md", "1-2")])
    log.close()


def files(root: Path) -> list[Path]:
    return sorted((root / ".memory" / "audit").glob("access.*.jsonl"))


def lines(root: Path) -> list[bytes]:
    return [line for file in files(root) for line in file.read_bytes().splitlines(keepends=True)]


def proven(root: Path) -> Verdict:
    return verify(root, ON)


def head_of(root: Path) -> Path:
    return head_file(os.path.realpath(root / ".memory" / "audit"))
