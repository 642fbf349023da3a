"""Agent memory as plain Markdown, found again with cited lines.

A workspace is a folder with `MEMORY.md` and dated notes in `memory/`. Those files are the truth; the index is
derived from them and may be deleted at any time.

>>> import tempfile
>>> from openclaw_memory import Memory
>>> folder = tempfile.TemporaryDirectory()
>>> memory = Memory.open(folder.name)

Write a note, bring the index up to date, and ask. A result names the lines that it shows:

>>> memory.append("Anna moved the launch to Friday, because the venue is free then.", date="2026-11-21").path
'memory/2026-11-21.md'
>>> memory.sync().added
('memory/2026-11-21.md',)
>>> best = memory.search("When is the launch?")[0]
>>> best.path
'memory/2026-11-21.md'
>>> best.end_line
3
>>> best.snippet.splitlines()[-1]
'Anna moved the launch to Friday, because the venue is free then.'

Read around it, straight from the file:

>>> memory.get(best.path, start=1, lines=1).text.strip()
'# 2026-11-21'

What is indexed, and what works less well than it could, is in the status:

>>> memory.status().files
1
>>> memory.close()
>>> folder.cleanup()
"""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "ChunkingConfig",
    "Embedder",
    "EmbeddingConfig",
    "Excerpt",
    "FilesConfig",
    "JournalConfig",
    "Memories",
    "Memory",
    "MemoryConfig",
    "OpenClawMemoryError",
    "SearchConfig",
    "SearchResult",
    "SearchResults",
    "SessionsConfig",
    "SqliteStore",
    "Status",
    "Store",
    "SyncConfig",
    "SyncReport",
    "Workspace",
    "load_embedder",
]

if TYPE_CHECKING:
    from openclaw_memory.aio import AsyncMemory
    from openclaw_memory.config import (
        ChunkingConfig,
        EmbeddingConfig,
        FilesConfig,
        JournalConfig,
        MemoryConfig,
        SearchConfig,
        SessionsConfig,
        SyncConfig,
    )
    from openclaw_memory.embeddings import load_embedder
    from openclaw_memory.errors import OpenClawMemoryError
    from openclaw_memory.memories import Memories
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults
    from openclaw_memory.store import SqliteStore
    from openclaw_memory.types import Embedder, Excerpt, SearchResult, Status, Store, SyncReport
    from openclaw_memory.workspace import Workspace

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {
    "aio": ("AsyncMemory",),
    "config": (
        "ChunkingConfig",
        "EmbeddingConfig",
        "FilesConfig",
        "JournalConfig",
        "MemoryConfig",
        "SearchConfig",
        "SessionsConfig",
        "SyncConfig",
    ),
    "embeddings": ("load_embedder",),
    "errors": ("OpenClawMemoryError",),
    "memories": ("Memories",),
    "memory": ("Memory",),
    "search": ("SearchResults",),
    "store": ("SqliteStore",),
    "types": ("Embedder", "Excerpt", "SearchResult", "Status", "Store", "SyncReport"),
    "workspace": ("Workspace",),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
