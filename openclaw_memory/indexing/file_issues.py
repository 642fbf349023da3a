"""Remember the files that are not text in UTF-8, so that none is read in vain and each is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from openclaw_memory.indexing.changes import has_stamp, is_doubtful
from openclaw_memory.types import FileRecord, MemoryFile, Store

FILE_ISSUES = "file_issues"  # the name of the note in the store
MAX_NOTED = 100  # every search reads them; those beyond are tried at each sync, and named by it alone
MAX_NAMED = 3  # in an answer

_STAMP = ("source", "size", "mtime_ns", "inode", "checked_ns", "ctime_ns")


class FileIssue(NamedTuple):
    """A file as it was when it was read in vain, and its fault."""

    record: FileRecord
    reason: str


def load_issues(store: Store) -> dict[str, FileIssue]:
    """Return the issues that the latest syncs noted, by path."""
    try:
        rows = json.loads(store.get_meta(FILE_ISSUES) or "[]")
        return {path: FileIssue(FileRecord(path, hash="", **stamp), *fields) for path, stamp, *fields in rows}
    except (ValueError, TypeError):  # another program wrote there
        return {}


def save_issues(store: Store, issues: Mapping[str, FileIssue]) -> None:
    """Note the issues of the files."""
    rows = [
        (path, {name: getattr(issue.record, name) for name in _STAMP}, issue.reason)
        for path, issue in sorted(issues.items())
    ]
    store.set_meta(FILE_ISSUES, json.dumps(rows[:MAX_NOTED]))


def make_issue(record: FileRecord, reason: str) -> FileIssue:
    """Return the issue of a file; `record` has its stamp, and the time when its content was read."""
    return FileIssue(replace(record, hash="", vectors_missing=None), reason)


def is_unreadable(file: MemoryFile, issues: Mapping[str, FileIssue]) -> bool:
    """Return whether a file could not be read before, and is, by its stamp, the same."""
    issue = issues.get(file.path)
    return issue is not None and has_stamp(file, issue.record) and not is_doubtful(issue.record)


def explain_unreadable(issues: Mapping[str, FileIssue]) -> str | None:
    """Return a sentence that names files which cannot be read, and no search finds; None without any."""
    if not issues:
        return None
    more = f" and {len(issues) - MAX_NAMED} more" if len(issues) > MAX_NAMED else ""
    names = ", ".join([*issues][:MAX_NAMED]) + more
    return f"not searched, since {'it is' if len(issues) == 1 else 'they are'} not text in UTF-8: {names}"
