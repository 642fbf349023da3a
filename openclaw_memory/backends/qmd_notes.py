"""Copies the notes of a memory for QMD: without what policies leave out, and with no file that is not a memory's."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_memory.errors import BackendError, OpenClawMemoryError, remedy
from openclaw_memory.records.files import RecordFiles
from openclaw_memory.text.front_matter import front_matter_end
from openclaw_memory.text.policies import indexed_text
from openclaw_memory.types import MemoryFile, Skipped, Source
from openclaw_memory.workspace import Scan, Workspace

NOTES_FOLDER = "copied-notes"
_MANIFEST = "copied-notes.json"
_FORMAT = 1  # of the manifest and the copies: another one is written anew
_OURS = re.compile(r"[a-z0-9-]+-[0-9a-f]{8}\.md")
_UNFINISHED = re.compile(rf"{_OURS.pattern}\.[0-9a-f]{{8}}\.tmp")  # of a process that was killed
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 80


@dataclass(frozen=True, slots=True)
class Copied:
    """What one run has done, by the paths of the notes; `failed` says why a note could not be copied."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    failed: Mapping[str, str]


class QmdNotes:
    """The copies, and what each is a copy of. A line has the same number in both."""

    def __init__(self, workspace: Workspace, records: RecordFiles, folder: Path) -> None:
        """Read and write nothing yet.

        Args:
            workspace: The files, with the policies.
            records: Says which records are not to be shown.
            folder: Where the copies are kept, below `copied-notes`, and the list of them.
        """
        self._workspace, self._records, self._folder = workspace, records, folder
        self._known: dict[str, list[Any]] | None = None
        self.skipped: tuple[Skipped, ...] = ()
        """The files that were left out when it was last looked for changes."""
        self._latest: Scan | None = None
        self._unreadable: dict[str, list[Any]] = {}

    @property
    def count(self) -> int:
        """How many copies there are."""
        return len(self._manifest())

    def by_source(self) -> dict[str, int]:
        """Return how many copies there are of notes and of transcripts."""
        found: dict[str, int] = {}
        for stamp in self._manifest().values():
            found[stamp[1]] = found.get(stamp[1], 0) + 1
        return found

    def place(self, name: str) -> tuple[str, Source] | None:
        """Return path and source of the file that a copy is of; None where it is of none.

        Args:
            name: The name of the copy.
        """
        stamp = self._manifest().get(name)
        return None if stamp is None else (stamp[0], stamp[1])

    def text(self, path: str, source: Source) -> str:
        """Return what of a file is indexed, line for line.

        Args:
            path: The file.
            source: Whether it is a note or a transcript.

        Raises:
            WorkspaceError, PathNotAllowedError, NotFoundError: It cannot be read.
        """
        text = self._workspace.read(path)
        if source == "sessions":
            return text
        above = front_matter_end(text)  # of a document or record: fields, some of which nobody is shown
        return "\n" * text.count("\n", 0, above) + indexed_text(text, self._workspace.policies)[above:]

    def copied(self, name: str) -> str | None:
        """Return the text of a copy; None where it has gone."""
        try:
            return (self._folder / NOTES_FOLDER / name).read_bytes().decode("utf-8", "surrogatepass")
        except OSError:
            return None

    def behind(self) -> dict[str, str]:
        """Return the files whose copies are not up to date, each with the reason."""
        scan = self._workspace.scan()
        self.skipped = scan.skipped
        if scan is self._latest:
            return {}
        known, wanted = {**self._unreadable, **self._manifest()}, self._wanted(scan)
        found = {file.path: "new" for name, file in wanted.items() if name not in known}
        found |= {file.path: "changed" for name, file in wanted.items() if known.get(name, _of(file)) != _of(file)}
        found |= {known[name][0]: "removed" for name in known.keys() - wanted.keys()}
        if not found:
            self._latest = scan
        return found

    def _wanted(self, scan: Scan) -> dict[str, MemoryFile]:
        hidden = self._records.hidden(file.path for file in scan.files)
        return {_name_of(file.path): file for file in scan.files if file.path not in hidden}

    def copy(self) -> Copied:
        """Bring the copies up to date with the files.

        Raises:
            WorkspaceError: The workspace cannot be listed.
            BackendError: The copies cannot be written.
        """
        scan = self._workspace.scan()
        wanted, known = self._wanted(scan), self._manifest()
        failed: dict[str, str] = {}
        unreadable: dict[str, list[Any]] = {}
        kept: dict[str, list[Any]] = {}
        added: list[str] = []
        changed: list[str] = []
        try:
            self._prepare()
            there = {name for name in os.listdir(self._folder / NOTES_FOLDER) if _OURS.fullmatch(name)}
            for name, file in wanted.items():
                stamp = _of(file)
                if name not in there or known.get(name) != stamp:
                    try:
                        text = self.text(file.path, file.source)
                    except OpenClawMemoryError as error:
                        failed[file.path], unreadable[name] = str(error), stamp
                        continue
                    self._write(f"{NOTES_FOLDER}/{name}", text)
                    (changed if name in known else added).append(file.path)
                kept[name] = stamp
            for name in there - kept.keys():
                (self._folder / NOTES_FOLDER / name).unlink(missing_ok=True)
            removed = [known[name][0] for name in known.keys() - wanted.keys()]
            if kept != known or added:
                self._write(_MANIFEST, json.dumps({"rules": self._rules, "notes": kept}))
        except OSError as error:
            raise BackendError(
                f"the copies for QMD in {self._folder} cannot be written ({error}): {remedy(error)}"
            ) from error
        self._known, self._unreadable, self._latest = kept, unreadable, scan
        return Copied(tuple(added), tuple(changed), tuple(removed), len(kept) - len(added) - len(changed), failed)

    def delete(self) -> None:
        """Delete the copies and the list of them.

        Raises:
            BackendError: The system refuses to.
        """
        folder = self._folder / NOTES_FOLDER
        try:
            for name in os.listdir(folder) if folder.is_dir() else ():
                if _OURS.fullmatch(name) or _UNFINISHED.fullmatch(name):
                    (folder / name).unlink(missing_ok=True)
            (self._folder / _MANIFEST).unlink(missing_ok=True)
        except OSError as error:
            raise BackendError(f"the copies in {folder} cannot be deleted ({error}): {remedy(error)}") from error
        self._known = self._latest = None

    @property
    def _rules(self) -> str:
        return f"{_FORMAT} {self._workspace.policies.digest}"

    def _manifest(self) -> dict[str, list[Any]]:
        if self._known is None:
            self._known = {}
            with suppress(OSError, ValueError, TypeError, KeyError):  # it is written anew
                said = json.loads((self._folder / _MANIFEST).read_text(encoding="utf-8"))
                if said["rules"] == self._rules:
                    self._known = dict(said["notes"])
        return self._known

    def _prepare(self) -> None:
        (self._folder / NOTES_FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)

    def _write(self, name: str, text: str) -> None:
        file = self._folder / name
        unfinished = file.with_name(f"{file.name}.{secrets.token_hex(4)}.tmp")  # others may write it at the same time
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
            target.write(text.encode("utf-8", "surrogatepass"))
        os.replace(unfinished, file)


def _name_of(path: str) -> str:
    """Return the name of the copy of a file: QMD writes names in small letters and without signs, so this one is so."""
    slug = _SLUG.sub("-", path.lower().removesuffix(".md")).strip("-")[:_LONGEST_SLUG].strip("-")
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug or 'note'}-{digest}.md"


def _of(file: MemoryFile) -> list[Any]:
    return [file.path, file.source, file.size, file.mtime_ns, file.ctime_ns, file.inode]
