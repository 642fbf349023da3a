"""`Records`: the facts of a memory, each a Markdown file: remembered, found, confirmed and forgotten."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from openclaw_memory.config import RecordsConfig
from openclaw_memory.errors import (
    ConfigError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OriginError,
    PolicyError,
    RecordError,
    SignatureError,
)
from openclaw_memory.events import Location, locate_file, locate_files, locate_paths, observed
from openclaw_memory.records.file_format import (
    MOST_TOKENS,
    SENSITIVITIES,
    SOURCE_KINDS,
    TYPES,
    digest_of,
    embedding_ref,
    fields_of,
    tokens_in,
)
from openclaw_memory.records.files import RecordFiles, is_expired, may_be_named, path_of
from openclaw_memory.records.settling import Settled, same_value, settle, with_value
from openclaw_memory.search.request import SearchRequest
from openclaw_memory.security import signatures
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
    sentence,
)
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.documents import Fields, check_no_secret
from openclaw_memory.workspace.journal import check_text

if TYPE_CHECKING:
    from openclaw_memory.text.front_matter import FrontMatter

Seen: TypeAlias = int | Record | None  # the version that a caller has seen, or the record itself


class _Call(NamedTuple):
    """One call that changes a record: what it names, and the token that keeps it from being done twice."""

    type: RecordType
    key: str
    user_id: str | None
    expected: Seen
    token: str | None


def _locate_forgotten(
    is_gone: bool,
    _: object,
    type: RecordType,  # noqa: A002
    key: str,
    *,
    user_id: str | None = None,
    **__: object,
) -> list[Location]:
    return [(path_of(type, key, user_id), "")] if is_gone else []


class Records:
    """The facts of a memory, by type, key and user. Safe to use from several threads and processes.

    Each is a Markdown file in `memory/records/<type>/`, with its fields above one sentence, which `Memory.search` finds
    and cites like any note. A person may edit the value, the sentence or another field: that counts as a version of its
    own. Records that have expired are never returned.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: RecordsConfig,
        *,
        search: Callable[..., Any],
        files: RecordFiles | None = None,
        wrote: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Keep records in a workspace.

        Args:
            workspace: The files.
            rules: How values are settled, and for how long they hold.
            search: Answers a `SearchRequest`.
            files: Reads their files; a reader of its own where None.
            wrote: Called after each change of a file.
            clock: Returns the moment, with a time zone.

        Raises:
            ConfigError: `rules.ttl_days` holds something else than days by type.
        """
        self._workspace, self._rules, self._search, self._wrote, self._clock = workspace, rules, search, wrote, clock
        self._ttl = _seconds_by_type(rules)
        self._policies, self.events = workspace.policies, workspace.events
        self._files = files or RecordFiles(workspace, rules)

    @observed("remember", lambda answer, *_, **__: [(answer.record.path, "")], writes=True)
    def remember(
        self,
        type: RecordType,  # noqa: A002 - the field's name
        key: str,
        value: Any,
        *,
        confidence: float = 0.8,
        source: RecordSource | None = None,
        sensitivity: Sensitivity | None = None,
        ttl: int | Literal["default"] | None = "default",
        user_id: str | None = None,
        expected_version: Seen = None,
        token: str | None = None,
    ) -> Remembered:
        """Take in an observation: it becomes the value, supports it, or waits; see `settling.settle`.

        Args:
            type: preference, fact, decision, entity, reminder or other.
            key: What it is about, such as `editor.theme`.
            value: Any value of JSON.
            confidence: How sure it is, 0..1. Below `records.least_confidence` it is refused.
            source: Who says so. Without one, the user, just now.
            sensitivity: low, medium or high; that of the record as it is where None, and low for a new one.
            ttl: For how many seconds it holds, None for ever; by default what `records.ttl_days` says of the type.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that this is based on; not compared where None.
            token: Names this call: the same token changes the record once, however often it is called with it.

        Returns:
            The record as it is now, and what came of the observation.

        Raises:
            InvalidInputError: An argument has a wrong type or value, or holds a secret. Nothing was written.
            OriginError: A preference comes from outside. Nothing was written.
            PolicyError: A rule says never to store it. Nothing was written.
            ConflictError: The record is not what `expected_version` says; the error has both sides.
            RecordError: The file is damaged, and is as it was.
            SignatureError: No signature vouches for what the file says, and it is as it was; see `sign`.
            UserKeyError: It has to be signed, and no key lasts. Nothing was written.
            WriteError: It could not be written.
        """
        call = _checked_call(type, key, user_id, expected_version, token)
        if sensitivity is not None and sensitivity not in SENSITIVITIES:
            raise InvalidInputError(f"sensitivity is {sensitivity!r}, not one of {', '.join(SENSITIVITIES)}")
        if ttl is not None and ttl != "default" and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 1):
            raise InvalidInputError(f"ttl is {ttl!r}, not a whole number of seconds above zero, None or 'default'")
        now = self._now()
        seen = _checked_observation(value, confidence, source, now)
        if seen.source.kind == "external" and type == "preference":
            raise OriginError(f"{key} is a preference, which no text from outside states: ask the user")
        if seen.confidence < self._rules.least_confidence:
            raise InvalidInputError(
                f"a confidence of {confidence} is below records.least_confidence ({self._rules.least_confidence}): "
                "observe it again, or ask"
            )
        seconds = self._ttl.get(type) if ttl == "default" else ttl

        def apply(stored: Record | None) -> tuple[Record, Settled]:
            wanted = sensitivity or (stored.sensitivity if stored else "low")
            rated = stored and replace(stored, sensitivity=wanted)
            self._check_policies(call, value, wanted, source)
            settled = settle(rated, seen, self._rules, now)
            if stored is None or rated is None:
                return self._new(call, seen, wanted, seconds, now), settled
            if settled.outcome in {"same", "late"} and wanted == stored.sensitivity:
                return stored, settled
            return self._settled(rated, seen, settled, seconds, now), settled

        record, settled = self._change(call, json.dumps(value, ensure_ascii=False), apply)
        if settled.outcome == "new":
            self._keep_within_limit(type, user_id, record)
        return Remembered(self._shown(record) or record, settled.outcome, settled.reason)

    @observed("get", locate_file)
    def get(self, type: RecordType, key: str, *, user_id: str | None = None) -> Record | None:  # noqa: A002
        """Return a record; None if there is none, or it has expired.

        Args:
            type: Its type.
            key: Its key.
            user_id: Whose it is; None for everybody's.

        Raises:
            InvalidInputError: An argument has a wrong type or value.
            RecordError: The file is damaged.
            SignatureError: No signature vouches for what the file says; see `sign`.
        """
        call = _checked_call(type, key, user_id)
        path = path_of(call.type, call.key, call.user_id)
        return self.read(self._workspace.files.find(path))

    @observed("get", locate_file)
    def read(self, path: str) -> Record | None:
        """Return the record that a file holds; None if there is no such file, or it has expired.

        Args:
            path: The file, below `memory/records/`.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
            RecordError: The file is damaged, or is a person's own note.
            SignatureError: No signature vouches for what the file says; see `sign`.
        """
        record = self._files.at(path, self._now())
        if record is not None:
            _check_vouched(record)
        return None if record is None or is_expired(record, self._now()) else self._shown(record)

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
        """Return records, by path, or best first where `text` is given. Damaged files are left out; see `problems`.

        Args:
            text: A question that their sentences answer.
            type: Only this type.
            key: Only keys that match this glob, such as `editor.*`; as for `get`, in the files named after them.
            user_id: Only this user's; None for all.
            min_confidence: Only those that are at least so sure now, 0..1.
            sensitivity: Only those of this sensitivity.
            limit: At most so many; all where None, and 20 with `text`.

        Raises:
            InvalidInputError: `text` or `limit` is not valid.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidInputError(f"limit is {limit!r}, not a whole number above zero")

        key, user_id = key and normalize("NFC", key), user_id and normalize("NFC", user_id)

        def passes(record: Record) -> bool:
            return (
                type in {None, record.type}
                and (key is None or fnmatchcase(record.key, key))
                and user_id in {None, record.user_id}
                and record.confidence >= min_confidence
                and sensitivity in {None, record.sensitivity}
            )

        if text is None:
            return list(islice(filter(passes, self.holding(self.everything(key))), limit))
        there = {record.path: record for record in self.holding(self.everything(key)) if passes(record)}
        request = SearchRequest(text, max_results=limit or 20, min_score=0.0, passes=there.__contains__)
        found = self._search(request)
        return [there[path] for path in dict.fromkeys(result.path for result in found)]

    @observed("confirm", locate_file, writes=True)
    def confirm(
        self,
        type: RecordType,  # noqa: A002
        key: str,
        *,
        value: Any = ...,
        source: RecordSource | None = None,
        user_id: str | None = None,
        expected_version: Seen = None,
        token: str | None = None,
    ) -> Record:
        """Confirm the value of a record, or another one, which then replaces it; what waited is dropped.

        Args:
            type: Its type.
            key: Its key.
            value: The value; without it, that of the record.
            source: Who confirms. Without one, the user, just now.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that was seen; not compared where None.
            token: Names this call, as for `remember`.

        Returns:
            The record as it is now: confirmed, and as sure as can be.

        Raises:
            NotFoundError: There is no such record.
            OriginError: The source is outside. Nothing was written.
            ConflictError, InvalidInputError, RecordError, WriteError: As `remember`.
        """
        call = _checked_call(type, key, user_id, expected_version, token)
        now = self._now()

        def apply(stored: Record | None) -> tuple[Record, Settled]:
            if stored is None:
                raise NotFoundError(f"there is no record of type {type} with the key {key!r}: remember it first")
            wanted = stored.value if value is ... else value
            seen = _checked_observation(wanted, 1.0, source, now)
            if seen.source.kind == "external":
                raise OriginError(f"no text from outside confirms {key}: ask the user")
            self._check_policies(call, wanted, stored.sensitivity, source)
            return replace(
                self._settled(stored, seen, Settled("replaced", 1.0), stored.ttl, now), is_confirmed=True
            ), Settled("confirmed", 1.0)

        record = self._change(call, "" if value is ... else json.dumps(value, ensure_ascii=False), apply)[0]
        return self._shown(record) or record

    @observed("sign", locate_file, writes=True)
    def sign(self, path: str, *, seen: str | Record | None = None) -> Record:
        """Vouch for a record as its file says it now, and sign it: for a person who has looked at it.

        A record of high sensitivity that something else than this library has written is shown nowhere until then; so
        is one that was signed with a key that is not here. `unsigned` lists them.

        Args:
            path: The file, below `memory/records/`.
            seen: The record that was looked at, or its `digest`; not compared where None.

        Returns:
            The record as it is now, one version on.

        Raises:
            NotFoundError: There is no such file.
            ConflictError: The file is not what was seen any more. Nothing was written.
            InvalidInputError: The record needs no signature, being of low or medium sensitivity and never signed.
            RecordError: The file is damaged: correct it by hand first.
            UserKeyError: No key lasts. Nothing was written.
            WriteError: It could not be written.
        """
        now, root = self._now(), self._workspace.root
        done: list[Record] = []

        def change(there: FrontMatter | None, info: os.stat_result | None) -> Fields:
            if info is None:
                raise NotFoundError(f"{path} is no file: `openclaw-memory sign` lists what can be signed")
            stored = self._files.record_of(path, there, info.st_mtime_ns, now)
            if not signatures.needs_one(root, path, there and there.fields):
                raise InvalidInputError(f"{path} is of {stored.sensitivity} sensitivity, and needs no signature")
            if seen is not None:
                expected = seen if isinstance(seen, Record) else replace(stored, digest=seen)
                _check_expected(path, stored, expected, "", None)
            version = max(stored.version, signatures.latest(root, stored.memory_id)) + 1
            done.append(replace(stored, version=version, problem=None))
            return self._file(done[-1], now, there)

        if self._update(path, change):
            self._wrote()
        return self._by_policies(done[-1]) or done[-1]

    @observed("list", locate_files)
    def unsigned(self) -> list[Record]:
        """Return the records that are shown nowhere, since no signature vouches for them; `problem` of each says why.

        They are for the person who decides on them, as policies let them be shown, and not for a model.
        """
        waiting = (self._by_policies(one) for one in self.everything() if one.problem is not None)
        return [one for one in waiting if one is not None]

    @observed("forget", _locate_forgotten, writes=True)
    def forget(
        self,
        type: RecordType,  # noqa: A002
        key: str,
        *,
        user_id: str | None = None,
        expected_version: Seen = None,
    ) -> bool:
        """Delete a record; return whether there was one.

        Args:
            type: Its type.
            key: Its key.
            user_id: Whose it is; None for everybody's.
            expected_version: The version, or the record, that was seen; not compared where None.

        Raises:
            ConflictError, InvalidInputError, WriteError: As `remember`.
        """
        call = _checked_call(type, key, user_id, expected_version)
        path, now = path_of(call.type, call.key, call.user_id), self._now()

        def as_seen(_: str, there: FrontMatter, info: os.stat_result) -> bool:
            if expected_version is not None:
                stored = self._files.record_of(path, there, info.st_mtime_ns, now)
                _check_expected(path, stored, expected_version, "", self._shown(stored))
            return True

        return bool(self._remove([path, f"{path}{SUFFIX}"], as_seen))

    def history(self, type: RecordType, key: str, *, user_id: str | None = None) -> tuple[RecordVersion, ...]:  # noqa: A002
        """Return the latest values of a record, the present one last, up to two; none without a record.

        Args:
            type: Its type.
            key: Its key.
            user_id: Whose it is; None for everybody's.

        Raises:
            InvalidInputError, RecordError: As `get`.
        """
        record = self.get(type, key, user_id=user_id)
        return () if record is None else record.history

    def problems(self, *, look: bool = True) -> list[str]:
        """Return a line for each file of a record that is damaged or wrongly signed, and each record with two files.

        Args:
            look: Whether to read every record first; without it, signatures are checked, and what else was found
                before is reported.
        """
        if look:
            keys = dict[tuple[str | None, str, str], str]()
            for path, read in self._files.walk(self._now()):
                if isinstance(read, RecordError) or self._workspace.files.find_hiding_rule(path):
                    continue
                if (other := keys.setdefault((read.user_id, read.type, read.key), path)) != path:
                    key = self._policies.mask(read.key)
                    words = f"{path} holds the same record as {other}, {read.type} {key!r}: delete one"
                    self._files.damaged[path] = words
        else:
            self._files.look_for_forged()
        found = {**self._files.damaged, **self._files.forged}
        return [found[path] for path in sorted(found)]

    # --- policies ---------------------------------------------------------------------------------------------

    def _check_policies(self, call: _Call, value: Any, sensitivity: Sensitivity, source: RecordSource | None) -> None:
        """Check that policies let a value be stored.

        Raises:
            PolicyError: A rule says never to. Nothing was written.
        """
        if self._policies:
            said = [call.key, call.user_id, value, sentence(call.key, value), source and source.ref]
            self._policies.check_value(said, About(call.type, call.key, sensitivity))

    def _shown(self, record: Record) -> Record | None:
        """Return a record as policies let it be shown; None for one that is never to be stored, or wrongly signed."""
        return None if record.problem is not None else self._by_policies(record)

    def _by_policies(self, record: Record) -> Record | None:
        if not self._policies:
            return record
        about = About(record.type, record.key, record.sensitivity)
        try:
            self._workspace.files.check_name(record.path)
            self._policies.check_value([record.key, record.value, sentence(record.key, record.value)], about)
        except PolicyError:
            return None

        def seen(one: Observation) -> Observation:
            source = replace(one.source, ref=self._policies.mask(one.source.ref, about))
            return replace(one, value=self._policies.mask_value(one.value, about), source=source)

        return replace(
            record,
            value=self._policies.mask_value(record.value, about),
            source=replace(record.source, ref=self._policies.mask(record.source.ref, about)),
            waiting=tuple(map(seen, record.waiting)),
            history=tuple(replace(one, seen=seen(one.seen)) for one in record.history),
        )

    # --- upkeep --------------------------------------------------------------------------------------------------

    @observed("list", locate_files)
    def everything(self, key: str | None = None) -> list[Record]:
        """Return every record as its file has it, by path, expired ones too; damaged files are left out.

        Policies do not touch it: it is for upkeep, and not to be shown. See `holding`.

        Args:
            key: Look only at files whose names are those of keys that match this glob.
        """
        may_be = None if key is None else may_be_named(key)
        return [read for _, read in self._files.walk(self._now(), may_be) if isinstance(read, Record)]

    def holding(self, among: Iterable[Record]) -> Iterator[Record]:
        """Yield those that hold now, as policies let them be shown.

        Args:
            among: Records, as `everything` returned them.
        """
        now = self._now()
        for one in among:
            if not is_expired(one, now) and (record := self._shown(one)) is not None:
                yield record

    @observed("expire", locate_paths, writes=True)
    def expire(self, among: Iterable[Record] | None = None) -> list[str]:
        """Delete the files of records that have expired; return their paths, with `***` for what policies hide of one.

        Args:
            among: Look at these alone, which `everything` has just returned.

        Raises:
            WriteError: A file could not be deleted.
        """
        now = self._now()

        def has_expired(path: str, there: FrontMatter, info: os.stat_result) -> bool:
            record = self._files.record_of(path, there, info.st_mtime_ns, now)
            return is_expired(record, now) and record.problem is None  # who knows who says when it expires

        there = self.everything() if among is None else among
        gone = [one.path for one in there if is_expired(one, now) and one.problem is None]
        removed = self._remove(gone, has_expired) if gone else []
        return [self._workspace.files.mask_path(path) for path in removed]

    @observed("decay", locate_paths, writes=True)
    def decay(self, least: float = 0.05, among: Iterable[Record] | None = None) -> list[str]:
        """Write the confidence of records down as it is now, where it has fallen; return their paths.

        Args:
            least: By how much it must have fallen since it was last written, 0..1.
            among: Look at these alone, which `everything` has just returned.

        Raises:
            WriteError: A file could not be written.
        """
        now, changed = self._now(), list[str]()
        for one in self.everything() if among is None else among:
            if is_expired(one, now) or one.type not in self._rules.decaying or one.problem is not None:
                continue
            if self._files.written_confidence(one.path) - one.confidence < least:
                continue
            if self._workspace.files.find_hiding_rule(one.path):  # nothing is written under such a name
                continue
            if self._update(one.path, partial(self._decayed, one.path)):
                changed.append(one.path)
        if changed:
            self._wrote()
        return changed

    def _decayed(self, path: str, there: FrontMatter | None, info: os.stat_result | None) -> Fields | None:
        """Return the file of a record with the confidence of this moment.

        None if it has gone meanwhile, or no signature vouches for it any more.
        """
        if info is None:
            return None
        now = self._now()
        record = self._files.record_of(path, there, info.st_mtime_ns, now)
        if record.problem is not None:
            return None
        return self._file(replace(record, version=record.version + 1), now, there)

    def __iter__(self) -> Iterator[Record]:
        """Yield every record that holds now, by path; damaged files are left out."""
        yield from self.holding(self.everything())

    # --- files ---------------------------------------------------------------------------------------------------

    def _change(
        self, call: _Call, proposed: str, apply: Callable[[Record | None], tuple[Record, Settled]]
    ) -> tuple[Record, Settled]:
        """Read a record, change it as `apply` says, and write it if it has, while no other process does."""
        path, now = self._workspace.files.find(path_of(call.type, call.key, call.user_id)), self._now()
        token = None if call.token is None else sha256(call.token.encode()).hexdigest()[:16]
        outcome: list[tuple[Record, Settled]] = []

        def change(there: FrontMatter | None, info: os.stat_result | None) -> Fields | None:
            stored = None if info is None else self._files.record_of(path, there, info.st_mtime_ns, now)
            if stored is not None:
                _check_vouched(stored)
            tokens = tokens_in(there)
            if token is not None and stored is not None and token in tokens:
                outcome.append((stored, Settled("same", stored.confidence, reason="this call was made before")))
                return None
            held = None if stored is None or is_expired(stored, now) else stored
            if call.expected is not None:
                _check_expected(path, held, call.expected, proposed, held and self._shown(held))
            new, settled = apply(held)
            if new is held and token is None:
                outcome.append((new, settled))
                return None
            tokens = (*tokens, token)[-MOST_TOKENS:] if token is not None else tokens
            file = self._file(new, now, there, tokens)
            outcome.append((replace(new, digest=file.fields["written"]), settled))
            return file

        written = self._update(path, change)
        record, settled = outcome[-1]
        if written is not None:
            self._wrote()
            record = replace(record, path=written)
        return record, settled

    def _is_to_be_sealed(self, record: Record, there: FrontMatter | None) -> bool | None:
        """Return whether the file of a record is to be sealed: highly sensitive ones are, where the index is.

        One that a person has sealed stays so.
        """
        if record.sensitivity == "high":
            return self._workspace.files.codec.is_sealing("private") or None
        return False if there is not None and there.fields.get("sensitivity") == "high" else None

    def _file(
        self, record: Record, now: datetime, there: FrontMatter | None, tokens: tuple[str, ...] | None = None
    ) -> Fields:
        """Return the file of a record that takes the place of `there`, signed if it or that one has to be."""
        root, path = self._workspace.root, record.path
        tokens = tokens_in(there) if tokens is None else tokens
        fields, text = fields_of(record, now, tokens), sentence(record.key, record.value)
        signed_once = there is not None and signatures.FIELD in there.fields
        is_sealed = self._is_to_be_sealed(record, there)
        if not signed_once and not signatures.needs_one(root, path, fields):
            return Fields(path, fields, text, is_sealed=is_sealed)

        def seal(fields: Mapping[str, Any], text: str) -> Mapping[str, Any]:
            return signatures.signed(path, {**fields, "written": digest_of(fields, text)}, text)

        return Fields(path, fields, text, seal, is_sealed)

    def _update(
        self, path: str, change: Callable[[FrontMatter | None, os.stat_result | None], Fields | None]
    ) -> str | None:
        """Write a file as `documents.update` does, and put down its version if it was signed."""
        root, made = self._workspace.root, list[Fields]()

        def kept(there: FrontMatter | None, info: os.stat_result | None) -> Fields | None:
            if (file := change(there, info)) is not None:
                made.append(file)
            return file

        if (written := documents.update(self._workspace.files, path, kept)) is None:
            return None
        if made[-1].seal is not None:
            signatures.listed(root, path, made[-1].fields["memory_id"], made[-1].fields["version"])
        return written

    def _new(self, call: _Call, seen: Observation, sensitivity: Sensitivity, ttl: int | None, now: datetime) -> Record:
        return Record(
            memory_id=f"mem_{secrets.token_hex(8)}",
            user_id=call.user_id,
            type=call.type,
            key=call.key,
            value=seen.value,
            confidence=seen.confidence,
            source=seen.source,
            sensitivity=sensitivity,
            ttl=ttl,
            last_confirmed_at=seen.source.observed_at,
            version=1,
            embedding_ref=embedding_ref(call.key, seen.value),
            created_at=now,
            updated_at=now,
            path=path_of(call.type, call.key, call.user_id),
            digest="",
            history=(RecordVersion(1, seen, now),),
        )

    def _settled(self, stored: Record, seen: Observation, settled: Settled, ttl: int | None, now: datetime) -> Record:
        """Return the next version of a record."""
        version = stored.version + 1
        rated = replace(stored, version=version, confidence=settled.confidence, waiting=settled.waiting)
        if settled.outcome not in {"supported", "replaced"}:
            return rated
        latest = max(stored.source, seen.source, key=lambda one: one.observed_at)
        held = replace(rated, ttl=ttl, source=latest, last_confirmed_at=latest.observed_at, updated_at=now)
        if same_value(seen.value, stored.value):
            return held
        return replace(
            held,
            value=seen.value,
            source=seen.source,
            embedding_ref=embedding_ref(stored.key, seen.value),
            is_confirmed=False,
            history=with_value(stored.history, RecordVersion(version, seen, now)),
        )

    def _keep_within_limit(self, type: RecordType, user_id: str | None, latest: Record) -> None:  # noqa: A002
        """Delete the least certain records of a type and user, beyond the limit: unconfirmed, oldest ones first."""
        folder = self._workspace.root.joinpath(*latest.path.split("/")[:-1])
        if sum(1 for _ in os.scandir(folder)) <= self._rules.most:
            return
        own = [one for one in self.find(type=type) if one.user_id == user_id and one.path != latest.path]
        own.sort(key=lambda one: (one.is_confirmed, one.confidence, one.updated_at))
        extra = own[: max(0, len(own) + 1 - self._rules.most)]
        self._remove([one.path for one in extra])

    def _remove(self, paths: Sequence[str], only: Callable[..., bool] = lambda *_: True) -> list[str]:
        gone = documents.remove(self._workspace.files, paths, only)
        for path in gone:
            signatures.unlisted(self._workspace.root, path)
        if gone:
            self._wrote()
        return gone

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC).replace(microsecond=0)


