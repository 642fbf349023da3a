"""Choose the store that keeps an index: SQLite, one that an entry point adds, or one that is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from openclaw_memory.errors import ConfigError, nearest
from openclaw_memory.store.location import index_place
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.types import Store

ENTRY_POINT_GROUP = "openclaw_memory.stores"
SQLITE = "sqlite"

StoreChoice: TypeAlias = "str | Store | Callable[[], Store]"


def store_of(
    choice: StoreChoice, root: Path, index_path: str | os.PathLike[str] | None = None
) -> tuple[Store | Callable[[], Store], tuple[str, ...]]:
    """Return the store that keeps the index of the workspace in `root`, and notices about its place.

    Args:
        choice: "sqlite", `sqlite:///PATH`, the URL of a store that an entry point of the group
            `openclaw_memory.stores` opens by its scheme, a store, or a function that makes one.
        root: The folder of the workspace.
        index_path: The file of the index; for "sqlite" alone.

    Raises:
        ConfigError: The choice is not one of these, its scheme is unknown, or `index_path` does not go with it.
    """
    if index_path is not None and choice != SQLITE:
        raise ConfigError(f"index_path is the file of store='sqlite' and does not go with store={choice!r}: drop one")
    if not isinstance(choice, str):
        return _checked(choice), ()
    scheme, _, rest = choice.partition("://")
    if scheme != SQLITE:
        return _opener(scheme, choice)(choice, root), ()
    if choice == SQLITE:
        index, notices = (Path(index_path).expanduser(), ()) if index_path else index_place(root)
        return SqliteStore(index, trusted=_trusted(index, root)), notices
    host, _, path = rest.partition("/")
    if host or not path:
        wrong = f"names a host, {host!r}" if host else "names no file"
        raise ConfigError(
            f"store {choice!r} {wrong}: write sqlite:////var/lib/agent/index.sqlite, or sqlite:///index.sqlite for a "
            "file in the workspace"
        )
    index = root / Path(path).expanduser()
    return SqliteStore(index, trusted=_trusted(index, root)), ()


def _trusted(index: Path, root: Path) -> Path:
    """Return the folder below which no part of the way to the index may be a link: inside a workspace, its root."""
    return root if index.is_relative_to(root) and ".." not in index.parts else index.parent


def _checked(choice: Store | Callable[[], Store]) -> Store | Callable[[], Store]:
    if isinstance(choice, Store):
        return choice
    missing = sorted(name for name in dir(Store) if not name.startswith("_") and not hasattr(choice, name))
    if callable(choice) and len(missing) > 1:
        return choice
    raise ConfigError(
        f"store {choice!r} is not a store: it lacks {', '.join(missing)}; give 'sqlite', a URL, an object with the "
        "methods of openclaw_memory.types.Store, or a function that makes one"
    )


def _opener(scheme: str, choice: str) -> Callable[[str, Path], Store]:
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if scheme not in points:
        known = (SQLITE, *sorted(points))
        raise ConfigError(
            f"unknown store {choice!r}: {nearest(scheme, known)}the stores are {', '.join(known)}; others come with a "
            f"package that has an entry point in {ENTRY_POINT_GROUP}"
        )
    try:
        opener: Callable[[str, Path], Store] = points[scheme].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"store {scheme!r} ({points[scheme].value}) cannot be loaded: {error}; reinstall the package that adds it"
        ) from error
    return opener
