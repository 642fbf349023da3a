"""What searches can filter the chunks of a file by: what a document says of itself, the day, tags, facts of records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from openclaw_memory.text import front_matter
from openclaw_memory.text.front_matter import FrontMatter, parse, parse_own_fields
from openclaw_memory.text.redaction import redact
from openclaw_memory.types.records import sentence
from openclaw_memory.types.where import (
    CONFIDENCE,
    DAY,
    DOCUMENT,
    KEY,
    OWN,
    PART_OF,
    SURE_AT,
    TAGS,
    TYPE,
    USER,
    Scalar,
    kind_of,
)
from openclaw_memory.workspace.document_cache import get_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import RECORDS_FOLDER, parse_day_in_name, parse_note_date

MAX_METADATA_CHARS = 256  # a longer text is not filtered by
_NANOSECONDS = 10**9


def metadata_of(path: str, text: str, document: FrontMatter | None, mtime_ns: int) -> dict[str, Scalar | None]:
    """Return what the chunks of a note can be filtered by. It follows from these arguments alone.

    Its day, in the time zone of this machine, is left out where its name says it; else it is the one of the field
    `date` above its text, when a record was last updated, or that of its last change on disk.

    Args:
        path: The note.
        text: What it says.
        document: The document in it, if it is one.
        mtime_ns: When it was last changed on disk.
    """
    changed = datetime.fromtimestamp(mtime_ns / _NANOSECONDS, UTC)
    record = parse(text) if path.startswith(f"{RECORDS_FOLDER}/") else None
    if record is not None and "memory_id" in record.fields:
        return _of_record(record, changed)
    said: Any = parse_own_fields(text) if document is None else document.fields.get("metadata")
    said = said if isinstance(said, dict) else {}
    found = {} if document is None else _of_document(said) | _name_document(path, document)
    if parse_note_date(path) is None:
        found[DAY] = str(parse_day_in_name(path) or _day(said.get("date")) or day_of_change(mtime_ns))
    if tags := _tags(said.get("tags")):
        found[TAGS] = tags
    return found


def day_of_change(mtime_ns: int) -> date:
    """Return the day of a stamp, in the time zone of this machine."""
    return datetime.fromtimestamp(mtime_ns / _NANOSECONDS, UTC).astimezone().date()


def _of_document(said: Mapping[str, Any]) -> dict[str, Scalar | None]:
    """Return the metadata of a document, as far as searches can filter by it.

    Nested values, long texts and secrets are None: each chunk of the file keeps a copy.
    """
    return {
        name: value if kind_of(value) and _is_short(value) else None
        for name, value in said.items()
        if kind_of(name) and not name.startswith(OWN)
    }


def _name_document(path: str, document: FrontMatter) -> dict[str, Scalar | None]:
    """Return the key of a document and the id of its whole, or None for one that is too long or a secret."""
    names: dict[str, Any] = {DOCUMENT: get_key(document) or derive_key(path)}
    if isinstance(whole := document.fields.get(front_matter.PART_OF), str) and whole:
        names[PART_OF] = whole
    return {field: value if kind_of(value) and _is_short(value) else None for field, value in names.items()}


def _of_record(record: FrontMatter, changed: datetime) -> dict[str, Scalar | None]:
    """Return what names a record, how sure it was and when, and the day of its value, which an edit by hand renews."""
    said = record.fields
    key, value, history = str(said.get("key")), said.get("value"), said.get("history")
    last = history[-1].get("value") if isinstance(history, list) and history and isinstance(history[-1], dict) else None
    is_edited = sentence(key, value) != record.text.strip() or sentence(key, value) != sentence(key, last)
    updated = changed if is_edited else _moment(said.get("updated_at")) or changed
    written = (_moment(said.get("decayed_at") or said.get("created_at")), _moment(said.get("last_confirmed_at")))
    found: dict[str, Scalar | None] = {DAY: str(updated.astimezone().date())}
    names = {TYPE: said.get("type"), KEY: said.get("key"), USER: said.get("user_id")}
    found |= {name: value for name, value in names.items() if isinstance(value, str) and redact(value) == value}
    confidence = said.get("confidence")
    if kind_of(confidence) == "number":
        found[CONFIDENCE] = confidence
        found[SURE_AT] = int(max([changed] if is_edited else [*filter(None, written)] or [changed]).timestamp())
    return found


def _tags(said: Any) -> str:
    """Return tags as lines, in lower case; long ones and secrets are left out."""
    several: Iterable[Any] = re.split(r"[,\s]+", said) if isinstance(said, str) else said
    if not isinstance(several, list):
        return ""
    # As `search.filters.tag` spells what is asked for.
    tags = (" ".join(str(one).split()).removeprefix("#").strip().lower() for one in several if kind_of(one))
    return "\n".join(dict.fromkeys(one for one in tags if one and _is_short(one)))


def _is_short(value: Scalar) -> bool:
    return not isinstance(value, str) or (len(value) <= MAX_METADATA_CHARS and redact(value) == value)


def _day(said: Any) -> date | None:
    """Return the day that a text in ISO 8601 begins with."""
    try:
        return datetime.fromisoformat(said.strip()).date()
    except (AttributeError, ValueError):
        return None


def _moment(said: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
