"""Read and write the file of a record: fields above one sentence, which a person may edit (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from openclaw_memory.errors import RecordError
from openclaw_memory.records.settlement import add_value, decay
from openclaw_memory.security.keys import SIGNATURE
from openclaw_memory.text.front_matter import FrontMatter
from openclaw_memory.types import records

TYPES: tuple[records.RecordType, ...] = get_args(records.RecordType)
SENSITIVITIES: tuple[records.Sensitivity, ...] = get_args(records.Sensitivity)
MAX_TOKENS = 100  # of calls that are not repeated

_MERGE_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: .*)?$", re.MULTILINE)
_NOT_WRITTEN = ("path", "digest", "problem")  # derived from the text and the file
_NAMES = {field.encode_name for field in msgspec.structs.fields(records.Record)} - {*_NOT_WRITTEN}
_NAMES |= {"decayed_at", "tokens", "written", SIGNATURE}


def to_fields(record: records.Record, now: datetime, tokens: tuple[str, ...], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields above the sentence, as `parse_record` reads them.

    Args:
        record: The record, its confidence that of `now`.
        now: The moment, in UTC.
        tokens: The digests of the tokens of calls that have changed it.
        own: The fields that a person has added.
    """
    fields: dict[str, Any] = msgspec.to_builtins(record)
    for name in _NOT_WRITTEN:
        del fields[name]
    fields |= {"decayed_at": records.format_timestamp(now), "tokens": list(tokens), **own}
    fields["written"] = make_digest(fields, records.make_sentence(record.key, record.value))
    return fields


def parse_record(path: str, file: FrontMatter, changed_at: datetime) -> tuple[records.Record, datetime]:
    """Return the record in a file, and from when on its confidence falls; an edit by hand is one more version.

    Raises:
        RecordError: The file is damaged; the message names the field.
    """
    fields, text = file.fields, file.text
    sentence = records.make_sentence(str(fields.get("key")), fields.get("value"))
    if len(_MERGE_MARK.findall(text)) > 1 and text.strip() != sentence:
        raise RecordError(f"{path} holds both sides of a merge: keep the lines of one side, and delete the marks")
    if file.damage:
        raise RecordError(f"{path} cannot be read as a record: {'; '.join(file.damage)}; correct it by hand")
    try:
        record = msgspec.convert(fields, records.Record)
        if record.version < 1 or (record.ttl or 0) < 0:
            raise ValueError("version must be at least 1, and ttl at least 0 or null")
        decayed_at = msgspec.convert(fields.get("decayed_at") or fields["created_at"], records.Moment)
        times = (record.last_confirmed_at, record.created_at, record.updated_at, decayed_at)
        confirmed_at, created_at, updated_at, decayed_at = (time.astimezone(UTC) for time in times)
    except (KeyError, ValueError, OverflowError) as error:
        raise RecordError(f"{path} cannot be read as a record: {error}; correct it by hand") from error
    record = replace(
        record,
        last_confirmed_at=confirmed_at,
        created_at=created_at,
        updated_at=updated_at,
        path=path,
        digest=make_digest(fields, sentence),
        problem=None,
    )
    if "\r\n" not in sentence:  # git and editors may have changed the ends of the lines
        text = text.replace("\r\n", "\n")
    if fields.get("written") != record.digest or text.strip() != sentence:
        record = _apply_edit(record, fields, text.strip(), changed_at)
    return record, max(record.last_confirmed_at, decayed_at)


def apply_decay(record: records.Record, since: datetime, now: datetime) -> records.Record:
    """Return a record with its confidence at a moment: that of a preference falls.

    Args:
        record: The record as its file has it.
        since: From when on it falls.
        now: The moment, in UTC.
    """
    if record.type not in records.DECAYING:
        return record
    return replace(record, confidence=decay(record.confidence, since, now))


def read_tokens(file: FrontMatter | None) -> tuple[str, ...]:
    """Return the digests of the tokens of calls that have changed a file.

    Args:
        file: Its content; None if it does not exist.
    """
    tokens = [] if file is None else file.fields.get("tokens")
    return tuple(map(str, tokens)) if isinstance(tokens, list) else ()


def get_own_fields(file: FrontMatter | None) -> dict[str, Any]:
    """Return the fields that a person has added to a record.

    Args:
        file: Its content; None if it does not exist.
    """
    return {} if file is None else {name: value for name, value in file.fields.items() if name not in _NAMES}


def make_digest(fields: Mapping[str, Any], text: str) -> str:
    """Return the digest of the content of a file, which differs after an edit by hand."""
    content = {name: value for name, value in fields.items() if name not in {"written", SIGNATURE}}
    written = json.dumps([content, text], sort_keys=True, ensure_ascii=False)
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _apply_edit(record: records.Record, fields: Mapping[str, Any], text: str, moment: datetime) -> records.Record:
    """Return the record as a person has left it: the field `value` counts if it was changed, or else the sentence."""
    value, version = record.value, record.version + 1
    latest = records.make_sentence(record.key, record.history[-1].value if record.history else None)
    if latest == records.make_sentence(record.key, value) != text:
        value = _parse_value(text.removeprefix(f"{record.key}:").strip(), value)
    record = replace(record, version=version, updated_at=moment, digest=make_digest(fields, text))
    if records.make_sentence(record.key, value) == latest:
        return record
    source = records.RecordSource("user", record.path, moment)
    newest = records.RecordVersion(version, moment, value, record.confidence, source)
    history = add_value(record.history, newest)
    confirmed = replace(record, last_confirmed_at=moment, is_confirmed=True, waiting=())
    return replace(confirmed, value=value, source=source, history=history)


def _parse_value(text: str, old: Any) -> Any:
    with suppress(ValueError):
        return text if isinstance(old, str) else json.loads(text)
    return text
