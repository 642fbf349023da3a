from .aio import AsyncMemory as AsyncMemory
from .config.config import MemoryConfig as MemoryConfig
from .embeddings.registry import load_embedder as load_embedder
from .errors import OpenClawMemoryError as OpenClawMemoryError
from .memories import Memories as Memories
from .memory import Memory as Memory
from .search.results import SearchResults as SearchResults
from .search.filters import SearchFilter as SearchFilter
from .search.request import SearchOptions as SearchOptions

__version__: str
