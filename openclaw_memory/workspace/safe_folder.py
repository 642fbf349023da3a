"""Read and write files below one trusted folder: no link is followed, and a file is written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath

from openclaw_memory.config.environment import locate_user_data, locate_workspace_data
from openclaw_memory.errors import PathNotAllowedError
from openclaw_memory.workspace import atomic


class SafeFolder:
    """Keep files below one trusted folder, each named by its path from there, such as `notes/list.json`.

    No link below the folder is followed. New files are 0600, new folders 0700; a file that is replaced keeps its mode.
    Methods raise PathNotAllowedError for a path that leads out, or where a link or something that is not a file is in
    the way; WriteError where the system refuses to write.

    Attributes:
        base: The trusted folder. Links may lead to it.
    """

    def __init__(self, base: Path, *, create: bool = False) -> None:
        """Read and write nothing yet.

        Args:
            base: The trusted folder.
            create: Whether the first write makes it, and the folders above.
        """
        self.base, self._create = base, create

    @classmethod
    def locate_data(cls, root: Path | None = None) -> SafeFolder:
        """Locate the user's data folder, or the folder of a workspace in it; the first write makes it.

        Args:
            root: The workspace.

        Raises:
            ConfigError: The user has no home folder.
        """
        return cls(locate_user_data() if root is None else locate_workspace_data(root), create=True)

    @contextmanager
    def open(self, path: str) -> Iterator[int]:
        """Yield the descriptor of a file to read.

        Args:
            path: The file.

        Raises:
            NotFoundError: There is no such file.
            WorkspaceError: It cannot be read.
        """
        try:
            descriptor = atomic.open_at(str(self.base), split_path(path), os.O_RDONLY)
        except OSError as error:
            raise atomic.to_read_error(error, self._show(path)) from error
        try:
            check_regular(os.fstat(descriptor), self._show(path))
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_in_place(self, path: str) -> Iterator[int]:
        """Yield the descriptor of a file to read and write in place, as a log needs it.

        Args:
            path: The file, which is made if it is missing. What it holds is on disk when the caller says `os.fsync`.
        """
        parts = split_path(path)
        with self._translate_errors(path):
            try:
                descriptor = atomic.open_at(str(self.base), parts, os.O_RDWR)
            except FileNotFoundError:
                self._make_parent(path)
                descriptor = atomic.open_at(str(self.base), parts, os.O_RDWR | os.O_CREAT)
            try:
                check_regular(os.fstat(descriptor), self._show(path))
                yield descriptor
            finally:
                os.close(descriptor)

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Args:
            path: The file.

        Raises:
            NotFoundError, WorkspaceError: As `open`.
        """
        with self.open(path) as descriptor:
            return atomic.read_whole(descriptor)

    def list_names(self, path: str = "") -> list[str]:
        """List the names in a folder; none if there is no such folder.

        Args:
            path: The folder; "" for the trusted one.

        Raises:
            WorkspaceError: It cannot be listed.
        """
        try:
            with atomic.open_folder(str(self.base), split_path(path) if path else ()) as folder:
                return folder.list_names()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise atomic.to_read_error(error, self._show(path)) from error

    def make_folder(self, path: str = "") -> None:
        """Make a folder and those above it.

        Args:
            path: The folder; "" for the trusted one.
        """
        parts = split_path(path) if path else ()
        with self._translate_errors(path):
            for folder in reversed([self.base, *self.base.parents]) if self._create else ():
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, exist_ok=True)
        atomic.make_folders(self.base, parts, self._show(path))

    @contextmanager
    def lock(self, path: str = ".lock") -> Iterator[None]:
        """Hold a lock file, which excludes all threads and processes that hold it too.

        Args:
            path: The lock file.
        """
        parts = self._make_parent(path)
        with atomic.lock_file(self.base.joinpath(*parts), self._show(path)):
            yield

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, which is made if it is missing; on disk when this returns. Call it in `lock`.

        Args:
            path: The file.
            data: The bytes to append: all of them or none.
        """
        parts = self._make_parent(path)
        with self._translate_errors(path), atomic.open_to_append(str(self.base), parts) as descriptor:
            check_regular(os.fstat(descriptor), self._show(path))
            atomic.append_whole(descriptor, str(self.base), parts, data)

    def replace(self, path: str, data: bytes) -> None:
        """Put a file in the place of the one there is, if any; on disk when this returns. Call it in `lock`.

        Args:
            path: The file. Readers find the old one or the new one.
            data: Its content.
        """
        *folders, name = split_path(path)
        self.replace_all("/".join(folders), {name: data})

    def replace_all(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Replace files of one folder, each as `replace` does. Call it in `lock`.

        Args:
            folder: The folder, which is made if it is missing; "" for the trusted one.
            files: The content of each file, by its name.
        """
        parts = _split_names(folder, files)
        self.make_folder(folder)
        with self._translate_errors(folder), atomic.open_folder(str(self.base), parts) as opened:
            stats = {name: opened.get_stat(name) for name in files}
            for name, info in stats.items():
                if info is not None:
                    check_regular(info, self._show(f"{folder}/{name}"))
            opened.replace_all([(name, data, stats[name]) for name, data in files.items()])

    def remove(self, path: str) -> None:
        """Remove a file if there is one. Call it in `lock`.

        Args:
            path: The file. A link is removed, not the file that it leads to.
        """
        *folders, name = split_path(path)
        self.remove_all("/".join(folders), [name])

    def remove_all(self, folder: str, names: Collection[str]) -> None:
        """Remove files of one folder, and unfinished ones of killed processes. Call it in `lock`.

        Args:
            folder: The folder; "" for the trusted one.
            names: The files; those that are missing do not matter.
        """
        parts = _split_names(folder, names)
        with (
            self._translate_errors(folder),
            suppress(FileNotFoundError),
            atomic.open_folder(str(self.base), parts) as opened,
        ):
            opened.sweep()
            stats = ((name, opened.get_stat(name)) for name in names)
            opened.remove_all([(name, info) for name, info in stats if info is not None])

    def _make_parent(self, path: str) -> tuple[str, ...]:
        """Make the folder of a file; return the parts of its path."""
        parts = split_path(path)
        self.make_folder("/".join(parts[:-1]))
        return parts

    @contextmanager
    def _translate_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise atomic.to_write_error(error, self._show(path)) from error

    def _show(self, path: str) -> str:
        return str(self.base / path)


def _split_names(folder: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the parts of a folder's path, and check the names of files in it."""
    for name in names:
        if len(split_path(name)) > 1:
            raise PathNotAllowedError(f"{name!r} is not the name of a file: give the path of its folder apart")
    return split_path(folder) if folder else ()


@lru_cache(maxsize=256)
def split_path(path: str) -> tuple[str, ...]:
    """Return the parts of a path below a folder.

    Raises:
        PathNotAllowedError: It leads out of the folder, or is not a path.
    """
    parts = tuple(path.split("/"))
    if "\0" in path or not all(PurePath(part).name == part not in {"", ".."} for part in parts):
        raise PathNotAllowedError(f"{path!r} is not a path below a folder: name a file, such as 'notes/list.json'")
    return parts


def check_regular(info: os.stat_result, path: str) -> None:
    """Check that a stat is that of a regular file.

    Raises:
        PathNotAllowedError: It is not.
    """
    if not stat.S_ISREG(info.st_mode):
        raise PathNotAllowedError(f"{path} is a link, or not a file: move it away")