def _checked_call(
    type: RecordType,  # noqa: A002
    key: str,
    user_id: str | None,
    expected: Seen = None,
    token: str | None = None,
) -> _Call:
    if type not in TYPES:
        raise InvalidInputError(f"type is {type!r}, not one of {', '.join(TYPES)}")
    for name, value in (("key", key), *((("user_id", user_id),) if user_id is not None else ())):
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise InvalidInputError(f"{name} is {value!r}, not a line of text such as 'editor.theme'")
        check_no_secret(value, name)
    if token is not None and (not isinstance(token, str) or not token):
        raise InvalidInputError(f"token is {token!r}, not a text that names this call")
    if token is not None:
        check_text(token, "token")
    if expected is not None and (isinstance(expected, bool) or not isinstance(expected, int | Record)):
        raise InvalidInputError(f"expected_version is {expected!r}, not a number or a Record")
    # Some systems part letters from their accents: it is the same key, on whichever machine.
    return _Call(type, normalize("NFC", key), user_id and normalize("NFC", user_id), expected, token)


def _checked_observation(value: Any, confidence: float, source: RecordSource | None, now: datetime) -> Observation:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise InvalidInputError(f"confidence is {confidence!r}, not a number from 0 to 1")
    try:
        value = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the value cannot be written as JSON: {error}") from error
    check_text(json.dumps(value, ensure_ascii=False), "the value")
    check_no_secret(value, "the value")
    if source is None:
        # Every call without a source is an observation of its own.
        source = RecordSource("user", f"call_{secrets.token_hex(4)}", now)
    if not isinstance(source, RecordSource) or source.kind not in SOURCE_KINDS:
        raise InvalidInputError(f"source is {source!r}, not a RecordSource of kind {', '.join(SOURCE_KINDS)}")
    check_text(source.ref, "source.ref")
    if source.observed_at.tzinfo is None:
        raise InvalidInputError(f"observed_at is {source.observed_at!r}, without a time zone: say which")
    moment = source.observed_at.astimezone(UTC).replace(microsecond=0)
    return Observation(value, float(confidence), replace(source, observed_at=moment))


