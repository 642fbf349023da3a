from .aio import AsyncMemory as AsyncMemory
from .config import (
    ChunkingConfig as ChunkingConfig,
    EmbeddingConfig as EmbeddingConfig,
    FilesConfig as FilesConfig,
    MemoryConfig as MemoryConfig,
    SearchConfig as SearchConfig,
    SessionsConfig as SessionsConfig,
    SyncConfig as SyncConfig,
)
from .embeddings import load_embedder as load_embedder
from .errors import OpenClawMemoryError as OpenClawMemoryError
from .memories import Memories as Memories
from .memory import Memory as Memory
from .search import SearchResults as SearchResults
from .search.filters import SearchFilter as SearchFilter
from .search.request import SearchOptions as SearchOptions
from .store import SqliteStore as SqliteStore
from .types import (
    Embedder as Embedder,
    Excerpt as Excerpt,
    SearchResult as SearchResult,
    Status as Status,
    Store as Store,
    SyncReport as SyncReport,
)
from .workspace import Workspace as Workspace

__version__: str
