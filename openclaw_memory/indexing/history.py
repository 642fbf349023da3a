"""Write and read the records of the last sync and the last failure, which every process finds in the index."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from openclaw_memory.types import Store, SyncReport
from openclaw_memory.types.codec import IS_SEALED, NOT_READ, SUFFIX
from openclaw_memory.types.files import Skipped
from openclaw_memory.types.results import SyncFailure, SyncRecord

# The names of the notes in the store.
LAST_SYNC, LAST_ERROR = "last_sync", "last_error"
# Files that are named with their reasons; more would make a note of every sync grow with the workspace.
MAX_FILES = 100
MAX_NAMED = 3  # in an answer
NOT_TEXT = "is not text in"  # the beginning of the reason why a file without text was skipped

_Record = TypeVar("_Record", SyncRecord, SyncFailure)


def encode_sync(report: SyncReport, reason: str, started: float) -> str:
    """Return the record of a finished sync, as JSON.

    Args:
        report: Its report.
        reason: Its cause: "manual", "background" or "watcher".
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
    """Return the sentences that name files which the latest sync could not read: sealed ones, and those without text.

    Args:
        store: The store, or a snapshot.
    """
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
    try:
        return msgspec.json.decode(store.get_meta(name) or "null", type=kind)
    except msgspec.DecodeError:
        return None


def _list_reasons(files: Iterable[Skipped]) -> dict[str, str]:
    return {file.path: file.reason for file, _ in zip(files, range(MAX_FILES), strict=False)}
