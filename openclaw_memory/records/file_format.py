"""The file of a record: fields above one sentence that searches find, and what a person may change in it (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, get_args

from openclaw_memory.config import RecordsConfig
from openclaw_memory.errors import RecordError
from openclaw_memory.records.settling import decayed, with_value
from openclaw_memory.security.signatures import FIELD
from openclaw_memory.text.front_matter import FrontMatter
from openclaw_memory.types.records import (
    Observation,
    Record,
    RecordSource,
    RecordType,
    RecordVersion,
    Sensitivity,
    SourceKind,
    sentence,
    timestamp,
)

TYPES: tuple[RecordType, ...] = get_args(RecordType)
SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
MOST_TOKENS = 100  # of calls that are not done twice

_MERGE_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: .*)?$", re.MULTILINE)


def fields_of(record: Record, now: datetime, tokens: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields above the sentence, as `record_in` reads them; the confidence is that of `now`."""
    fields: dict[str, Any] = dict(record.to_dict())
    del fields["embedding_ref"]  # it follows from the text
    fields["confirmed"] = record.is_confirmed
    fields["decayed_at"] = timestamp(now)
    fields["waiting"] = [one.to_dict() for one in record.waiting]
    fields["history"] = list(map(_version, record.history))
    fields["tokens"] = list(tokens)
    fields["written"] = digest_of(fields, sentence(record.key, record.value))
    return fields


def record_in(path: str, file: FrontMatter, changed_at: datetime) -> tuple[Record, datetime]:
    """Return the record that a file holds, and from when on its confidence falls; an edit by hand is one more version.

    Args:
        path: The file.
        file: What it holds.
        changed_at: When it was last written, for an edit by hand.

    Raises:
        RecordError: The file is damaged; the message says how.
    """
    said = file.fields
    if len(_MERGE_MARK.findall(file.text)) > 1 and file.text.strip() != sentence(
        str(said.get("key")), said.get("value")
    ):
        raise RecordError(f"{path} holds both sides of a merge: keep the lines of one side, and delete the marks")
    if file.damage:
        raise RecordError(f"{path} cannot be read as a record: {'; '.join(file.damage)}; correct it by hand")
    try:
        record = _record(path, said)
        since = max(record.last_confirmed_at, _moment(said.get("decayed_at") or record.created_at))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"its field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise RecordError(f"{path} cannot be read as a record: {what}; correct it by hand") from error
    if "\r\n" not in sentence(record.key, record.value):  # git and editors may have changed the ends of the lines
        file = file._replace(text=file.text.replace("\r\n", "\n"))
    if said.get("written") != record.digest or file.text.strip() != sentence(record.key, record.value):
        record = _edited(record, file, changed_at)
    return record, since


def at_moment(record: Record, since: datetime, now: datetime, rules: RecordsConfig) -> Record:
    """Return a record with its confidence at a moment: that of a preference falls.

    Args:
        record: The record as its file has it.
        since: From when on it falls.
        now: The moment, in UTC.
        rules: Which types fade, and how fast.
    """
    if record.type not in rules.decaying:
        return record
    return replace(record, confidence=decayed(record.confidence, since, now, rules.half_life_days))


def tokens_in(file: FrontMatter | None) -> tuple[str, ...]:
    """Return the digests of the tokens of calls that have changed this file."""
    said = [] if file is None else file.fields.get("tokens")
    return tuple(str(one) for one in said) if isinstance(said, list) else ()


