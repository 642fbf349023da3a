"""Read a file and make the rows of its chunks, with their terms and the keys of their vectors."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from openclaw_memory.chunking import MOST_CHUNKS, chunk, move_down
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.embeddings.vectors import make_vector_key
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.changes import DAMAGED, IN_PART, UNREAD_SIZE
from openclaw_memory.text import front_matter
from openclaw_memory.text.days import find_heading_day, get_note_day, get_path_day, is_date_title, list_date_terms
from openclaw_memory.text.front_matter import FrontMatter, fold_name, get_embedding, list_names, parse, parse_own_fields
from openclaw_memory.text.languages import DEFAULT_LANGUAGE, MARKS, UNSTEMMED
from openclaw_memory.text.policies import NONE, Policies, mask_note
from openclaw_memory.text.redaction import redact
from openclaw_memory.text.terms import detect_language, join_terms
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, MemoryFile
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.conditions import (
    CONFIDENCE,
    DAY,
    DOCUMENT,
    KEY,
    NAMES,
    OWN,
    PART_OF,
    SURE_AT,
    TAGS,
    TYPE,
    USER,
    Scalar,
    classify,
)
from openclaw_memory.types.records import make_sentence
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.document_cache import get_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER, RECORDS_FOLDER
from openclaw_memory.workspace.transcript_records import MAX_LINE_BYTES
from openclaw_memory.workspace.transcripts import Part

MAX_METADATA_CHARS = 256  # a longer text is not filtered by
_NANOSECONDS = 10**9
MAX_CONTEXT = 200  # characters of the metadata of a document that are embedded with each of its chunks
_LETTER = re.compile(r"[^\W\d_]")
_PATH_OR_ID = re.compile(r"\S*[/\\]\S*[/\\.]\S*|\S*\d\S{14,}|\d\S*\d")


class Piece(NamedTuple):
    """Rows of a file that are written at once: those from line `from_line` on, and its record afterwards.

    A note is one piece, a long transcript several. Until the last one is written, the record has no size, which marks
    the file as unfinished. `left_out` describes lines of the file that are not indexed.
    """

    record: FileRecord
    rows: list[ChunkRow]
    from_line: int = 1
    is_last: bool = True
    left_out: str = ""


def list_rows(
    workspace: Workspace, chunking: ChunkingConfig, file: MemoryFile, record: FileRecord | None
) -> Iterator[list[ChunkRow]]:
    """Yield the rows of a file, those of a transcript part by part; nothing of one that cannot be read.

    A transcript is read from the end of `record`, its record in the index, unless that lacks vectors.
    """
    try:
        if file.source == "sessions":
            mark = record.hash if record is not None and record.vectors_missing is None else None
            for part in workspace.read_parts(file.path, mark):
                yield make_transcript_rows(part, file.path, chunking, with_vectors=True)
        else:
            text = read_note(workspace, file)[1]
            document = parse_document(file.path, text)
            yield make_note_rows(text, file.path, chunking, document, with_vectors=True, policies=workspace.policies)
    except (OpenClawMemoryError, OSError):  # the run that follows reports it
        return


# --- notes -----------------------------------------------------------------------------------------------------------


def read_note(workspace: Workspace, file: MemoryFile) -> tuple[FileRecord, str]:
    """Return the record and the text of a note.

    The time is taken before the content is read: a later write changes the stamp, or leaves it in doubt.

    Raises:
        OpenClawMemoryError: The file is no longer allowed, or cannot be read as text.
        OSError: The file has vanished or cannot be read.
    """
    record, text = make_record(file), workspace.read(file.path)
    return replace(record, hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()), text


def make_record(file: MemoryFile, last: FileRecord | None = None) -> FileRecord:
    """Return the record of a file before it is read: its stamp now, with the content and gaps of its last record."""
    digest, reason = (last.hash, last.vectors_missing) if last else ("", None)
    return FileRecord(
        file.path, file.source, digest, file.size, file.mtime_ns, file.inode, time.time_ns(), reason, file.ctime_ns
    )


def is_unchanged(record: FileRecord, last: FileRecord | None) -> bool:
    """Return whether the rows of a note are those of its last record: it has the same text and vectors."""
    return last is not None and (last.hash, last.source, last.vectors_missing) == (record.hash, record.source, None)


def make_note_piece(
    record: FileRecord, text: str, chunking: ChunkingConfig, policies: Policies, *, with_vectors: bool
) -> Piece:
    """Return the piece of a whole note; its `left_out` tells how far a note with too many chunks is indexed."""
    path, document = record.path, parse_document(record.path, text)
    rows = make_note_rows(text, path, chunking, document, record.mtime_ns, with_vectors=with_vectors, policies=policies)
    cut = _explain_cut(rows, text)
    if document is not None:
        doc_id, part_of = get_key(document) or derive_key(path), document.fields.get(front_matter.PART_OF)
        is_kept = isinstance(part_of, str) and policies.mask(part_of) == part_of
        record = replace(
            record,
            doc_id=doc_id if policies.mask(doc_id) == doc_id else derive_key(path),
            part_of=part_of if is_kept else None,
        )
        if (embedding := get_embedding(text, document.fields)) is not None:
            rows.append(ChunkRow(Chunk(1, 1, 0, ""), "", "", embedding.key, embedding.identity))
    if policies:
        record = replace(record, left_out=policies.list_matching_rules(text))
    damaged = text.count("\n", 0, text.index("\ufffd")) + 1 if "\ufffd" in text else 0
    return Piece(record, rows, left_out=cut or (f"{DAMAGED} {damaged}: save it anew" if damaged else ""))


def parse_document(path: str, text: str) -> FrontMatter | None:
    """Return the document in a file; None for any other file."""
    return parse(text) if path.startswith(f"{DOCUMENTS_FOLDER}/") else None


def make_note_rows(
    text: str,
    path: str,
    rules: ChunkingConfig,
    document: FrontMatter | None,
    mtime_ns: int | None = None,
    *,
    with_vectors: bool,
    policies: Policies = NONE,
) -> list[ChunkRow]:
    """Return the chunks of a note, each with its terms and, if wanted, the key of its vector.

    With `mtime_ns`, when the file was last changed, they have the metadata that searches can filter by.

    The words of the path count as context for the keyword index, so that a file is found by its name. They are not
    embedded: every rename would embed the file again. The metadata of a document are part of its context, in place of
    its path. Text recalled from the memory, and lines that policies leave out, are left out, and secrets are masked;
    lines keep their numbers, and offsets are those of the remaining text.
    """
    day = get_path_day(path)
    chunks = chunk(mask_note(text, policies), path, rules, note_date=day)
    if policies:
        text = policies.mask(text)
        document = document and document._replace(fields=policies.mask_value(document.fields))
    if metadata := {} if mtime_ns is None else make_metadata(path, text, document, mtime_ns):
        chunks = [replace(piece, metadata=metadata) for piece in chunks]
    if document is None:
        chunks = [_add_day(piece, path, day) for piece in chunks]
    elif about := describe_document(document):
        chunks = [replace(piece, context=" > ".join(filter(None, (about, piece.context)))) for piece in chunks]
    return _make_rows(chunks, path, day, detect_language(text), with_vectors=with_vectors)


def _add_day(piece: Chunk, path: str, day: datetime.date | None) -> Chunk:
    """Return a chunk with the day of the nearest heading that begins with one, if that is not the day of its note."""
    first = piece.text.lstrip().partition("\n")[0]
    titles = [*([first] if first.startswith("#") else []), *reversed(piece.context.split(" > "))]
    own = find_heading_day(titles, path)
    return piece if own in (None, day) else replace(piece, metadata={**piece.metadata, DAY: str(own)})


def _explain_cut(rows: Sequence[ChunkRow], text: str) -> str:
    """Return how far a note is indexed that has too many chunks; "" for a whole one."""
    if len(rows) < MOST_CHUNKS:
        return ""
    last = rows[-1].chunk
    end = last.start_char + len(last.text)
    if not text[end:].strip():
        return ""
    return (
        f"{IN_PART} {last.end_line:,} of {text.count(chr(10)) + 1:,}, character {end:,} of {len(text):,}: "
        f"of one file {MOST_CHUNKS:,} chunks are made; split it into several"
    )


# --- transcripts -----------------------------------------------------------------------------------------------------


def make_transcript_rows(part: Part, path: str, rules: ChunkingConfig, *, with_vectors: bool) -> list[ChunkRow]:
    """Return the chunks of a part of a transcript, cut as a note of its day is, with lines and offsets in the whole."""
    day = {DAY: str(part.day)} if part.day else {}
    chunks = (
        replace(move_down(piece, part.first_line - 1, part.start_char), metadata=day)
        for piece in chunk(part.text, path, rules, note_date=part.day)
    )
    return _make_rows(chunks, path, part.day, detect_language(part.text), with_vectors=with_vectors)


def split_transcript(
    workspace: Workspace,
    file: MemoryFile,
    last: FileRecord | None,
    rules: ChunkingConfig,
    *,
    with_vectors: bool,
    size: int,
) -> Iterator[Piece | FileRecord]:
    """Yield the pieces of a transcript after the end of `last`, its record in the index; None: all pieces.

    A piece has at least `size` chunks, except the last one, and at most one part more. If nothing was added, only
    the record with its new stamp is yielded.

    Raises:
        OpenClawMemoryError: As `read_note`, before any piece or between two of them.
        OSError: As `read_note`.
    """
    record = make_record(file, last)
    rows: list[ChunkRow] = []
    first_unreadable = unreadable = from_line = 0
    mark, reason = record.hash, record.vectors_missing
    for part in workspace.read_parts(file.path, record.hash):
        if len(rows) >= size:
            unfinished = replace(record, hash=mark, vectors_missing=reason, size=UNREAD_SIZE)
            yield Piece(unfinished, rows, from_line, is_last=False)
            rows, from_line = [], 0
        rows += make_transcript_rows(part, file.path, rules, with_vectors=with_vectors)
        from_line = from_line or part.first_line
        mark = str(part.mark)
        reason = None if part.first_line == 1 else reason  # a file that was rewritten lacks nothing yet
        if part.unreadable:
            first_unreadable = first_unreadable or part.first_unreadable
            unreadable += part.unreadable
    record = replace(record, hash=mark, vectors_missing=reason)
    yield (
        Piece(record, rows, from_line, left_out=_explain_left_out(first_unreadable, unreadable))
        if from_line
        else record
    )


def _explain_left_out(first: int, count: int) -> str:
    """Return a sentence about the lines of a transcript that could not be read; "" without any."""
    kind = f"JSON object of at most {MAX_LINE_BYTES >> 20} MiB"
    if count <= 1:
        return f"line {first} is no {kind} and was left out" if count else ""
    return f"{count} lines are no {kind} and were left out, the first is line {first}"


def _make_rows(
    chunks: Iterable[Chunk], path: str, day: datetime.date | None, language: str, *, with_vectors: bool
) -> list[ChunkRow]:
    is_named = not path.startswith(f"{DOCUMENTS_FOLDER}/")  # the name of a document is its id, which says nothing
    name = get_plain_name(path).removesuffix(".md").removesuffix(".jsonl") if is_named else ""
    marks = [] if language == DEFAULT_LANGUAGE else [MARKS.get(language, MARKS[UNSTEMMED])]

    @cache  # most chunks have the context and the day of the one before
    def make_context(context: str, day: datetime.date | None, names: str) -> str:
        words = join_terms(f"{context} {name} {names}", language)
        return " ".join([words, *(list_date_terms(day) if day else ()), *marks])

    def make_row(piece: Chunk) -> ChunkRow:
        if is_date_title(piece.text):  # it would be found by its date, before the text of that day
            return ChunkRow(piece, "", "", None)
        key = make_vector_key(piece.embedding_text) if with_vectors else None
        own_day, names = piece.metadata.get(DAY), str(piece.metadata.get(NAMES) or "")
        context = make_context(piece.context, datetime.date.fromisoformat(str(own_day)) if own_day else day, names)
        return ChunkRow(piece, join_terms(piece.text, language), context, key)

    return [make_row(piece) for piece in chunks]


# --- the metadata that searches filter by: fields of a document, the day, tags, facts --------------------------------


def make_metadata(path: str, text: str, document: FrontMatter | None, mtime_ns: int) -> dict[str, Scalar | None]:
    """Return the metadata of the chunks of a note. It follows from these arguments alone.

    Its day is left out if its name has it; else it is the one of the field `date` or `created` above its text, or when
    a record was last updated. A note without any of these has none.
    """
    changed = datetime.datetime.fromtimestamp(mtime_ns / _NANOSECONDS, datetime.UTC)
    record = parse(text) if path.startswith(f"{RECORDS_FOLDER}/") else None
    if record is not None and "memory_id" in record.fields:
        return _describe_record(record, changed)
    raw: Any = parse_own_fields(text) if document is None else document.fields.get("metadata")
    fields = raw if isinstance(raw, dict) else {}
    metadata = {} if document is None else _select_scalars(fields) | _name_document(path, document)
    if (day := get_note_day(path, fields)) != get_path_day(path):
        metadata[DAY] = str(day)
    names = [fold_name(name) for name in list_names(text) if document is None and _check_scalar(name)]
    metadata |= {NAMES: "\n".join(names)} if names else {}
    if tags := _join_tags(fields.get("tags")):
        metadata[TAGS] = tags
    return metadata


def describe_document(document: FrontMatter) -> str:
    """Join the metadata of a document for the context of its chunks.

    These are the texts under the keys that its field `context` lists, or else all short ones that are not paths, ids or
    numbers.
    """
    fields: Any = document.fields.get("metadata")
    fields = fields if isinstance(fields, dict) else {}
    names = document.fields.get("context")
    if isinstance(names, list):
        texts = [fields[name] for name in names if isinstance(fields.get(name), str)]
    else:
        values = (value for value in fields.values() if isinstance(value, str) and len(value) <= MAX_CONTEXT)
        texts = [value for value in values if _LETTER.search(value) and not _PATH_OR_ID.fullmatch(value.strip())]
    return " > ".join(text for text in texts if redact(text) == text)[:MAX_CONTEXT]


def _select_scalars(fields: Mapping[str, Any]) -> dict[str, Scalar | None]:
    """Return the metadata of a document, as far as searches can filter by it.

    Nested values, long texts and secrets are None: each chunk of the file keeps a copy.
    """
    return {name: _check_scalar(value) for name, value in fields.items() if classify(name) and not name.startswith(OWN)}


def _name_document(path: str, document: FrontMatter) -> dict[str, Scalar | None]:
    """Return the key of a document and the id of its whole, or None for one that is too long or a secret."""
    names: dict[str, Any] = {DOCUMENT: get_key(document) or derive_key(path)}
    if isinstance(part_of := document.fields.get(front_matter.PART_OF), str) and part_of:
        names[PART_OF] = part_of
    return {field: _check_scalar(value) for field, value in names.items()}


def _describe_record(record: FrontMatter, changed: datetime.datetime) -> dict[str, Scalar | None]:
    """Return the names of a record, its confidence and since when, and the day of its value; an edit renews them."""
    fields = record.fields
    key, value, history = str(fields.get("key")), fields.get("value"), fields.get("history")
    last = history[-1].get("value") if isinstance(history, list) and history and isinstance(history[-1], dict) else None
    sentence = make_sentence(key, value)
    is_edited = sentence != record.text.strip() or sentence != make_sentence(key, last)
    updated = changed if is_edited else _parse_moment(fields.get("updated_at")) or changed
    metadata: dict[str, Scalar | None] = {DAY: str(updated.astimezone().date())}
    names = {TYPE: fields.get("type"), KEY: fields.get("key"), USER: fields.get("user_id")}
    metadata |= {name: text for name, text in names.items() if isinstance(text, str) and redact(text) == text}
    confidence = fields.get("confidence")
    if classify(confidence) == "number":
        moments = [fields.get("decayed_at") or fields.get("created_at"), fields.get("last_confirmed_at")]
        sure_at = [changed] if is_edited else [*filter(None, map(_parse_moment, moments))] or [changed]
        metadata[CONFIDENCE] = confidence
        metadata[SURE_AT] = int(max(sure_at).timestamp())
    return metadata


def _join_tags(raw: Any) -> str:
    """Return tags as lines, in lower case; long ones and secrets are left out."""
    values: Iterable[Any] = re.split(r"[,\s]+", raw) if isinstance(raw, str) else raw
    if not isinstance(values, list):
        return ""
    # As `search.filters.tag` spells the tags of a query.
    tags = (" ".join(str(value).split()).removeprefix("#").strip().lower() for value in values if classify(value))
    return "\n".join(dict.fromkeys(tag for tag in tags if tag and _check_scalar(tag)))


def _check_scalar(value: Any) -> Scalar | None:
    """Return a value that can be filtered by; None for a nested one, a long text or a secret."""
    is_long = isinstance(value, str) and (len(value) > MAX_METADATA_CHARS or redact(value) != value)
    return None if is_long or not classify(value) else value


def _parse_moment(text: Any) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
