"""Which files the index does not follow, and why: for each path one line, told without changing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.sync.compare import compare
from openclaw_memory.types import FileRecord, MemoryFile, Skipped

if TYPE_CHECKING:
    from openclaw_memory.workspace import Scan, Workspace

NEW, CHANGED, GONE = "new", "changed since it was indexed", "gone from disk"
IN_DOUBT = "written so soon before it was read that it may have changed"


def why_behind(
    workspace: Workspace, scan: Scan, known: Mapping[str, FileRecord], failed: Mapping[str, str]
) -> dict[str, str]:
    """Of each file that the next sync would write or forget, why; by path, in their order.

    Files are compared by stamps. Where a stamp leaves doubt a note is read: it then is either as the index has it, or
    changed. `failed` says what kept the last sync from indexing a file; it counts as long as the file is behind.
    """
    difference = compare(scan.files, known)
    why = {path: "cannot be looked at" if scan.is_unknown(path) else GONE for path in difference.vanished}
    why |= {file.path: NEW for file in difference.fresh}
    lacking = {file.path: file.reason for file in waiting(difference.touched, known)}
    why |= {file.path: CHANGED for file in difference.touched}
    why |= {path: f"has no vectors yet: {reason}" for path, reason in lacking.items()}
    for file in difference.doubtful:
        if (reason := _of_doubtful(workspace, file, known[file.path])) is not None:
            why[file.path] = reason
    why |= {path: f"failed: {failed[path]}" for path in why if path in failed and why[path] in {NEW, CHANGED, IN_DOUBT}}
    return dict(sorted(why.items()))


def waiting(files: tuple[MemoryFile, ...], known: Mapping[str, FileRecord]) -> tuple[Skipped, ...]:
    """The files that the index follows in all but their vectors, and why it lacks those."""
    lacks = {path: record.lacks for path, record in known.items() if record.lacks is not None}
    lacking = [file for file in files if file.path in lacks]
    changed = set(compare(lacking, {path: replace(known[path], lacks=None) for path in lacks}).dirty)
    return tuple(Skipped(file.path, lacks[file.path]) for file in lacking if file.path not in changed)


def _of_doubtful(workspace: Workspace, file: MemoryFile, record: FileRecord) -> str | None:
    """Why a file of the same stamp is behind all the same; None where its text is that of the index.

    A transcript only grows: one of the same size is the same.
    """
    if file.source == "sessions":
        return None
    from openclaw_memory.sync.prepare import read

    try:
        found, _ = read(workspace, file)
    except (OpenClawMemoryError, OSError):
        return IN_DOUBT
    return None if found.hash == record.hash else CHANGED
