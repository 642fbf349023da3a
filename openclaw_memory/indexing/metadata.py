"""Make the metadata that searches filter the chunks of a file by: fields of a document, the day, tags, facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from openclaw_memory.text import front_matter
from openclaw_memory.text.days import get_note_day, get_path_day
from openclaw_memory.text.front_matter import FrontMatter, fold_name, list_names, parse, parse_own_fields
from openclaw_memory.text.redaction import redact
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
from openclaw_memory.workspace.document_cache import get_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import RECORDS_FOLDER

MAX_METADATA_CHARS = 256  # a longer text is not filtered by
_NANOSECONDS = 10**9
MAX_CONTEXT = 200  # characters of the metadata of a document that are embedded with each of its chunks
_LETTER = re.compile(r"[^\W\d_]")
_PATH_OR_ID = re.compile(r"\S*[/\\]\S*[/\\.]\S*|\S*\d\S{14,}|\d\S*\d")


def make_metadata(path: str, text: str, document: FrontMatter | None, mtime_ns: int) -> dict[str, Scalar | None]:
    """Return the metadata of the chunks of a note. It follows from these arguments alone.

    Its day is left out if its name has it; else it is the one of the field `date` or `created` above its text, or when
    a record was last updated. A note without any of these has none.

    Args:
        path: The note.
        text: Its text.
        document: The document in it, if it is one.
        mtime_ns: When it was last changed on disk.
    """
    changed = datetime.fromtimestamp(mtime_ns / _NANOSECONDS, UTC)
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


def _describe_record(record: FrontMatter, changed: datetime) -> dict[str, Scalar | None]:
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


def _parse_moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
