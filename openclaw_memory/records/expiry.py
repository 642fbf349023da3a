"""Whether the file of a record may still be shown: it is asked when something is shown, however old the index is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from openclaw_memory import _forks
from openclaw_memory.config import RecordsConfig
from openclaw_memory.errors import NotFoundError, PathNotAllowedError, WorkspaceError
from openclaw_memory.text.policies import unguarded
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.paths import RECORDS_FOLDER

if TYPE_CHECKING:
    from openclaw_memory.types.records import Record
    from openclaw_memory.workspace.document_cache import DocumentCache

_BELOW = f"{RECORDS_FOLDER}/"


class Expiry:
    """Says which files hold records that have ceased to hold. Safe to use from several threads."""

    def __init__(self, workspace: Workspace, rules: RecordsConfig) -> None:
        self._workspace, self._rules = workspace, rules

    @_forks.cached_property
    def _cache(self) -> DocumentCache:
        from openclaw_memory.workspace.document_cache import DocumentCache  # most searches find no record

        return DocumentCache(self._workspace.root, unguarded(self._workspace.rules))

    def among(self, paths: Iterable[str], now: datetime | None = None) -> frozenset[str]:
        """Return those of the paths whose records have expired.

        Args:
            paths: Files of a memory.
            now: The moment; this one where None.
        """
        moment = now or datetime.now(UTC)
        return frozenset(path for path in set(paths) if path.startswith(_BELOW) and self._has_expired(path, moment))

    def everywhere(self, now: datetime | None = None) -> frozenset[str]:
        """Return the paths of all records that have expired.

        Args:
            now: The moment; this one where None.

        Raises:
            WorkspaceError: The folder of records cannot be read.
        """
        from openclaw_memory.workspace.scan import notes_below

        files = notes_below(self._workspace.root, RECORDS_FOLDER, self._workspace.rules)
        return self.among((path for path, _ in files), now)

    def _has_expired(self, path: str, now: datetime) -> bool:
        from openclaw_memory.records.file_format import record_in

        with suppress(NotFoundError, PathNotAllowedError, WorkspaceError):  # what is damaged is shown as the note it is
            content = self._cache.load(path).content
            if content is not None and "memory_id" in content.fields:
                return is_expired(record_in(path, content, now, now, self._rules), now)
        return False


def is_expired(record: Record, now: datetime) -> bool:
    """Whether a record has ceased to hold.

    Args:
        record: The record.
        now: The moment, in UTC.
    """
    return record.expires_at is not None and record.expires_at < now
