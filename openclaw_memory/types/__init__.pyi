from .codec import FileCodec as FileCodec
from .documents import (
    Document as Document,
    Snapshot as Snapshot,
    Tool as Tool,
    ToolAnswer as ToolAnswer,
    VectorSource as VectorSource,
)
from .files import Excerpt as Excerpt, MemoryFile as MemoryFile, Source as Source
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
from .protocols import Build as Build, ConnectionHook as ConnectionHook, Embedder as Embedder, Store as Store
from .results import Progress as Progress, SearchResult as SearchResult, SyncReport as SyncReport

from .status import Status as Status
from .conditions import Where as Where
