"""What the tests of encryption share: keys, the settings that turn it on, and what a folder holds in the open."""

from __future__ import annotations

from pathlib import Path

from openclaw_memory import MemoryConfig
from openclaw_memory.security import age
from openclaw_memory.security.keys import Key

KEY, OTHER = Key(bytes(range(32))), Key(bytes(32))
ENCRYPTED = MemoryConfig().updated({"encryption": {"enabled": True}})


def unsealed(file: Path, key: Key = KEY) -> str:
    return age.unseal(file.read_bytes(), [key], str(file)).decode()


def holding(folder: Path, words: bytes) -> list[str]:
    """The files of a folder, and of those below it, in which these words are to be read."""
    return [str(file) for file in folder.rglob("*") if file.is_file() and words in file.read_bytes()]
