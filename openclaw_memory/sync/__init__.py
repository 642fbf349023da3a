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
from openclaw_memory.embeddings import checked_vectors
from openclaw_memory.sync.at_work import at_work, somebody_is_at_work
from openclaw_memory.sync.compare import Difference, compare
from openclaw_memory.sync.damage import set_aside
from openclaw_memory.sync.meta import describe, outdated
from openclaw_memory.types import Embedder, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

__all__ = ["Difference", "at_work", "compare", "describe", "outdated", "set_aside", "somebody_is_at_work", "sync"]


def sync(
    workspace: Workspace,
    store: Store,
    embedder: Embedder | None,
    config: MemoryConfig,
    *,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SyncReport:
    """Bring the index up to date with the workspace, and say what was done.

    A file that cannot be read or cut is named in `failed`, one that is not text in `skipped`. Both keep the rows they
    had, and are tried again next time, also when they have not been touched since. `unchanged` counts files by
    content: in an index built anew (`rebuilt` says why) a file whose text is as before still counts as unchanged.
    With `embedder=None` the index is keyword-only.

    `progress` is called between transactions; what it raises ends the run and reaches the caller.

    Raises:
        WorkspaceError: the folder has gone; nothing is removed from the index.
        EmbedderError: the embedder failed; what was written before stays, and the next run goes on from there.
        StoreError: the index cannot be written.
    """
    # A search asks this package only whether the index is outdated: it need not load all that building takes.
    from openclaw_memory.sync.run import Run

    started = time.perf_counter()
    scan = workspace.scan()
    stored = store.meta()
    before = store.files()
    wanted = describe(embedder, config.chunking)
    rebuilt = None if stored is None else outdated(stored, wanted) or ("it was asked for" if force else None)
    anew = stored is None or rebuilt is not None
    build = _reset(store, embedder, config.chunking) if stored is None or anew else stored.building
    difference = compare(scan.files, before)
    run = Run(workspace, store, embedder, config.chunking, before, anew, unchanged=0 if anew else difference.unchanged)
    run.over(scan.files if anew else difference.to_read, progress)
    gone = {*difference.vanished, *before.keys() & set(run.vanished)}
    # What lies behind a folder that cannot be read just now may still be there.
    removed = sorted(path for path in gone if not scan.is_unknown(path))
    if removed and not anew:
        store.remove_files(removed)
    if build is not None:
        store.finish(build)
    return SyncReport(
        added=tuple(sorted(run.added)),
        changed=tuple(sorted(run.changed)),
        removed=tuple(removed),
        unchanged=run.unchanged,
        failed=tuple(run.failed),
        skipped=(*scan.skipped, *run.skipped),
        embedded=run.embedded,
        seconds=time.perf_counter() - started,
        rebuilt=rebuilt,
    )


def _reset(store: Store, embedder: Embedder | None, chunking: Chunking) -> str:
    """Empty the index and begin a build; returns its name."""
    # An embedder that does not answer must not cost the index that still does: it is asked before anything goes.
    dims = None
    if embedder is not None:
        origin = f"embedder {embedder.provider} {embedder.model}".strip()
        dims = checked_vectors([embedder.embed_query("memory")], 1, origin).shape[1]
    build = os.urandom(8).hex()
    store.reset(replace(describe(embedder, chunking, dims), building=build))
    return build
