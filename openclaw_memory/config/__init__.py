"""Settings: `MemoryConfig`, its parts, and where configuration and state are stored."""

from openclaw_memory.config.checks import read_plugin_settings
from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.sections import (
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    PolicyRule,
    RecallConfig,
    RecordsConfig,
    SearchConfig,
    SessionsConfig,
    StoreConfig,
    SyncConfig,
)
from openclaw_memory.config.unread import find_unread_settings

__all__ = [
    "ChunkingConfig", "CompactionConfig", "EmbeddingConfig", "FilesConfig", "MemoryConfig",
    "PolicyRule", "RecallConfig", "RecordsConfig", "SearchConfig", "SessionsConfig", "StoreConfig", "SyncConfig",
    "find_unread_settings", "read_plugin_settings",
]  # fmt: skip
