"""The vocabulary: frozen value objects that pass between the stages, and the protocols of an embedder and a store.

files -> index (chunks, rows) -> results (and reports) -> status; `exchange` is what agents and frameworks
exchange with a memory; `protocols` are the parts that can be replaced.
"""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

if TYPE_CHECKING:
    from openclaw_memory.types.exchange import Document, Tool, ToolAnswer, VectorSource
    from openclaw_memory.types.files import SOURCES, Excerpt, MemoryFile, Skipped, Source
    from openclaw_memory.types.index import (
        CandidateRequest,
        Candidates,
        Chunk,
        ChunkRow,
        FileRecord,
        Hit,
        IndexMeta,
        Matrix,
        SourceHits,
        StoredChunk,
        StoreInfo,
        Vector,
    )
    from openclaw_memory.types.protocols import (
        Build,
        Embedder,
        Store,
        WordVectorEmbedder,
        gather_candidates,
    )
    from openclaw_memory.types.results import Progress, SearchResult, SyncReport
    from openclaw_memory.types.search_request import SearchFilter, SearchRequest
    from openclaw_memory.types.snapshots import Snapshot, SnapshotMessage
    from openclaw_memory.types.status import Status
    from openclaw_memory.types.where import Where

__all__ = [
    "SOURCES",
    "Build",
    "CandidateRequest",
    "Candidates",
    "Chunk",
    "ChunkRow",
    "Document",
    "Embedder",
    "Excerpt",
    "FileRecord",
    "Hit",
    "IndexMeta",
    "Matrix",
    "MemoryFile",
    "Progress",
    "SearchFilter",
    "SearchRequest",
    "SearchResult",
    "Skipped",
    "Snapshot",
    "SnapshotMessage",
    "Source",
    "SourceHits",
    "Status",
    "Store",
    "StoreInfo",
    "StoredChunk",
    "SyncReport",
    "Tool",
    "ToolAnswer",
    "Vector",
    "VectorSource",
    "Where",
    "WordVectorEmbedder",
    "gather_candidates",
]

_MODULES = {
    "exchange": ("Document", "Tool", "ToolAnswer", "VectorSource"),
    "files": ("SOURCES", "Excerpt", "MemoryFile", "Skipped", "Source"),
    "index": (
        *("CandidateRequest", "Candidates", "Chunk", "ChunkRow", "FileRecord", "Hit", "IndexMeta", "Matrix"),
        *("SourceHits", "StoreInfo", "StoredChunk", "Vector"),
    ),
    "protocols": ("Build", "Embedder", "Store", "WordVectorEmbedder", "gather_candidates"),
    "results": ("Progress", "SearchResult", "SyncReport"),
    "search_request": ("SearchFilter", "SearchRequest"),
    "snapshots": ("Snapshot", "SnapshotMessage"),
    "status": ("Status",),
    "where": ("Where",),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
