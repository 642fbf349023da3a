"""What is told of a memory, in words that are safe to show: the same in a terminal and in a notebook."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openclaw_memory.types import Status

# Notes come from anywhere: C0 and C1 controls could drive a terminal, bidirectional controls could make it show another
# text than the one that is there, and lone surrogates cannot be written at all.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_LISTED = 10  # names of files; more would push everything else off the screen


def clean(text: str) -> str:
    """`text` with whatever could steer a terminal or turn a line around shown as U+FFFD; tabs and line feeds stay."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def overview(state: Status, *, near: bool = False) -> list[tuple[str, str]]:
    """What a memory is, in a few rows of name and value: where it lies, how it is searched, what it holds.

    With `near`, a place below the current folder is shown as seen from there.
    """
    sources = ", ".join(f"{name} {files} files, {chunks} chunks" for name, (files, chunks) in state.sources.items())
    return [
        ("workspace", _near(state.workspace) if near else state.workspace),
        ("index", _near(state.index_path) if near else state.index_path),
        ("search", f"{state.mode}, {in_use(state)}"),
        *((f"not {provider}", reason) for provider, reason in state.passed_over.items()),
        ("holds", f"{state.files} files, {state.chunks} chunks" + (f" ({sources})" if sources else "")),
        *((("extra paths", ", ".join(state.extra_paths)),) if state.extra_paths else ()),
        ("last sync", last_sync(state)),
        *((("watcher", state.watcher),) if state.watcher else ()),
    ]


def shortcomings(state: Status) -> list[tuple[str, str]]:
    """Whatever works less well than it could, in rows of kind and words; none where all is well."""
    return [
        *([("error", failure(state.last_error))] if state.last_error is not None else []),
        *(("problem", text) for text in state.problems),
        *(
            ("dirty", f"{path}: {state.dirty[path]}" if path in state.dirty else path)
            for path in first_of(behind(state))
        ),
        *(("waiting", f"{file.path}: {file.reason}") for file in state.waiting),
        *(("skipped", f"{file.path}: {file.reason}") for file in state.skipped),
        *(("flush", f"{session}: {error}") for session, error in state.flush.items()),
        *(("note", notice) for notice in state.notices),
    ]


def details(state: Status) -> list[tuple[str, str]]:
    """How it does that, in rows of name and value: sizes, and each path of the engine."""
    on_disk = ", ".join(f"{name} {size(count)}" for name, count in state.bytes.items() if count)
    return [
        ("on disk", on_disk or "nothing"),
        *((name, _inline(table)) for name, table in (("vector", state.vector), ("keyword", state.fts))),
        ("cache", _inline(state.cache)),
        *((("batch", _inline(state.batch)),) if state.batch.get("enabled") or state.batch.get("jobs") else ()),
        ("engine", _inline(state.engine)),
    ]


def last_sync(state: Status) -> str:
    """When the latest sync ran, what for, and what it did, in a line."""
    if (last := state.last_sync) is None:
        return "none is known"
    counts = [f"{last[name]} {name}" for name in ("added", "changed", "removed") if last.get(name)]
    if last.get("failed"):
        counts.append(f"{len(last['failed'])} failed")
    done = ", ".join(counts) or "nothing to do"
    rebuilt = f"; built again: {last['rebuilt']}" if last.get("rebuilt") else ""
    return f"{ago(last['at'])} ({last.get('reason')}, {last.get('seconds')} s): {done}{rebuilt}"


def failure(error: Mapping[str, Any]) -> str:
    """What ended a sync, and when, as far as that is known."""
    when = f" {ago(error['at'])}" if error.get("at") else ""
    return f"the last sync{when} ended with: {error.get('error')}"


def ago(moment: str) -> str:
    """A time in ISO 8601, in words: `3 min ago`, or the time itself where it is over a day old, or not past."""
    seconds = (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(moment)).total_seconds()
    if seconds < -1 or seconds > 86_400:
        return moment
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 3600 else f"{seconds / 3600:.0f} h ago"


def size(count: int) -> str:
    """A number of bytes in the unit that suits it: `512 B`, `1.5 kB`, `20.0 MB`; a kB has 1,000 bytes."""
    number, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def first_of(names: Sequence[str]) -> list[str]:
    """The first ten names, and in how many more they go on."""
    rest = len(names) - MAX_LISTED
    return [*names[:MAX_LISTED], *([f"and {rest:,} more"] if rest > 0 else [])]


def behind(state: Status) -> list[str]:
    """The files whose words the index does not hold as they are now.

    One that only lacks vectors is none of them, nor one that is left out and said to be.
    """
    told = {file.path for file in (*state.waiting, *state.skipped)}
    return [path for path in state.dirty if path not in told]


def in_use(state: Status) -> str:
    """Provider and model, and what was asked for where that is another one."""
    name = f"{state.provider} {state.model}".strip() or "nothing"
    if state.requested_provider == state.provider:
        return name
    if state.requested_provider == "auto":
        return f"{name}, chosen by auto"
    return f"{name}, in place of {state.requested_provider}"


def _inline(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items() if value is not None)


def _near(path: str) -> str:
    """A path as seen from the current folder, where it lies below it."""
    try:
        below = os.path.relpath(path)
    except (OSError, ValueError):  # the current folder is gone, or on another drive
        return path
    return path if below.startswith(os.pardir) else below
