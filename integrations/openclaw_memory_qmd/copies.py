"""Copy the notes for QMD, as policies let them be indexed."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from typing import Any

from openclaw_memory.backends import Backend
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, WorkspaceError
from openclaw_memory.types import MemoryFile, Source
from openclaw_memory.workspace import SafeFolder, Workspace

COPIES_FOLDER = "copied-notes"
_MANIFEST = "copied-notes.json"
_FORMAT = 1  # of the manifest and the copies: another one is written anew
_COPY = re.compile(r"[a-z0-9-]+-[0-9a-f]{8}\.md")
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 80
_BATCH = 100  # copies are held in memory and written so many at a time


class Copies:
    """The copies and their sources. A line has the same number in both."""

    def __init__(self, workspace: Workspace, builtin: Backend, folder: SafeFolder) -> None:
        """Read and write nothing yet.

        Args:
            workspace: The notes, with the policies.
            builtin: The built-in engine: files that it hides are not copied.
            folder: Where the copies are kept, below `copied-notes`, and the list of them.
        """
        self._workspace, self._builtin, self._folder = workspace, builtin, folder
        self._latest: object = None
        self._manifest = self._load_manifest()

    def __len__(self) -> int:
        """Return how many copies there are."""
        return len(self._manifest)

    def is_current(self) -> bool:
        """Return whether nothing has changed since the latest update."""
        return self._workspace.scan() is self._latest

    def locate(self, name: str) -> tuple[str, Source] | None:
        """Return path and source of the note that a copy is of, or None if it is not a copy."""
        stamp = self._manifest.get(name)
        return None if stamp is None else (stamp[0], stamp[1])

    def read_lines(self, name: str, first: int, last: int) -> list[str] | None:
        """Return lines of a note, or None if they are not those of its copy any more."""
        try:
            copy = self._folder.read(f"{COPIES_FOLDER}/{name}").decode("utf-8", "surrogatepass")
            note = self._workspace.read_indexed(self._manifest[name][0])
        except OpenClawMemoryError:  # one of them is gone, or may not be read any more
            return None
        lines = note.split("\n")[first - 1 : last]
        return lines if copy.split("\n")[first - 1 : last] == lines else None

    def update(self) -> bool:
        """Bring the copies up to date, and return whether one was written or removed.

        Raises:
            WorkspaceError: The workspace cannot be listed.
            WriteError: A copy cannot be written.
        """
        scan = self._workspace.scan()
        with self._folder.lock():
            names = {name for name in self._folder.list_names(COPIES_FOLDER) if _COPY.fullmatch(name)}
            self._folder.make_folder(COPIES_FOLDER)
            current, batch = dict[str, list[Any]](), dict[str, bytes]()
            changed = False
            for file in scan.files:
                name, stamp = _name_copy(file.path), _stamp(file)
                if name not in names or self._manifest.get(name) != stamp:
                    with suppress(NotFoundError, WorkspaceError):  # it cannot be read, or must not be shown
                        self._builtin.get(file.path, lines=1)
                        batch[name] = self._workspace.read_indexed(file.path).encode("utf-8", "surrogatepass")
                    if name not in batch:
                        continue
                    changed = True
                current[name] = stamp
                if len(batch) == _BATCH:
                    self._folder.replace_all(COPIES_FOLDER, batch)
                    batch = {}
            self._folder.replace_all(COPIES_FOLDER, batch)
            self._folder.remove_all(COPIES_FOLDER, names - current.keys())
            if current != self._manifest:
                manifest = {"rules": self._rules, "notes": current}
                self._folder.replace(_MANIFEST, json.dumps(manifest).encode())
        self._manifest, self._latest = current, scan
        return changed or bool(names - current.keys())

    def delete(self) -> None:
        """Delete the copies and their list.

        Raises:
            WriteError: The system refuses to.
        """
        names = [name for name in self._folder.list_names(COPIES_FOLDER) if _COPY.fullmatch(name)]
        with self._folder.lock():
            self._folder.remove_all(COPIES_FOLDER, names)
            self._folder.remove(_MANIFEST)
        self._manifest, self._latest = {}, None

    @property
    def _rules(self) -> str:
        return f"{_FORMAT} {self._workspace.policies.digest}"

    def _load_manifest(self) -> dict[str, list[Any]]:
        with suppress(OpenClawMemoryError, ValueError, TypeError, KeyError):  # it is written anew
            manifest = json.loads(self._folder.read(_MANIFEST))
            if manifest["rules"] == self._rules:
                return dict(manifest["notes"])
        return {}


def _name_copy(path: str) -> str:
    """Name the copy of a note: in small letters and without signs, as QMD writes names."""
    slug = _SLUG.sub("-", path.lower().removesuffix(".md")).strip("-")[:_LONGEST_SLUG].strip("-")
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug or 'note'}-{digest}.md"


def _stamp(file: MemoryFile) -> list[Any]:
    return [file.path, file.source, file.size, file.mtime_ns, file.ctime_ns, file.inode]
