"""Name and recognise encrypted files, and define the codec that a plug-in opens them with.

All such files are of the format age, and end in `.age` behind the ending that says what is in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from openclaw_memory.errors import SealedFileError

if TYPE_CHECKING:
    from pathlib import Path

    from openclaw_memory.types.protocols import ConnectionHook

SUFFIX = ".age"
MAGIC = b"age-encryption.org/v1\n-> "
NOT_READ = (
    "is encrypted, and the index is not, which would hold its text in the open: encrypt the index too, with "
    "`openclaw-memory encrypt`; no other engine and no other store than SQLite can be"
)
IS_SEALED = "is encrypted"
SEAL_FIRST = "encrypt that file first, with `openclaw-memory encrypt"


def is_sealed(data: bytes) -> bool:
    """Return whether the content of a file, or its beginning, is encrypted.

    Args:
        data: The content.
    """
    return data.startswith(MAGIC)


def get_plain_name(path: str) -> str:
    """Return the path that a file has when it is not encrypted.

    Args:
        path: The path.
    """
    return path.removesuffix(SUFFIX)


def check_key(codec: FileCodec, path: str) -> FileCodec:
    """Return a codec that has a key.

    Args:
        codec: The codec.
        path: The file that is to be encrypted or decrypted.

    Raises:
        SealedFileError: It has none, as the index is plain.
    """
    if codec.key_id is None:
        raise SealedFileError(f"{path} {NOT_READ}")
    return codec


class FileCodec(Protocol):
    """Encrypts and decrypts files of a workspace, and its index.

    Attributes:
        key_id: The id of the key that encrypts; None while nothing is encrypted or decrypted.
        is_active: Whether the index must be encrypted, and so be one of `SqliteStore`.
    """

    @property
    def key_id(self) -> str | None: ...

    @property
    def is_active(self) -> bool: ...

    def make_hook(self, index: Path) -> ConnectionHook | None:
        """Make the hook that the index is opened with; None for a plain one.

        Args:
            index: Its file.
        """
        ...

    def is_sealing(self, kind: str) -> bool:
        """Return whether new files of a kind are to be encrypted.

        Args:
            kind: `note` for all that is kept in Markdown, `private` for a record of high sensitivity, `transcript`, or
                `snapshot`.
        """
        ...

    def seal(self, data: bytes, path: str) -> bytes:
        """Encrypt the content of a file. Called where `key_id` is not None, as `unseal` and `is_current` are.

        Args:
            data: The content.
            path: The file, for errors.

        Raises:
            SealedFileError: It cannot be encrypted.
        """
        ...

    def unseal(self, data: bytes, path: str) -> bytes:
        """Decrypt the content of a file.

        Args:
            data: The file.
            path: Its path, for errors.

        Raises:
            SealedFileError: The key is not here, or the file is damaged.
        """
        ...

    def is_current(self, data: bytes, path: str) -> bool:
        """Return whether a file is encrypted with the present key.

        Args:
            data: The file.
            path: Its path, for errors.
        """
        ...

    def measure(self, head: bytes, size: int) -> int:
        """Return how many bytes an encrypted file holds, without the key.

        Args:
            head: The first 4 KiB of the file.
            size: The size of the file.
        """
        ...


class PlainText:
    """Write files as they are, and read no encrypted ones."""

    key_id: str | None = None
    is_active = False

    def make_hook(self, index: Path) -> ConnectionHook | None:  # noqa: ARG002
        return None

    def is_sealing(self, kind: str) -> bool:  # noqa: ARG002
        return False

    def seal(self, data: bytes, path: str) -> bytes:  # noqa: ARG002
        return data

    unseal = seal

    def is_current(self, data: bytes, path: str) -> bool:  # noqa: ARG002
        return False

    def measure(self, head: bytes, size: int) -> int:  # noqa: ARG002
        return size


PLAIN_TEXT = PlainText()
