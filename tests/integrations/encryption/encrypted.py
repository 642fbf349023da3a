"""What the tests of encryption share: keys, the settings that turn it on, and what a folder holds in the open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openclaw_memory_encryption import AgeCodec, age
from openclaw_memory_encryption.keys import State, list_keys

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.security import Key
from openclaw_memory.store import SqliteStore

KEY, OTHER = Key(bytes(range(32))), Key(bytes(32))


def with_settings(**settings: Any) -> MemoryConfig:
    return MemoryConfig(plugins={"encryption": settings})


ENCRYPTED = with_settings(enabled=True)


def unsealed(file: Path, key: Key = KEY) -> str:
    return age.unseal(file.read_bytes(), [key], str(file)).decode()


def holding(folder: Path, words: bytes) -> list[str]:
    """The files of a folder, and of those below it, in which these words are to be read."""
    return [str(file) for file in folder.rglob("*") if file.is_file() and words in file.read_bytes()]


def open_store(
    index: Path, config: MemoryConfig | None = None, root: Path | None = None, **options: Any
) -> SqliteStore:
    """The store of an index whose workspace is its folder, unless `root` is."""
    hook = AgeCodec(root or index.parent, config or MemoryConfig()).make_hook(index)
    return SqliteStore(index, hook=hook, **options)


def key_of(root: Path) -> str | None:
    """The id of the key of a workspace."""
    key_ids = State(root).key_ids
    return key_ids[-1] or None if key_ids else None


def kept_keys() -> set[str]:
    """The ids of the keys of this user."""
    return {key.id for key in list_keys()}


def encrypt(memory: Memory, path: str) -> str:
    return memory.control.reseal(path, sealed=True)


def decrypt(memory: Memory, path: str) -> str:
    return memory.control.reseal(path, sealed=False)
