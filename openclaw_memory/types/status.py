"""Define the state of a memory, and describe it for a person."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, structs

from openclaw_memory.types.files import Skipped
from openclaw_memory.types.results import HeartbeatRecord, SyncFailure, SyncRecord, limit_names


class VectorStatus(Struct, frozen=True):
    """The state of vector search: whether an embedder is in use, and whether its vectors can be searched.

    `path` is how the store searches them, `dims` their dimensions, `extension_path` the library of sqlite-vec where it
    is loaded. Only a deep status fills `answers` (the embedder does), `verified` (a search by vector does), and `fits`,
    which is False if its vectors cannot be compared with those of the index.
    """

    enabled: bool
    available: bool
    path: str
    error: str | None = None
    dims: int | None = None
    answers: bool | None = None
    verified: bool | None = None
    fits: bool | None = None
    extension_path: str | None = None


class KeywordStatus(Struct, frozen=True):
    """The state of keyword search; a deep status tries it and fills `verified`, or `error`."""

    available: bool
    enabled: bool = True
    error: str | None = None
    verified: bool | None = None


class CacheStatus(Struct, frozen=True):
    """The vectors in the user's cache, of all workspaces, and their limit."""

    enabled: bool
    entries: int
    max_entries: int


class DiskUsage(Struct, frozen=True):
    """Sizes in bytes: of the index, its write-ahead log, the notes, and the transcripts."""

    index: int = 0
    log: int = 0
    notes: int = 0
    sessions: int = 0


class Status(Struct, frozen=True):
    """The state of a memory: its files, embedder and index, and everything that is degraded.

    `dirty` says for each file why a sync would read or remove it; those in `waiting` lack only vectors. `skipped` are
    files that were found and left out. `unavailable` says why providers were not chosen; `fallback`, if a provider or
    an engine replaces the requested one, has that one (`from`) and the `reason`. `problems` is what a deep status finds
    wrong with the index; a forced sync fixes it.

    `last_sync` is the latest completed sync, `last_error` the error of one since. `watcher` describes the watcher of
    this process. `flush` has, by session key, why the latest flush of a session failed.
    `heartbeat` is the latest one, of any process. `backend` is the engine that answers, `builtin` unless another one
    does, `store` the kind of its store, and `custom` what another engine has to say besides.
    """

    workspace: str
    index_path: str
    provider: str
    model: str
    requested_provider: str
    unavailable: Mapping[str, str]
    mode: Literal["hybrid", "keyword"]
    files: int
    chunks: int
    sources: Mapping[str, tuple[int, int]]
    dirty: Mapping[str, str]
    skipped: tuple[Skipped, ...]
    vector: VectorStatus
    fts: KeywordStatus
    cache: CacheStatus
    notices: tuple[str, ...]
    engine: Mapping[str, str]
    problems: tuple[str, ...] = ()
    waiting: tuple[Skipped, ...] = ()
    backend: str = "builtin"
    store: str = "sqlite"
    extra_paths: tuple[str, ...] = ()
    fallback: Mapping[str, str] | None = None
    batch: Mapping[str, Any] = {}
    last_sync: SyncRecord | None = None
    last_error: SyncFailure | None = None
    watcher: str | None = None
    bytes: DiskUsage = DiskUsage()
    flush: Mapping[str, str] = {}
    heartbeat: HeartbeatRecord | None = None
    custom: Mapping[str, Any] = {}

    def _repr_html_(self) -> str:
        from openclaw_memory.display import render_table

        return render_table("memory", ("", ""), [*list_overview(self, near=True), *list_shortcomings(self)])


def list_overview(state: Status, *, near: bool = False) -> list[tuple[str, str]]:
    """Return rows of name and value: place, search and size of a memory.

    With `near`, paths below the current folder are shown relative to it.
    """
    sources = ", ".join(f"{name} {files} files, {chunks} chunks" for name, (files, chunks) in state.sources.items())
    return [
        ("workspace", _shorten_path(state.workspace) if near else state.workspace),
        ("index", _shorten_path(state.index_path) if near else state.index_path),
        *((("backend", state.backend),) if state.backend != "builtin" else ()),
        ("search", f"{state.mode}, {describe_embedder(state)}"),
        *((f"not {provider}", reason) for provider, reason in state.unavailable.items()),
        ("holds", f"{state.files} files, {state.chunks} chunks" + (f" ({sources})" if sources else "")),
        *((("extra paths", ", ".join(state.extra_paths)),) if state.extra_paths else ()),
        ("last sync", describe_sync(state)),
        *((("watcher", state.watcher),) if state.watcher else ()),
    ]


