"""List the pure functions of the preset `openclaw-2026.2` as OpenClaw's documents do, for experiments in a notebook.

They are the very functions that a search with the preset runs. `docs/reference/openclaw-names.md` maps other names.
"""

import os
from collections.abc import Iterable

from openclaw_memory.chunking.sliding_window import chunk_lines as chunk_markdown
from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.embeddings.vectors import make_vector_key as hash_text
from openclaw_memory.search.ranking import merge_scores as merge_hybrid_results
from openclaw_memory.search.ranking import scale_bm25 as bm25_rank_to_score
from openclaw_memory.workspace import Workspace

__all__ = ["bm25_rank_to_score", "chunk_markdown", "hash_text", "list_memory_files", "merge_hybrid_results"]


def list_memory_files(workspace: str | os.PathLike[str], extra_paths: Iterable[str] = ()) -> list[str]:
    """List the paths of the memory files of a workspace in the order of their indexing.

    Args:
        workspace: The folder.
        extra_paths: Other files and folders to look at, as in `files.extra_paths`.
    """
    config = MemoryConfig.openclaw("2026.2").replace({"files": {"extra_paths": tuple(extra_paths)}})
    return [file.path for file in Workspace.open(workspace, config.files).scan().files]