def _record(path: str, said: Mapping[str, Any]) -> Record:
    confidence, ttl, user, key = said["confidence"], said["ttl"], said["user_id"], said["key"]
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise ValueError(f"confidence is {confidence!r}, not a number from 0 to 1")
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0):
        raise ValueError(f"ttl is {ttl!r}, not a whole number of seconds or null")
    if not isinstance(said["version"], int) or said["version"] < 1:
        raise ValueError(f"version is {said['version']!r}, not a whole number from 1")
    history = tuple(map(_version_in, said.get("history") or ()))
    value = said["value"]
    return Record(
        memory_id=str(said["memory_id"]),
        user_id=None if user is None else str(user),
        type=_one_of(TYPES, said["type"], "type"),
        key=str(key),
        value=value,
        confidence=float(confidence),
        source=_source(said["source"]),
        sensitivity=_one_of(SENSITIVITIES, said["sensitivity"], "sensitivity"),
        ttl=ttl,
        last_confirmed_at=_moment(said["last_confirmed_at"]),
        version=said["version"],
        embedding_ref=embedding_ref(str(key), value),
        created_at=_moment(said["created_at"]),
        updated_at=_moment(said["updated_at"]),
        path=path,
        digest=digest_of(said, sentence(str(key), value)),
        is_confirmed=bool(said.get("confirmed")),
        waiting=tuple(_seen(one) for one in said.get("waiting") or ()),
        history=history,
    )


def embedding_ref(key: str, value: Any) -> str:
    """Return what names the vector of a record: records of equal text have the same one."""
    return f"vec_{sha256(sentence(key, value).encode()).hexdigest()[:16]}"


def _edited(record: Record, file: FrontMatter, changed_at: datetime) -> Record:
    """Return the record as a person has left it: the field `value` counts if it was changed, or else the sentence."""
    value, text = record.value, file.text.strip()
    last = record.history[-1].seen.value if record.history else None
    if sentence(record.key, last) == sentence(record.key, value) and text != sentence(record.key, value):
        value = _value_of(text, record.key, value)
    digest = digest_of(file.fields, text)
    if sentence(record.key, value) == sentence(record.key, last):
        return replace(record, version=record.version + 1, updated_at=changed_at, digest=digest)
    source = RecordSource("user", record.path, changed_at)
    newest = RecordVersion(record.version + 1, Observation(value, record.confidence, source), changed_at)
    return replace(
        record,
        value=value,
        source=source,
        version=record.version + 1,
        embedding_ref=embedding_ref(record.key, value),
        last_confirmed_at=changed_at,
        updated_at=changed_at,
        digest=digest,
        is_confirmed=True,
        waiting=(),
        history=with_value(record.history, newest),
    )


def _value_of(text: str, key: str, old: Any) -> Any:
    written = text.removeprefix(f"{key}:").strip()
    if isinstance(old, str):
        return written
    try:
        return json.loads(written)
    except ValueError:
        return written


def _version(one: RecordVersion) -> dict[str, Any]:
    again = {"times": one.times, "first": timestamp(one.first or one.since)} if one.times > 1 else {}
    return {"version": one.version, "since": timestamp(one.since), **again, **one.seen.to_dict()}


def _version_in(said: Mapping[str, Any]) -> RecordVersion:
    first = _moment(said["first"]) if said.get("first") else None
    return RecordVersion(int(said["version"]), _seen(said), _moment(said["since"]), int(said.get("times", 1)), first)


def _seen(said: Mapping[str, Any]) -> Observation:
    return Observation(said["value"], float(said["confidence"]), _source(said["source"]))


def _source(said: Mapping[str, Any]) -> RecordSource:
    return RecordSource(
        _one_of(SOURCE_KINDS, said["kind"], "source.kind"), str(said["ref"]), _moment(said["observed_at"])
    )


def _one_of(known: tuple[Any, ...], value: Any, what: str) -> Any:
    if value not in known:
        raise ValueError(f"{what} is {value!r}, not one of {', '.join(known)}")
    return value


def _moment(written: Any) -> datetime:
    moment = datetime.fromisoformat(str(written))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def digest_of(fields: Mapping[str, Any], text: str) -> str:
    """Return the digest of a file's fields and text, by which an edit by hand is noticed."""
    said = {name: value for name, value in fields.items() if name not in {"written", "embedding_ref", FIELD}}
    return sha256(json.dumps([said, text], sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
