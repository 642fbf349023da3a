"""The only SQL: an index of chunks, terms and vectors in one SQLite file, plain or encrypted."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names
from openclaw_memory.store.sqlite import SqliteStore

__all__ = ["SqliteStore", "decrypt_index", "encrypt_index", "rotate_index_key"]

if TYPE_CHECKING:
    from openclaw_memory.store.encryption import decrypt_index, encrypt_index, rotate_index_key

__getattr__, __dir__ = late_names(
    __name__, {"encryption": ("decrypt_index", "encrypt_index", "rotate_index_key")}, __all__
)
