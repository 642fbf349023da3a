"""Choose the store that keeps an index: SQLite, one that a plug-in opens, or an object of the program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.environment import locate_workspace_data
from openclaw_memory.errors import ConfigError, suggest
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.types import Store
from openclaw_memory.types.codec import IS_SEALED, PLAIN_TEXT, FileCodec

SQLITE, INDEX_NAME = "sqlite", "index.sqlite"

StoreChoice: TypeAlias = "str | Store | Callable[[], Store]"


def choose_store(
    choice: StoreChoice | None,
    root: Path,
    index_path: str | os.PathLike[str] | None = None,
    config: MemoryConfig | None = None,
    codec: FileCodec = PLAIN_TEXT,
) -> Store | Callable[[], Store]:
    """Return the store that keeps the index of the workspace in `root`.

    Args:
        choice: "sqlite", `sqlite:///PATH`, the URL of a store that a plug-in opens by its scheme, a store, or a
            function that makes one. None: `index_path` if that is set, else by `config`.
        root: The folder of the workspace.
        index_path: The file of the index; for "sqlite" alone.
        config: Which engine answers, and where the index is kept if `choice` is None.
        codec: The codec of the workspace, whose hook "sqlite" and `sqlite:///PATH` are opened with.

    Raises:
        ConfigError: The choice is not one of these, its scheme is unknown, `index_path` does not go with it, or the
            codec does not.
    """
    settings = config or MemoryConfig()
    if choice is None:
        choice = settings.store.url if index_path is None else SQLITE
    scheme, _, address = choice.partition("://") if isinstance(choice, str) else ("", "", "")
    if codec.is_active and (scheme != SQLITE or settings.store.backend != "builtin"):
        keeper = settings.store.backend if scheme == SQLITE else scheme or "a store that was handed in"
        raise ConfigError(f"this memory {IS_SEALED}, and {keeper} would keep it in the open: use store='sqlite' for it")
    if index_path is not None and choice != SQLITE:
        raise ConfigError(f"index_path is the file of store='sqlite' and does not go with store={choice!r}: drop one")
    if not isinstance(choice, str):
        return _check_store(choice)
    if scheme != SQLITE:
        return _load_opener(choice, scheme)(choice, root)
    if choice == SQLITE:
        index = Path(index_path).expanduser() if index_path else locate_workspace_data(root) / INDEX_NAME
        return _open_sqlite(index, codec)
    host, _, path = address.partition("/")
    if host or not path:
        wrong = f"names a host, {host!r}" if host else "names no file"
        raise ConfigError(
            f"store {choice!r} {wrong}: write sqlite:////var/lib/agent/index.sqlite, or sqlite:///index.sqlite for a "
            "file in the workspace"
        )
    return _open_sqlite(root / Path(path).expanduser(), codec)


def _open_sqlite(index: Path, codec: FileCodec) -> SqliteStore:
    hook = codec.make_hook(index)
    if codec.is_active and hook is None:
        raise ConfigError(f"this memory {IS_SEALED}, and {type(codec).__name__} makes no hook that encrypts {index}")
    return SqliteStore(index, hook=hook)


def _check_store(choice: Store | Callable[[], Store]) -> Store | Callable[[], Store]:
    if isinstance(choice, Store):
        return choice
    missing = sorted(name for name in dir(Store) if not name.startswith("_") and not hasattr(choice, name))
    if callable(choice) and len(missing) > 1:
        return choice
    raise ConfigError(
        f"store {choice!r} is not a store: it lacks {', '.join(missing)}; give 'sqlite', a URL, an object with the "
        "methods of openclaw_memory.types.Store, or a function that makes one"
    )


def _load_opener(choice: str, scheme: str) -> Callable[[str, Path], Store]:
    if not has_plugin("stores", scheme):
        stores = (SQLITE, *list_plugins("stores"))
        raise ConfigError(
            f"unknown store {choice!r}: {suggest(scheme, stores)}the stores are {', '.join(stores)}; others come with "
            "a package that has an entry point in openclaw_memory.stores"
        )
    opener: Callable[[str, Path], Store] = load_plugin("stores", scheme)
    return opener
