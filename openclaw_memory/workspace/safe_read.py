"""Read safely: the bytes of an allowed file, never through a symlink; its text; an excerpt of its lines."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory._links import NO_LINK
from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    UndecodableError,
    WorkspaceError,
)
from openclaw_memory.text.front_matter import hide_vector
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.text.redaction import redact
from openclaw_memory.text.utf16 import measure_utf16, truncate_utf16
from openclaw_memory.types import Excerpt
from openclaw_memory.types.codec import IS_SEALED, SUFFIX
from openclaw_memory.workspace.paths import Place, explain_left_out

if TYPE_CHECKING:
    from openclaw_memory.workspace.encodings import Decoded

# What OpenClaw's memory_get shows when it is asked for no more than a path.
DEFAULT_LINES = 120
DEFAULT_CHARS = 12_000

CAN_WALK = os.open in os.supports_dir_fd
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)


@contextmanager
def open_place(place: Place, settings: FilesConfig) -> Iterator[int]:
    """Yield a descriptor of the regular file of allowed size at a place; it is closed at the end.

    Raises:
        PathNotAllowedError, NotFoundError, WorkspaceError: As `WorkspaceFiles.read`.
    """
    try:
        descriptor = open_at(place.base, place.parts, os.O_RDONLY)
        try:
            if reason := explain_left_out(os.fstat(descriptor), settings, place.path):
                raise PathNotAllowedError(f"{place.path} {reason}")
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        if isinstance(error, OpenClawMemoryError):
            raise
        if error.errno == errno.ENOENT and os.path.lexists(f"{os.path.join(place.base, *place.parts)}{SUFFIX}"):
            # To write it under the name of before would put it in the open, next to the sealed one.
            raise NotFoundError(f"{place.path} {IS_SEALED}: its name is {place.path}{SUFFIX}") from error
        raise to_read_error(error, place.path) from error


def open_at(base: str, parts: Sequence[str], flags: int, mode: int = 0o600) -> int:
    """Open the file `parts` below the trusted folder `base`, refusing a symlink at every step; returns a descriptor.

    Raises:
        OSError: ELOOP where a part is a symlink, otherwise as open(2) raises it.
    """
    if not CAN_WALK:
        return _open_by_name(base, parts, flags, mode)
    folder = os.open(base, os.O_RDONLY | _DIRECTORY)
    if not parts:
        return folder
    try:
        for part in parts[:-1]:
            inner = _step(part, os.O_RDONLY | _DIRECTORY, mode, folder)
            os.close(folder)
            folder = inner
        return _step(parts[-1], flags, mode, folder)
    finally:
        os.close(folder)


def open_folder(base: str, parts: Sequence[str]) -> int:
    """Like `open_at`, for a folder."""
    return open_at(base, parts, os.O_RDONLY | _DIRECTORY)


def decode(data: bytes, path: str) -> str:
    """Return the text of a file: UTF-8, UTF-16 with a byte order mark, or what its bytes are without doubt.

    The mark is dropped, NUL becomes U+FFFD. Nothing else is changed: a CR stays where it is, and only LF ends a line.

    Args:
        data: The bytes of the file.
        path: The file, for errors.

    Raises:
        UndecodableError: The bytes are no such text.
    """
    encoding = "utf-16" if is_utf16(data) else "utf-8-sig"
    try:
        return data.decode(encoding).replace("\0", "\ufffd")
    except UnicodeDecodeError as error:
        if (found := _otherwise(data)) is not None:
            return found.text
        raise UndecodableError(
            f"{path} is not text in {error.encoding} (byte {error.start}: {error.reason}): save it as UTF-8"
        ) from error


def find_encoding(data: bytes) -> str | None:
    """Return the name of the encoding that a file is in without doubt, where that is neither UTF-8 nor UTF-16."""
    try:
        data.decode("utf-16" if is_utf16(data) else "utf-8-sig")
    except UnicodeDecodeError:
        found = _otherwise(data)
        return None if found is None else found.encoding
    return None


def _otherwise(data: bytes) -> Decoded | None:
    from openclaw_memory.workspace.encodings import decode_other

    return None if is_utf16(data) else decode_other(data)


def is_utf16(data: bytes) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16."""
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))