def _check_vouched(record: Record) -> None:
    if record.problem is not None:
        raise SignatureError(record.problem)


def _check_expected(path: str, stored: Record | None, expected: Seen, proposed: str, shown: Record | None) -> None:
    seen = expected.version if isinstance(expected, Record) else expected
    version = 0 if stored is None else stored.version
    same = version == seen and (not isinstance(expected, Record) or stored is None or stored.digest == expected.digest)
    if not same:
        there = "missing" if stored is None else f"version {version}"
        current = "" if shown is None else json.dumps(shown.to_dict(), ensure_ascii=False)
        raise ConflictError(
            f"{path} is {there}, not version {seen} as it was seen, and was not changed: look at it as it is now",
            path=path,
            start_line=1,
            current=current,
            proposed=proposed,
            hash="" if stored is None else stored.digest,
        )


def _seconds_by_type(rules: RecordsConfig) -> dict[str, int]:
    seconds: dict[str, int] = {}
    for one in rules.ttl_days:
        type_name, _, days = one.partition("=")
        try:
            seconds[TYPES[TYPES.index(type_name)]] = int(float(days) * timedelta(days=1).total_seconds())
        except ValueError as error:
            raise ConfigError(
                f"records.ttl_days holds {one!r}, not days of a type, such as 'other=90'; types are {', '.join(TYPES)}"
            ) from error
    return seconds
