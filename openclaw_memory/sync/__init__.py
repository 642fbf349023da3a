"""The index follows the files: compare, read what may have changed, cut, embed what is new, write.

Everything slow (reading, chunking, embedding) happens before a transaction opens, and a transaction holds whole files
only: a run that is cut short at any point leaves an index that answers, and the next run goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory.config import Chunking, MemoryConfig
from openclaw_memory.errors import EmbedderError
from openclaw_memory.sync.at_work import at_work, somebody_is_at_work
from openclaw_memory.sync.compare import Difference, compare
from openclaw_memory.sync.damage import set_aside
from openclaw_memory.sync.meta import describe, outdated
from openclaw_memory.types import Embedder, IndexMeta, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

__all__ = ["Difference", "at_work", "compare", "describe", "outdated", "set_aside", "somebody_is_at_work", "sync"]


def sync(
    workspace: Workspace,
    store: Store,
    embedder: Embedder | None,
    config: MemoryConfig,
    *,
    trouble: str | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SyncReport:
    """Bring the index up to date with the workspace, and say what was done.

    A file that cannot be read or cut is named in `failed`, one that is not text in `skipped`. Both keep the rows they
    had, and are tried again next time, also when they have not been touched since. A file whose vectors cannot be had
    is named in `waiting`: keywords find it, and the next sync asks again. `unchanged` counts files by content: in an
    index built anew (`rebuilt` says why) a file whose text is as before still counts as unchanged.

    With `embedder=None` the index is keyword-only; if `trouble` then says why the wanted embedder is not there, the
    vectors of an index that has some are kept. An index is built again only when all its vectors are there.

    `progress` is called between transactions; what it raises ends the run and reaches the caller.

    Raises:
        WorkspaceError: the folder has gone; nothing is removed from the index.
        StoreError: the index cannot be written.
    """
    # A search asks this package only whether the index is outdated: it need not load all that building takes.
    from openclaw_memory.sync.ahead import gather
    from openclaw_memory.sync.run import Run

    started = time.perf_counter()
    scan = workspace.scan()
    stored = store.meta()
    before = store.files()
    missing = None if trouble is None else EmbedderError(trouble)
    if embedder is not None and any(record.lacks for record in before.values()):
        missing = _still_silent(embedder)
    wanted = _wanted_meta(None if missing else embedder, stored, config.chunking, keep=missing is not None)
    rebuilt = None if stored is None else outdated(stored, wanted) or ("it was asked for" if force else None)
    embedded = tokens = 0
    if stored is not None and rebuilt and embedder is not None and not missing:
        try:
            embedded, tokens = gather(workspace, store, embedder, config.chunking, scan.files, progress)
        except EmbedderError as error:
            missing = error
            if stored.schema_version == wanted.schema_version:
                rebuilt = None
    anew = stored is None or rebuilt is not None
    build = _reset(store, wanted) if stored is None or anew else stored.building
    difference = compare(scan.files, before)
    source = missing or embedder
    run = Run(workspace, store, source, config.chunking, before, anew, unchanged=0 if anew else difference.unchanged)
    run.over(scan.files if anew else difference.to_read, progress)
    gone = {*difference.vanished, *before.keys() & set(run.vanished)}
    # What lies behind a folder that cannot be read just now may still be there.
    removed = sorted(path for path in gone if not scan.is_unknown(path))
    if removed and not anew:
        store.remove_files(removed)
    if build is not None:
        store.finish(build)
    if missing is None and embedded + run.embedded:
        store.prune(config.embedding.max_entries)
    return SyncReport(
        added=tuple(sorted(run.added)),
        changed=tuple(sorted(run.changed)),
        removed=tuple(removed),
        unchanged=run.unchanged,
        failed=tuple(run.failed),
        waiting=tuple(run.waiting),
        skipped=(*scan.skipped, *run.skipped),
        embedded=embedded + run.embedded,
        tokens=tokens + run.tokens,
        seconds=time.perf_counter() - started,
        rebuilt=rebuilt,
    )


def _still_silent(embedder: Embedder) -> EmbedderError | None:
    """The error of an embedder that failed last time, if it fails again; a question has the shorter deadline."""
    try:
        getattr(embedder, "probe", embedder.embed_query)("memory")
    except EmbedderError as error:
        return error
    return None


def _wanted_meta(embedder: Embedder | None, stored: IndexMeta | None, chunking: Chunking, *, keep: bool) -> IndexMeta:
    """What the index is to be; with `keep` it stays one of the vectors that it holds."""
    wanted = describe(embedder, chunking)
    if stored is None or not keep:
        return wanted
    return replace(wanted, provider=stored.provider, model=stored.model, identity=stored.identity, dims=stored.dims)


def _reset(store: Store, wanted: IndexMeta) -> str:
    """Empty the index and begin a build; returns its name."""
    build = os.urandom(8).hex()
    store.reset(replace(wanted, building=build))
    return build
