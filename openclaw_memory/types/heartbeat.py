"""What a heartbeat reports: its tasks, what each found and changed, and what was left for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that wants a look: `where` is a path or a citation, `advice` what a model that was asked said of it."""

    where: str
    words: str
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task of a heartbeat: how long it took, what it found, and the files that it changed.

    `is_done` is False where the time was up before it had looked at everything.
    """

    name: str
    seconds: float
    findings: tuple[Finding, ...] = ()
    changed: tuple[str, ...] = ()
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class HeartbeatRecord:
    """The latest heartbeat: when it was (UTC, ISO 8601), how much it found, and the tasks that it left."""

    at: str
    findings: int
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatReport:
    """What a heartbeat did at `at` (UTC, ISO 8601).

    `is_quiet` says that nothing had changed since the last one and nothing was due, so that no task ran. `left` names
    the tasks for which no time was left: the next heartbeat begins with them. `is_busy` says that another heartbeat of
    this memory was under way, in any thread or process, and that nothing was done.
    """

    at: str
    seconds: float
    is_quiet: bool
    tasks: tuple[TaskReport, ...] = ()
    left: tuple[str, ...] = ()
    is_busy: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What all tasks found."""
        return tuple(finding for task in self.tasks for finding in task.findings)

    def to_dict(self) -> Mapping[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)
