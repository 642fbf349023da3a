"""Whether an index is behind its files, as far as one process knows, and whether a sync should run for that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from openclaw_memory import _forks
from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.changes import compared, worth_a_sync
from openclaw_memory.indexing.history import LAST_SYNC, moment, sync_record
from openclaw_memory.types import Store, SyncReport
from openclaw_memory.workspace import Workspace

# A look at the stamps of all files may take this share of the time. One that takes longer than LONG_LOOK_SECONDS is
# left to the sync in the background, which looks anyway.
LOOK_SHARE = 0.05
LONG_LOOK_SECONDS = 0.05
# What a sync left as it was (a service is down, a file is unreadable) is not asked for again before.
PATIENCE_SECONDS = 60.0
MOST_PENDING = 1000  # changes whose paths are kept: of more, a sync looks at all files
NOTHING_YET = "nothing is indexed yet: sync the memory"
BUILDING = "the index is being built: files that it does not hold yet are not found"


class Seen(NamedTuple):
    """How many changes were made by this process, and how many looks at the files it has taken, up to a moment."""

    written: int
    looks: int


class Staleness:
    """Knows what has changed since the index followed the files. Safe to use from several threads."""

    def __init__(self, workspace: Workspace, config: MemoryConfig, store: Callable[[], Store]) -> None:
        self._workspace, self._config, self._store = workspace, config, store
        self._lock = _forks.lock()
        self._mistrusted = False  # whatever the stamps say, since that time
        self._mistrusted_at = 0.0
        self._written, self._written_at = 0, 0.0  # how many changes were made here, and when
        self._pending: dict[int, tuple[str, ...] | None] = {}  # those that no sync has seen, and the paths if known
        self._looked, self._look_seconds = float("-inf"), 0.0
        self._looks = 0  # how often the stamps were compared
        self._changed: Mapping[str, object] = {}  # files that differ, with their stamps
        # When the look began that found them: for the looks here, and for syncs elsewhere in seconds since 1970.
        self._changed_look, self._changed_at = float("-inf"), 0.0
        self._left: Mapping[str, object] = {}  # those that the last sync could not index, and will not as they are
        self._asked: tuple[object, float] = (None, float("-inf"))  # what a sync was asked to catch up with, and when

    def record_write(self, paths: Iterable[str] | None = None) -> None:
        """Note that files were changed here, which the index does not know yet: those at `paths`, if that is known."""
        with self._lock:
            self._written += 1
            self._written_at = time.time()
            self._pending[self._written] = None if paths is None else tuple(paths)
            if len(self._pending) > MOST_PENDING:
                self._pending = {self._written: None}

    def pending(self) -> Mapping[int, tuple[str, ...] | None]:
        """Return the changes made here that no sync has seen, by number, each with its paths; None: some file's."""
        with self._lock:
            return dict(self._pending)

    def forget(self, numbers: Iterable[int]) -> None:
        """Note that the index knows these changes now."""
        with self._lock:
            for number in numbers:
                self._pending.pop(number, None)

    @property
    def seen(self) -> Seen:
        """How many changes were made here, and looks taken; a sync covers those from before it began."""
        with self._lock:
            return Seen(self._written, self._looks)

    def record_sync(self, report: SyncReport, before: Seen) -> None:
        """Note that a sync has ended, which saw what was `seen` before it began."""
        self._mistrusted, self._mistrusted_at = not report.ok, time.time()
        self.forget([number for number in self.pending() if number <= before.written])
        with self._lock:
            has_looked = self._looks > before.looks  # at changes that the sync may have come too early for
            if not has_looked:
                self._changed = {}
            self._left = {}
        if report.ok and not report.skipped and not has_looked:
            return
        with suppress(OpenClawMemoryError, OSError):  # what cannot be looked at now is looked at by the next search
            self._compare()
            if not report.ok or report.skipped:
                self._left = self._changed if report.ok else {}
                self._asked = (self._wish(), time.monotonic())

    @property
    def is_mistrusted(self) -> bool:
        """Whether the latest sync here has not ended well."""
        return self._mistrusted

    def invalidate(self) -> None:
        """Count the index as behind until a sync ends well."""
        self._mistrusted, self._mistrusted_at = True, time.time()

    def ask_again(self) -> None:
        """Forget what was asked for: the sync at work may have looked before the files changed."""
        self._asked = (None, float("-inf"))

    def is_behind(self) -> bool:
        """Return whether anything is known to be missing in the index; another process may have added it since."""
        with self._lock:
            pending, written_at = tuple(self._pending), self._written_at
            changed, changed_at = self._changed, self._changed_at
        if self._mistrusted and self._done_elsewhere_since(self._mistrusted_at):
            self._mistrusted = False
        if pending and self._done_elsewhere_since(written_at):
            self.forget(pending)
        if self._news() and self._done_elsewhere_since(changed_at):
            with self._lock:
                self._changed = {} if self._changed is changed else self._changed
        return self._mistrusted or bool(self._pending) or bool(self._news())

    def look(self) -> bool:
        """Compare the stamps of the files again, as often as that costs a twentieth of the time.

        Returns:
            Whether that would take long, and is left to a sync.
        """
        if time.monotonic() - self._looked < self._look_seconds / LOOK_SHARE:
            return False
        if self._look_seconds > LONG_LOOK_SECONDS:
            self._looked = time.monotonic()
            return True
        self._compare()
        return False

    def should_sync(self) -> bool:
        """Return whether to sync now, and note that it was asked for: once for the same changes, at intervals."""
        wish, (asked, at) = self._wish(), self._asked
        if not self.is_behind() or (wish == asked and time.monotonic() - at < PATIENCE_SECONDS):
            return False
        self._asked = (wish, time.monotonic())
        return True

    def _compare(self) -> None:
        started, at = time.monotonic(), time.time()
        known = self._store().files()
        difference = compared(self._workspace.scan(), known)
        changed = worth_a_sync(difference, known, self._config.sessions, self._workspace)
        with self._lock:
            self._looks += 1
            if started >= self._changed_look:  # of two looks at once, the later one knows more
                self._changed, self._changed_look, self._changed_at = changed, started, at
            self._looked = time.monotonic()
            self._look_seconds = self._looked - started

    def _news(self) -> dict[str, object]:
        """Return what has changed, without files that the last sync could not index and that are still the same."""
        return {path: stamp for path, stamp in self._changed.items() if self._left.get(path, self) != stamp}

    def _wish(self) -> object:
        return self._written, dict(self._changed)

    def _done_elsewhere_since(self, at: float) -> bool:
        """Return whether a sync that left nothing out has begun after `at`, in seconds since 1970, in any process."""
        last = sync_record(self._store().get_meta(LAST_SYNC))
        return last is not None and last.at > moment(at) and not last.failed and not last.waiting
