"""Remember, find, confirm and forget records: facts, each in a Markdown file."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from unicodedata import normalize

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from openclaw_memory import errors
from openclaw_memory.config.sections import RecordsConfig
from openclaw_memory.events import Location, locate_file, locate_files, locate_paths, observed
from openclaw_memory.records import file_format
from openclaw_memory.records.file_format import MAX_TOKENS, SENSITIVITIES, TYPES, make_digest, read_tokens
from openclaw_memory.records.files import RecordFiles, is_expired, make_path
from openclaw_memory.records.settlement import LEAST_CONFIDENCE, Settlement, add_value, is_same, settle
from openclaw_memory.search.filters import check_share
from openclaw_memory.search.request import SearchRequest, check_count
from openclaw_memory.security.keys import SIGNATURE, needs_signature, sign_fields
from openclaw_memory.text.policies import About
from openclaw_memory.types.codec import SUFFIX
from openclaw_memory.types.records import (
    Observation,
    Record,
    RecordSource,
    RecordType,
    RecordVersion,
    Remembered,
    Sensitivity,
    format_timestamp,
    make_sentence,
)
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.documents import Fields, check_no_secret
from openclaw_memory.workspace.encodings import check_text
from openclaw_memory.workspace.paths import is_record

if TYPE_CHECKING:
    from openclaw_memory.text.front_matter import FrontMatter
    from openclaw_memory.types import SearchResult

Version: TypeAlias = int | Record | None  # the version that a caller has seen, or the record itself
AnySource: TypeAlias = RecordSource | Mapping[str, Any] | Literal["user"] | None
Stat: TypeAlias = os.stat_result | None
Apply: TypeAlias = Callable[[Record | None], tuple[Record, Settlement]]

_TTL_NAME = rf"(?:{'|'.join(TYPES)})(?:\.(?:{'|'.join(SENSITIVITIES)}))?|{'|'.join(SENSITIVITIES)}"


class _Call(Struct, frozen=True):
    """The arguments of a call that names a record."""

    type: RecordType
    key: str
    user_id: str | None
    expected: Version = None
    token: str | None = None

    @property
    def path(self) -> str:
        return make_path(self.type, self.key, self.user_id)


def _locate_forgotten(is_removed: bool, _: object, *args: Any, **kwargs: Any) -> list[Location]:
    return [(_check_call(*args, **kwargs).path, "")] if is_removed else []


class Records:
    """The facts of a memory, by type, key and user. Safe to use from several threads and processes.

    Each is a Markdown file in `memory/records/<type>/`, with its fields above one sentence, which `Memory.search` finds
    and cites like any note. A person may edit it: that counts as a version of its own. Expired records are never
    returned.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: RecordsConfig,
        *,
        search: Callable[..., Any],
        files: RecordFiles | None = None,
        on_write: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Keep records in a workspace.

        Args:
            workspace: The files.
            rules: How values are settled, and for how long they hold.
            search: Answers a `SearchRequest`.
            files: Reads their files; a reader of its own if None.
            on_write: Called after each change of a file.
            clock: Returns the moment, with a time zone.

        Raises:
            ConfigError: `rules.ttl_days` holds something else than days by type and sensitivity.
        """
        self._workspace, self._rules, self._search = workspace, rules, search
        self._on_write, self._clock = on_write, clock
        self._ttl, self._files = _parse_ttl(rules), files or RecordFiles(workspace)
        self._policies, self.events = workspace.policies, workspace.events

    @observed("remember", lambda answer, *_, **__: [(answer.record.path, "")], writes=True)
    def remember(
        self,
        type: RecordType,  # noqa: A002 - the field's name
        key: str,
        value: Any,
        *,
        confidence: float = 0.8,
        source: AnySource = None,
        sensitivity: Sensitivity | None = None,
        ttl: int | Literal["default"] | None = "default",
        user_id: str | None = None,
        expected_version: Version = None,
        token: str | None = None,
    ) -> Remembered:
        """Take in an observation: it becomes the value, supports it, or waits; see `settlement.settle`.

        Args:
            type: preference, fact, decision, entity, reminder or other.
            key: Its subject, such as `editor.theme`.
            value: Any value of JSON.
            confidence: How sure it is, 0 to 1. Below 0.3 it is refused.
            source: The source: a `RecordSource`, or a mapping with its fields, where `observed_at` may be text of ISO
                8601, and is this moment if it is missing or in the future. None or "user": the user, just now.
            sensitivity: low, medium or high; None for that of the record, and low for a new one.
            ttl: For how many seconds it holds, None for ever; by default as `records.ttl_days` has it for type and
                sensitivity.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that this is based on; not compared if None.
            token: Names this call: the same token changes the record once, however often it is called with it.

        Returns:
            The record as it is now, and the outcome of the observation.

        Raises:
            InvalidInputError: An argument has a wrong type or value, or holds a secret, or a preference comes from
                outside. Nothing was written.
            PolicyError: A rule says never to store it. Nothing was written.
            ConflictError: The record is not the expected one; the error has both sides.
            RecordError: The file is damaged, or no signature vouches for it; see `sign`. It is unchanged.
            UserKeyError: It has to be signed, and no key lasts. Nothing was written.
            WriteError: It could not be written.
        """
        call = _check_call(type, key, user_id, expected_version, token)
        if sensitivity is not None and sensitivity not in SENSITIVITIES:
            raise errors.InvalidInputError(f"sensitivity is {sensitivity!r}, not one of {', '.join(SENSITIVITIES)}")
        if ttl is not None and ttl != "default" and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 1):
            raise errors.InvalidInputError(
                f"ttl is {ttl!r}, not a whole number of seconds above zero, None or 'default'"
            )
        now = self._get_time()
        source = _read_source(source, now)
        observation = _check_observation(value, confidence, source, now)
        if observation.source.kind == "external" and type == "preference":
            raise errors.InvalidInputError(f"{key} is a preference, which no text from outside states: ask the user")
        if observation.confidence < LEAST_CONFIDENCE:
            raise errors.InvalidInputError(
                f"a confidence of {confidence} is below {LEAST_CONFIDENCE}: observe it again, or ask"
            )

        def apply(stored: Record | None) -> tuple[Record, Settlement]:
            level = sensitivity or (stored.sensitivity if stored else "low")
            seconds = self._find_ttl(type, level) if ttl == "default" else ttl
            self._check_policies(call, value, level, source)
            rated = stored and replace(stored, sensitivity=level)
            settlement = settle(rated, observation, now)
            if stored is None or rated is None:
                return _make_record(call, observation, level, seconds, now), settlement
            if settlement.outcome in {"same", "late"} and level == stored.sensitivity:
                return stored, settlement
            return _make_next(rated, observation, settlement, seconds, now), settlement

        record, settlement = self._rewrite(call, json.dumps(value, ensure_ascii=False), apply)
        return Remembered(self._show(record) or record, settlement.outcome, settlement.reason)

    @observed("get", locate_file)
    def get(self, type: RecordType, key: str, *, user_id: str | None = None) -> Record | None:  # noqa: A002
        """Return a record; None if there is none, or it has expired.

        Args:
            type: Its type.
            key: Its key.
            user_id: Whose it is; None for everybody's.

        Raises:
            InvalidInputError: An argument has a wrong type or value.
            RecordError: The file is damaged, or no signature vouches for it; see `sign`.
        """
        return self.read(self._workspace.files.find(_check_call(type, key, user_id).path))

    @observed("get", locate_file)
    def read(self, path: str) -> Record | None:
        """Return the record in a file; None if there is no such file, or it has expired.

        Args:
            path: The file, below `memory/records/`.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
            RecordError: The file is damaged, is a person's own note, or no signature vouches for it; see `sign`.
        """
        record = self._files.load(path, self._get_time())
        if record is None:
            return None
        _check_signature(record)
        return None if is_expired(record, self._get_time()) else self._show(record)

    def describe_result(self, result: SearchResult) -> dict[str, Any]:
        """Return `{"record": ...}` for lines of a record: its fields as `Record.to_dict` has them, and `expires_at`.

        The confidence is in hundredths. Other lines, and those of a damaged record, have none: {}.

        Args:
            result: A result of a search.
        """
        with suppress(errors.WorkspaceError, errors.ConfigError):
            if is_record(result.path) and (record := self.read(result.path)) is not None:
                expires = None if record.expires_at is None else format_timestamp(record.expires_at)
                own = {"confidence": round(record.confidence, 2), "expires_at": expires}
                return {"record": {**record.to_dict(), **own}}
        return {}

    @observed("search", locate_files)
    def find(
        self,
        text: str | None = None,
        *,
        type: RecordType | None = None,  # noqa: A002
        key: str | None = None,
        user_id: str | None = None,
        min_confidence: float = 0.0,
        sensitivity: Sensitivity | None = None,
        limit: int | None = None,
    ) -> list[Record]:
        """Return records, by path, or best first for a `text`. Damaged files are left out; see `list_problems`.

        Args:
            text: A question that their sentences answer.
            type: Only this type.
            key: Only keys that match this glob, such as `editor.*`.
            user_id: Only this user's; None for all.
            min_confidence: Only those that are at least so sure now, 0 to 1.
            sensitivity: Only those of this sensitivity.
            limit: At most so many; None for all, and for 20 with `text`.

        Raises:
            InvalidInputError: `text` or `limit` is not valid.
        """
        if limit is not None:
            check_count("limit", limit)
        key, user_id = key and normalize("NFC", key), user_id and normalize("NFC", user_id)
        passing = (
            record
            for record in self
            if type in {None, record.type}
            and (key is None or fnmatchcase(record.key, key))
            and user_id in {None, record.user_id}
            and record.confidence >= min_confidence
            and sensitivity in {None, record.sensitivity}
        )
        if text is None:
            return list(islice(passing, limit))
        by_path = {record.path: record for record in passing}
        request = SearchRequest(text, max_results=limit or 20, min_score=0.0, passes=by_path.__contains__)
        results = self._search(request)
        return [by_path[path] for path in dict.fromkeys(result.path for result in results)]

    @observed("confirm", locate_file, writes=True)
    def confirm(
        self,
        type: RecordType,  # noqa: A002
        key: str,
        *,
        value: Any = ...,
        source: AnySource = None,
        user_id: str | None = None,
        expected_version: Version = None,
        token: str | None = None,
    ) -> Record:
        """Confirm the value of a record, or replace it by another one; waiting observations are dropped.

        Args:
            type: Its type.
            key: Its key.
            value: The value; without it, that of the record.
            source: Who confirms, as for `remember`.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that was seen; not compared if None.
            token: Names this call, as for `remember`.

        Returns:
            The record as it is now: confirmed, and as sure as can be.

        Raises:
            NotFoundError: There is no such record.
            InvalidInputError: The source is outside. Nothing was written.
            ConflictError, InvalidInputError, RecordError, WriteError: As `remember`.
        """
        call = _check_call(type, key, user_id, expected_version, token)
        now = self._get_time()
        source = _read_source(source, now)

        def apply(stored: Record | None) -> tuple[Record, Settlement]:
            if stored is None:
                raise errors.NotFoundError(f"there is no record of type {type} with the key {key!r}: remember it first")
            observation = _check_observation(stored.value if value is ... else value, 1.0, source, now)
            if observation.source.kind == "external":
                raise errors.InvalidInputError(f"no text from outside confirms {key}: ask the user")
            self._check_policies(call, observation.value, stored.sensitivity, source)
            record = _make_next(stored, observation, Settlement("replaced", 1.0), stored.ttl, now)
            return replace(record, is_confirmed=True), Settlement("confirmed", 1.0)

        record, _ = self._rewrite(call, "" if value is ... else json.dumps(value, ensure_ascii=False), apply)
        return self._show(record) or record

    @observed("sign", locate_file, writes=True)
    def sign(self, path: str, *, expected: str | Record | None = None) -> Record:
        """Sign a record as its file is now, for a person who has looked at it.

        A record of high sensitivity that another program has written is shown nowhere until then; so is one that was
        signed with a key that is not here. `list_unsigned` lists them.

        Args:
            path: The file, below `memory/records/`.
            expected: The record that was looked at, or its `digest`; not compared if None.

        Returns:
            The record as it is now, one version on.

        Raises:
            NotFoundError: There is no such file.
            ConflictError: The file has changed since it was seen. Nothing was written.
            InvalidInputError: The record needs no signature, being of low or medium sensitivity and never signed.
            RecordError: The file is damaged: correct it by hand first.
            UserKeyError: No key lasts. Nothing was written.
            WriteError: It could not be written.
        """
        now = self._get_time()
        signed: list[Record] = []

        def edit(content: FrontMatter | None, info: Stat) -> Fields:
            if info is None:
                raise errors.NotFoundError(f"{path} is not a file: `openclaw-memory sign` lists the files to sign")
            stored = self._files.parse(path, content, info.st_mtime_ns, now)
            if content is None or not needs_signature(content.fields):
                raise errors.InvalidInputError(f"{path} is of {stored.sensitivity} sensitivity, and needs no signature")
            if expected is not None:
                record = expected if isinstance(expected, Record) else replace(stored, digest=expected)
                _check_expected(path, stored, record, "", None)
            signed.append(replace(stored, version=stored.version + 1, problem=None))
            return self._make_file(signed[-1], now, content)

        if documents.update(self._workspace.files, path, edit):
            self._on_write()
        return self._apply_policies(signed[-1]) or signed[-1]

    @observed("list", locate_files)
    def list_unsigned(self) -> list[Record]:
        """Return the records that are shown nowhere since no signature vouches for them, each with its `problem`.

        They are for the person who decides on them, as policies let them be shown, and not for a model.
        """
        unsigned = (self._apply_policies(record) for record in self.list_all() if record.problem is not None)
        return [record for record in unsigned if record is not None]

    @observed("forget", _locate_forgotten, writes=True)
    def forget(
        self,
        type: RecordType,  # noqa: A002
        key: str,
        *,
        user_id: str | None = None,
        expected_version: Version = None,
    ) -> bool:
        """Delete a record; return whether there was one.

        Args:
            type: Its type.
            key: Its key.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that was seen; not compared if None.

        Raises:
            ConflictError, InvalidInputError, WriteError: As `remember`.
        """
        path, now = _check_call(type, key, user_id, expected_version).path, self._get_time()

        def is_expected(_: str, content: FrontMatter, info: os.stat_result) -> bool:
            if expected_version is not None:
                stored = self._files.parse(path, content, info.st_mtime_ns, now)
                _check_expected(path, stored, expected_version, "", self._show(stored))
            return True

        return bool(self._remove([path, f"{path}{SUFFIX}"], is_expected))

    def list_problems(self) -> list[str]:
        """Return a line for each file of a record that is damaged or wrongly signed, and each record with two files."""
        files, paths = self._files, dict[tuple[str | None, str, str], str]()
        for path, record in files.walk(self._get_time()):
            if isinstance(record, errors.RecordError) or self._workspace.files.find_hiding_rule(path):
                continue
            if (first := paths.setdefault((record.user_id, record.type, record.key), path)) != path:
                key = self._policies.mask(record.key)
                files.damaged[path] = f"{path} holds the same record as {first}, {record.type} {key!r}: delete one"
        return [problem for _, problem in sorted({**files.damaged, **files.forged}.items())]

    # --- upkeep --------------------------------------------------------------------------------------------------

    @observed("list", locate_files)
    def list_all(self) -> list[Record]:
        """Return every record as its file has it, by path, expired ones too; damaged files are left out.

        Policies do not touch it: it is for upkeep, and not to be shown.
        """
        records = (record for _, record in self._files.walk(self._get_time()))
        return [record for record in records if isinstance(record, Record)]

    def __iter__(self) -> Iterator[Record]:
        """Yield every record that holds now, by path, as policies let it be shown; damaged files are left out."""
        now = self._get_time()
        for stored in self.list_all():
            if not is_expired(stored, now) and (record := self._show(stored)) is not None:
                yield record

    @observed("expire", locate_paths, writes=True)
    def expire(self) -> list[str]:
        """Delete the files of records that have expired; return their paths, hidden parts as `***`.

        Raises:
            WriteError: A file could not be deleted.
        """
        now = self._get_time()

        def may_go(record: Record) -> bool:  # a forged file may lie about its expiry
            return is_expired(record, now) and record.problem is None

        def is_expired_still(path: str, content: FrontMatter, info: os.stat_result) -> bool:
            return may_go(self._files.parse(path, content, info.st_mtime_ns, now))

        paths = [record.path for record in self.list_all() if may_go(record)]
        removed = self._remove(paths, is_expired_still) if paths else []
        return [self._workspace.files.mask_path(path) for path in removed]

    # --- policies ---------------------------------------------------------------------------------------------

    def _check_policies(self, call: _Call, value: Any, sensitivity: Sensitivity, source: RecordSource | None) -> None:
        """Raise PolicyError if a rule forbids a value."""
        if self._policies:
            texts = [call.key, call.user_id, value, make_sentence(call.key, value), source and source.ref]
            self._policies.check_value(texts, About(call.type, call.key, sensitivity))

    def _show(self, record: Record) -> Record | None:
        """Return a record as policies let it be shown; None if it may not be stored, or is wrongly signed."""
        return None if record.problem is not None else self._apply_policies(record)

    def _apply_policies(self, record: Record) -> Record | None:
        if not self._policies:
            return record
        about = About(record.type, record.key, record.sensitivity)
        try:
            self._workspace.files.check_name(record.path)
            sentence = make_sentence(record.key, record.value)
            self._policies.check_value([record.key, record.value, sentence], about)
        except errors.PolicyError:
            return None

        def mask(item: Any) -> Any:
            source = replace(item.source, ref=self._policies.mask(item.source.ref, about))
            return replace(item, value=self._policies.mask_value(item.value, about), source=source)

        waiting, history = tuple(map(mask, record.waiting)), tuple(map(mask, record.history))
        masked: Record = replace(mask(record), waiting=waiting, history=history)
        return masked

    # --- files ---------------------------------------------------------------------------------------------------

    def _rewrite(self, call: _Call, proposed: str, apply: Apply) -> tuple[Record, Settlement]:
        """Read a record, change it by `apply`, and write it if it has changed, while no other process does."""
        path, now = self._workspace.files.find(call.path), self._get_time()
        token = None if call.token is None else sha256(call.token.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        results: list[tuple[Record, Settlement]] = []

        def edit(content: FrontMatter | None, info: Stat) -> Fields | None:
            stored = None if info is None else self._files.parse(path, content, info.st_mtime_ns, now)
            tokens = read_tokens(content)
            if stored is not None:
                _check_signature(stored)
                if token is not None and token in tokens:
                    reason = "this call was made before"
                    results.append((stored, Settlement("same", stored.confidence, reason=reason)))
                    return None
                if is_expired(stored, now):
                    stored = None
            if call.expected is not None:
                _check_expected(path, stored, call.expected, proposed, stored and self._show(stored))
            record, settlement = apply(stored)
            if record is stored and token is None:
                results.append((record, settlement))
                return None
            tokens = (*tokens, token)[-MAX_TOKENS:] if token is not None else tokens
            file = self._make_file(record, now, content, tokens)
            results.append((replace(record, digest=file.fields["written"]), settlement))
            return file

        written = documents.update(self._workspace.files, path, edit)
        record, settlement = results[-1]
        if written is not None:
            self._on_write()
            record = replace(record, path=written)
        return record, settlement

    def _make_file(
        self, record: Record, now: datetime, content: FrontMatter | None, tokens: tuple[str, ...] | None = None
    ) -> Fields:
        """Return the file of a record in place of `content`, signed if it or that one has to be."""
        path, sentence = record.path, make_sentence(record.key, record.value)
        tokens = read_tokens(content) if tokens is None else tokens
        fields = file_format.to_fields(record, now, tokens, file_format.get_own_fields(content))
        is_sealed: bool | None = None
        if record.sensitivity == "high":  # one that a person has sealed stays so
            is_sealed = self._workspace.files.codec.is_sealing("private") or None
        elif content is not None and content.fields.get("sensitivity") == "high":
            is_sealed = self._workspace.files.codec.is_sealing("note")
        was_signed = content is not None and SIGNATURE in content.fields
        if not was_signed and not needs_signature(fields):
            return Fields(path, fields, sentence, is_sealed=is_sealed)

        def sign(fields: Any, text: str) -> dict[str, Any]:
            return sign_fields(path, {**fields, "written": make_digest(fields, text)}, text)

        return Fields(path, fields, sentence, sign, is_sealed)

    def _remove(self, paths: Sequence[str], only: Callable[..., bool] = lambda *_: True) -> list[str]:
        removed = documents.remove(self._workspace.files, paths, only)
        if removed:
            self._on_write()
        return removed

    def _find_ttl(self, type: RecordType, sensitivity: Sensitivity) -> int | None:  # noqa: A002
        both = self._ttl.get(f"{type}.{sensitivity}")
        return both or min((self._ttl[name] for name in (type, sensitivity) if name in self._ttl), default=None)

    def _get_time(self) -> datetime:
        return self._clock().astimezone(UTC).replace(microsecond=0)


def _make_record(call: _Call, first: Observation, sensitivity: Sensitivity, ttl: int | None, now: datetime) -> Record:
    return Record(
        memory_id=f"mem_{secrets.token_hex(8)}",
        user_id=call.user_id,
        type=call.type,
        key=call.key,
        value=first.value,
        confidence=first.confidence,
        source=first.source,
        sensitivity=sensitivity,
        ttl=ttl,
        last_confirmed_at=first.source.observed_at,
        version=1,
        created_at=now,
        updated_at=now,
        path=call.path,
        history=(RecordVersion(1, now, first.value, first.confidence, first.source),),
    )


def _make_next(record: Record, latest: Observation, settlement: Settlement, ttl: int | None, now: datetime) -> Record:
    """Return the next version of a record."""
    version = record.version + 1
    rated = replace(record, version=version, confidence=settlement.confidence, waiting=settlement.waiting)
    if settlement.outcome not in {"supported", "replaced"}:
        return rated
    source = max(record.source, latest.source, key=lambda source: source.observed_at)
    current = replace(rated, ttl=ttl, source=source, last_confirmed_at=source.observed_at, updated_at=now)
    if is_same(latest.value, record.value):
        return current
    newest = RecordVersion(version, now, latest.value, latest.confidence, latest.source)
    return replace(
        current, value=latest.value, source=latest.source, is_confirmed=False, history=add_value(record.history, newest)
    )


def _check_call(
    type: RecordType,  # noqa: A002
    key: str,
    user_id: str | None,
    expected_version: Version = None,
    token: str | None = None,
) -> _Call:
    if type not in TYPES:
        raise errors.InvalidInputError(f"type is {type!r}, not one of {', '.join(TYPES)}")
    for name, value in (("key", key), *((("user_id", user_id),) if user_id is not None else ())):
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise errors.InvalidInputError(f"{name} is {value!r}, not a line of text such as 'editor.theme'")
        check_no_secret(value, name)
    if token is not None and (not isinstance(token, str) or not check_text(token, "token")):
        raise errors.InvalidInputError(f"token is {token!r}, not a text that names this call")
    if isinstance(expected_version, bool) or not isinstance(expected_version, int | Record | None):
        raise errors.InvalidInputError(f"expected_version is {expected_version!r}, not a number or a Record")
    # Some systems part letters from their accents: it is the same key, on whichever machine.
    return _Call(type, normalize("NFC", key), user_id and normalize("NFC", user_id), expected_version, token)


def _check_observation(value: Any, confidence: float, source: RecordSource | None, now: datetime) -> Observation:
    confidence = check_share("confidence", confidence)
    try:
        value = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidInputError(f"the value cannot be written as JSON: {error}") from error
    check_text(json.dumps(value, ensure_ascii=False), "the value")
    check_no_secret(value, "the value")
    if source is None:  # every call without a source is an observation of its own
        source = RecordSource("user", f"call_{secrets.token_hex(4)}", now)
    return Observation(value, confidence, source)


def _read_source(source: AnySource, now: datetime) -> RecordSource | None:
    """Read a source as callers write it, its time in UTC; None for the user, just now."""
    if source is None or source == "user":
        return None
    fields = asdict(source) if isinstance(source, RecordSource) else source
    try:
        fields = {"observed_at": now, **fields}
        if unknown := fields.keys() - {*RecordSource.__struct_fields__}:
            raise ValueError(f"it has unknown fields, {', '.join(sorted(map(str, unknown)))}")
        if not str(fields.get("ref", "")).strip():
            fields.pop("ref", None)
        read = convert(fields, RecordSource)
        # A clock that is ahead must not keep later observations out.
        moment = min(read.observed_at.astimezone(UTC).replace(microsecond=0), now)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.InvalidInputError(
            f"source is {source!r}, not a RecordSource, its fields, or 'user': {error}"
        ) from error
    check_text(read.ref, "source.ref")
    return replace(read, observed_at=moment)


def _check_signature(record: Record) -> None:
    if record.problem is not None:
        raise errors.RecordError(record.problem)


def _check_expected(path: str, stored: Record | None, expected: Version, proposed: str, visible: Record | None) -> None:
    """Raise ConflictError if a record is not the expected one; `visible` is how policies let it be shown."""
    number = expected.version if isinstance(expected, Record) else expected
    version = 0 if stored is None else stored.version
    if version == number and not (isinstance(expected, Record) and stored and stored.digest != expected.digest):
        return
    state = "missing" if stored is None else f"version {version}"
    raise errors.ConflictError(
        f"{path} is {state}, not version {number} as it was seen, and was not changed: look at it as it is now",
        path=path,
        start_line=1,
        current="" if visible is None else json.dumps(visible.to_dict(), ensure_ascii=False),
        proposed=proposed,
        hash="" if stored is None else stored.digest,
    )


def _parse_ttl(rules: RecordsConfig) -> dict[str, int]:
    seconds: dict[str, int] = {}
    for entry in rules.ttl_days:
        name, _, days = entry.partition("=")
        with suppress(ValueError, OverflowError):  # not a number, or infinite
            seconds[name] = int(float(days) * timedelta(days=1).total_seconds())
        if seconds.get(name, 0) < 1 or not re.fullmatch(_TTL_NAME, name):
            raise errors.ConfigError(
                f"records.ttl_days holds {entry!r}, not days of a type, a sensitivity or both, such as 'other=90', "
                f"'high=180' or 'fact.high=30'; types are {', '.join(TYPES)}"
            )
    return seconds
