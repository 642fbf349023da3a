"""A cache of documents by path, valid as long as their files do not change."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    SealedFileError,
    UndecodableError,
    WorkspaceError,
)
from openclaw_memory.text.front_matter import (
    EMBEDDING,
    SHOWN_VECTOR,
    VECTOR,
    Embedding,
    FrontMatter,
    get_embedding,
    measure_front_matter,
    parse,
)
from openclaw_memory.text.policies import get_about
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import Document, Source
from openclaw_memory.types.files import LEFT_OUT, Span, citation, cited
from openclaw_memory.workspace.encodings import decode
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER, FileStamp, Stamp, get_stamp, is_settled

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace


# The size of the cache in bytes, about; the ids are kept in addition, however many there are.
MOST_BYTES = 32 << 20
_BYTES_BESIDE = 1024  # of Python's objects, for each file

# Stands around the name of a collection in the key of a document, and begins no id.
_MARK = "\x1f"


class CachedDocument(NamedTuple):
    """What a file holds. `content` has its secrets masked, or is missing for a file that no program wrote.

    `doc_id` is its key, see `key_of`, and missing if it cannot be read. `is_text` is false for a missing file, or one
    without text. A content is the same object as long as the file is the same, and must not be changed. Its text begins
    at `line`. `embedding` is what the file says of the vector that came with it.
    """

    doc_id: str | None
    content: FrontMatter | None
    is_text: bool = True
    line: int = 1
    embedding: Embedding | None = None
    has_secrets: bool = False


class Listed(NamedTuple):
    """What is kept of every file: whether it is a document, its id, and whose vector came with it."""

    is_document: bool
    doc_id: str | None
    vectors: tuple[str, int] | None


def _listed(seen: CachedDocument) -> Listed:
    vectors = None if seen.embedding is None else (seen.embedding.model, seen.embedding.dims)
    return Listed(seen.content is not None, seen.doc_id, vectors)


_NOTHING = CachedDocument(None, None, is_text=False)
_A_PERSONS = CachedDocument(None, None)


class DocumentCache:
    """The documents of a workspace, read again only if their files have changed. Safe to use from several threads."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self.unread: dict[str, str] = {}
        """What is wrong with files that a person has damaged, or cannot be unsealed, by path; each was logged once."""
        self.files, self._base = files, str(files.root)
        self._listed: dict[str, tuple[FileStamp, Listed]] = {}
        self._kept: dict[str, tuple[FileStamp, int, CachedDocument]] = {}
        self._bytes = 0
        self._lock = _forks.lock()

    def load(self, path: str, info: os.stat_result | Stamp | None = None) -> CachedDocument:
        """Return what the file at a path holds; `info` is its stat, if the caller has just taken it.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file, or passes a symlink.
            WorkspaceError: The file cannot be read.
        """
        stamp = get_stamp(info) if info else self._stamp_at(path)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == stamp:
            return kept[2]
        return self._read(path)

    def try_load(self, path: str) -> CachedDocument | None:
        """Return what `load` returns, or None if there is no readable file: a search goes on with the others."""
        try:
            seen = self.load(path)
        except (NotFoundError, PathNotAllowedError, WorkspaceError):
            return None
        return seen if seen.is_text else None

    def load_unmasked(self, path: str) -> CachedDocument:
        """Return what `load` returns, with its secrets as they are in the file.

        Raises:
            PathNotAllowedError, WorkspaceError: As `load`.
        """
        seen = self.load(path)
        return self._read(path, masks=False) if seen.has_secrets else seen

    def load_latest(self, path: str) -> CachedDocument | None:
        """Return what `try_load` returned last, even if the file has changed since."""
        kept = self._kept.get(path)
        return kept[2] if kept is not None else self.try_load(path)

    def load_summary(self, path: str, info: os.stat_result | Stamp) -> Listed:
        """Return the part of `load` that is kept of every file.

        Raises:
            PathNotAllowedError, WorkspaceError: As `load`.
        """
        known = self._listed.get(path)
        return known[1] if known is not None and known[0] == get_stamp(info) else _listed(self.load(path, info))

    def forget_all_but(self, there: set[str], folder: str) -> None:
        """Forget what was read below a folder, except the files that are still `there`."""
        with self._lock:
            gone = (self._listed.keys() | self._kept.keys() | self.unread.keys()) - there
        self.forget(path for path in gone if path.startswith(f"{folder}/"))

    def forget(self, paths: Iterable[str]) -> None:
        """Forget what was read of these files, which are gone."""
        with self._lock:
            for path in paths:
                self._listed.pop(path, None)
                self.unread.pop(path, None)
                if (kept := self._kept.pop(path, None)) is not None:
                    self._bytes -= kept[1]

    def _read(self, path: str, *, masks: bool = True) -> CachedDocument:
        place = self.files.locate(path)
        now = time.time_ns()
        try:
            data, info = self.files.read(place)
        except NotFoundError:
            self.forget({path, place.path})
            return _NOTHING
        except SealedFileError as error:
            self._tell(place.path, str(error))
            return _NOTHING
        try:
            text = decode(data, place.path)
        except UndecodableError:
            self.unread.pop(place.path, None)
            seen, size = _NOTHING, 0
        else:
            matter = parse(text)
            line = text.count("\n", 0, measure_front_matter(text)) + 1
            seen = self._seen(place.path, matter, masks=masks)._replace(line=line)
            size = 0 if matter is None else info.st_size
            if matter is not None and (embedding := get_embedding(text, matter.fields)) is not None:
                size -= len(embedding.vector or "")
                seen = seen._replace(embedding=embedding._replace(vector=embedding.vector and SHOWN_VECTOR))
        if masks and is_settled(info, now):
            self._keep(path, get_stamp(info), size + _BYTES_BESIDE, seen)
        return seen

    def _seen(self, path: str, matter: FrontMatter | None, *, masks: bool) -> CachedDocument:
        if matter is None:
            self.unread.pop(path, None)
            return _A_PERSONS
        doc_id, damage = get_key(matter), list(matter.damage)
        if path.startswith(f"{DOCUMENTS_FOLDER}/"):
            if doc_id is None:
                damage.append("its `id` is missing, and taken from the name of the file")
            if not isinstance(matter.fields.get("metadata", {}), dict):
                damage.append("its `metadata` are no table")
            self._report(path, damage)
        own = matter._replace(fields=strip_vector(matter.fields))
        if policies := self.files.policies:
            about = get_about(own.fields)
            own = own._replace(fields=policies.mask_value(own.fields, about), text=policies.mask(own.text, about))
        content = own._replace(fields=mask_value(own.fields), text=redact(own.text))
        return CachedDocument(doc_id, content if masks else own, has_secrets=content != own)

    def _report(self, path: str, damage: list[str]) -> None:
        if not damage:
            self.unread.pop(path, None)
            return
        words = (
            f"{path} was damaged above its text: {'; '.join(damage)}. What can be read is used: correct it by hand, or "
            "add the document again"
        )
        self._tell(path, words)

    def _tell(self, path: str, words: str) -> None:
        if self.unread.get(path) != words:
            self.unread[path] = words
            warn(words)

    def _keep(self, path: str, stamp: FileStamp, size: int, seen: CachedDocument) -> None:
        with self._lock:
            self._listed[path] = (stamp, _listed(seen))
            self._bytes += size - (self._kept.pop(path)[1] if path in self._kept else 0)
            self._kept[path] = (stamp, size, seen)
            while self._bytes > MOST_BYTES:
                oldest = next(iter(self._kept))
                self._bytes -= self._kept.pop(oldest)[1]

    def _stamp_at(self, path: str) -> FileStamp | None:
        try:
            return get_stamp(os.lstat(os.path.join(self._base, path)))
        except (OSError, ValueError):
            return None


