"""One pass of a sync over the files: what is to become of the index, and what was done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings.selection import probed
from openclaw_memory.embeddings.stream import is_unheard
from openclaw_memory.errors import EmbedderError
from openclaw_memory.store.beside import sweep
from openclaw_memory.sync.ahead import gather, missing_texts
from openclaw_memory.sync.compare import Difference, compare
from openclaw_memory.sync.courtesy import no_hurry
from openclaw_memory.sync.meta import describe, outdated
from openclaw_memory.sync.rebuild import beside
from openclaw_memory.sync.run import Run
from openclaw_memory.types import Embedder, FileRecord, IndexMeta, MemoryFile, Progress, Skipped, Store, SyncReport
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.files import Scan

if TYPE_CHECKING:
    from openclaw_memory.embeddings.batch.jobs import Batch, Patience


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pass works with; see `openclaw_memory.sync.sync`."""

    workspace: Workspace
    store: Store
    embedder: Embedder | None
    config: MemoryConfig
    batch: Batch | None
    trouble: str | None
    requested: str | None
    progress: Callable[[Progress], None] | None
    give_way: Callable[[], None]
    index_path: Path | None


def parts_of(
    workspace: Workspace,
    store: Store,
    embedder: Embedder | None,
    config: MemoryConfig,
    *,
    trouble: str | None = None,
    requested: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    index_path: Path | None = None,
    patience: Patience | None = None,
    give_way: Callable[[], None] = no_hurry,
) -> Parts:
    """The parts of a sync, with its jobs at a batch API where the settings want some."""
    batch = None
    if config.embedding.batch != "off" and embedder is not None:
        from openclaw_memory.embeddings.batch.jobs import Patience, batch_of

        patience = patience or Patience(concurrency=config.embedding.batch_concurrency)
        batch = batch_of(embedder, index_path, patience)
    return Parts(workspace, store, embedder, config, batch, trouble, requested, progress, give_way, index_path)


@dataclass(frozen=True, slots=True)
class Found:
    """The files, and the index, as a pass finds them."""

    scan: Scan
    stored: IndexMeta | None
    before: Mapping[str, FileRecord]
    difference: Difference


@dataclass(slots=True)
class Plan:
    """What is to become of the index.

    `wanted` is what it shall be built with, `rebuilt` why it is built again, `error` why there are no vectors though
    they are wanted. `held` names vectors that are with a batch API. `put_off` says why a rebuild that another model
    asks for has to wait. Texts were `embedded` already while this was found out, of `tokens` tokens at most.
    """

    wanted: IndexMeta
    rebuilt: str | None = None
    error: EmbedderError | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    embedded: int = 0
    tokens: int = 0
    put_off: str | None = None


def all_passes(parts: Parts, *, force: bool, alone: bool) -> SyncReport:
    """A whole sync, by whoever has the turn; `alone` says that nobody else can be at work meanwhile."""
    started = time.perf_counter()
    store, batch, rules = parts.store, parts.batch, parts.config.embedding
    if alone and parts.index_path is not None:
        sweep(parts.index_path)
    report = one_pass(parts, force=force)
    jobs = None
    # Jobs that stay as they are belong to a service that does not answer: the next sync asks for them.
    while batch is not None and rules.batch == "wait" and batch.known.jobs and batch.known.jobs != jobs:
        jobs = batch.known.jobs
        batch.wait(store, parts.progress)
        report = together(report, one_pass(parts, force=False))
    # What others have embedded and not yet written is nobody's, and must not be taken from them.
    if alone and report.embedded and report.ok:
        # Vectors in no use are looked for among all chunks: in a large index not before some have come together.
        chunks = store.chunk_count()
        if store.prune(max(rules.max_entries, chunks + chunks // 64)):
            store.prune(rules.max_entries)
    return replace(report, seconds=time.perf_counter() - started)


def one_pass(parts: Parts, *, force: bool) -> SyncReport:
    """Do what `openclaw_memory.sync.sync` says, once; the report leaves out how long it took.

    What answers is built again beside; a first index is built in its place, so that one that was cut short goes on.
    """
    scan = parts.workspace.scan()
    stored, before = parts.store.meta(), parts.store.files()
    found = Found(scan, stored, before, compare(scan.files, before))
    plan = _planned(parts, found, force=force)
    if plan.rebuilt is None or stored is None or not stored.complete:
        return _written(parts, parts.store, found, plan)
    with beside(parts.store) as built:
        return _written(parts, built, found, plan)


def _written(parts: Parts, store: Store, found: Found, plan: Plan) -> SyncReport:
    """Bring the rows of `store` up to date, or build all of them."""
    stored, before = found.stored, found.before
    anew = stored is None or plan.rebuilt is not None
    build = _reset(store, plan.wanted) if stored is None or anew else stored.building
    made_for = plan.wanted if stored is None or anew else stored
    chunking, lacking = parts.config.chunking, dict(plan.held)
    source = plan.error or parts.embedder
    run = Run(parts.workspace, store, source, chunking, made_for, before, anew, parts.give_way, lacking=lacking)
    run.unchanged = 0 if anew else found.difference.unchanged
    run.over(found.scan.files if anew else found.difference.to_read, parts.progress)
    gone = {*found.difference.vanished, *before.keys() & set(run.vanished)}
    # What lies behind a folder that cannot be read just now may still be there.
    removed = sorted(path for path in gone if not found.scan.is_unknown(path))
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
        waiting=tuple(run.waiting if plan.put_off is None else _all(found.scan.files, plan.put_off)),
        skipped=(*found.scan.skipped, *run.skipped),
        embedded=plan.embedded + run.embedded,
        tokens=plan.tokens + run.tokens,
        rebuilt=plan.rebuilt,
    )


def together(first: SyncReport, then: SyncReport) -> SyncReport:
    """One report of two passes over the same files; what is still in the way is told by the second."""
    added = {*first.added, *then.added} - {*then.removed}
    changed = {*first.changed, *then.changed} - added - {*then.removed}
    news = len(then.added) + len(then.changed)
    return replace(
        then,
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted({*first.removed, *then.removed} - added)),
        unchanged=then.unchanged + news - len(added) - len(changed),
        embedded=first.embedded + then.embedded,
        tokens=first.tokens + then.tokens,
        rebuilt=then.rebuilt or first.rebuilt,
    )


