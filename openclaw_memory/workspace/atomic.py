"""Write to disk: a lock between processes, an append that is complete or undone, a file replaced in one step."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from openclaw_memory.errors import OpenClawMemoryError, PathNotAllowedError, WriteError, remedy
from openclaw_memory.workspace.safe_read import CAN_WALK, open_at, open_folder

LOCK_SECONDS = 10.0  # a write holds the lock for milliseconds: who waits this long waits for something stuck
_POLL_SECONDS = 0.002

# Linux ends the write(2) of a killed process between two pages: what is longer than one is not left to it.
PAGE = 4096
# An editor that changes a note again and again while a longer one is put in its place is waited for so often.
_TRIES = 5
# A file that can be written, but not replaced: the folder may be read-only, the file another user's or a mount of its
# own, or there is no room for a copy of it.
_NOT_REPLACED = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.ENOSPC, errno.EDQUOT})

# Not `.md`: a file under this name never counts as memory.
_UNFINISHED = ".openclaw-memory-{}.tmp"
_UNFINISHED_NAME = re.compile(r"\.openclaw-memory-[0-9a-f]{16}\.tmp")


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
        if isinstance(error, OpenClawMemoryError):
            raise
        raise to_write_error(error, path) from error


@contextmanager
def lock_folder(base: Path, parts: Sequence[str], path: str, lock: str = ".lock") -> Iterator[None]:
    """Hold a lock file in a folder below the trusted folder `base`, as `locked` does; the folder is made if missing.

    Raises:
        PathNotAllowedError, WriteError: As `locked`.
    """
    make_folders(base, parts, path)
    with lock_file(base.joinpath(*parts, lock), path):
        yield


def to_write_error(error: OSError, path: str) -> OpenClawMemoryError:
    """Return the error of this library that says why `path` could not be written."""
    if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.ENOTDIR}:
        return PathNotAllowedError(
            f"{path} is not written: a symlink, or something that is no file or folder, is in its way; move it"
        )
    return WriteError(
        f"{path} could not be written ({error.strerror}) and is as it was: {remedy(error)}, and try again"
    )


def make_folder(base: Path, name: str) -> None:
    """Create the folder `name` in the trusted folder `base` (0700) if it is missing.

    Raises:
        OSError: It cannot be created, or a symlink or a file is in its place: ELOOP, ENOTDIR.
    """
    try:
        os.mkdir(base / name, 0o700)
    except FileExistsError:
        # A symlink would take what is written elsewhere.
        if CAN_WALK:
            os.close(open_folder(str(base), (name,)))
        elif (base / name).is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
    else:
        flush_folder(str(base), (), name)


def make_folders(base: Path, parts: Sequence[str], path: str) -> None:
    """Create the folders `parts` below the trusted folder `base`, as `make_folder` does, to write `path` there.

    Raises:
        PathNotAllowedError, WriteError: As `locked`.
    """
    try:
        for depth, part in enumerate(parts):
            make_folder(base.joinpath(*parts[:depth]), part)
    except OSError as error:
        raise to_write_error(error, path) from error


@contextmanager
def open_to_append(base: str, parts: Sequence[str], path: str) -> Iterator[int]:
    """Yield the descriptor of a file to read and append, never through a symlink; a new one (0600) stays on success.

    Raises:
        OSError: ELOOP where a part is a symlink, otherwise as open(2) raises it.
        WriteError: The disk did not confirm the name of a new file.
    """
    flags, is_new = os.O_RDWR | os.O_APPEND, False
    try:
        descriptor = open_at(base, parts, flags)
    except FileNotFoundError:
        descriptor, is_new = open_at(base, parts, flags | os.O_CREAT | os.O_EXCL), True
    done = False
    try:
        yield descriptor
        done = True
    finally:
        name, opened = os.path.join(base, *parts), os.fstat(descriptor)
        os.close(descriptor)
        if is_new and not done:
            with suppress(FileNotFoundError):  # another program was quicker
                if os.path.samestat(opened, os.lstat(name)):
                    os.unlink(name)
    if is_new:
        flush_folder(base, parts[:-1], path)


def read_whole(descriptor: int) -> bytes:
    """Return everything that an open file holds from the current position on."""
    blocks = []
    while block := os.read(descriptor, 1 << 20):
        blocks.append(block)
    return b"".join(blocks)


def append_whole(descriptor: int, base: str, parts: Sequence[str], data: bytes) -> None:
    """Append `data` to an open file; on disk when this returns. Call it in `locked`.

    Up to a page is one write(2). A longer text is put there with a file that takes the place of the old one, so that a
    process that is killed leaves all of it or nothing; what another program appends meanwhile is kept. Where a file
    cannot be replaced, or has hard links, one write(2) has to do.

    Raises:
        WriteError: The disk took only a part, or another program has replaced the file.
        OSError: The write failed. The file is as it was.
    """
    if len(data) <= PAGE or not _is_extended(descriptor, base, parts, data):
        write_whole(descriptor, data, os.fstat(descriptor).st_size, "/".join(parts))


def _is_extended(descriptor: int, base: str, parts: Sequence[str], data: bytes) -> bool:
    """Put a longer file in the place of an open one; return whether that could be done."""
    path, before = "/".join(parts), b""
    os.lseek(descriptor, 0, os.SEEK_SET)
    for tries in range(1, _TRIES + 1):
        before += read_whole(descriptor)  # what another program has appended since
        seen = os.fstat(descriptor)
        if seen.st_nlink > 1:
            return False
        try:
            if seen.st_size != len(before):
                raise _changed(path)
            replace_file(base, parts, before + data, seen)
            break
        except _ChangedError:
            if tries == _TRIES:
                raise
        except OSError as error:
            if error.errno not in _NOT_REPLACED:
                raise
            return False
    if late := read_whole(descriptor):  # by a program that had opened the old file
        with open_to_append(base, parts, path) as new:
            write_whole(new, late, os.fstat(new).st_size, path)
    return True


class _ChangedError(WriteError):
    """A file is no longer the one that was seen."""


def _changed(path: str) -> _ChangedError:
    return _ChangedError(f"{path} was changed by another program just now, and is as that left it: read it again")


def write_whole(descriptor: int, data: bytes, size: int, path: str) -> None:
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


def replace_file(base: str, parts: Sequence[str], data: bytes, seen: os.stat_result | None) -> None:
    """Put a file with `data` in the place of the one at `parts` below the trusted folder `base`; call it in `locked`.

    Readers find the old file or the new one. It keeps mode and owner. `seen` is what the old file was when it was read,
    None where there was none. What an earlier writer left unfinished in the folder is removed.

    Raises:
        WriteError: the file is no longer the one that was seen: an editor does not know of our lock.
        OSError: it cannot be written. The old file is as it was.
    """
    replace_files(base, parts[:-1], [(parts[-1], data, seen)])


def replace_files(base: str, folder: Sequence[str], files: Sequence[tuple[str, bytes, os.stat_result | None]]) -> None:
    """As `replace_file`, for files of one folder: name, content, and what was seen, of each.

    Raises:
        WriteError, OSError: as `replace_file`. Those before are written, those after are as they were.
    """
    with _folder(base, folder) as (descriptor, prefix):
        _sweep(descriptor, prefix)
        for name, data, seen in files:
            _put(descriptor, prefix, name, data, seen, "/".join((*folder, name)))
        if descriptor is not None:
            _flush(descriptor, "/".join((*folder, *(name for name, _, _ in files[-1:]))))


def check_free(base: str, parts: Sequence[str], name: str) -> None:
    """Check that nothing next to a file below the trusted `base` has a name.

    Raises:
        WriteError: Something has.
        OSError: It cannot be looked at.
    """
    if read_stat(base, (*parts[:-1], name)) is not None:
        path, other = "/".join(parts), "/".join((*parts[:-1], name))
        raise WriteError(f"{other} is there next to {path}: compare the two, and delete or rename one of them")


def rename_file(base: str, parts: Sequence[str], name: str) -> None:
    """Give a file of the folder below the trusted `base` another name, in one step; call it in `locked`.

    Args:
        base: The trusted folder.
        parts: The way to the file.
        name: The new name.

    Raises:
        WriteError: Something has that name, or the disk did not confirm the new one.
        OSError: It cannot be renamed.
    """
    check_free(base, parts, name)
    with _folder(base, parts[:-1]) as (descriptor, prefix):
        os.rename(prefix + parts[-1], prefix + name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        if descriptor is not None:
            _flush(descriptor, "/".join((*parts[:-1], name)))


def remove_files(base: str, folder: Sequence[str], files: Sequence[tuple[str, os.stat_result]]) -> None:
    """Remove files of one folder below the trusted `base`: name, and what was seen, of each. Call it in `locked`.

    Raises:
        WriteError: One is no longer what was seen. Those before it are removed.
        OSError: One cannot be removed.
    """
    with _folder(base, folder) as (descriptor, prefix):
        for name, seen in files:
            path = "/".join((*folder, name))
            _check_unchanged(prefix + name, descriptor, seen, path)
            os.unlink(prefix + name, dir_fd=descriptor)
        if descriptor is not None:
            _flush(descriptor, "/".join((*folder, *(name for name, _ in files[-1:]))))


def read_stat(base: str, parts: Sequence[str]) -> os.stat_result | None:
    """Return the stat of a path below the trusted folder `base`, of a link its own; None where there is nothing.

    Raises:
        OSError: It cannot be looked at, or a symlink leads there: ELOOP.
    """
    with suppress(FileNotFoundError), _folder(base, parts[:-1]) as (descriptor, prefix):
        return os.stat(prefix + parts[-1], dir_fd=descriptor, follow_symlinks=False)
    return None


def list_folder(base: str, parts: Sequence[str]) -> list[str]:
    """List the names in a folder below the trusted folder `base`.

    Raises:
        OSError: It is missing, cannot be listed, or a symlink leads there: ELOOP.
    """
    with _folder(base, parts) as (descriptor, prefix):
        return os.listdir(prefix if descriptor is None else descriptor)


def _put(folder: int | None, prefix: str, name: str, data: bytes, seen: os.stat_result | None, path: str) -> None:
    unfinished = prefix + _UNFINISHED.format(secrets.token_hex(8))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(unfinished, flags, 0o600, dir_fd=folder)
    try:
        try:
            _fill(descriptor, data, seen)
        finally:
            os.close(descriptor)
        _check_unchanged(prefix + name, folder, seen, path)
        os.replace(unfinished, prefix + name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):  # what went wrong before is what matters, and the next writer sweeps
            os.unlink(unfinished, dir_fd=folder)
        raise


def sweep_folder(base: str, parts: Sequence[str]) -> None:
    """Remove unfinished files of killed writers from a folder below the trusted `base`; call it in `locked`.

    Raises:
        OSError: It is missing, or a symlink leads there: ELOOP.
    """
    with _folder(base, parts) as (descriptor, prefix):
        _sweep(descriptor, prefix)


def _sweep(folder: int | None, prefix: str) -> None:
    """Remove what an earlier writer left unfinished. What cannot be removed does no harm and stays."""
    with suppress(OSError):
        names = os.listdir(prefix or "." if folder is None else folder)
        for name in names:
            if name.startswith(".") and _UNFINISHED_NAME.fullmatch(name):
                os.unlink(prefix + name, dir_fd=folder)


def flush_folder(base: str, parts: Sequence[str], path: str) -> None:
    """Fsync a folder, so that the name `path` in it survives a power cut. Windows has no such call.

    Raises:
        WriteError: The disk did not confirm it. What was written stays.
    """
    if os.name == "nt":
        return
    folder = open_folder(base, parts)
    try:
        _flush(folder, path)
    finally:
        os.close(folder)


def _flush(folder: int, path: str) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        raise WriteError(
            f"{path} is written, but the disk did not confirm its name ({error.strerror}): check the disk"
        ) from error


@contextmanager
def _folder(base: str, parts: Sequence[str]) -> Iterator[tuple[int | None, str]]:
    """Hold a folder open, so that it cannot be swapped; yields it and the prefix of its names ("" where it is open)."""
    if not CAN_WALK:
        yield None, os.path.join(base, *parts, "")
        return
    folder = open_folder(base, parts)
    try:
        yield folder, ""
    finally:
        os.close(folder)


def _fill(descriptor: int, data: bytes, old: os.stat_result | None) -> None:
    if old is not None and os.name != "nt":
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, old.st_mode & 0o7777)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _check_unchanged(name: str, folder: int | None, seen: os.stat_result | None, path: str) -> None:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if (now and _stamp(now)) != (seen and _stamp(seen)):
        raise _changed(path)


def _stamp(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns
