"""Decode the text of a file: UTF-8, or UTF-16 with a byte order mark."""

from __future__ import annotations

from openclaw_memory.errors import UndecodableError


def decode(data: bytes, path: str) -> str:
    """Return the text of a file.

    A byte order mark is dropped, NUL becomes U+FFFD. Nothing else is changed: a CR stays, and only LF ends a line.

    Args:
        data: The bytes of the file.
        path: The file, for errors.

    Raises:
        UndecodableError: The bytes are not text in these encodings.
    """
    try:
        return data.decode("utf-16" if is_utf16(data) else "utf-8-sig").replace("\0", "\ufffd")
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"{path} is not text in {error.encoding} (byte {error.start}: {error.reason}): save it as UTF-8"
        ) from error


def is_utf16(data: bytes) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16.

    Args:
        data: The file, or its beginning.
    """
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))
