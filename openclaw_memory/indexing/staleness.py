"""Decide whether an index is behind its files, as far as one process knows, and whether to sync for that."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.changes import compare_scan, select_urgent
from openclaw_memory.types import Store, SyncReport
from openclaw_memory.types.codec import IS_SEALED, NOT_READ, SUFFIX
from openclaw_memory.types.files import Skipped
from openclaw_memory.types.results import SyncFailure, SyncRecord
from openclaw_memory.workspace import Workspace

# The stamps of all files are looked at again after so many seconds, or later if looks would take more than this share
# of the time. One that takes longer than LONG_LOOK_SECONDS is left to the sync in the background, which looks anyway.
LOOK_SECONDS, LOOK_SHARE = 1.0, 0.05
LONG_LOOK_SECONDS = 0.05
# A sync is not asked for again sooner for files that it left as they were (a service is down, a file is unreadable).
PATIENCE_SECONDS = 60.0
MAX_PENDING = 1000  # changes whose paths are kept: of more, a sync looks at all files
NOTHING_YET = "nothing is indexed yet: sync the memory"
BUILDING = "the index is being built: files that it does not hold yet are not found"

_NEVER = float("-inf")

# The names of the notes in the store.
LAST_SYNC, LAST_ERROR = "last_sync", "last_error"
# Files that are named with their reasons; more would make a note of every sync grow with the workspace.
MAX_FILES = 100
MAX_NAMED = 3  # in an answer
NOT_TEXT = "is not text in"  # the beginning of the reason why a file without text was skipped

_Record = TypeVar("_Record", SyncRecord, SyncFailure)


class Staleness:
    """Knows the changes since the index followed the files. Safe to use from several threads."""

    def __init__(self, workspace: Workspace, config: MemoryConfig, store: Callable[[], Store]) -> None:
        self._workspace, self._config, self._store = workspace, config, store
        self._lock = threading.Lock()
        self._failed_at: float | None = None  # when a sync failed: the index is behind until one succeeds
        self._writes, self._written_at = 0, 0.0  # changes made here, and the time of the latest
        self._pending: dict[int, tuple[str, ...] | None] = {}  # those that no sync covers, with their paths if known
        self._looks, self._looked, self._look_seconds = 0, _NEVER, 0.0
        self._changed: Mapping[str, object] = {}  # files that differ, with their stamps
        # When the look began that saw them: for the looks here, and for syncs elsewhere in seconds since 1970.
        self._changed_look, self._changed_at = _NEVER, 0.0
        self._hopeless: Mapping[str, object] = {}  # those that the last sync could not index, and will not as they are
        self._request: tuple[object, float] = (None, _NEVER)  # the changes for which a sync was asked for, and when

    def record_write(self, paths: Iterable[str] | None = None) -> None:
        """Note that files were changed here, which the index does not know yet: those at `paths`, if that is known."""
        with self._lock:
            self._writes += 1
            self._written_at = time.time()
            self._pending[self._writes] = None if paths is None else tuple(paths)
            if len(self._pending) > MAX_PENDING:
                self._pending = {self._writes: None}

    def list_pending(self) -> Mapping[int, tuple[str, ...] | None]:
        """Return the changes made here that no sync covers, by number, each with its paths; None: some file's."""
        with self._lock:
            return dict(self._pending)

    def forget(self, numbers: Iterable[int]) -> None:
        """Note that the index knows these changes now."""
        with self._lock:
            for number in numbers:
                self._pending.pop(number, None)

    @property
    def mark(self) -> tuple[int, int]:
        """The changes made here until now, which a sync that begins now covers, and the looks taken."""
        with self._lock:
            return self._writes, self._looks

    def record_sync(self, report: SyncReport, begin: tuple[int, int]) -> None:
        """Note that a sync which began at a mark has ended."""
        (writes, looks), self._failed_at = begin, None if report.ok else time.time()
        self.forget([number for number in self.list_pending() if number <= writes])
        with self._lock:
            has_looked = self._looks > looks  # at changes that the sync may have come too early for
            if not has_looked:
                self._changed = {}
            self._hopeless = {}
        if report.ok and not report.skipped and not has_looked:
            return
        with suppress(OpenClawMemoryError, OSError):  # the next search looks again
            self._compare()
            if not report.ok or report.skipped:
                self._hopeless = self._changed if report.ok else {}
                self._request = (self._list_wishes(), time.monotonic())

    @property
    def has_failed(self) -> bool:
        """True if the latest sync here has not ended well."""
        return self._failed_at is not None

    def record_failure(self) -> None:
        """Count the index as behind until a sync ends well."""
        self._failed_at = time.time()

    def ask_again(self) -> None:
        """Forget the latest request: the sync at work may have looked before the files changed."""
        self._request = (None, _NEVER)

    def is_behind(self) -> bool:
        """Return whether any change is known that the index lacks; another process may have added it since."""
        with self._lock:
            pending, written_at = tuple(self._pending), self._written_at
            changed, changed_at = self._changed, self._changed_at
        if self._failed_at is not None and self._is_synced_since(self._failed_at):
            self._failed_at = None
        if pending and self._is_synced_since(written_at):
            self.forget(pending)
        if self._list_news() and self._is_synced_since(changed_at):
            with self._lock:
                self._changed = {} if self._changed is changed else self._changed
        return self.has_failed or bool(self._pending) or bool(self._list_news())

    def look(self) -> bool:
        """Compare the stamps of the files again, at most once a second and for a twentieth of the time.

        Returns:
            Whether that would take long, and is left to a sync.
        """
        if time.monotonic() - self._looked < max(LOOK_SECONDS, self._look_seconds / LOOK_SHARE):
            return False
        if self._look_seconds > LONG_LOOK_SECONDS:
            self._looked = time.monotonic()
            return True
        self._compare()
        return False

    def should_sync(self) -> bool:
        """Return whether to sync now, and note the request: one for the same changes, at intervals."""
        wishes, (latest, at) = self._list_wishes(), self._request
        if not self.is_behind() or (wishes == latest and time.monotonic() - at < PATIENCE_SECONDS):
            return False
        self._request = (wishes, time.monotonic())
        return True

    def _compare(self) -> None:
        started, at = time.monotonic(), time.time()
        records = self._store().get_files()
        difference = compare_scan(self._workspace.scan(), records)
        changed = select_urgent(difference, records, self._config.sessions, self._workspace)
        with self._lock:
            self._looks += 1
            if started >= self._changed_look:  # of two looks at once, the later one knows more
                self._changed, self._changed_look, self._changed_at = changed, started, at
            self._looked = time.monotonic()
            self._look_seconds = self._looked - started

    def _list_news(self) -> dict[str, object]:
        """Return the changes, without files that the last sync could not index and that are still the same."""
        return {path: stamp for path, stamp in self._changed.items() if self._hopeless.get(path, self) != stamp}

    def _list_wishes(self) -> object:
        return self._writes, dict(self._changed)

    def _is_synced_since(self, at: float) -> bool:
        """Return whether a sync that left nothing out has begun after `at`, in seconds since 1970, in any process."""
        last = load_sync(self._store())
        return last is not None and last.at > format_moment(at) and not last.failed and not last.waiting


