"""The index follows the files: compare, read what may have changed, cut, embed what is new, write.

Everything slow (reading, chunking, embedding) happens before a transaction opens, and a transaction holds whole files
only: a run that is cut short at any point leaves an index that answers, and the next run goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.sync.at_work import alone_at_work, at_work, somebody_is_at_work
from openclaw_memory.sync.compare import Difference, compare
from openclaw_memory.sync.damage import set_aside
from openclaw_memory.sync.meta import describe, outdated
from openclaw_memory.types import Embedder, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.sync.batch import Patience
    from openclaw_memory.workspace import Workspace

__all__ = ["Difference", "compare", "describe", "outdated", "set_aside", "somebody_is_at_work", "sync"]


def sync(
    workspace: Workspace,
    store: Store,
    embedder: Embedder | None,
    config: MemoryConfig,
    *,
    trouble: str | None = None,
    requested: str | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
    index_path: Path | None = None,
    patience: Patience | None = None,
) -> SyncReport:
    """Bring the index up to date with the workspace, and say what was done.

    A file that cannot be read or cut is named in `failed`, one that is not text in `skipped`. Both keep the rows they
    had, and are tried again next time, also when they have not been touched since. A file whose vectors cannot be had
    is named in `waiting`: keywords find it, and the next sync asks again. `unchanged` counts files by content: in an
    index built anew (`rebuilt` says why) a file whose text is as before still counts as unchanged.

    With `embedder=None` the index is keyword-only; if `trouble` then says why the wanted embedder, of the provider
    `requested`, is not there, the vectors of an index that has some are kept. An index is built again only when its
    vectors are there: until then `waiting` names every file.

    Where `config.embedding.batch` says so, many missing vectors are left to the batch API of the embedder's service;
    the jobs are remembered beside `index_path`, without which there are none. `patience` says how they are waited for.
    The sign that somebody is at work stands beside `index_path` too; while another process shows it nothing is pruned.

    `progress` is called between transactions; what it raises ends the run and reaches the caller.

    Raises:
        WorkspaceError: the folder has gone; nothing is removed from the index.
        StoreError: the index cannot be written.
    """
    # A search asks this package only whether the index is outdated: it need not load all that building takes.
    from openclaw_memory.sync.passes import Parts, one_pass, together

    started = time.perf_counter()
    batch = None
    if config.embedding.batch != "off" and embedder is not None:
        from openclaw_memory.sync.batch import batch_of

        batch = batch_of(embedder, index_path, patience)
    parts = Parts(workspace, store, embedder, config, batch, trouble, requested, progress)
    with at_work(index_path):
        report = one_pass(parts, force=force)
        jobs = None
        # Jobs that stay as they are belong to a service that does not answer: the next sync asks for them.
        while batch is not None and config.embedding.batch == "wait" and batch.known.jobs and batch.known.jobs != jobs:
            jobs = batch.known.jobs
            batch.wait(store, progress)
            report = together(report, one_pass(parts, force=False))
    with alone_at_work(index_path) as alone:
        # What others have embedded and not yet written is nobody's, and must not be taken from them.
        if alone and report.embedded and report.ok:
            store.prune(config.embedding.max_entries)
    return replace(report, seconds=time.perf_counter() - started)
