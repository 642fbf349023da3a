"""Chooses the engine of a memory by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openclaw_memory.backends.protocol import Backend
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.workspace import Workspace


def backend_of(workspace: Workspace, builtin: Backend, config: MemoryConfig) -> Backend:
    """Return the engine that `config.backend` names: the built-in one, or QMD with that in its place when it fails.

    Args:
        workspace: The files, with the policies.
        builtin: The built-in engine.
        config: The settings.

    Raises:
        ConfigError: The name of the collection is invalid.
    """
    if config.backend.name == "builtin":
        return builtin
    from openclaw_memory.backends.fallback import FallbackBackend
    from openclaw_memory.backends.qmd import QmdBackend

    return FallbackBackend(QmdBackend(workspace, config), builtin)


def renew(backend: Backend) -> None:
    """Have an engine that keeps text besides the built-in one delete it, and index the notes again.

    Args:
        backend: The engine of a memory.
    """
    from openclaw_memory.backends.fallback import FallbackBackend

    if isinstance(backend, FallbackBackend):
        backend.renew()
