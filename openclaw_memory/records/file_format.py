"""Read and write the file of a record: fields above one sentence, which a person may edit (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from openclaw_memory.errors import RecordError
from openclaw_memory.records.resolution import add_value, decay
from openclaw_memory.security.signatures import FIELD
from openclaw_memory.text.front_matter import FrontMatter
from openclaw_memory.types.records import (
    DECAYING,
    Moment,
    Record,
    RecordSource,
    RecordType,
    RecordVersion,
    Sensitivity,
    SourceKind,
    format_timestamp,
    make_sentence,
)

TYPES: tuple[RecordType, ...] = get_args(RecordType)
SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
MAX_TOKENS = 100  # of calls that are not repeated

_MERGE_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: .*)?$", re.MULTILINE)
_NOT_WRITTEN = ("embedding_ref", "path", "digest", "problem")  # derived from the text and the file


def to_fields(record: Record, now: datetime, tokens: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields above the sentence, as `parse_record` reads them.

    Args:
        record: The record, its confidence that of `now`.
        now: The moment, in UTC.
        tokens: The digests of the tokens of calls that have changed it.
    """
    fields: dict[str, Any] = msgspec.to_builtins(record)
    for name in _NOT_WRITTEN:
        del fields[name]
    fields |= {"decayed_at": format_timestamp(now), "tokens": list(tokens)}
    fields["written"] = make_digest(fields, make_sentence(record.key, record.value))
    return fields


def parse_record(path: str, file: FrontMatter, changed_at: datetime) -> tuple[Record, datetime]:
    """Return the record in a file, and from when on its confidence falls; an edit by hand is one more version.

    Args:
        path: The file.
        file: Its content.
        changed_at: When it was last written, for an edit by hand.

    Raises:
        RecordError: The file is damaged; the message names the field.
    """
    fields, text = file.fields, file.text
    sentence = make_sentence(str(fields.get("key")), fields.get("value"))
    if len(_MERGE_MARK.findall(text)) > 1 and text.strip() != sentence:
        raise RecordError(f"{path} holds both sides of a merge: keep the lines of one side, and delete the marks")
    if file.damage:
        raise RecordError(f"{path} cannot be read as a record: {'; '.join(file.damage)}; correct it by hand")
    try:
        record = msgspec.convert(fields, Record)
        if record.version < 1 or (record.ttl or 0) < 0:
            raise ValueError("version must be at least 1, and ttl at least 0 or null")
        decayed_at = msgspec.convert(fields.get("decayed_at") or fields["created_at"], Moment)
        times = (record.last_confirmed_at, record.created_at, record.updated_at, decayed_at)
        confirmed_at, created_at, updated_at, decayed_at = (time.astimezone(UTC) for time in times)
    except (KeyError, ValueError, OverflowError) as error:
        raise RecordError(f"{path} cannot be read as a record: {error}; correct it by hand") from error
    record = replace(
        record,
        last_confirmed_at=confirmed_at,
        created_at=created_at,
        updated_at=updated_at,
        embedding_ref=make_embedding_ref(record.key, record.value),
        path=path,
        digest=make_digest(fields, sentence),
        problem=None,
    )
    if "\r\n" not in sentence:  # git and editors may have changed the ends of the lines
        text = text.replace("\r\n", "\n")
    if fields.get("written") != record.digest or text.strip() != sentence:
        record = _apply_edit(record, fields, text.strip(), changed_at)
    return record, max(record.last_confirmed_at, decayed_at)


def apply_decay(record: Record, since: datetime, now: datetime) -> Record:
    """Return a record with its confidence at a moment: that of a preference falls.

    Args:
        record: The record as its file has it.
        since: From when on it falls.
        now: The moment, in UTC.
    """
    if record.type not in DECAYING:
        return record
    return replace(record, confidence=decay(record.confidence, since, now))


def read_tokens(file: FrontMatter | None) -> tuple[str, ...]:
    """Return the digests of the tokens of calls that have changed a file.

    Args:
        file: Its content; None if it does not exist.
    """
    tokens = [] if file is None else file.fields.get("tokens")
    return tuple(map(str, tokens)) if isinstance(tokens, list) else ()


def make_embedding_ref(key: str, value: Any) -> str:
    """Return the name of the vector of a record: records of equal text share it.

    Args:
        key: The key of the record.
        value: Its value.
    """
    return f"vec_{sha256(make_sentence(key, value).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def make_digest(fields: Mapping[str, Any], text: str) -> str:
    """Return the digest of the content of a file, which differs after an edit by hand.

    Args:
        fields: The fields.
        text: The text below them.
    """
    content = {name: value for name, value in fields.items() if name not in {"written", "embedding_ref", FIELD}}
    written = json.dumps([content, text], sort_keys=True, ensure_ascii=False)
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _apply_edit(record: Record, fields: Mapping[str, Any], text: str, changed_at: datetime) -> Record:
    """Return the record as a person has left it: the field `value` counts if it was changed, or else the sentence."""
    value, version = record.value, record.version + 1
    latest = make_sentence(record.key, record.history[-1].value if record.history else None)
    if latest == make_sentence(record.key, value) != text:
        value = _parse_value(text.removeprefix(f"{record.key}:").strip(), value)
    record = replace(record, version=version, updated_at=changed_at, digest=make_digest(fields, text))
    if make_sentence(record.key, value) == latest:
        return record
    source = RecordSource("user", record.path, changed_at)
    newest = RecordVersion(version, changed_at, value, record.confidence, source)
    return replace(
        record,
        value=value,
        source=source,
        embedding_ref=make_embedding_ref(record.key, value),
        last_confirmed_at=changed_at,
        is_confirmed=True,
        waiting=(),
        history=add_value(record.history, newest),
    )


def _parse_value(text: str, old: Any) -> Any:
    if isinstance(old, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
