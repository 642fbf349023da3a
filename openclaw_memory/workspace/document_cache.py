"""Cache documents by path, valid while the stamp of their file is the same."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from openclaw_memory import errors
from openclaw_memory._safe import warn
from openclaw_memory.text.front_matter import Embedding, FrontMatter, get_embedding, measure_front_matter, parse
from openclaw_memory.text.policies import get_about
from openclaw_memory.text.redaction import mask_value, redact
from openclaw_memory.types import Document, Source
from openclaw_memory.types.files import LEFT_OUT, Span, format_citation, parse_citation
from openclaw_memory.workspace.encodings import decode
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER, FileStamp, Stamp, get_stamp, is_settled

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace


MOST_BYTES = 32 << 20  # the size of the cache, about
_OVERHEAD_BYTES = 1024  # of Python's objects, for each file

# Stands around the name of a collection in the key of a document, and begins no id.
_MARK = "\x1f"


class CachedDocument(NamedTuple):
    """The content of a file; the same object while the file is the same, and not to be changed.

    Attributes:
        doc_id: Its key, see `make_key`; None if it cannot be read.
        content: Its fields and text with secrets masked; None for a file that no program wrote.
        is_text: False for a missing file, or one without text.
        line: The line at which its text begins.
        embedding: The vector that came with it.
        has_secrets: True if `content` has masks.
    """

    doc_id: str | None
    content: FrontMatter | None
    is_text: bool = True
    line: int = 1
    embedding: Embedding | None = None
    has_secrets: bool = False


_NOTHING = CachedDocument(None, None, is_text=False)


class DocumentCache:
    """The documents of a workspace, read again only if their files have changed. Safe to use from several threads.

    Attributes:
        files: The files of the workspace.
        unread: The damage of files that cannot be read as a whole, by path; each was logged once.
    """

    def __init__(self, files: WorkspaceFiles) -> None:
        """Read nothing yet."""
        self.files, self.unread = files, dict[str, str]()
        self._entries: dict[str, tuple[FileStamp, int, CachedDocument]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def load(self, path: str, info: os.stat_result | Stamp | None = None) -> CachedDocument:
        """Return the content of a file.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file, or passes a symlink.
            WorkspaceError: The file cannot be read.
        """
        entry = self._entries.get(path)
        if entry is not None and entry[0] == (get_stamp(info) if info else self._get_stamp(path)):
            return entry[2]
        return self._read(path)

    def try_load(self, path: str) -> CachedDocument | None:
        """Return the content of a file, or None if there is no readable one: a search goes on with the other files."""
        try:
            document = self.load(path)
        except (errors.NotFoundError, errors.PathNotAllowedError, errors.WorkspaceError):
            return None
        return document if document.is_text else None

    def load_unmasked(self, path: str) -> CachedDocument:
        """Return the content of a file with its secrets.

        Raises:
            PathNotAllowedError, WorkspaceError: As `load`.
        """
        document = self.load(path)
        return self._read(path, masks=False) if document.has_secrets else document

    def forget_all_but(self, existing: set[str], folder: str) -> None:
        """Forget the files below a folder that no longer exist."""
        with self._lock:
            removed = (self._entries.keys() | self.unread.keys()) - existing
        self.forget(path for path in removed if path.startswith(f"{folder}/"))

    def forget(self, paths: Iterable[str]) -> None:
        """Forget files, which were removed."""
        with self._lock:
            for path in paths:
                self.unread.pop(path, None)
                if (entry := self._entries.pop(path, None)) is not None:
                    self._bytes -= entry[1]

    def _read(self, path: str, *, masks: bool = True) -> CachedDocument:
        place = self.files.locate(path)
        now = time.time_ns()
        try:
            data, info = self.files.read(place)
        except errors.NotFoundError:
            self.forget({path, place.path})
            return _NOTHING
        except errors.SealedFileError as error:
            self._report(place.path, str(error))
            return _NOTHING
        try:
            text = decode(data, place.path)
        except errors.UndecodableError:
            self.unread.pop(place.path, None)
            document, size = _NOTHING, 0
        else:
            document, size = self._parse(place.path, text, masks=masks), info.st_size
        if masks and is_settled(info.st_mtime_ns, info.st_ctime_ns, now):
            self._store(path, get_stamp(info), (size if document.content else 0) + _OVERHEAD_BYTES, document)
        return document

    def _parse(self, path: str, text: str, *, masks: bool) -> CachedDocument:
        if (matter := parse(text)) is None:
            self.unread.pop(path, None)
            return CachedDocument(None, None)
        doc_id, damage = get_key(matter), list(matter.damage)
        if path.startswith(f"{DOCUMENTS_FOLDER}/"):
            if doc_id is None:
                damage.append("its `id` is missing, and taken from the name of the file")
            if not isinstance(matter.fields.get("metadata", {}), dict):
                damage.append("its `metadata` are no table")
            self._report_damage(path, damage)
        own = FrontMatter(dict(matter.fields), matter.text, matter.damage)
        if policies := self.files.policies:
            about = get_about(own.fields)
            own = own._replace(fields=policies.mask_value(own.fields, about), text=policies.mask(own.text, about))
        content = own._replace(fields=mask_value(own.fields, redact), text=redact(own.text))
        line = text.count("\n", 0, measure_front_matter(text)) + 1
        embedding = get_embedding(text, matter.fields)
        return CachedDocument(doc_id, content if masks else own, True, line, embedding, has_secrets=content != own)

    def _report_damage(self, path: str, damage: list[str]) -> None:
        if damage:
            self._report(
                path, f"{path} was damaged above its text: {'; '.join(damage)}. Correct it by hand, or add it again"
            )
        else:
            self.unread.pop(path, None)

    def _report(self, path: str, problem: str) -> None:
        if self.unread.get(path) != problem:
            self.unread[path] = problem
            warn(problem)

    def _store(self, path: str, stamp: FileStamp, size: int, document: CachedDocument) -> None:
        with self._lock:
            self._bytes += size - (self._entries.pop(path)[1] if path in self._entries else 0)
            self._entries[path] = (stamp, size, document)
            while self._bytes > MOST_BYTES:
                oldest = next(iter(self._entries))
                self._bytes -= self._entries.pop(oldest)[1]

    def _get_stamp(self, path: str) -> FileStamp | None:
        try:
            return get_stamp(os.lstat(os.path.join(self.files.root, path)))
        except (OSError, ValueError):
            return None


def make_key(collection: str, doc_id: str) -> str:
    """Return the name of a document in all of a memory: its id, after the name of its collection if it is in one.

    Raises:
        InvalidInputError: The name or the id could be taken for those of another document.
    """
    if isinstance(doc_id, str) and (_MARK in collection or doc_id.startswith(_MARK)):
        raise errors.InvalidInputError(f"{doc_id!r} cannot be a name: leave out the control character {_MARK!r}")
    return f"{_MARK}{collection}{_MARK}{doc_id}" if collection else doc_id


def split_key(key: str) -> tuple[str, str]:
    """Return the collection, or "", and the id that `make_key` was called with."""
    if not isinstance(key, str) or not key.startswith(_MARK):
        return "", key
    _, collection, doc_id = key.split(_MARK, 2)
    return collection, doc_id


def get_key(matter: FrontMatter) -> str | None:
    """Return the key of a document; an id that is a number, as a person may write it, counts as its digits."""
    doc_id, collection = matter.fields.get("id"), matter.fields.get("collection")
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not isinstance(doc_id, str) or not doc_id.strip() or doc_id.startswith(_MARK):
        return None
    return make_key(collection if isinstance(collection, str) else "", doc_id)


def make_document(path: str, spans: Sequence[Span], text: str, source: Source) -> Document:
    """Return lines of a person's file as a document."""
    doc_id, start, end = format_citation(path, *spans), spans[0][0], spans[-1][1]
    metadata = {"path": path, "start_line": start, "end_line": end, "source": source, "citation": doc_id}
    return Document(doc_id, text, metadata, path, line=start)


