"""The index of the vectors that came with documents is brought up to date with the files of the documents."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from openclaw_memory.documents.checks import rows_of, unit_of
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.store.layout import SCHEMA_VERSION
from openclaw_memory.sync.compare import Difference
from openclaw_memory.types import Chunk, ChunkRow, Document, FileRecord, IndexMeta, Maker, MemoryFile, Store

if TYPE_CHECKING:
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

    def record(self, lacks: str | None) -> FileRecord:
        """What the index is to know of the file."""
        file = self.file
        stamp = (file.size, file.mtime_ns, file.inode, self.checked_ns)
        return FileRecord(file.path, file.source, self.digest, *stamp, lacks)


def begin(store: Store, models: Counter[str], maker: Maker | None) -> None:
    """Begin an empty index for one of the `models` whose vectors came with documents: the maker's, or the commonest."""
    model = maker.identity if maker is not None and maker.identity in models else models.most_common(1)[0][0]
    # An identity of its own for each beginning: the same model may come with other dimensions now.
    store.reset(IndexMeta("", model, f"{model} {time.time_ns()}", None, {}, SCHEMA_VERSION))


def follow(
    store: Store,
    difference: Difference,
    known: Mapping[str, FileRecord],
    read: Callable[[MemoryFile], Read],
    maker: Maker | None,
    given: Mapping[str, Vector],
) -> dict[str, FileRecord]:
    """Index the files that differ from what the index knew of them, and return what it then knows.

    It knows nothing of a file without a document, or with one that came without a vector. `given` are the vectors of
    documents that were just written, by their ids; others stand in their files, or `maker` makes them.
    """
    meta = store.meta()
    if meta is None:
        return {}
    after = dict(known)
    rest = iter(difference.to_read)
    gone = list(difference.vanished)
    while some := [read(file) for file in islice(rest, _FILES_AT_ONCE)]:
        gone += [one.file.path for one in some if not one.model and one.file.path in known]
        unchanged, changed = _parted([one for one in some if one.model], after, given)
        vectors, lacks = _vectors_of(changed, meta.model, maker, given)
        dims = meta.dims or next(map(len, vectors.values()), None)
        for path in [path for path, vector in vectors.items() if len(vector) != dims]:
            lacks[path] = f"they have {len(vectors.pop(path))} dimensions, those of the others have {dims}"
        keys = _stored(store, vectors)
        stamped = [one.record(None) for one in unchanged]
        rows = [(one.record(lacks.get(one.file.path)), _rows(keys.get(one.file.path))) for one in changed]
        store.touch_files(stamped)
        store.replace_files(rows)
        after |= {record.path: record for record in (*stamped, *(record for record, _ in rows))}
        meta = store.meta() or meta  # the first vectors fix the dimensions
    if gone:
        store.remove_files(gone)
    if known:
        store.prune(0)
    return {path: record for path, record in after.items() if path not in set(gone)}


def _parted(
    read: Sequence[Read], known: Mapping[str, FileRecord], given: Mapping[str, Vector]
) -> tuple[list[Read], list[Read]]:
    """Files of which only the stamp is another one, and those that say something else."""
    parts: tuple[list[Read], list[Read]] = ([], [])
    for one in read:
        parts[not _is_unchanged(one, known.get(one.file.path), given)].append(one)
    return parts


def _is_unchanged(one: Read, record: FileRecord | None, given: Mapping[str, Vector]) -> bool:
    """Whether only the stamp of a file is another one."""
    if one.document is not None and one.document.id in given:
        return False
    return record is not None and record.lacks is None and record.hash == one.digest


def _vectors_of(
    read: Sequence[Read], model: str, maker: Maker | None, given: Mapping[str, Vector]
) -> tuple[dict[str, Vector], dict[str, str]]:
    """The unit vectors of documents by their paths, and why others lack theirs."""
    vectors: dict[str, Vector] = {}
    lacks: dict[str, str] = {}
    gone: dict[str, Document] = {}
    for one in read:
        path, document = one.file.path, one.document
        if document is None:
            continue
        if document.model != model:
            lacks[path] = f"they are of {document.model!r}, those of the others are of {model!r}: add these again"
        elif document.id in given:
            vectors[path] = unit_of(given[document.id])
        elif (vector := one.vector) is not None:
            vectors[path] = vector
        else:
            gone[path] = document
    if not gone:
        return vectors, lacks
    try:
        made = _made(list(gone.values()), model, maker)
    except OpenClawMemoryError as error:
        return vectors, lacks | dict.fromkeys(gone, str(error))
    return vectors | dict(zip(gone, made, strict=True)), lacks


def _made(documents: Sequence[Document], model: str, maker: Maker | None) -> list[Vector]:
    """The unit vectors of documents, made again.

    Raises:
        EmbedderError: nobody is at hand who can, or it failed.
    """
    if maker is None or maker.make is None or maker.identity != model:
        raise EmbedderError(f"only {model!r} can make them again: hand that model in, or add the documents again")
    try:
        rows = rows_of(maker.make(documents), len(documents))
    except OpenClawMemoryError:
        raise
    except Exception as error:  # the model is somebody else's
        raise EmbedderError(f"{model!r} could not make them again: {type(error).__name__}: {error}") from error
    return [unit_of(row) for row in rows]


def _stored(store: Store, vectors: Mapping[str, Vector]) -> dict[str, str]:
    """Store vectors; their keys by the paths of their documents."""
    import numpy as np

    if not vectors:
        return {}
    rows = np.stack(list(vectors.values()))
    keys = [hashlib.sha256(row.tobytes()).hexdigest() for row in rows]
    store.add_vectors(keys, rows)
    return dict(zip(vectors, keys, strict=True))


def _rows(key: str | None) -> list[ChunkRow]:
    """The one row of a document, which holds nothing but its vector; none where it has none."""
    return [] if key is None else [ChunkRow(Chunk(1, 1, 0, ""), "", "", key)]
