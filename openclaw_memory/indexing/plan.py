"""One pass of a sync over the files: decides what becomes of the index, and reports what was done."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from openclaw_memory._log import warn
from openclaw_memory.embeddings.selection import get_preparing, probe
from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.changes import Difference, SyncParts, compared, missing_vectors
from openclaw_memory.indexing.fingerprint import describe, outdated
from openclaw_memory.indexing.odd_files import OddFile, is_unreadable, note_odd_files, odd_files
from openclaw_memory.types import Embedder, FileRecord, IndexMeta, MemoryFile, Skipped, Store, SyncReport
from openclaw_memory.workspace.scan import Scan

# What reads, cuts and embeds files is imported where there are any: most syncs find nothing to do.


@dataclass(frozen=True, slots=True)
class Found:
    """The files, and the index, as a pass finds them: all, or what is at `paths`."""

    scan: Scan
    stored: IndexMeta | None
    before: Mapping[str, FileRecord]
    difference: Difference
    paths: Collection[str] | None = None


@dataclass(slots=True)
class Plan:
    """What is to become of the index.

    `wanted` is what to build it with, `rebuilt` why it is built again, `error` why wanted vectors are missing. `held`
    names vectors that come later, by their keys. `put_off` says why a rebuild for another model has to wait.
    `embedded` and `tokens` count the texts that planning has already embedded, and their tokens at most.
    """

    wanted: IndexMeta
    rebuilt: str | None = None
    error: EmbedderError | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    embedded: int = 0
    tokens: int = 0
    put_off: str | None = None


def sync(parts: SyncParts, *, force: bool = False, alone: bool = True) -> SyncReport:
    """Bring the index up to date with the workspace, and report what was done.

    A file that cannot be read or chunked is named in `failed`, one that is not text in `skipped`. Both keep their rows,
    and are tried again next time, even if they have not been touched since. A file whose vectors are unavailable is
    named in `waiting`: keywords find it, and the next sync asks again. `unchanged` counts files by content: in an index
    that was built again (`rebuilt` says why) a file with the same text still counts as unchanged.

    An index is only built again when its vectors exist: until then `waiting` names every file. `alone` says that the
    caller holds the lock `sync` of the store, so that no other sync is at work.

    Raises:
        WorkspaceError: The folder has gone; nothing is removed from the index.
        StoreError: The index cannot be written.
    """
    started = time.perf_counter()
    store, embedder = parts.store, get_preparing(parts.embedder)
    report = one_pass(parts, force=force)
    while embedder is not None and embedder.wait(store, parts.progress):
        report = together(report, one_pass(parts, force=False))
    # Vectors that another sync has embedded and not yet written are in no file, and must not be pruned; nor those that
    # were gathered for an index that waits for the others.
    if alone:
        store.prune(keep_unused=bool(report.waiting))
    return replace(report, seconds=time.perf_counter() - started)


def one_pass(parts: SyncParts, *, force: bool) -> SyncReport:
    """Do the work of `sync` once; the report leaves out the time.

    A complete index is rebuilt in a copy; a first index is built in place, so that one that was cut short continues.
    """
    scan = parts.workspace.scan()
    stored, before = parts.store.meta(), parts.store.files()
    found = Found(scan, stored, before, compared(scan, before))
    if stored is None:
        _warn_of_new_data_folder(parts, scan)
    plan = _planned(parts, found, force=force)
    if stored is not None and stored.complete and plan.rebuilt is None:
        return _written(parts, parts.store, found, plan)
    build = parts.store.begin_build(plan.wanted, keep_rows=plan.rebuilt is None)
    try:
        report = _written(parts, build.store, found, plan)
    except BaseException:
        build.abort()
        raise
    build.publish()
    return report


def _warn_of_new_data_folder(parts: SyncParts, scan: Scan) -> None:
    """Warn that all texts go to a service, for the data folder is new and the workspace is not."""
    from openclaw_memory.embeddings.stream import find_service

    cache, yesterday = parts.cache, time.time_ns() - 86_400_000_000_000
    is_old = any(file.mtime_ns < yesterday for file in scan.files)
    if cache is not None and is_old and find_service(parts.embedder) is not None and not cache.path.exists():
        warn(
            f"{cache.path.parent} is new and {parts.workspace.root} is not: all texts go to the embedding service. "
            "If the home folder does not last, as in a container, set OPENCLAW_MEMORY_HOME to a folder on a volume"
        )


def at_paths(parts: SyncParts, paths: Iterable[str]) -> SyncReport | None:
    """Bring the rows of the notes at these paths up to date, whatever else has changed; nothing is pruned.

    None, where only a sync can say what becomes of them, or of the index.
    """
    store, embedder, wanted = parts.store, parts.embedder, list(paths)
    stored = store.meta()
    is_ready = parts.trouble is None and not _is_unheard(embedder) and get_preparing(embedder) is None
    if stored is None or not stored.complete or not is_ready:
        return None
    plan = Plan(describe(embedder, parts.config.chunking, policies=parts.workspace.policies))
    files = parts.workspace.list_notes_at(wanted)
    if files is None or outdated(stored, plan.wanted):
        return None
    before = store.files(wanted)
    scan = Scan(tuple(files), ())
    found = Found(scan, stored, before, compared(scan, before), wanted)
    return _written(parts, store, found, plan)


def _written(parts: SyncParts, store: Store, found: Found, plan: Plan) -> SyncReport:
    """Bring the rows of `store` up to date, or build all of them."""
    stored, before = found.stored, found.before
    rebuilding = stored is None or plan.rebuilt is not None
    made_for = plan.wanted if stored is None or rebuilding else stored
    files = found.scan.files if rebuilding else found.difference.to_read
    vanished, before_odd = set(found.difference.vanished), odd_files(parts.store)
    unread = [] if rebuilding else [file.path for file in files if is_unreadable(file, before_odd)]
    if unread:
        files = tuple(file for file in files if file.path not in unread)
    odd = _still_odd(before_odd, found, files)
    report = SyncReport(
        unchanged=0 if rebuilding else found.difference.unchanged,
        skipped=(*found.scan.skipped, *(Skipped(path, odd[path].reason) for path in unread)),
        embedded=plan.embedded,
        tokens=plan.tokens,
        rebuilt=plan.rebuilt,
    )
    if files:
        from openclaw_memory.indexing.pipeline import Run

        chunking, lacking = parts.config.chunking, dict(plan.held)
        source = plan.error or parts.embedder
        run = Run(
            parts.workspace, store, source, chunking, made_for, before, rebuilding, parts.priority, lacking=lacking
        )
        run.cache = parts.cache
        run.unchanged = report.unchanged
        run.over(files, parts.progress)
        vanished |= before.keys() & set(run.vanished)
        odd |= run.odd
        report = replace(
            report,
            added=tuple(sorted(run.added)),
            changed=tuple(sorted(run.changed)),
            unchanged=run.unchanged,
            failed=tuple(run.failed),
            waiting=tuple(run.waiting),
            skipped=(*report.skipped, *run.skipped),
            embedded=plan.embedded + run.embedded,
            tokens=plan.tokens + run.tokens,
        )
    note_odd_files(parts.store, before_odd, odd)
    # What lies behind a folder that cannot be read just now may still be there.
    removed = sorted(path for path in vanished if not found.scan.is_unknown(path))
    if removed and not rebuilding:
        store.remove_files(removed)
    waiting = report.waiting if plan.put_off is None else tuple(_all(found.scan.files, plan.put_off))
    return replace(report, removed=tuple(parts.workspace.files.mask_path(path) for path in removed), waiting=waiting)


def _still_odd(odd: Mapping[str, OddFile], found: Found, read: Iterable[MemoryFile]) -> dict[str, OddFile]:
    """Return the odd files that a pass neither reads again nor has found gone."""
    if not odd:
        return {}
    there, again = {file.path for file in found.scan.files}, {file.path for file in read}
    unseen = {path for path in odd if found.scan.is_unknown(path) or (found.paths and path not in found.paths)}
    return {path: one for path, one in odd.items() if path in unseen or path in there - again}


def together(first: SyncReport, then: SyncReport) -> SyncReport:
    """Return one report of two passes over the same files; the second one decides what is still failing or waiting."""
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


def _planned(parts: SyncParts, found: Found, *, force: bool) -> Plan:
    """Decide; a working index is only given up when all the vectors of the next one exist."""
    embedder, stored = parts.embedder, found.stored
    error = None if parts.trouble is None else EmbedderError(parts.trouble)
    plan = Plan(describe(embedder, parts.config.chunking, policies=parts.workspace.policies), error=error)
    idle = stored is not None and not (found.difference.to_read or force or outdated(stored, plan.wanted))
    if embedder is not None and not idle and (missing_vectors(found.before) or _is_unheard(embedder)):
        plan.error = error = _silent(embedder)
    if stored is None:
        if embedder is not None and error is None:
            _prepare_texts(parts, plan, found.scan.files)
        return plan
    if error is not None:
        return _kept(parts, plan, stored, error)
    plan.rebuilt = outdated(stored, plan.wanted) or ("it was asked for" if force else None)
    if plan.rebuilt:
        _prepare_texts(parts, plan, found.scan.files)
    else:
        _prepare_texts(parts, plan, found.difference.to_read, found.before)
    if embedder is None or not outdated(stored, plan.wanted):  # a model that stays has nearly all its vectors there
        return plan
    from openclaw_memory.indexing.gathering import gather

    try:
        counts = gather(parts, embedder, found.scan.files, held=plan.held)
    except EmbedderError as failed:
        return _kept(parts, plan, stored, failed)
    plan.embedded, plan.tokens = plan.embedded + counts[0], plan.tokens + counts[1]
    if plan.held and outdated(stored, plan.wanted):
        return _kept(parts, plan, stored, EmbedderError(next(iter(plan.held.values()))))
    return plan


def _kept(parts: SyncParts, plan: Plan, stored: IndexMeta, error: EmbedderError) -> Plan:
    """Return the plan for unavailable vectors: the index keeps those that it has."""
    plan.error = error
    wanted = describe(None, parts.config.chunking, policies=parts.workspace.policies)
    plan.wanted = replace(
        wanted, provider=stored.provider, model=stored.model, identity=stored.identity, dims=stored.dims
    )
    # Tables of another version cannot be written to: they are made again, from the existing vectors.
    old_tables = stored.schema_version != plan.wanted.schema_version
    plan.rebuilt = outdated(stored, plan.wanted) if old_tables else None
    provider = parts.embedder.provider if parts.embedder is not None else parts.requested
    identity = parts.embedder.identity if parts.embedder is not None else stored.identity
    other_model = stored.identity != identity or provider not in {None, stored.provider}
    if plan.rebuilt is None and (other_model or outdated(stored, plan.wanted)):
        plan.put_off = str(error)
    return plan


def _prepare_texts(
    parts: SyncParts, plan: Plan, files: Sequence[MemoryFile], known: Mapping[str, FileRecord] | None = None
) -> None:
    """Show an embedder that wants to see them the missing texts first."""
    if (embedder := get_preparing(parts.embedder)) is None:
        return
    from openclaw_memory.indexing.gathering import missing_texts

    missing = missing_texts(parts, embedder.identity, files, known)
    plan.held, plan.embedded, plan.tokens = embedder.prepare(parts.store, missing)


def _is_unheard(embedder: Embedder | None) -> bool:
    from openclaw_memory.embeddings.stream import find_service

    service = find_service(embedder)
    return service is not None and not service.has_answered


def _silent(embedder: Embedder) -> EmbedderError | None:
    """Return the error of an embedder that does not answer a question; its deadline is shorter than for documents."""
    try:
        probe(embedder)
    except EmbedderError as error:
        return error
    return None


def _all(files: Sequence[MemoryFile], why: str) -> list[Skipped]:
    """Return every file: the index has vectors, but none that fit the present embedder."""
    return [Skipped(file.path, why) for file in files]
