"""Write the access log, as an observer of a memory."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from openclaw_memory import MemoryConfig, OpenClawMemoryError
from openclaw_memory.config import read_plugin_settings
from openclaw_memory.workspace import SafeFolder, Workspace
from openclaw_memory_audit import head as heads
from openclaw_memory_audit.entries import GAP, AuditError, Keys, derive_keys, encode_entry
from openclaw_memory_audit.settings import AuditConfig

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.events import Event
    from openclaw_memory_audit.entries import Entry
    from openclaw_memory_audit.reading import Verdict

MAX_PLACES = 200  # of one entry: a call with more of them leaves several
SYNC_SECONDS = 1.0  # a power cut takes no more than the entries of so long
_logger = logging.getLogger("openclaw_memory")


class AccessLog:
    """The access log of one workspace, in the user's data folder. Safe to use from several threads and processes.

    An entry is written before its head, so that a process that is killed leaves a log that is ahead of its head, never
    behind. Nothing that is wrong is repaired: the chain goes on from the head, and `verify` names it.
    """

    def __init__(self, workspace: Workspace, settings: AuditConfig | None = None) -> None:
        """Read and write nothing yet.

        Args:
            workspace: The files of the memory.
            settings: How large the log may be, and whether it is required; the defaults if None.
        """
        self._workspace, self._settings = workspace, settings or AuditConfig()
        self._folder = SafeFolder.locate_data(workspace.root)
        self._where = str(self._folder.base / heads.HEAD)
        self._synced_at = float("-inf")
        self._missing, self._trouble = 0, ""

    def __call__(self, event: Event) -> None:
        """Add the entry of an event; that of a change that is `started` only if the log is required.

        Args:
            event: The event.

        Raises:
            AuditError: The log is required, and the entry could not be written.
        """
        if event.result == "started" and not self._settings.required:
            return
        try:
            self._write(event)
        except (OSError, OpenClawMemoryError) as error:
            self._trouble = f"an entry could not be written: {error}"
            self._missing += 1
            if self._settings.required:
                words = "plugins.audit.required refuses what leaves no entry"
                raise AuditError(f"{event.op}: {self._trouble}; {words}") from error
            _logger.warning("access log: %s", self._trouble)

    def list_problems(self) -> list[str]:
        """List notices for `status`: how many entries are missing, with the reason."""
        return [f"the access log lacks {self._missing:,} entries: {self._trouble}"] if self._missing else []

    def read_entries(
        self,
        *,
        op: str | None = None,
        path: str | None = None,
        since: datetime.date | str | None = None,
        actor: str | None = None,
        session: str | None = None,
    ) -> Iterator[Entry]:
        """Yield the entries, the newest first; lines that are not as they were written are left out.

        Args:
            op: Only this operation.
            path: Only those with a path that holds this text, or with this very path, also of a file that is gone.
            since: Only those of this day (UTC) or later.
            actor: Only those whose actor holds this text.
            session: Only those of this session.

        Raises:
            InvalidInputError: `since` is not a day.
            AuditError, WorkspaceError: The log cannot be read.
        """
        from openclaw_memory_audit.reading import read_entries

        return read_entries(self._keys, self._folder, self._workspace, op, path, since, actor, session)

    def verify(self) -> Verdict:
        """Check every entry against the chain, and the end of the log against its head.

        Raises:
            AuditError, WorkspaceError: The log cannot be read.
        """
        from openclaw_memory_audit.reading import verify_log

        return verify_log(self._keys, self._folder)

    @cached_property
    def _keys(self) -> Keys:
        return derive_keys()

    def _write(self, event: Event) -> None:
        starts = range(0, max(1, len(event.places)), MAX_PLACES)
        events = [event._replace(places=event.places[at : at + MAX_PLACES]) for at in starts]
        with self._folder.open_in_place(heads.HEAD) as head_file, heads.lock(head_file, waits=self._settings.required):
            head = heads.read_head(self._keys, head_file, self._where) or self._begin(head_file)
            if self._missing:
                gap = event._replace(op=GAP, places=(), result=f"missed {self._missing}")
                head = self._append(head_file, head, gap)
                self._missing, self._trouble = 0, ""
            for part in events:
                head = self._append(head_file, head, part)

    def _begin(self, descriptor: int) -> heads.Head:
        if heads.list_files(self._folder):
            raise AuditError(f"{self._where} is missing: move its folder away to begin a new log")
        heads.write_head(self._keys, descriptor, heads.Head())
        os.fsync(descriptor)
        return heads.Head()

    def _append(self, head_descriptor: int, head: heads.Head, event: Event) -> heads.Head:
        """Write an entry, and the head after it; return that."""
        if head.size >= self._settings.max_bytes:
            head = self._rotate(head_descriptor, head)
        with self._folder.open_in_place(heads.locate_file(head.file)) as descriptor:
            size = os.fstat(descriptor).st_size
            if size < head.size:  # the end was cut off: the next file begins
                return self._append(head_descriptor, head._replace(file=head.seq + 1, size=0), event)
            if size > head.size:  # a process was killed in between
                head = heads.follow_entries(self._keys, descriptor, head, size)
            line, mac = encode_entry(self._keys, head.seq + 1, event, head.mac)
            heads.write_at(descriptor, head.size, line)
            if time.monotonic() - self._synced_at >= SYNC_SECONDS:
                os.fsync(descriptor)
                self._synced_at = time.monotonic()
        head = head._replace(seq=head.seq + 1, mac=mac, size=head.size + len(line))
        heads.write_head(self._keys, head_descriptor, head)
        return head

    def _rotate(self, descriptor: int, head: heads.Head) -> heads.Head:
        """Begin a new file, write the head, and remove the files that are too old."""
        files = heads.list_files(self._folder)
        surplus = max(0, len(files) - self._settings.keep)
        oldest = min([*files[surplus:], head.seq + 1])
        head = head._replace(file=head.seq + 1, size=0, first=max(head.first, oldest))
        heads.write_head(self._keys, descriptor, head)
        for number in files[:surplus]:
            self._folder.remove(heads.locate_file(number))
        return head


def open_log(workspace: Workspace, config: MemoryConfig) -> AccessLog | None:
    """Return the log of a memory, an observer; None if its settings turn it off.

    Args:
        workspace: The files of the memory.
        config: The settings; `[plugins.audit]` counts.

    Raises:
        ConfigError: A setting is wrong.
    """
    settings = read_plugin_settings(config, "audit", AuditConfig)
    return AccessLog(workspace, settings) if settings.enabled else None
