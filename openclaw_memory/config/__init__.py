"""Settings: `MemoryConfig`, its parts, and where configuration and state are stored."""

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.sections import (
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    JournalConfig,
    PruningConfig,
    RecallConfig,
    RecordsConfig,
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
    "RecordsConfig",
    "SearchConfig",
    "SessionsConfig",
    "SyncConfig",
]
