"""The state of an index, looked at without changing it: what it holds, what it lacks, and which paths work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.sync.compare import compare
from openclaw_memory.sync.meta import outdated
from openclaw_memory.types import Embedder, IndexMeta, Skipped, Status, Store, StoreStats, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

NO_STATS = StoreStats(0, 0, 0, {}, "none", None, 0, {})


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
    With `deep`, both legs of the search are tried with a real query, what fails is told in `fts` and `vector`, and
    the whole index is checked.

    Raises:
        WorkspaceError: the folder has gone.
        StoreError: the index cannot be read.
    """
    scan = workspace.scan()
    stats = store.stats() if store else NO_STATS
    stored = store.meta() if store else None
    words = list(notices)
    if stored is None:
        words.append("nothing is indexed yet: sync the memory")
    elif wanted is not None and (reason := outdated(stored, wanted)):
        words.append(f"the next sync builds the index again: {reason}")
    elif not stored.complete:
        words.append("the index is not complete: its building goes on elsewhere or was cut short; sync the memory")
    words += told_of_lacking(store.lacking() if store else {})
    failed = last.failed if last else ()
    words += [f"{file.path} could not be indexed: {file.reason}" for file in failed]
    meta = wanted or stored
    matches = embedder is not None and (stored is None or stored.identity == embedder.identity)
    return Status(
        workspace=str(workspace.root),
        index_path=str(index_path) if index_path else "",
        provider=meta.provider if meta else "",
        model=meta.model if meta else "",
        requested_provider=requested_provider,
        passed_over=dict(passed_over),
        mode="hybrid" if matches else "keyword",
        files=stats.files,
        chunks=stats.chunks,
        sources=stats.sources,
        dirty=compare(scan.files, store.files() if store else {}).dirty,
        skipped=(*scan.skipped, *_only_in(last, scan.skipped)),
        vector=_vector(store, embedder, stats, stored, try_it=deep and matches),
        fts=_fts(store, try_it=deep),
        cache={"enabled": embedder is not None, "entries": stats.vectors},
        index_bytes=stats.size_bytes,
        notices=tuple(dict.fromkeys(words)),
        engine=stats.engine,
        problems=store.problems() if deep and store else (),
    )


def told_of_lacking(counts: Mapping[str, int]) -> list[str]:
    """One line for each reason why files lack vectors, of which `counts` says how many."""
    return [
        f"{count} file{'' if count == 1 else 's'} without vectors, found by keywords alone: {why}"
        for why, count in counts.items()
    ]


def _only_in(last: SyncReport | None, known: Sequence[Skipped]) -> list[Skipped]:
    paths = {file.path for file in known}
    return [file for file in last.skipped if file.path not in paths] if last else []


def _vector(
    store: Store | None, embedder: Embedder | None, stats: StoreStats, stored: IndexMeta | None, *, try_it: bool
) -> Mapping[str, Any]:
    state: dict[str, Any] = {
        "enabled": embedder is not None,
        "available": embedder is not None and stats.vector_path != "none",
        "path": stats.vector_path,
        "error": stats.vector_error,
        "dims": stored.dims if stored else None,
    }
    if try_it and store is not None and embedder is not None:
        try:
            hits = store.search_vector(embedder.embed_query("memory"), 1)
        except EmbedderError as error:
            state.update(available=False, error=str(error), answers=False)
        except OpenClawMemoryError as error:
            state.update(available=False, error=str(error))
        else:
            state["verified"] = bool(hits) or stats.chunks == 0
    return state


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