def list_shortcomings(state: Status) -> list[tuple[str, str]]:
    """Return rows of kind and text, one for each thing that works less well than it could."""
    return [
        *([("error", describe_failure(state.last_error))] if state.last_error is not None else []),
        *(("problem", text) for text in state.problems),
        *(
            ("dirty", f"{path}: {state.dirty[path]}" if path in state.dirty else path)
            for path in limit_names(list_behind(state))
        ),
        *(("waiting", f"{file.path}: {file.reason}") for file in state.waiting),
        *(("skipped", f"{file.path}: {file.reason}") for file in state.skipped),
        *(("flush", f"{session}: {error}") for session, error in state.flush.items()),
        *(("note", notice) for notice in state.notices),
    ]


def list_details(state: Status) -> list[tuple[str, str]]:
    """Return rows of name and value: sizes on disk, and the state of each part of the engine."""
    on_disk = ", ".join(f"{name} {format_size(count)}" for name, count in structs.asdict(state.bytes).items() if count)
    return [
        ("on disk", on_disk or "nothing"),
        ("vector", _format_inline(structs.asdict(state.vector))),
        ("keyword", _format_inline(structs.asdict(state.fts))),
        ("cache", _format_inline(structs.asdict(state.cache))),
        *((("batch", _format_inline(state.batch)),) if state.batch else ()),
        ("engine", _format_inline({"backend": state.backend, "store": state.store, **state.engine})),
        *((("custom", _format_inline(state.custom)),) if state.custom else ()),
    ]


def describe_sync(state: Status) -> str:
    """Describe the latest sync in one line: time, reason and result."""
    if (last := state.last_sync) is None:
        return "none is known"
    counts = {"added": last.added, "changed": last.changed, "removed": last.removed, "failed": len(last.failed)}
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do"
    rebuilt = f"; built again: {last.rebuilt}" if last.rebuilt else ""
    return f"{format_age(last.at)} ({last.reason}, {last.seconds} s): {summary}{rebuilt}"


def describe_failure(error: SyncFailure) -> str:
    """Describe the error that ended a sync, and its time, if known."""
    when = f" {format_age(error.at)}" if error.at else ""
    return f"the last sync{when} ended with: {error.error}"


def format_age(moment: str) -> str:
    """Return a time in ISO 8601 in words: `3 min ago`, or the time itself if it is over a day old or in the future."""
    seconds = (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(moment)).total_seconds()
    if seconds < -1 or seconds > 86_400:
        return moment
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 3600 else f"{seconds / 3600:.0f} h ago"


def format_size(count: int) -> str:
    """Return a number of bytes in a suitable unit: `512 B`, `1.5 kB`, `20.0 MB`; a kB has 1,000 bytes."""
    number, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def list_behind(state: Status) -> list[str]:
    """Return the files with text that the index does not hold yet.

    Files that only lack vectors, and files that are reported as skipped, are not included.
    """
    reported = {file.path for file in (*state.waiting, *state.skipped)}
    return [path for path in state.dirty if path not in reported]


def describe_embedder(state: Status) -> str:
    """Return provider and model, and the requested provider if another one replaces it."""
    name = f"{state.provider} {state.model}".strip() or "nothing"
    if state.requested_provider == "auto":
        return f"{name}, chosen by auto"
    return f"{name}, in place of {state.requested_provider}" if state.fallback is not None else name


def _format_inline(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items() if value is not None)


def _shorten_path(path: str) -> str:
    try:
        below = os.path.relpath(path)
    except (OSError, ValueError):  # the current folder is gone, or on another drive
        return path
    return path if below.startswith(os.pardir) else below