def read_citation(workspace: Workspace, doc_id: str) -> Document | None:
    """Return the lines that an id cites, with secrets masked; None if it is not a citation of lines that exist."""
    if (place := parse_citation(doc_id)) is None:
        return None
    try:
        runs = [workspace.read_excerpt(place[0], first, last - first + 1) for first, last in place[1]]
    except (errors.NotFoundError, errors.PathNotAllowedError, errors.InvalidInputError):
        return None
    path = runs[0].path
    source: Source = "sessions" if path.startswith("sessions/") else "memory"
    text = LEFT_OUT.join(run.text for run in runs)
    return make_document(path, [(run.start_line, run.end_line) for run in runs], text, source)


def check_names_no_file(workspace: Workspace, doc_id: str) -> None:
    """Check that an unknown id is not the path or the citation of a file either.

    Raises:
        PathNotAllowedError: It is: the message tells how to delete that file or those lines.
    """
    place = parse_citation(doc_id)
    path = place[0] if place else doc_id
    try:
        workspace.read(path)
    except (errors.NotFoundError, errors.PathNotAllowedError):
        return
    raise errors.PathNotAllowedError(
        f"{doc_id!r} names the file {path} and is no document's id: a document is deleted by the `id` above its text; "
        "a person's own file is changed by hand, or with `edit` and `delete` of the memory"
    )
