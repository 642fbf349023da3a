"""The state of an index, looked at without changing it: what it holds, what it lacks, and which paths work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings._choice import lost_in_words, probed
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.sync.compare import compare
from openclaw_memory.sync.meta import outdated
from openclaw_memory.types import (
    Embedder,
    FileRecord,
    IndexMeta,
    MemoryFile,
    Skipped,
    Status,
    Store,
    StoreStats,
    SyncReport,
)

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

NO_STATS = StoreStats(0, 0, 0, {}, "none", None, 0, {})
# Services word the same failure in as many ways as there are requests (each names its own): so many are told.
REASONS = 3


def status(
    workspace: Workspace,
    store: Store | None,
    embedder: Embedder | None,
    wanted: IndexMeta | None,
    *,
    index_path: Path | None,
    requested_provider: str,
    passed_over: Mapping[str, str],
    last: SyncReport | None,
    notices: Sequence[str],
    deep: bool = False,
) -> Status:
    """Compare the workspace with its index by stamps, and ask the store what works.

    `store` is None where nothing has been indexed yet, `wanted` where the embedder cannot be had (`notices` then say
    why). `last` is the report of this process's latest sync: a file that could not be read is known from it alone.
    With `deep`, the embedder is asked and both legs of the search are tried with a real query, what fails is told in
    `fts` and `vector`, and the whole index is checked. `vector["answers"]` is said of the embedder alone,
    `vector["verified"]` only where the index has vectors of its model, and `vector["fits"]` is False where the
    embedder's vectors cannot be compared with those, as of other dimensions.

    Raises:
        WorkspaceError: the folder has gone.
        StoreError: the index cannot be read.
    """
    scan = workspace.scan()
    stats = store.stats() if store else NO_STATS
    stored = store.meta() if store else None
    lacking = store.lacking() if store else {}
    words = [*notices, *_state_in_words(stored, wanted, passed_over), *told_of_lacking(lacking)]
    words += [f"{file.path} could not be indexed: {file.reason}" for file in (last.failed if last else ())]
    meta = wanted or stored
    matches = embedder is not None and (stored is None or stored.identity == embedder.identity)
    speaks = matches and (not lacking or _holds_vectors(store, stored))
    tried = _tried(embedder, store if speaks else None, stats) if deep and embedder is not None else {}
    known = store.files() if store else {}
    return Status(
        workspace=str(workspace.root),
        index_path=str(index_path) if index_path else "",
        provider=meta.provider if meta else "",
        model=meta.model if meta else "",
        requested_provider=requested_provider,
        passed_over=dict(passed_over),
        mode="hybrid" if speaks and tried.get("available", True) else "keyword",
        files=stats.files,
        chunks=stats.chunks,
        sources=stats.sources,
        dirty=compare(scan.files, known).dirty,
        skipped=(*scan.skipped, *_only_in(last, scan.skipped)),
        vector={**_vector(embedder, stats, stored), **tried},
        fts=_fts(store, try_it=deep),
        cache={"enabled": embedder is not None, "entries": stats.vectors},
        index_bytes=stats.size_bytes,
        notices=tuple(dict.fromkeys(words)),
        engine=stats.engine,
        problems=store.problems() if deep and store else (),
        waiting=_waiting(scan.files, known),
    )


def _state_in_words(
    stored: IndexMeta | None, wanted: IndexMeta | None, passed_over: Mapping[str, str]
) -> Iterator[str]:
    if stored is None:
        yield "nothing is indexed yet: sync the memory"
    elif lost := lost_in_words(stored, passed_over):
        yield lost
    elif wanted is not None and (reason := outdated(stored, wanted)):
        yield f"the next sync builds the index again: {reason}"
    elif not stored.complete:
        yield "the index is not complete: its building goes on elsewhere or was cut short; sync the memory"


def told_of_lacking(counts: Mapping[str, int]) -> list[str]:
    """A line for each of the `REASONS` most frequent reasons why files lack vectors, and one for all the others.

    `counts` says how many files each reason has.
    """
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    lines = [
        f"{count} file{'' if count == 1 else 's'} without vectors, found by keywords alone: {why}"
        for why, count in ordered[:REASONS]
    ]
    if rest := sum(count for _, count in ordered[REASONS:]):
        lines.append(f"and {rest} more file{'' if rest == 1 else 's'} without vectors, for other reasons")
    return lines


def _only_in(last: SyncReport | None, known: Sequence[Skipped]) -> list[Skipped]:
    paths = {file.path for file in known}
    return [file for file in last.skipped if file.path not in paths] if last else []


def _waiting(files: Sequence[MemoryFile], known: Mapping[str, FileRecord]) -> tuple[Skipped, ...]:
    """The files that the index follows in all but their vectors, and why it lacks those."""
    lacks = {path: record.lacks for path, record in known.items() if record.lacks is not None}
    lacking = [file for file in files if file.path in lacks]
    behind = set(compare(lacking, {path: replace(known[path], lacks=None) for path in lacks}).dirty)
    return tuple(Skipped(file.path, lacks[file.path]) for file in lacking if file.path not in behind)


def _vector(embedder: Embedder | None, stats: StoreStats, stored: IndexMeta | None) -> Mapping[str, Any]:
    return {
        "enabled": embedder is not None,
        "available": embedder is not None and stats.vector_path != "none",
        "path": stats.vector_path,
        "error": stats.vector_error,
        "dims": stored.dims if stored else None,
    }


def _holds_vectors(store: Store | None, stored: IndexMeta | None) -> bool:
    """Whether any chunk has a vector; whichever is nearest to an arbitrary one shows it."""
    if store is None or stored is None or stored.dims is None:
        return False
    import numpy as np

    return bool(store.search_vector(np.eye(1, stored.dims, dtype=np.float32)[0], 1))


def _tried(embedder: Embedder, store: Store | None, stats: StoreStats) -> Mapping[str, Any]:
    """What an answer of the embedder shows; `store` is None where there are no vectors to compare it with."""
    try:
        vector = probed(embedder)
    except EmbedderError as error:
        return {"available": False, "error": str(error), "answers": False}
    if store is None:
        return {"answers": True}
    try:
        hits = store.search_vector(vector, 1)
    except OpenClawMemoryError as error:
        fits = not isinstance(error, EmbedderError)
        return {"available": False, "error": str(error), "answers": True, "fits": fits}
    return {"answers": True, "verified": bool(hits) or stats.chunks == 0}


def _fts(store: Store | None, *, try_it: bool) -> Mapping[str, Any]:
    state: dict[str, Any] = {"enabled": True, "available": store is not None}
    if try_it and store is not None:
        try:
            store.search_text(["memory"], 1)
        except OpenClawMemoryError as error:
            state.update(available=False, error=str(error))
        else:
            state["verified"] = True
    return state
