"""Remembers which files are no text that can be read, so that none is tried in vain, and which are not in UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from openclaw_memory.indexing.changes import in_doubt, same_stamp
from openclaw_memory.types import FileRecord, MemoryFile, Store

ODD_FILES = "odd_files"  # the name under which a store keeps them (`Store.set_meta`)
MOST_FILES = 100  # every search reads them; those beyond are tried at each sync, and named by it alone
FIRST_FILES = 3  # that an answer names


class OddFile(NamedTuple):
    """A file as it was when it was read, and what was odd; `is_read` says whether it is indexed all the same."""

    record: FileRecord
    reason: str
    is_read: bool


def odd_files(store: Store) -> dict[str, OddFile]:
    """Return the files that the latest syncs found odd, by path; none where that was never noted."""
    try:
        notes = json.loads(store.get_meta(ODD_FILES) or "[]")
        return {path: OddFile(FileRecord(path, hash="", **stamp), *fields) for path, stamp, *fields in notes}
    except (ValueError, TypeError):  # what another program has put there
        return {}


def note_odd_files(store: Store, before: Mapping[str, OddFile], now: Mapping[str, OddFile]) -> None:
    """Keep the files that are odd now, if others were `before`."""
    if now != before:
        said = [(path, _stamp(one.record), one.reason, one.is_read) for path, one in sorted(now.items())]
        store.set_meta(ODD_FILES, json.dumps(said[:MOST_FILES]))


def is_unreadable(file: MemoryFile, odd: Mapping[str, OddFile]) -> bool:
    """Return whether a file could not be read before, and is, by its stamp, the same."""
    known = odd.get(file.path)
    return known is not None and not known.is_read and same_stamp(file, known.record) and not in_doubt(known.record)


def unreadable_in_words(odd: Mapping[str, OddFile]) -> str | None:
    """Return which files no search finds, for they cannot be read; None where all can."""
    unread = [path for path, one in odd.items() if not one.is_read]
    if not unread:
        return None
    rest = len(unread) - FIRST_FILES
    named = ", ".join(unread[:FIRST_FILES]) + (f" and {rest} more" if rest > 0 else "")
    return f"not searched, since {'it is' if len(unread) == 1 else 'they are'} not text in UTF-8: {named}"


def odd(record: FileRecord, reason: str, *, is_read: bool) -> OddFile:
    """Return a file with what is odd about it; `record` has its stamp, and when its content was read."""
    return OddFile(replace(record, hash="", vectors_missing=None), reason, is_read)


def _stamp(record: FileRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("source", "size", "mtime_ns", "inode", "checked_ns", "ctime_ns")}
