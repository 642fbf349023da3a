"""Write entries as lines of JSON, each with a MAC over itself and the MAC of the entry before it."""

from __future__ import annotations

import datetime
import hmac
import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from openclaw_memory import OpenClawMemoryError
from openclaw_memory.security import Key

if TYPE_CHECKING:
    from openclaw_memory.events import Event

GAP = "gap"  # the operation of an entry that replaces entries that could not be written
_HASH_BYTES = 12
_LINE = re.compile(rb'(\{.*),"mac":"([0-9a-f]{64})"\}')
_NAMES = ("seq", "ts", "actor", "session", "op", "paths", "lines", "result", "prev")
_encode = json.JSONEncoder(separators=(",", ":")).encode


class AuditError(OpenClawMemoryError):
    """The access log cannot be read, or a call is refused because `required` is set and it cannot be logged."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the access log.

    Paths and sessions are keyed hashes in the file. `AccessLog.read_entries` puts the names of files that exist in
    their place; those of others stay hashes, with a `#` before.

    Attributes:
        seq: Its number, from 1 on.
        ts: The time (UTC, ISO 8601 with milliseconds), by the clock of the machine.
        actor: The doors of the call: `cli:search`, `mcp:zed/tool:memory_get`; `library` for a program.
        session: The session, "" for none.
        op: The operation: `search`, `get`, `append`, `forget`, ...; `gap` for entries that could not be written.
        paths: The files that were read or changed.
        lines: For each of them its lines, such as `3-9`; "" for the file as a whole.
        result: `ok`; `planned`, `partly`, `started`, or the name of an error.
        prev: The MAC of the entry before it, "" in the first one.
        mac: The HMAC-SHA256 of all that.
    """

    seq: int
    ts: str
    actor: str
    session: str
    op: str
    paths: tuple[str, ...]
    lines: tuple[str, ...]
    result: str
    prev: str
    mac: str

    @property
    def places(self) -> tuple[str, ...]:
        """The files with their lines: `MEMORY.md#3-9`."""
        return tuple(f"{path}#{lines}" if lines else path for path, lines in zip(self.paths, self.lines, strict=True))


class Keys(NamedTuple):
    """The keys of this user's logs: of the MACs of entries and heads, and of the hashes of names."""

    entry: bytes
    head: bytes
    name: bytes


def derive_keys() -> Keys:
    """Derive the keys from the user's own.

    Raises:
        StoreError: That can neither be read nor made.
    """
    user_key = Key.load_user_key().secret
    return Keys(*(hmac.digest(user_key, f"openclaw_memory_audit {use}".encode(), "sha256") for use in Keys._fields))


def hash_name(keys: Keys, name: str) -> str:
    """Hash a path or a session for the log, so that no one without the key can test a guess."""
    return blake2b(name.encode("utf-8", "surrogatepass"), key=keys.name, digest_size=_HASH_BYTES).hexdigest()


def encode_entry(keys: Keys, seq: int, event: Event, prev: str) -> tuple[bytes, str]:
    """Return the line of a new entry, with its end, and its MAC."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    paths, lines = [hash_name(keys, path) for path, _ in event.places], [lines for _, lines in event.places]
    session = hash_name(keys, event.session) if event.session else ""
    values = (seq, now, event.actor, session, event.op, paths, lines, event.result, prev)
    body = _encode(dict(zip(_NAMES, values, strict=True)))
    mac = hmac.digest(keys.entry, body.encode(), "sha256").hex()  # ASCII: JSON escapes the rest
    return f'{body[:-1]},"mac":"{mac}"}}\n'.encode(), mac


def decode_entry(keys: Keys, line: bytes) -> Entry | None:
    """Return the entry of a line without its end; None unless it is as this user's log has written it."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    body, mac = match[1] + b"}", match[2].decode()
    if not hmac.compare_digest(hmac.digest(keys.entry, body, "sha256").hex(), mac):
        return None
    fields = json.loads(body)
    return Entry(**{**fields, "paths": tuple(fields["paths"]), "lines": tuple(fields["lines"])}, mac=mac)
