"""Compare files with the index by their stamps, and select the changes that are worth a sync."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.background import SearchPriority
from openclaw_memory.types import Embedder, FileRecord, MemoryFile, Progress, Store
from openclaw_memory.workspace.paths import is_settled

if TYPE_CHECKING:
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.scan import Scan

# In the record of a file that was not read to its end; no file has this size.
UNREAD_SIZE = -1
# The beginning of the reason why a file that is indexed in part counts as skipped.
IN_PART = "is indexed up to line"
DAMAGED = "is indexed without the damaged bytes, shown as \ufffd, from line"
# Each request words the same failure in its own way (it names itself): so many reasons are reported.
MAX_REASONS = 3


class SyncParts(Struct, frozen=True):
    """The parts of a sync.

    With `embedder=None` the index is keyword-only; if `trouble` then says why the requested embedder, of the provider
    `requested`, is unavailable, an index keeps the vectors that it has. `progress` is called between transactions; an
    exception from it ends the sync and reaches the caller. Before each small piece of work the sync yields to the
    searches of `priority`. `cache` has the vectors that other workspaces of the user have had embedded. With
    `is_interim` vectors of another embedder are gathered, which no row uses yet.
    """

    workspace: Workspace
    store: Store
    embedder: Embedder | None
    config: MemoryConfig
    trouble: str | None = None
    requested: str | None = None
    progress: Callable[[Progress], None] | None = None
    priority: SearchPriority = field(default_factory=SearchPriority)
    cache: EmbeddingCache | None = None
    is_interim: bool = False


class Difference(Struct, frozen=True):
    """Files on disk, split by their stamps.

    `fresh` is unknown to the index, `touched` has another stamp than it had, or lacks vectors, `doubtful` has the same
    stamp but was read so soon after its last write that a later write may hide behind it. `vanished` lists indexed
    paths that are not on disk.
    """

    fresh: tuple[MemoryFile, ...]
    touched: tuple[MemoryFile, ...]
    doubtful: tuple[MemoryFile, ...]
    vanished: tuple[str, ...]
    unchanged: int

    @property
    def to_read(self) -> tuple[MemoryFile, ...]:
        """The files to read again."""
        return self.fresh + self.touched + self.doubtful

    @property
    def dirty(self) -> tuple[str, ...]:
        """Sorted paths of the files that the index does not follow."""
        return tuple(sorted([*(file.path for file in self.fresh + self.touched), *self.vanished]))


# Neither the scan nor the records are other objects while nothing changes.
_latest: WeakKeyDictionary[Scan, tuple[Mapping[str, FileRecord], Difference]] = WeakKeyDictionary()


def compare_scan(scan: Scan, records: Mapping[str, FileRecord]) -> Difference:
    """Compare the files of a scan as `compare` does, once for the same scan and records."""
    latest = _latest.get(scan)
    if latest is None or latest[0] is not records:
        _latest[scan] = latest = records, compare(scan.files, records)
    return latest[1]


def compare(files: Iterable[MemoryFile], records: Mapping[str, FileRecord]) -> Difference:
    """Compare the files on disk with their records in the index, each path by its own stamp."""
    fresh: list[MemoryFile] = []
    touched: list[MemoryFile] = []
    doubtful: list[MemoryFile] = []
    paths: set[str] = set()
    unchanged = 0
    for file in files:
        paths.add(file.path)
        record = records.get(file.path)
        if record is None:
            fresh.append(file)
        elif record.vectors_missing is not None or not has_stamp(file, record):
            touched.append(file)
        elif is_settled(record.mtime_ns, record.ctime_ns, record.checked_ns):
            unchanged += 1
        else:
            doubtful.append(file)
    vanished = tuple(sorted(path for path in records if path not in paths))
    return Difference(tuple(fresh), tuple(touched), tuple(doubtful), vanished, unchanged)


def select_urgent(
    difference: Difference, records: Mapping[str, FileRecord], rules: SessionsConfig, workspace: Workspace
) -> dict[str, tuple[int, ...] | None]:
    """Return the files for which a sync should run by itself, with their stamps (None: gone).

    A transcript grows with every message: one that has grown by less than the thresholds of `rules` can wait.
    """
    urgent: dict[str, tuple[int, ...] | None] = dict.fromkeys(difference.vanished)
    for file in difference.fresh + difference.touched:
        record = records.get(file.path)
        if record is None or file.source == "memory" or not _can_wait(file, record, rules, workspace):
            urgent[file.path] = (file.mtime_ns, file.ctime_ns, file.size, file.inode)
    return urgent


def _can_wait(file: MemoryFile, record: FileRecord, rules: SessionsConfig, workspace: Workspace) -> bool:
    """Return whether a transcript has only grown since it was indexed, and by little; its new lines are counted."""
    if has_stamp(file, record):
        return True  # it lacks vectors
    growth = file.size - record.size
    if record.size == UNREAD_SIZE or file.inode != record.inode or not 0 < growth < rules.delta_bytes:
        return False
    try:
        lines = workspace.count_added_lines(file.path, record.hash, rules.delta_bytes)
    except (OpenClawMemoryError, OSError):  # gone, or not to be read: the sync says so
        return False
    return lines is not None and lines < rules.delta_messages


def has_stamp(file: MemoryFile, record: FileRecord) -> bool:
    """Return whether a file is, by its stamp, the one that was read.

    A program can set the mtime back, but not the ctime. A store that keeps none gives 0 for it.
    """
    return (
        file.mtime_ns == record.mtime_ns
        and (file.ctime_ns == record.ctime_ns or not record.ctime_ns)
        and file.size == record.size
        and file.inode == record.inode
        and file.source == record.source
    )


def count_missing_vectors(files: Mapping[str, FileRecord]) -> dict[str, int]:
    """Return how many files lack vectors, by the reason."""
    return dict(Counter(record.vectors_missing for record in files.values() if record.vectors_missing is not None))


def explain_missing_vectors(counts: Mapping[str, int]) -> list[str]:
    """Return a line for each of the most frequent reasons why files lack vectors, and one for all further reasons."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    lines = [
        f"{count} file{'' if count == 1 else 's'} without vectors, found by keywords alone: {reason}"
        for reason, count in ordered[:MAX_REASONS]
    ]
    if more := sum(count for _, count in ordered[MAX_REASONS:]):
        lines.append(f"and {more} more file{'' if more == 1 else 's'} without vectors, for other reasons")
    return lines
