"""Open, replace, append to and remove files below a trusted folder: no symlink is followed, no write is half done."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from openclaw_memory._system import NO_LINK
from openclaw_memory.errors import (
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    WorkspaceError,
    WriteError,
    suggest_remedy,
)

LOCK_SECONDS = 10.0  # a write holds the lock for milliseconds: after this long, something is stuck
_POLL_SECONDS = 0.002

# Linux may end the write(2) of a killed process between two pages: longer texts are not left to it.
PAGE = 4096
_MANY = 16  # files: from so many on, one sync of the file system is quicker than an fsync of each
_TRIES = 5  # while another program changes the file that is being replaced
# A file that can be written but not replaced: the folder is read-only, the file another user's or a mount of its own,
# or the disk has no room for a copy.
_NOT_REPLACED = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.ENOSPC, errno.EDQUOT})

# Not `.md`: a file under this name never counts as memory.
_TEMPORARY = ".openclaw-memory-{}.tmp"
_TEMPORARY_NAME = re.compile(r"\.openclaw-memory-[0-9a-f]{16}\.tmp")

CAN_WALK = os.open in os.supports_dir_fd
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)


# --- the way to a file --------------------------------------------------------------------------------------------


def open_at(base: str, parts: Sequence[str], flags: int) -> int:
    """Open the file `parts` below the trusted folder `base`, refusing a symlink at every step; returns a descriptor.

    Raises:
        OSError: ELOOP where a part is a symlink, otherwise as open(2) raises it.
    """
    if not CAN_WALK:
        _refuse_links(base, parts)
        return os.open(os.path.join(base, *parts), flags | NO_LINK, 0o600)
    folder = os.open(base, os.O_RDONLY | _DIRECTORY)
    if not parts:
        return folder
    try:
        for part in parts[:-1]:
            inner = _open_step(part, os.O_RDONLY | _DIRECTORY, folder)
            os.close(folder)
            folder = inner
        return _open_step(parts[-1], flags, folder)
    finally:
        os.close(folder)


def _open_step(part: str, flags: int, folder: int) -> int:
    try:
        return os.open(part, flags | NO_LINK, 0o600, dir_fd=folder)
    except NotADirectoryError:
        # A symlink opened as a folder gives ENOTDIR as well. Nothing was opened: this look only finds the right word.
        if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from None
        raise


def _refuse_links(base: str, parts: Sequence[str]) -> None:
    """Check that no part is a symlink, on systems without openat(2) such as Windows; a race with `os.open` remains."""
    for part in parts:
        base = os.path.join(base, part)
        if os.path.islink(base):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), base)


class OpenFolder:
    """A folder held open, so that it cannot be swapped while its files are changed.

    Attributes:
        descriptor: The open folder; None on a system that cannot open one.
        prefix: Precedes each name: "" where the folder is open.
        path: The folder, for errors.
    """

    def __init__(self, descriptor: int | None, prefix: str, path: str) -> None:
        """Take the folder."""
        self.descriptor, self.prefix, self.path = descriptor, prefix, path

    def get_stat(self, name: str) -> os.stat_result | None:
        """Return the stat of a name, of a link its own; None if there is nothing."""
        with suppress(FileNotFoundError):
            return os.stat(self.prefix + name, dir_fd=self.descriptor, follow_symlinks=False)
        return None

    def list_names(self) -> list[str]:
        """List the names in the folder."""
        return os.listdir(self.prefix if self.descriptor is None else self.descriptor)

    def replace_all(self, files: Sequence[tuple[str, bytes, os.stat_result | None]]) -> None:
        """Put each file in the place of the one there is. Readers find the old file or the new one.

        A new file keeps mode and owner of the old one. Unfinished files of killed writers are removed. All contents are
        on the disk before the first file gets its name. Each of a few is confirmed by itself; of many, Linux confirms
        all at once, with whatever else was written to that file system.

        Args:
            files: The name, the content, and the stat that the file must still have; None for a new file.

        Raises:
            WriteError: A file has changed since its stat: an editor does not know of our lock; or one of several cannot
                be replaced. Those before it are replaced, those after it are as they were.
            OSError: A file cannot be written, or the only one not be replaced. All are as they were.
        """
        self.sweep()
        is_many = len(files) >= _MANY and sys.platform == "linux"
        try:
            temporaries = [self._write_temporary(data, old, confirm=not is_many) for _, data, old in files]
            if is_many:
                _sync_file_system(self.descriptor)
            for temporary, (name, _, expected) in zip(temporaries, files, strict=True):
                self._check_unchanged(name, expected)
                os.replace(temporary, self.prefix + name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException as error:
            self.sweep()
            if isinstance(error, OSError) and error.filename2 and len(files) > 1:  # the name that it could not take
                raise to_write_error(error, self._join(os.path.basename(error.filename2))) from error
            raise
        self.flush(*(name for name, _, _ in files[-1:]))

    def _write_temporary(self, data: bytes, old: os.stat_result | None, *, confirm: bool) -> str:
        """Write a file that is to take the place of an old one; return its name."""
        temporary = self.prefix + _TEMPORARY.format(secrets.token_hex(8))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600, dir_fd=self.descriptor)
        with open(descriptor, "wb", buffering=0):
            _fill(descriptor, data, old)
            if confirm:
                os.fsync(descriptor)
        return temporary

    def remove_all(self, files: Sequence[tuple[str, os.stat_result]]) -> None:
        """Remove files.

        Args:
            files: The name, and the stat that the file must still have.

        Raises:
            WriteError: A file has changed since its stat. Those before it are removed.
            OSError: A file cannot be removed.
        """
        for name, expected in files:
            self._check_unchanged(name, expected)
            os.unlink(self.prefix + name, dir_fd=self.descriptor)
        self.flush(*(name for name, _ in files[-1:]))

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, in one step.

        Raises:
            WriteError: Something has that name.
            OSError: It cannot be renamed.
        """
        self.check_free(new, name)
        os.rename(self.prefix + name, self.prefix + new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        self.flush(new)

    def check_free(self, name: str, neighbour: str) -> None:
        """Check that nothing has a name.

        Raises:
            WriteError: Something has the name.
        """
        if self.get_stat(name) is not None:
            path, twin = self._join(neighbour), self._join(name)
            raise WriteError(f"{twin} is there next to {path}: compare the two, and delete or rename one of them")

    def sweep(self) -> None:
        """Remove unfinished files of killed writers. Those that cannot be removed do no harm and stay."""
        with suppress(OSError):
            for name in self.list_names():
                if name.startswith(".") and _TEMPORARY_NAME.fullmatch(name):
                    os.unlink(self.prefix + name, dir_fd=self.descriptor)

    def flush(self, *names: str) -> None:
        """Fsync the folder, so that the names in it survive a power cut. Windows has no such call.

        Raises:
            WriteError: The disk did not confirm it. The written file stays.
        """
        if self.descriptor is None:
            return
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            path = self._join(*names)
            raise WriteError(
                f"{path} is written, but the disk did not confirm its name ({error.strerror}): check the disk"
            ) from error

    def _join(self, *names: str) -> str:
        return "/".join((*([self.path] if self.path else []), *names))

    def _check_unchanged(self, name: str, expected: os.stat_result | None) -> None:
        info = self.get_stat(name)
        if (info and _to_identity(info)) != (expected and _to_identity(expected)):
            raise _ChangedError(self._join(name))


@contextmanager
def open_folder(base: str, parts: Sequence[str]) -> Iterator[OpenFolder]:
    """Hold a folder below the trusted folder `base` open.

    Raises:
        OSError: It is missing, or a symlink leads there: ELOOP.
    """
    path = "/".join(parts)
    if not CAN_WALK:
        _refuse_links(base, parts)
        yield OpenFolder(None, os.path.join(base, *parts, ""), path)
        return
    descriptor = open_at(base, parts, os.O_RDONLY | _DIRECTORY)
    try:
        yield OpenFolder(descriptor, "", path)
    finally:
        os.close(descriptor)


def make_folders(base: Path, parts: Sequence[str], path: str) -> None:
    """Create the folders `parts` below the trusted folder `base` (0700) where they are missing.

    Args:
        base: The trusted folder.
        parts: The folders, the outer one first.
        path: The file that is to be written there, for errors.

    Raises:
        PathNotAllowedError: A link or a file is in the place of a folder.
        WriteError: A folder cannot be created.
    """
    try:
        for depth, name in enumerate(parts):
            with open_folder(str(base), parts[:depth]) as folder, suppress(FileExistsError):
                os.mkdir(folder.prefix + name, 0o700, dir_fd=folder.descriptor)
                folder.flush(name)
        with open_folder(str(base), parts):  # the last one is no link either
            return
    except OSError as error:
        raise to_write_error(error, path) from error


# --- locks --------------------------------------------------------------------------------------------------------


@contextmanager
def lock_file(lock: Path, path: str) -> Iterator[None]:
    """Hold a lock file while `path` is written; it is created if need be (0600) and excludes all threads and processes.

    Errors of the operating system are raised as errors of this library.

    Raises:
        PathNotAllowedError: A symlink, or something that is neither file nor folder, is in the way.
        WriteError: Another process held the lock for 10 s, or the system refused to write.
    """
    import filelock

    try:
        with filelock.FileLock(lock, timeout=LOCK_SECONDS, mode=0o600, poll_interval=_POLL_SECONDS):
            yield
    except filelock.Timeout as error:
        raise WriteError(f"{path} was not written: {lock} is held for over {LOCK_SECONDS:g} s; try again") from error
    except OSError as error:
        raise to_write_error(error, path) from error


@contextmanager
def lock_folder(base: Path, parts: Sequence[str], path: str) -> Iterator[None]:
    """Hold a lock file in a folder below the trusted folder `base`, as `lock_file` does; the folder is made if missing.

    Raises:
        PathNotAllowedError, WriteError: As `lock_file`.
    """
    make_folders(base, parts, path)
    with lock_file(base.joinpath(*parts, ".lock"), path):
        yield


# --- errors -------------------------------------------------------------------------------------------------------


class _ChangedError(WriteError):
    """A file is no longer the one that was read."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed by another program just now, and is as that left it: read it again")


def to_write_error(error: OSError, path: str) -> OpenClawMemoryError:
    """Return the error of this library for a file that could not be written.

    Args:
        error: The error of the system; one of this library is returned as it is.
        path: The file.
    """
    if isinstance(error, OpenClawMemoryError):
        return error
    if error.errno in {errno.ELOOP, errno.EEXIST, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.ENOTDIR}:
        return PathNotAllowedError(f"{path} is not written: a symlink or a special file is in its way; move it")
    return WriteError(f"{path} was not written ({error.strerror}) and is as it was: {suggest_remedy(error)}; try again")


def to_read_error(error: OSError, path: str) -> OpenClawMemoryError:
    """Return the error of this library for a file that could not be opened.

    Args:
        error: The error of the system; one of this library is returned as it is.
        path: The file.
    """
    if isinstance(error, OpenClawMemoryError):
        return error
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return NotFoundError(f"{path} does not exist: check its name, or write it first")
    if error.errno == errno.ELOOP:
        return PathNotAllowedError(f"{path} passes a symlink, which is never followed: use the path of the file itself")
    if error.errno in {errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return PathNotAllowedError(f"{path} is not a regular file: name a Markdown file")
    return WorkspaceError(f"{path} cannot be read: {error.strerror}; fix its permissions")


# --- one file -----------------------------------------------------------------------------------------------------


def read_whole(descriptor: int, most: int | None = None) -> bytes:
    """Return the content of an open file from the current position on."""
    blocks: list[bytes] = []
    left = 1 << 62 if most is None else most
    while left > 0 and (block := os.read(descriptor, min(left, 1 << 20))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def replace_file(base: str, parts: Sequence[str], data: bytes, expected: os.stat_result | None) -> None:
    """Put a file in the place of the one at `parts` below the trusted folder `base`; call it with the lock held.

    Args:
        base: The trusted folder.
        parts: The way to the file.
        data: Its new content.
        expected: The stat that it must still have; None for a new file.

    Raises:
        WriteError, OSError: As `OpenFolder.replace_all`.
    """
    with open_folder(base, parts[:-1]) as folder:
        folder.replace_all([(parts[-1], data, expected)])


@contextmanager
def open_to_append(base: str, parts: Sequence[str]) -> Iterator[int]:
    """Yield the descriptor of a file to read and append, never through a symlink; a new one (0600) stays if not empty.

    Raises:
        OSError: ELOOP where a part is a symlink, otherwise as open(2) raises it.
        WriteError: The disk did not confirm the name of a new file.
    """
    flags, is_new = os.O_RDWR | os.O_APPEND, False
    try:
        descriptor = open_at(base, parts, flags)
    except FileNotFoundError:
        descriptor, is_new = open_at(base, parts, flags | os.O_CREAT | os.O_EXCL), True
    try:
        yield descriptor
    finally:
        if is_new and not os.fstat(descriptor).st_size:
            with suppress(OSError), open_folder(base, parts[:-1]) as folder:
                info = folder.get_stat(parts[-1])  # another program may have been quicker
                if info is not None and os.path.samestat(os.fstat(descriptor), info):
                    os.unlink(folder.prefix + parts[-1], dir_fd=folder.descriptor)
        os.close(descriptor)
    if is_new:
        with open_folder(base, parts[:-1]) as folder:
            folder.flush(parts[-1])


def append_whole(descriptor: int, base: str, parts: Sequence[str], data: bytes) -> None:
    """Append to an open file; on disk when this returns. Call it with the lock held.

    Up to a page is one write(2). A longer text comes with a file that replaces the old one, so that a killed process
    leaves all of it or nothing; text that another program appends meanwhile stays. A file that cannot be replaced
    gets one write(2).

    Raises:
        WriteError: The disk took only a part, or another program has replaced the file.
        OSError: The write failed. The file is as it was.
    """
    if len(data) <= PAGE or not _extend(descriptor, base, parts, data):
        append_in_one_write(descriptor, data, os.fstat(descriptor).st_size, "/".join(parts))


def _extend(descriptor: int, base: str, parts: Sequence[str], data: bytes) -> bool:
    """Put a longer file in the place of an open one; return whether that could be done."""
    path, before = "/".join(parts), b""
    os.lseek(descriptor, 0, os.SEEK_SET)
    for tries in range(1, _TRIES + 1):
        before += read_whole(descriptor)  # the second time, the bytes that another program has appended
        info = os.fstat(descriptor)
        try:
            if info.st_size != len(before):
                raise _ChangedError(path)
            replace_file(base, parts, before + data, info)
            break
        except _ChangedError:
            if tries == _TRIES:
                raise
        except OSError as error:
            if error.errno not in _NOT_REPLACED:
                raise
            return False
    if late := read_whole(descriptor):  # by a program that had opened the old file
        with open_to_append(base, parts) as new:
            append_in_one_write(new, late, os.fstat(new).st_size, path)
    return True


def append_in_one_write(descriptor: int, data: bytes, size: int, path: str) -> None:
    """Append `data` in one write(2) and fsync; on failure the file is cut back to `size` bytes.

    Raises:
        WriteError: The disk took only a part.
        OSError: The write failed.
    """
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            raise WriteError(f"{path} took {written} of {len(data)} bytes and is as it was: free some disk space")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _fill(descriptor: int, data: bytes, old: os.stat_result | None) -> None:
    """Write a new file, with mode and owner of the old one."""
    if old is not None and sys.platform != "win32":
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, old.st_mode & 0o7777)
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _sync_file_system(descriptor: int | None) -> None:
    """Wait until all that was written to the file system of an open folder is on the disk, as syncfs(2) does."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _to_identity(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns
