from .codec import FileCodec as FileCodec
from .documents import (
    Document as Document,
    Snapshot as Snapshot,
    SnapshotMessage as SnapshotMessage,
    Tool as Tool,
    ToolAnswer as ToolAnswer,
    VectorSource as VectorSource,
)
from .files import (
    SOURCES as SOURCES,
    Excerpt as Excerpt,
    MemoryFile as MemoryFile,
    Skipped as Skipped,
    Source as Source,
)
from .index import (
    Chunk as Chunk,
    ChunkRow as ChunkRow,
    FileRecord as FileRecord,
    Hit as Hit,
    HitRequest as HitRequest,
    Hits as Hits,
    IndexMeta as IndexMeta,
    Matrix as Matrix,
    SourceHits as SourceHits,
    StoredChunk as StoredChunk,
    StoreInfo as StoreInfo,
    Vector as Vector,
)
from .protocols import (
    Build as Build,
    ConnectionHook as ConnectionHook,
    Embedder as Embedder,
    PreparingEmbedder as PreparingEmbedder,
    Store as Store,
    WordVectorEmbedder as WordVectorEmbedder,
)
from .results import Progress as Progress, SearchResult as SearchResult, SyncReport as SyncReport

from .status import Status as Status
from .conditions import make_chunk_test as make_chunk_test, Where as Where
