"""The end of a conversation as it was kept: its last messages, each cut, and a summary where there is one."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SnapshotMessage:
    """A message: the `role` it was said in, and at most 500 UTF-16 units of its text, with secrets masked."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last messages of a session, in a file of their own.

    Attributes:
        session_id: The session.
        timestamp: When it was made (UTC).
        messages: The last messages, oldest first.
        summary: What the conversation was about; None where the snapshot was made without one.
        path: The file, relative to the workspace.
    """

    session_id: str
    timestamp: datetime.datetime
    messages: tuple[SnapshotMessage, ...]
    summary: str | None
    path: str

    def to_dict(self) -> Mapping[str, Any]:
        """Return what the file holds as JSON values: `id`, `timestamp`, `messages`, and `summary` if any."""
        at = self.timestamp.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said = [{"role": message.role, "content": message.content} for message in self.messages]
        return {"id": self.session_id, "timestamp": at, "messages": said} | (
            {"summary": self.summary} if self.summary else {}
        )
