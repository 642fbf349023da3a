"""The workspace of a memory with what guards its files: the user's policies, and encryption by the index's key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openclaw_memory.security.age import FileEncryption
from openclaw_memory.text.policies import Policies, guarded

if TYPE_CHECKING:
    from pathlib import Path

    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.types import Store
    from openclaw_memory.types.files import SharedFiles
    from openclaw_memory.workspace import Workspace


def guarded_workspace(
    workspace: Workspace, store: Store | Callable[[], Store] | None, config: MemoryConfig
) -> Workspace:
    """Return the workspace with rules for its files that carry the policies, and what encrypts and decrypts them.

    Args:
        workspace: The files.
        store: The store of the index, or a function that returns it and is called when a key is needed; None where
            another engine answers, whose index is plain.
        config: The settings.
    """
    plain = store is None or config.backend.name != "builtin"
    said = config.encryption
    encryption = FileEncryption(partial(_key_id, None if plain else store), said.transcripts, said.snapshots)
    share: Callable[[Path], SharedFiles | None] | None = getattr(store, "shared_files", None)
    shared = None if share is None else share(workspace.root)
    return replace(workspace, rules=guarded(workspace.rules, Policies(config.policies.rules), encryption, shared))


def _key_id(store: Store | Callable[[], Store] | None) -> str | None:
    """Return the id of the key that an index is encrypted with; None for a plain one, and a store without keys."""
    made = store() if callable(store) else store
    key_id: Callable[[], str | None] | None = getattr(made, "key_id", None)
    return None if key_id is None else key_id()
