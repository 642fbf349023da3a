"""Turn records, chunks and terms into rows of PostgreSQL and back."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct, structs

from openclaw_memory.types import Chunk, ChunkRow, FileRecord, IndexMeta, StoredChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray as NumpyArray

    from openclaw_memory.types import Source

CONTEXT_WEIGHT = 0.5  # as in the index of SQLite: a word of the heading says less about a chunk than a word of its text

FILES = (
    "path", "source", "hash", "size", "mtime_ns", "inode", "checked_ns", "vectors_missing", "ctime_ns", "doc_id",
    "part_of", "left_out",
)  # fmt: skip
FILE_TYPES = (
    "text", "text", "text", "int8", "int8", "numeric", "int8", "text", "int8", "text", "text", "text",
)  # fmt: skip
CHUNKS = (
    "id", "block", "path", "source", "identity", "vector_key", "ordinal", "start_line", "end_line", "start_char",
    "section", "length", "text", "context", "metadata",
)  # fmt: skip
CHUNK_TYPES = (
    "int8", "int8", "text", "text", "text", "text", "int4", "int4", "int4", "int8", "int4", "int4", "text", "text",
    "text",
)  # fmt: skip
IDENTITY, LENGTH, SOURCE = CHUNKS.index("identity"), CHUNKS.index("length"), CHUNKS.index("source")
POSTINGS = ("term", "block", "source", "chunks", "weights", "lengths")

# What PostgreSQL takes for no text is stored as JSON behind this character; so is a text that begins with it.
_ESCAPED = "\x01"


def hash_tenant(name: str) -> UUID:
    """Return the key of a tenant: 128 bits of the SHA-256 of its name, so that no two names meet in one."""
    return UUID(bytes=sha256(name.encode("utf-8", "surrogatepass")).digest()[:16])


@lru_cache(maxsize=1 << 16)
def hash_term(term: str) -> int:
    """Return the key of a term: a hash of 64 bits, signed as PostgreSQL's bigint."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def encode(text: str) -> str:
    """Return a text as PostgreSQL can hold it: NUL and lone surrogates are written as JSON writes them."""
    if "\x00" not in text and not text.startswith(_ESCAPED):
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _ESCAPED + json.dumps(text)


def read(text: str) -> str:
    """Return a text as it was before `encode`."""
    return str(json.loads(text[1:])) if text.startswith(_ESCAPED) else text


def _encode_optional(text: str | None) -> str | None:
    return None if text is None else encode(text)


def make_file_row(record: FileRecord) -> tuple[Any, ...]:
    """Return the row of a file, in the order of `FILES`."""
    return (
        encode(record.path),
        record.source,
        encode(record.hash),
        record.size,
        record.mtime_ns,
        record.inode,
        record.checked_ns,
        _encode_optional(record.vectors_missing),
        record.ctime_ns,
        _encode_optional(record.doc_id),
        _encode_optional(record.part_of),
        _encode_optional(record.left_out),
    )


def read_file_record(row: tuple[Any, ...]) -> FileRecord:
    """Return the record of a row in the order of `FILES`."""
    path, source, digest, size, mtime, inode, checked, missing, ctime, *document = row
    doc_id, part_of, left_out = (None if text is None else read(text) for text in document)
    return FileRecord(
        read(path),
        source,
        read(digest),
        size,
        mtime,
        int(inode),
        checked,
        None if missing is None else read(missing),
        ctime,
        doc_id,
        part_of,
        left_out,
    )


def read_file_records(rows: Iterable[tuple[Any, ...]]) -> dict[str, FileRecord]:
    """Return the records of rows in the order of `FILES`, by their paths and in their order."""
    records = sorted(map(read_file_record, rows), key=attrgetter("path"))
    return {record.path: record for record in records}


def chunk_rows(
    record: FileRecord, rows: Iterable[ChunkRow], first_id: int, first_ordinal: int, block: int
) -> Iterator[tuple[tuple[Any, ...], Mapping[int, float]]]:
    """Yield for each row of a file its columns, in the order of `CHUNKS`, and the weights of its terms' keys."""
    path = encode(record.path)
    for at, row in enumerate(rows):
        terms, context = row.terms.split(), row.context_terms.split()
        weights: Counter[int] = Counter(map(hash_term, terms))  # two terms with one hash count as one
        for key, count in Counter(map(hash_term, context)).items():
            weights[key] += count * CONTEXT_WEIGHT  # type: ignore[assignment]  # a Counter holds any number
        chunk = row.chunk
        yield (
            (
                first_id + at,
                block,
                path,
                record.source,
                encode(row.identity or ""),
                _encode_optional(row.vector_key),
                0 if row.identity else first_ordinal + at,
                chunk.start_line,
                chunk.end_line,
                chunk.start_char,
                chunk.section,
                len(terms) + len(context),
                encode(chunk.text),
                encode(chunk.context),
                json.dumps(dict(chunk.metadata)),
            ),
            weights,
        )


class Packed(Struct, frozen=True):
    """A column as PostgreSQL's own bytes of an array: `int8[]` of whole numbers, `float4[]` of others, `text[]`.

    They are made and read several times as fast as the text of an array; `connections` says how they are sent.
    """

    values: NumpyArray[np.int64] | NumpyArray[np.float32] | Sequence[str | None]

    @property
    def types(self) -> tuple[int, int]:
        """The numbers that PostgreSQL has for the type of the array, and for that of its elements."""
        dtype = getattr(self.values, "dtype", None)
        if dtype is None:
            return 1009, 25
        return (1016, 20) if dtype.kind == "i" else (1021, 700)

    def pack(self) -> bytes:
        """Return the bytes: a header, then the size and the value of each element."""
        import numpy as np

        element = self.types[1]
        header = struct.pack(">iiIii", 1, 1, element, len(self.values), 1)
        if element == 25:
            return header + b"".join(_prefix_size(text) for text in self.values)
        number, size = (">i8", 8) if element == 20 else (">f4", 4)
        rows = np.empty(len(self.values), [("size", ">i4"), ("value", number)])
        rows["size"], rows["value"] = size, self.values
        return header + rows.tobytes()


def _prefix_size(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff\xff\xff"  # -1 is NULL
    data = text.encode()
    return len(data).to_bytes(4, "big") + data


def format_array(column: Iterable[float | None]) -> str:
    """Return numbers as the text of an array of PostgreSQL, which psycopg takes far longer to make of a list."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"


def read_chunk(row: tuple[Any, ...], token_codes: bytes = b"") -> StoredChunk:
    """Return the chunk of a row in the order of the statement `stored`."""
    chunk_id, path, source, ordinal, start, end, char, text, context, section, metadata = row
    kind: Source = source
    fields = {} if metadata == "{}" else json.loads(metadata)
    chunk = Chunk(start, end, char, read(text), read(context), section, fields)
    return StoredChunk(chunk_id, read(path), kind, chunk, ordinal, token_codes)


def encode_meta(meta: IndexMeta) -> str:
    """Return the description of an index as JSON."""
    return json.dumps({**structs.asdict(meta), "chunking": dict(meta.chunking)})


def decode_meta(text: str | None) -> IndexMeta | None:
    """Parse the description of an index; None before the first build."""
    return IndexMeta(**json.loads(text)) if text else None