def _planned(parts: Parts, found: Found, *, force: bool) -> Plan:
    """Decide; an index that answers is only given up when all the vectors of the next one are there."""
    embedder, stored = parts.embedder, found.stored
    error = None if parts.trouble is None else EmbedderError(parts.trouble)
    plan = Plan(describe(embedder, parts.config.chunking), error=error)
    idle = stored is not None and not (found.difference.to_read or force or outdated(stored, plan.wanted))
    if embedder is not None and not idle and (parts.store.lacking() or is_unheard(embedder)):
        plan.error = error = _silent(embedder)
    if stored is None:
        if embedder is not None and error is None:
            _ask_batch(parts, plan, found.scan.files)
        return plan
    if error is not None:
        return _kept(parts, plan, stored, error)
    plan.rebuilt = outdated(stored, plan.wanted) or ("it was asked for" if force else None)
    if plan.rebuilt:
        _ask_batch(parts, plan, found.scan.files)
    else:
        _ask_batch(parts, plan, found.difference.to_read, found.before)
    if embedder is None or not outdated(stored, plan.wanted):  # a model that stays has nearly all its vectors there
        return plan
    files, chunking = found.scan.files, parts.config.chunking
    try:
        counts = gather(
            parts.workspace,
            parts.store,
            embedder,
            chunking,
            files,
            parts.progress,
            held=plan.held,
            give_way=parts.give_way,
        )
    except EmbedderError as failed:
        return _kept(parts, plan, stored, failed)
    plan.embedded, plan.tokens = plan.embedded + counts[0], plan.tokens + counts[1]
    if plan.held and outdated(stored, plan.wanted):
        return _kept(parts, plan, stored, EmbedderError(next(iter(plan.held.values()))))
    return plan


def _kept(parts: Parts, plan: Plan, stored: IndexMeta, error: EmbedderError) -> Plan:
    """The plan where vectors cannot be had: the index stays one of those that it holds."""
    plan.error = error
    wanted = describe(None, parts.config.chunking)
    plan.wanted = replace(
        wanted, provider=stored.provider, model=stored.model, identity=stored.identity, dims=stored.dims
    )
    # Tables of another version cannot be written to: they are made anew, from the vectors that there are.
    old_tables = stored.schema_version != plan.wanted.schema_version
    plan.rebuilt = outdated(stored, plan.wanted) if old_tables else None
    provider = parts.embedder.provider if parts.embedder is not None else parts.requested
    identity = parts.embedder.identity if parts.embedder is not None else stored.identity
    other_model = stored.identity != identity or provider not in {None, stored.provider}
    if plan.rebuilt is None and (other_model or outdated(stored, plan.wanted)):
        plan.put_off = str(error)
    return plan


def _ask_batch(
    parts: Parts, plan: Plan, files: Sequence[MemoryFile], known: Mapping[str, FileRecord] | None = None
) -> None:
    """Collect what the batch API has done, and leave it what is missing, where the settings and the amount say so."""
    if parts.batch is None or parts.embedder is None:
        return
    chunking = parts.config.chunking
    texts = missing_texts(parts.workspace, parts.store, parts.embedder.identity, chunking, files, known)
    plan.embedded, plan.tokens = parts.batch.advance(parts.store, texts)
    plan.held = parts.batch.held()


def _silent(embedder: Embedder) -> EmbedderError | None:
    """The error of an embedder that does not answer a question, which has a shorter deadline than documents have."""
    try:
        probed(embedder)
    except EmbedderError as error:
        return error
    return None


def _reset(store: Store, wanted: IndexMeta) -> str:
    """Empty the index and begin a build; returns its name."""
    build = os.urandom(8).hex()
    store.reset(replace(wanted, building=build))
    return build


def _all(files: Sequence[MemoryFile], why: str) -> list[Skipped]:
    """Every file: the index has vectors, but none that fit the questions of now."""
    return [Skipped(file.path, why) for file in files]
