"""Choose the store that keeps an index: SQLite, one that an entry point adds, or one that is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import ConfigError, nearest
from openclaw_memory.store.location import index_place
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.types import Store

ENTRY_POINT_GROUP = "openclaw_memory.stores"
SQLITE, POSTGRES = "sqlite", ("postgresql", "postgres")

StoreChoice: TypeAlias = "str | Store | Callable[[], Store]"


def store_of(
    choice: StoreChoice | None,
    root: Path,
    index_path: str | os.PathLike[str] | None = None,
    config: MemoryConfig | None = None,
    must_encrypt: bool = False,
) -> tuple[Store | Callable[[], Store], tuple[str, ...]]:
    """Return the store that keeps the index of the workspace in `root`, and notices about its place.

    Args:
        choice: "sqlite", `sqlite:///PATH`, `postgresql://HOST/DATABASE?tenant=ID`, the URL of a store that an entry
            point of the group `openclaw_memory.stores` opens by its scheme, a store, or a function that makes one.
            None: the file that is given, else what `config` says.
        root: The folder of the workspace.
        index_path: The file of the index; for "sqlite" alone.
        config: Whether an index that is made is encrypted, for "sqlite" and `sqlite:///PATH`, which engine answers, and
            where the index is kept if `choice` is None.
        must_encrypt: Refuse what would not be encrypted; else a notice says so.

    Raises:
        ConfigError: The choice is not one of these, its scheme is unknown, `index_path` does not go with it, or it
            cannot be encrypted and must be.
    """
    settings = config or MemoryConfig()
    if choice is None:
        choice = settings.store.url if index_path is None else SQLITE
    plain = _without_encryption(choice, settings.backend.name) if settings.encryption.enabled else ""
    if plain and must_encrypt:
        raise ConfigError(f"encryption.enabled does not encrypt {plain}; or turn it off")
    store, notices = _store_of(choice, root, index_path, settings)
    return store, (*notices, f"encryption.enabled does not encrypt {plain}") if plain else notices


def _store_of(
    choice: StoreChoice, root: Path, index_path: str | os.PathLike[str] | None, config: MemoryConfig
) -> tuple[Store | Callable[[], Store], tuple[str, ...]]:
    if index_path is not None and choice != SQLITE:
        raise ConfigError(f"index_path is the file of store='sqlite' and does not go with store={choice!r}: drop one")
    if not isinstance(choice, str):
        return _checked(choice), ()
    scheme, _, rest = choice.partition("://")
    if scheme in POSTGRES:
        from openclaw_memory.store.postgres_address import open_postgres

        return open_postgres(choice, root), ()
    if scheme != SQLITE:
        return _opener(scheme, choice)(choice, root), ()
    if choice == SQLITE:
        index, notices = (Path(index_path).expanduser(), ()) if index_path else index_place(root)
        return SqliteStore(index, trusted=_trusted(index, root), encryption=config.encryption), notices
    host, _, path = rest.partition("/")
    if host or not path:
        wrong = f"names a host, {host!r}" if host else "names no file"
        raise ConfigError(
            f"store {choice!r} {wrong}: write sqlite:////var/lib/agent/index.sqlite, or sqlite:///index.sqlite for a "
            "file in the workspace"
        )
    index = root / Path(path).expanduser()
    return SqliteStore(index, trusted=_trusted(index, root), encryption=config.encryption), ()


def _without_encryption(choice: StoreChoice, backend: str) -> str:
    """Return what would not be encrypted with `encryption.enabled`, in words; "" where the index is."""
    if not isinstance(choice, str):
        return "a store that was handed in (an index of SQLite is: SqliteStore(path, encryption=EncryptionConfig(...)))"
    if (scheme := choice.partition("://")[0]) != SQLITE:
        return f"an index in {scheme}: encrypt the disk of its server"
    return "what QMD keeps, which is an index and copies of the notes: encrypt the disk" if backend == "qmd" else ""


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
        known = (SQLITE, POSTGRES[0], *sorted(points))
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
