"""The parts that a sync is given, and where the jobs that it leaves behind are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.indexing.background import SearchPriority
from openclaw_memory.types import Embedder, Progress, Store
from openclaw_memory.workspace import Workspace

if TYPE_CHECKING:
    from openclaw_memory.embeddings.batch import Batch, Patience


@dataclass(frozen=True, slots=True)
class SyncParts:
    """The parts of a sync.

    With `embedder=None` the index is keyword-only; if `trouble` then says why the wanted embedder, of the provider
    `requested`, is unavailable, an index keeps the vectors that it has. `progress` is called between transactions; an
    exception from it ends the sync and reaches the caller. Before each small piece of work the sync yields to the
    searches of `priority`. `patience` says how to wait for jobs of a batch API.
    """

    workspace: Workspace
    store: Store
    embedder: Embedder | None
    config: MemoryConfig
    trouble: str | None = None
    requested: str | None = None
    progress: Callable[[Progress], None] | None = None
    priority: SearchPriority = field(default_factory=SearchPriority)
    patience: Patience | None = None
    batch: Batch | None = None


def batch_place(store: Store) -> Path | None:
    """Return the file next to which jobs of a batch API are kept, as they outlive the index; None without a file."""
    location = store.describe(counts=False).location
    return Path(location) if location and "://" not in location else None