# --- the records of the last sync and failure, which every process finds in the index -------------------------------


def encode_sync(report: SyncReport, reason: str, started: float) -> str:
    """Return the record of a finished sync, as JSON.

    Args:
        report: Its report.
        reason: Its cause: "manual", "search", "write", "background", "watcher" or "vectors".
        started: When it began, in seconds since 1970.
    """
    record = SyncRecord(
        at=format_moment(started),
        reason=reason,
        seconds=round(report.seconds, 3),
        added=len(report.added),
        changed=len(report.changed),
        removed=len(report.removed),
        unchanged=report.unchanged,
        embedded=report.embedded,
        failed=_list_reasons(report.failed),
        skipped=_list_reasons(report.skipped),
        waiting=len(report.waiting),
        rebuilt=report.rebuilt,
    )
    return msgspec.json.encode(record).decode()


def load_sync(store: Store) -> SyncRecord | None:
    """Return the record of the latest sync of any process; None if it is missing or malformed."""
    return _load(store, LAST_SYNC, SyncRecord)


def load_failure(store: Store) -> SyncFailure | None:
    """Return the record of the latest failure of any process; None if it is missing or malformed."""
    return _load(store, LAST_ERROR, SyncFailure)


def make_failure(error: BaseException, at: float) -> SyncFailure:
    """Return the record of a failed sync; `at` is when it ended, in seconds since 1970."""
    return SyncFailure(format_moment(at), str(error) or type(error).__name__)


def explain_unread(store: Store) -> str:
    """Return sentences that name files which the latest sync could not read: sealed ones, and those without text."""
    last = load_sync(store)
    skipped, sentences = ({} if last is None else last.skipped), []
    sealed = [f"{path} {why}" for path, why in skipped.items() if path.endswith(SUFFIX) or why.startswith(NOT_READ)]
    if sealed:
        more = f" (and {len(sealed) - 1:,} more)" if len(sealed) > 1 else ""
        sentences.append(f"what {IS_SEALED} was not searched: {sealed[0]}{more}")
    if odd := [path for path, why in skipped.items() if why.startswith(NOT_TEXT)]:
        more = f" and {len(odd) - MAX_NAMED} more" if len(odd) > MAX_NAMED else ""
        names = ", ".join(odd[:MAX_NAMED]) + more
        sentences.append(f"not searched, since {'it is' if len(odd) == 1 else 'they are'} not text in UTF-8: {names}")
    return "; ".join(sentences)


def format_moment(seconds: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC, `2026-11-22T09:30:00.000+00:00`: such texts sort by time."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")


def _load(store: Store, name: str, kind: type[_Record]) -> _Record | None:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(store.get_meta(name) or "null", type=kind)
    return None


def _list_reasons(files: Iterable[Skipped]) -> dict[str, str]:
    return {file.path: file.reason for file, _ in zip(files, range(MAX_FILES), strict=False)}
