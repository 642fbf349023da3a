"""Every error this library raises on purpose, under one root.

The tree::

    OpenClawMemoryError
    ├── ConfigError             a setting has a wrong type or value
    ├── WorkspaceError          the workspace folder is missing or is not a folder
    │   ├── PathNotAllowedError a path leaves the workspace or is not a memory file
    │   ├── UndecodableError    a memory file does not hold text, or is another program's transcript
    │   │   └── SealedFileError  it is encrypted: the key is not here, the index is plain, or it is damaged
    │   └── RecordError         the file of a record is damaged, or not as this library has signed it
    ├── NotFoundError           an allowed path names no file, or no line in it
    ├── InvalidInputError       a call got an argument of a wrong type or value; nothing was read or written
    │   └── QueryError          the call was a search
    ├── EmbedderError           an embedder is unknown, misbehaves, or its vectors do not fit
    │   └── MissingExtraError   an optional package is needed: the message holds the pip command
    ├── StoreError              the index cannot be used
    │   ├── CorruptIndexError   the index file is damaged
    │   ├── IndexReplacedError  the index was deleted or built again while it was in use
    │   └── IndexLockedError    another process held the index longer than the busy timeout
    │       └── SyncBusyError   another sync of this index is running, and the wait for it is over
    ├── UserKeyError            a key of the user's is missing, is malformed, or can be read by others
    └── WriteError              a memory file could not be written; nothing was changed
        ├── ConflictError       the lines have changed since the caller saw them; the error has both versions
        └── PolicyError         a rule of the user's says never to store this; the error names the rule

Each message names the value that was wrong and what to do next, in the words of `suggest` and `suggest_remedy`.
Four matter inside of the library alone, and a program catches their parents: `CorruptIndexError`, `IndexReplacedError`,
`RecordError`, `UndecodableError`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from openclaw_memory._safe import clean

__all__ = [
    "ConfigError",
    "ConflictError",
    "EmbedderError",
    "IndexLockedError",
    "InvalidInputError",
    "MissingExtraError",
    "NotFoundError",
    "OpenClawMemoryError",
    "PathNotAllowedError",
    "PolicyError",
    "QueryError",
    "SealedFileError",
    "StoreError",
    "SyncBusyError",
    "UserKeyError",
    "WorkspaceError",
    "WriteError",
]

_REMEDIES = {
    errno.EACCES: "get the right to write there",
    errno.EPERM: "get the right to write there",
    errno.EROFS: "its file system is mounted read-only: mount it for writing, or name another folder",
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "your share of the disk is used up: make room",
    errno.EMFILE: "this process has too many files open: close some",
}


def suggest(name: object, names: Iterable[str]) -> str:
    """Return `did you mean 'openai'? ` with the known name that is spelled most like this one, or ""."""
    import difflib

    matches = difflib.get_close_matches(str(name), list(names), 1)
    return f"did you mean {matches[0]!r}? " if matches else ""


def suggest_remedy(error: OSError) -> str:
    """Suggest a remedy for an error of the operating system, to follow a colon or semicolon."""
    return _REMEDIES.get(error.errno or 0, "fix the cause")


class OpenClawMemoryError(Exception):
    """Root of every error that this library raises on purpose.

    Its text is safe to print: paths in it may be those of a folder that came from anywhere.
    """

    def __str__(self) -> str:
        return clean(super().__str__())


class ConfigError(OpenClawMemoryError, ValueError):
    """A setting has a wrong type or value."""


class WorkspaceError(OpenClawMemoryError, OSError):
    """The workspace folder is missing, unreadable, or not a folder."""


class PathNotAllowedError(WorkspaceError):
    """A path leaves the workspace, passes a symlink, or does not name a memory file."""


class UndecodableError(WorkspaceError):
    """A memory file is neither UTF-8 nor UTF-16 with a byte order mark, or is another program's transcript."""


class RecordError(WorkspaceError):
    """The file of a record was damaged, holds both sides of a merge, or is not as this library has signed it."""


class NotFoundError(OpenClawMemoryError, LookupError):
    """An allowed path names no file, or a line after its end."""


class InvalidInputError(OpenClawMemoryError, ValueError):
    """A call got an argument of a wrong type or value, such as an empty text to append."""


class QueryError(InvalidInputError):
    """A search was called with arguments that are not valid."""


class EmbedderError(OpenClawMemoryError):
    """An embedder is unknown, misbehaves, or its vectors do not fit the index."""


class MissingExtraError(EmbedderError, ImportError):
    """An optional package is needed; the message holds the pip command."""


class StoreError(OpenClawMemoryError):
    """The index cannot be used."""


class CorruptIndexError(StoreError):
    """The index file is damaged. It is derived data: it is deleted and built again.

    `damage` names the fault in short, or is "".
    """

    damage: str = ""


class IndexReplacedError(StoreError):
    """The index was deleted, replaced or built again while it was in use; another call uses the new one."""


class IndexLockedError(StoreError):
    """Another process held the index longer than the busy timeout."""


class UserKeyError(OpenClawMemoryError):
    """A key of the user's is missing, is malformed, or can be read by other users."""


class SealedFileError(UndecodableError):
    """A memory file is encrypted and not read or written: the key is not here, the index is plain, or it is damaged."""


class WriteError(OpenClawMemoryError, OSError):
    """A memory file could not be written; nothing was changed."""


class SyncBusyError(IndexLockedError):
    """Another sync of this index is running, and the wait for it is over."""


class PolicyError(WriteError):
    """A rule of the user's forbids to store the text; nothing was written.

    Attributes:
        rule: The name of the rule.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


# ruff: noqa: A002 - `hash` is named as that of an excerpt
class ConflictError(WriteError):
    """The lines that an edit would change are not those that its caller saw; nothing was changed.

    Attributes:
        path: The file.
        start_line: The first of the lines, 1-based.
        current: The lines as they are now.
        proposed: The text that the caller wanted to write.
        hash: The hash of the lines as they are now; an edit that names it changes them.
    """

    def __init__(
        self, message: str, *, path: str, start_line: int = 0, current: str = "", proposed: str = "", hash: str = ""
    ) -> None:
        super().__init__(message)
        self.path, self.start_line, self.current, self.proposed = path, start_line, current, proposed
        self.hash = hash
