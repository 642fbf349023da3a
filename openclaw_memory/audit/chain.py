"""Entries as lines of JSON, each with a MAC over itself and the MAC of the entry before it."""

from __future__ import annotations

import datetime
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GAP = "gap"  # the operation of an entry that stands for missing ones
MISSED, LOST = "missed", "lost"  # results of a gap: entries that could not be written, or went with a power cut
PURPOSE = "log"  # of the key, as `Key.derived` takes it
_MAC = re.compile(rb'(?s)(\{.*),"mac":"([0-9a-f]{64})"\}')
_json = json.JSONEncoder(separators=(",", ":")).encode
_NAMES = ("seq", "ts", "actor", "op", "path", "lines", "result", "prev")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the access log: what was done, by whom, and to which lines.

    Attributes:
        seq: Its number, from 1 on.
        ts: When it was (UTC, ISO 8601 with milliseconds), by the clock of the machine.
        actor: The doors, and the session: `cli:search`, `mcp:zed/tool:memory_get@main`; `library` is a program.
        op: What was done: `search`, `get`, `append`, `forget`, ...; `gap` where entries are missing.
        path: The files that were read or changed.
        lines: For each of them its lines, such as `3-9`; "" for the file as a whole.
        result: `ok`; `planned` for what was not done yet, `partly`, `started`, or the name of an error.
        prev: The MAC of the entry before it, as 64 hex digits; random in the first one.
        mac: The HMAC-SHA256 of all that.
    """

    seq: int
    ts: str
    actor: str
    op: str
    path: tuple[str, ...]
    lines: tuple[str, ...]
    result: str
    prev: str
    mac: str

    @property
    def places(self) -> tuple[str, ...]:
        """The files with their lines: `MEMORY.md#3-9`."""
        return tuple(f"{path}#{lines}" if lines else path for path, lines in zip(self.path, self.lines, strict=True))


def sealed(
    key: bytes, seq: int, actor: str, op: str, places: Sequence[tuple[str, str]], result: str, prev: str
) -> tuple[bytes, str]:
    """Return the line of a new entry, with its end, and its MAC.

    Args:
        key: The key of the log.
        seq: Its number.
        actor: Who has acted.
        op: What was done.
        places: Paths and lines.
        result: What came of it.
        prev: The MAC of the entry before it.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    path, lines = [path for path, _ in places], [lines for _, lines in places]
    body = _json(dict(zip(_NAMES, (seq, now, actor, op, path, lines, result, prev), strict=True)))
    mac = hmac.digest(key, body.encode(), "sha256").hex()  # ASCII: JSON escapes the rest
    return f'{body[:-1]},"mac":"{mac}"}}\n'.encode(), mac


def opened(line: bytes, key: bytes | None) -> Entry | None:
    """Return the entry of a line without its end; None where it is not one, or not as it was written.

    Args:
        line: The line.
        key: The key of the log; None believes the line.
    """
    found = _MAC.fullmatch(line)
    if found is None:
        return None
    body, mac = found[1] + b"}", found[2].decode()
    if key is not None and not hmac.compare_digest(hmac.digest(key, body, "sha256").hex(), mac):
        return None
    try:
        return _entry(json.loads(body), mac)
    except (ValueError, RecursionError):
        return None


def _entry(given: Any, mac: str) -> Entry | None:
    if not isinstance(given, dict) or tuple(given) != _NAMES:
        return None
    path, lines = given["path"], given["lines"]
    texts = [given[name] for name in ("ts", "actor", "op", "result", "prev")]
    if not (isinstance(path, list) and isinstance(lines, list) and len(path) == len(lines)):
        return None
    if type(given["seq"]) is not int or not all(isinstance(one, str) for one in (*texts, *path, *lines)):
        return None
    ts, actor, op, result, prev = texts
    return Entry(given["seq"], ts, actor, op, tuple(path), tuple(lines), result, prev, mac)
