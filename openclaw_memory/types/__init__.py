"""The vocabulary: frozen value objects that pass between the stages, and the protocols of an embedder and a store.

files -> index (chunks, rows) -> answers (results, reports, status); `tools` and `documents` are what agents and
frameworks exchange with a memory; `protocols` are the parts that can be replaced.
"""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

if TYPE_CHECKING:
    from openclaw_memory.types.candidates import CandidateRequest, Candidates, SourceHits, gather_candidates
    from openclaw_memory.types.documents import Document, VectorSource
    from openclaw_memory.types.files import SOURCES, Excerpt, MemoryFile, Skipped, Source
    from openclaw_memory.types.index import (
        Chunk,
        ChunkRow,
        FileRecord,
        Hit,
        IndexMeta,
        Matrix,
        StoredChunk,
        StoreInfo,
        Vector,
    )
    from openclaw_memory.types.protocols import Build, Embedder, ServiceEmbedder, Store, WordVectorEmbedder
    from openclaw_memory.types.results import Progress, SearchResult, Status, SyncReport
    from openclaw_memory.types.tools import Tool, ToolAnswer
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
    "SearchResult",
    "ServiceEmbedder",
    "Skipped",
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
    "candidates": (
        "CandidateRequest",
        "Candidates",
        "SourceHits",
        "gather_candidates",
    ),
    "documents": (
        "Document",
        "VectorSource",
    ),
    "files": (
        "SOURCES",
        "Excerpt",
        "MemoryFile",
        "Skipped",
        "Source",
    ),
    "index": (
        "Chunk",
        "ChunkRow",
        "FileRecord",
        "Hit",
        "IndexMeta",
        "Matrix",
        "StoredChunk",
        "StoreInfo",
        "Vector",
    ),
    "protocols": (
        "Build",
        "Embedder",
        "ServiceEmbedder",
        "Store",
        "WordVectorEmbedder",
    ),
    "results": (
        "Progress",
        "SearchResult",
        "Status",
        "SyncReport",
    ),
    "tools": (
        "Tool",
        "ToolAnswer",
    ),
    "where": ("Where",),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
