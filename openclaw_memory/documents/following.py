"""The vectors that came with documents are brought up to date with the files of the documents."""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from openclaw_memory.documents.validation import rows_of, unit_of
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.types import Document, FileRecord, Maker, MemoryFile

if TYPE_CHECKING:
    from openclaw_memory.indexing.changes import Difference
    from openclaw_memory.store.document_vectors import DocumentVectors, Kept
    from openclaw_memory.types import Vector

_FILES_AT_ONCE = 1000  # in one transaction, and in one call of what makes vectors


@dataclass(frozen=True)
class Read:
    """A file as it was read just now: the document in it, and its vector, in base64, as it stands above the text."""

    file: MemoryFile
    document: Document | None
    above: str | None
    checked_ns: int

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def model(self) -> str:
        """The identity of the model whose vector came with the document; "" where none did, or there is none."""
        return self.document.model if self.document is not None else ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the document says."""
        one = self.document
        said = one and [one.id, one.text, one.metadata, one.fields, one.model, self.above]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @cached_property
    def vector(self) -> Vector | None:
        """The unit vector in the file, shape (dims,); None where it holds none that can be read."""
        import numpy as np

        try:
            numbers = np.frombuffer(b64decode(self.above or "", validate=True), dtype="<f4")
        except ValueError:
            return None
        return unit_of(numbers) if numbers.size and np.isfinite(numbers).all() else None

    def record(self, lacks: str | None = None) -> FileRecord:
        """What is kept of the file."""
        file = self.file
        stamp = (file.size, file.mtime_ns, file.inode, self.checked_ns)
        return FileRecord(file.path, file.source, self.digest, *stamp, lacks)


def follow(
    vectors: DocumentVectors,
    kept: Kept,
    difference: Difference,
    read: Callable[[MemoryFile], Read | None],
    maker: Maker | None,
    given: Mapping[str, Vector],
) -> str:
    """Bring `vectors`, which hold what is `kept`, up to date with the files that differ from that.

    Returns the latest change that was made to them.

    `given` are the vectors of documents that were just written, by their paths; others stand in their files, or `maker`
    makes them.
    """
    change = kept.change
    if difference.vanished:
        vectors.write([], removed=difference.vanished, change=(change := _change()))
    model, dims = kept.model, kept.dims
    open_to_all = {*difference.vanished, *(file.path for file in difference.to_read)}
    if open_to_all.issuperset(kept.paths):  # none is left that others would have to be compared with
        model, dims = _model_of(difference.to_read, read, maker), None
    rest = iter(difference.to_read)
    made = _Made(maker, model)
    while files := list(islice(rest, _FILES_AT_ONCE)):
        # What cannot be read now stays as it was, and is looked at again.
        some = [one for one in map(read, files) if one is not None]
        same = {one.path: one for one in some if _is_unchanged(one, kept.records.get(one.path), given, model)}
        changed = [one for one in some if one.path not in same]
        if any(path in kept.places for path in same):
            dims = dims or kept.dims
        found = {one.path: _vector(one, model, given) for one in changed if one.model}
        found |= made.again({one.path: one.document for one in changed if found.get(one.path, "") is None})
        dims = dims or next((len(one) for one in found.values() if not isinstance(one, str) and one is not None), None)
        rows = [(one, _fitting(found.get(one.path), dims)) for one in changed]
        vectors.write(
            [
                (one.record(vector), one.model, None) if isinstance(vector, str) else (one.record(), one.model, vector)
                for one, vector in rows
            ],
            [one.record() for one in same.values()],
            change=(change := _change()),
        )
    return change


class _Made:
    """Vectors that a maker makes again, until it fails: then it is not asked for the rest."""

    def __init__(self, maker: Maker | None, model: str | None) -> None:
        self._make = maker.make if maker is not None and maker.identity == model else None
        self._model, self._why = model, ""
        if self._make is None:
            self._why = f"only {model!r} can make them again: hand that model in, or add the documents again"

    def again(self, documents: Mapping[str, Document | None]) -> dict[str, Vector | str | None]:
        """The unit vectors of documents by their paths, or why there are none."""
        if documents and not self._why:
            try:
                return dict(zip(documents, self._rows([one for one in documents.values() if one]), strict=True))
            except OpenClawMemoryError as error:
                self._why = str(error)
        return dict.fromkeys(documents, self._why)

    def _rows(self, documents: list[Document]) -> Iterator[Vector]:
        assert self._make is not None, "whoever cannot make vectors is not asked"
        try:
            rows = rows_of(self._make(documents), len(documents))
        except OpenClawMemoryError:
            raise
        except Exception as error:  # the model is somebody else's
            raise EmbedderError(
                f"{self._model!r} could not make them again: {type(error).__name__}: {error}"
            ) from error
        yield from map(unit_of, rows)


def _model_of(
    files: Iterable[MemoryFile], read: Callable[[MemoryFile], Read | None], maker: Maker | None
) -> str | None:
    """The model that an empty index is for: that of the maker, or else the commonest of the documents."""
    models = Counter(one.model for file in files if (one := read(file)) is not None and one.model)
    if maker is not None and maker.identity in models:
        return maker.identity
    return models.most_common(1)[0][0] if models else None


def _is_unchanged(one: Read, record: FileRecord | None, given: Mapping[str, Vector], model: str | None) -> bool:
    """Whether only the stamp of a file is another one."""
    is_same = record is not None and record.lacks is None and record.hash == one.digest
    return is_same and one.path not in given and one.model in {"", model}


def _vector(one: Read, model: str | None, given: Mapping[str, Vector]) -> Vector | str | None:
    """The unit vector of a document, or why it has none that counts; None where it is gone."""
    if one.model != model:
        return f"they are of {one.model!r}, those of the others are of {model!r}: add these again"
    return unit_of(given[one.path]) if one.path in given else one.vector


def _fitting(vector: Vector | str | None, dims: int | None) -> Vector | str | None:
    if vector is None or isinstance(vector, str) or len(vector) == dims:
        return vector
    return f"they have {len(vector)} dimensions, those of the others have {dims}"


def _change() -> str:
    return os.urandom(8).hex()