def make_excerpt(
    path: str, text: str, start: int = 1, lines: int = DEFAULT_LINES, max_chars: int = DEFAULT_CHARS
) -> Excerpt:
    """Return at most `lines` whole lines from line `start` (1-based), within `max_chars` UTF-16 units (as OpenClaw).

    A single line over the budget is cut, and the excerpt has `cut` set. A newline at the very end starts no line. Past
    the end the excerpt is empty, and its `end_line` is `start - 1`.

    Raises:
        InvalidInputError: `start` or `lines` is not a whole number of at least 1.
    """
    check_range(start, lines)
    every = split_lines(text)
    shown: list[str] = []
    room = max_chars
    for line in every[start - 1 : start - 1 + lines]:
        room -= measure_utf16(line) + bool(shown)
        if room < 0:
            break
        shown.append(line)
    cut = not shown and start <= len(every)
    if cut:
        shown = [truncate_utf16(every[start - 1], max_chars)]
    end = start + len(shown) - 1
    next_start = end + 1 if end < len(every) and shown else None
    return Excerpt(path, "\n".join(shown), start, end, next_start, cut, hash_lines("\n".join(every[start - 1 : end])))


def check_range(start: int, lines: int) -> None:
    """Raise InvalidInputError where `start` or `lines` is not a whole number of at least 1."""
    for name, value in (("start", start), ("lines", lines)):
        if not isinstance(value, int) or value < 1:
            raise InvalidInputError(f"{name} must be a whole number of at least 1, not {value!r}: lines count from 1")


def show_excerpt(path: str, text: str, start: int, lines: int, policies: Policies = NONE) -> Excerpt:
    """Return an excerpt like `excerpt_of`, with secrets masked, as policies say, and without the vector of a document.

    Its `hash` is that of the lines as they are in the file.
    """
    safe = redact(policies.mask(hide_vector(text)))
    excerpt = make_excerpt(path, safe, start, lines)
    if safe is text or safe == text:
        return excerpt
    whole = "\n".join(split_lines(text)[excerpt.start_line - 1 : excerpt.end_line])
    return replace(excerpt, hash=hash_lines(whole))


def mask_lines(lines: Sequence[str], policies: Policies = NONE) -> list[str]:
    """Return the lines of a note as policies say, secrets masked, all together: a private key spans several lines."""
    return redact(policies.mask("\n".join(lines))).split("\n") if lines else []


def show_lines(lines: Sequence[str], policies: Policies = NONE) -> list[str]:
    """Return the lines of a note as they are shown: secrets masked, as policies say, without a document's vector."""
    return mask_lines(hide_vector("\n".join(lines)).split("\n"), policies) if lines else []


def make_excerpt_of_lines(
    path: str, lines: Sequence[str], first: int, count: int, *, existed: bool = False, policies: Policies = NONE
) -> Excerpt:
    """Return `count` lines of a note from the 0-based `first` on, as shown; `hash` is that of the lines in the file."""
    shown, text = show_lines(lines, policies)[first : first + count], "\n".join(lines[first : first + count])
    return Excerpt(path, "\n".join(shown), first + 1, first + count, hash=hash_lines(text), existed=existed)


def hash_lines(lines: str) -> str:
    """Return the `hash` of an excerpt: hex SHA-256 of its lines as `split_lines` finds them, joined by newlines."""
    return hashlib.sha256(lines.replace("\0", "\ufffd").encode("utf-8", "surrogatepass")).hexdigest()


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their newlines; a newline at the very end starts no line."""
    return text.removesuffix("\n").split("\n") if text else []


def to_read_error(error: OSError, path: str) -> OpenClawMemoryError:
    """Return the error of this library that says why a file could not be opened."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return NotFoundError(f"{path} does not exist: check its name, or write it first")
    if error.errno == errno.ELOOP:
        return PathNotAllowedError(f"{path} passes a symlink, which is never followed: use the path of the file itself")
    if error.errno in {errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return PathNotAllowedError(f"{path} is not a regular file: name a Markdown file")
    return WorkspaceError(f"{path} cannot be read: {error.strerror}; fix its permissions")


def _step(part: str, flags: int, mode: int, folder: int) -> int:
    try:
        return os.open(part, flags | NO_LINK, mode, dir_fd=folder)
    except NotADirectoryError:
        # A symlink opened as a folder gives ENOTDIR as well. Nothing was opened: this look only finds the right word.
        if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from None
        raise


def _open_by_name(base: str, parts: Sequence[str], flags: int, mode: int) -> int:
    """For systems without openat(2), such as Windows: look at each part first; a race between the two remains."""
    current = base
    for part in parts:
        current = os.path.join(current, part)
        if os.path.islink(current):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), current)
    return os.open(current, flags | NO_LINK, mode)
