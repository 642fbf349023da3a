"""The parts of a sync."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from openclaw_memory.config import MemoryConfig
from openclaw_memory.indexing.background import SearchPriority
from openclaw_memory.store.embedding_cache import EmbeddingCache
from openclaw_memory.types import Embedder, Progress, Store
from openclaw_memory.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SyncParts:
    """The parts of a sync.

    With `embedder=None` the index is keyword-only; if `trouble` then says why the wanted embedder, of the provider
    `requested`, is unavailable, an index keeps the vectors that it has. `progress` is called between transactions; an
    exception from it ends the sync and reaches the caller. Before each small piece of work the sync yields to the
    searches of `priority`. `cache` has the vectors that other workspaces of the user have had embedded.
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