def make_key(collection: str, doc_id: str) -> str:
    """Return what names a document in all of a memory: its id, after the name of its collection if it is in one.

    Raises:
        InvalidInputError: The name or the id could be taken for those of another one.
    """
    if isinstance(doc_id, str) and (_MARK in collection or doc_id.startswith(_MARK)):
        raise InvalidInputError(f"{doc_id!r} cannot be a name: leave out the control character {_MARK!r}")
    return f"{_MARK}{collection}{_MARK}{doc_id}" if collection else doc_id


def split_key(key: str) -> tuple[str, str]:
    """Return the collection, or "", and the id that `key_of` was given."""
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


def strip_vector(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document without the numbers of its vector, which say nothing to people."""
    embedding = fields.get(EMBEDDING)
    if not isinstance(embedding, dict) or VECTOR not in embedding:
        return dict(fields)
    return {**fields, EMBEDDING: {**embedding, VECTOR: SHOWN_VECTOR}}


def mask_value(value: Any) -> Any:
    """Return a copy of a JSON value with the secrets in its texts masked."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: mask_value(inner) for key, inner in value.items()}
    return [mask_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def make_document(path: str, spans: Sequence[Span], text: str, source: Source) -> Document:
    """Return lines of a person's file as a document."""
    doc_id, start, end = citation(path, *spans), spans[0][0], spans[-1][1]
    metadata = {"path": path, "start_line": start, "end_line": end, "source": source, "citation": doc_id}
    return Document(doc_id, text, metadata, path, line=start)


def read_citation(workspace: Workspace, doc_id: str) -> Document | None:
    """Return the lines that an id cites, with secrets masked; None if it is not a citation of lines that exist."""
    if (place := cited(doc_id)) is None:
        return None
    try:
        runs = [workspace.read_excerpt(place[0], first, last - first + 1) for first, last in place[1]]
    except (NotFoundError, PathNotAllowedError, InvalidInputError):
        return None
    path = runs[0].path
    source: Source = "sessions" if path.startswith("sessions/") else "memory"
    text = LEFT_OUT.join(run.text for run in runs)
    return make_document(path, [(run.start_line, run.end_line) for run in runs], text, source)


def check_names_no_file(workspace: Workspace, cache: DocumentCache, doc_id: str) -> None:
    """Check that an unknown id is not the path or the citation of a file either.

    Raises:
        PathNotAllowedError: It is: the message says how to delete what it names.
    """
    place = cited(doc_id)
    path = place[0] if place else doc_id
    seen = cache.try_load(path)
    if seen is not None and seen.content is not None:
        raise PathNotAllowedError(
            f"{doc_id!r} names the file {path} of a document: delete it by the `id` above its text, or by its "
            "path with `documents.files.delete`"
        )
    try:
        workspace.read_excerpt(path, lines=1)
    except (NotFoundError, PathNotAllowedError):
        return
    raise PathNotAllowedError(
        f"{doc_id!r} cites {path} and is no document's id: a person's own file is changed by hand, or with `edit` and "
        "`delete` of the memory; a document is deleted by the id it was added with"
    )
