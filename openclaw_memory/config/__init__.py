"""Settings: `MemoryConfig`, the parts it is made of, and where configuration and state live."""

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.sections import (
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    JournalConfig,
    PruningConfig,
    RecallConfig,
    SearchConfig,
    SessionsConfig,
    SyncConfig,
)

__all__ = [
    "ChunkingConfig",
    "CompactionConfig",
    "EmbeddingConfig",
    "FilesConfig",
    "JournalConfig",
    "MemoryConfig",
    "PruningConfig",
    "RecallConfig",
    "SearchConfig",
    "SessionsConfig",
    "SyncConfig",
]
