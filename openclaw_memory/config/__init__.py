"""Settings: `MemoryConfig`, its parts, and where configuration and state are stored."""

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.sections import (
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    IntentConfig,
    JournalConfig,
    PoliciesConfig,
    PolicyRule,
    PruningConfig,
    RecallConfig,
    RecordsConfig,
    SearchConfig,
    SessionsConfig,
    SnapshotsConfig,
    SyncConfig,
)

__all__ = [
    "ChunkingConfig",
    "CompactionConfig",
    "EmbeddingConfig",
    "FilesConfig",
    "IntentConfig",
    "JournalConfig",
    "MemoryConfig",
    "PoliciesConfig",
    "PolicyRule",
    "PruningConfig",
    "RecallConfig",
    "RecordsConfig",
    "SearchConfig",
    "SessionsConfig",
    "SnapshotsConfig",
    "SyncConfig",
]
