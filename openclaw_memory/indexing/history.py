"""Records of the last sync and the last failure: short texts kept in the index for every process to read."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from openclaw_memory.types import Skipped, SyncReport
from openclaw_memory.types.codec import IS_SEALED, NOT_READ, SUFFIX
from openclaw_memory.types.results import SyncFailure, SyncRecord

# The names under which a store keeps them (`Store.set_meta`).
LAST_SYNC, LAST_ERROR = "last_sync", "last_error"
# Files that are named with their reasons; more would make a note of every sync grow with the workspace.
MOST_FILES = 100


def record_of(report: SyncReport, reason: str, started: float) -> str:
    """Return the record of a finished sync, as JSON; `sync_record` reads it.

    `reason` is what it ran for ("manual", "background", "watcher"), `started` when, in seconds since 1970. The record
    counts files in `added`, `changed`, `removed`, `unchanged` and `waiting`; `failed` and `skipped` name the first
    hundred of theirs, each with its reason.
    """
    return json.dumps(
        {
            "at": moment(started),
            "reason": reason,
            "seconds": round(report.seconds, 3),
            "added": len(report.added),
            "changed": len(report.changed),
            "removed": len(report.removed),
            "unchanged": report.unchanged,
            "embedded": report.embedded,
            "failed": _by_path(report.failed),
            "skipped": _by_path(report.skipped),
            "waiting": len(report.waiting),
            "rebuilt": report.rebuilt,
        }
    )


def record_of_error(error: BaseException | str, at: float) -> str:
    """Return the record of a failed sync, as JSON; `at` is when it ended, in seconds since 1970."""
    return json.dumps({"at": moment(at), "error": str(error) or type(error).__name__})


def sync_record(record: str | None) -> SyncRecord | None:
    """Read a record of `record_of`; None where it is missing or malformed."""
    said = _read(record)
    if said is None:
        return None
    known = {item.name: said[item.name] for item in fields(SyncRecord) if said.get(item.name) is not None}
    named = {name: known[name] for name in ("failed", "skipped") if isinstance(known.get(name), dict)}
    return SyncRecord(**{**known, "failed": {}, "skipped": {}, **named})


def sync_failure(record: str | None) -> SyncFailure | None:
    """Read a record of `record_of_error`; other text is taken as the error itself, of an unknown time."""
    said = _read(record)
    if said is not None:
        return SyncFailure(said["at"], str(said.get("error")))
    return SyncFailure(None, record) if record else None


def unread_in_words(skipped: Mapping[str, str]) -> str:
    """Return in a sentence which sealed files of those that were left out were not read; "" for none.

    Args:
        skipped: Why files were left out, by path.
    """
    unread = [f"{path} {why}" for path, why in skipped.items() if path.endswith(SUFFIX) or why.startswith(NOT_READ)]
    if not unread:
        return ""
    more = f" (and {len(unread) - 1:,} more)" if len(unread) > 1 else ""
    return f"what {IS_SEALED} was not searched: {unread[0]}{more}"


def _read(record: str | None) -> Mapping[str, Any] | None:
    try:
        said = json.loads(record or "null")
        at = datetime.datetime.fromisoformat(said["at"])
    except (ValueError, TypeError, KeyError):
        return None
    return said if isinstance(said, dict) and at.tzinfo is not None else None


def moment(seconds: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC, `2026-11-22T09:30:00.000+00:00`: such texts sort by time."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")


def _by_path(files: Iterable[Skipped]) -> dict[str, str]:
    return {file.path: file.reason for file, _ in zip(files, range(MOST_FILES), strict=False)}
