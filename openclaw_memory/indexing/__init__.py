"""The index follows the files: compare, read what may have changed, cut, embed what is new, write.

Everything slow (reading, chunking, embedding) happens before a transaction opens, and a transaction holds whole notes
and whole parts of transcripts: a run that is cut short at any point leaves an index that answers, and the next run goes
on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.indexing.background import no_hurry
from openclaw_memory.indexing.changes import Difference, compare
from openclaw_memory.indexing.fingerprint import describe, outdated
from openclaw_memory.indexing.lock import one_at_a_time, somebody_is_at_work
from openclaw_memory.indexing.recovery import set_aside
from openclaw_memory.types import Embedder, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.embeddings.batch.jobs import Patience
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
    give_way: Callable[[], None] = no_hurry,
    wait: float | None = None,
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

    An index is synced by one at a time, in all threads and processes, by a lock beside `index_path`: another sync is
    waited for `wait` seconds, or until it ends where that is None, and `progress` is told so. Within a progress
    callback a sync goes ahead. An index that answers is built again beside, and replaced whole at the end.

    `give_way` is called before each small piece of work, and may wait there for who is in a hurry.

    `progress` is called between transactions; what it raises ends the run and reaches the caller.

    Raises:
        SyncBusyError: another sync is still at work after `wait` seconds.
        WorkspaceError: the folder has gone; nothing is removed from the index.
        StoreError: the index cannot be written.
    """
    # A search asks this package only whether the index is outdated: it need not load all that building takes.
    from openclaw_memory.indexing.plan import all_passes, parts_of

    with one_at_a_time(index_path, wait, _telling(progress)) as alone:
        parts = parts_of(
            workspace,
            store,
            embedder,
            config,
            trouble=trouble,
            requested=requested,
            progress=progress,
            index_path=index_path,
            patience=patience,
            give_way=give_way,
        )
        return all_passes(parts, force=force, alone=alone)


def _telling(progress: Callable[[Progress], None] | None) -> Callable[[str], None] | None:
    return None if progress is None else lambda words: progress(Progress(0, 0, words))
