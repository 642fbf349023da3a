"""The vocabulary: frozen value objects that pass between the stages, and the protocols of an embedder and a store.

files -> index (chunks, rows) -> answers (results, reports, status); `tools` and `documents` are what agents and
frameworks exchange with a memory; `protocols` are the parts that can be replaced.
"""

from openclaw_memory.types.exchange import Document, Tool, ToolAnswer, VectorSource
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
from openclaw_memory.types.protocols import (
    Build,
    CandidateRequest,
    Candidates,
    Embedder,
    ServiceEmbedder,
    SourceHits,
    Store,
    WordVectorEmbedder,
    gather_candidates,
)
from openclaw_memory.types.results import Progress, SearchResult, Status, SyncReport
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
