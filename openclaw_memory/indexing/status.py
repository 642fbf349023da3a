"""The state of an index, read without changing it: what it holds, what it lacks, and which paths work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings.selection import explain_unavailable, get_inner, get_preparing, probe
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.indexing.changes import IN_PART, compare, compared, missing_in_words, missing_vectors
from openclaw_memory.indexing.fingerprint import is_of_rules, outdated
from openclaw_memory.indexing.history import LAST_ERROR, LAST_SYNC, MOST_FILES, sync_failure, sync_record
from openclaw_memory.indexing.odd_files import odd_files
from openclaw_memory.indexing.staleness import NOTHING_YET
from openclaw_memory.types import (
    Embedder,
    FileRecord,
    IndexMeta,
    MemoryFile,
    Skipped,
    Status,
    Store,
    StoreInfo,
    SyncReport,
)
from openclaw_memory.types.heartbeat import HeartbeatRecord
from openclaw_memory.types.protocols import TokenEmbedder
from openclaw_memory.types.results import SyncFailure, SyncRecord
from openclaw_memory.types.status import CacheStatus, DiskUsage, KeywordStatus, VectorStatus

if TYPE_CHECKING:
    from openclaw_memory.workspace import Scan, Workspace


def status(
    workspace: Workspace,
    store: Store,
    embedder: Embedder | None,
    wanted: IndexMeta | None,
    *,
    requested_provider: str,
    unavailable: Mapping[str, str],
    last: SyncReport | None,
    notices: Sequence[str],
    deep: bool = False,
    config: MemoryConfig | None = None,
    last_error: str | None = None,
    watcher: str | None = None,
    flush: Mapping[str, str] | None = None,
    heartbeat: HeartbeatRecord | None = None,
    cached: int = 0,
) -> Status:
    """Compare the workspace with its index by stamps, and ask the store what works.

    `wanted` is None where the embedder is unavailable (`notices` then say why). `last` is the report of this process's
    latest sync; those of other processes are noted in the store. `last_error` is the record of its failure
    (`history.record_of_error`), or just the words; None where it succeeded. `config` says how many vectors are cached;
    `watcher`, `flush`, `heartbeat` and how many vectors are `cached` are repeated.

    With `deep`, the embedder is asked, both legs of the search are tried with a real query, failures are reported in
    `fts` and `vector`, and the whole index is checked. `vector.answers` concerns the embedder alone, `vector.verified`
    is only set where the index has vectors of its model, and `vector.fits` is False where the embedder's vectors cannot
    be compared with those, for instance because of other dimensions.

    Raises:
        WorkspaceError: The folder has gone.
        StoreError: The index cannot be read.
    """
    rules = config or MemoryConfig()
    scan = workspace.scan()
    stats, stored, known = store.describe(), store.meta(), store.files()
    lacking = missing_vectors(known)
    last_sync = sync_record(store.get_meta(LAST_SYNC))
    failed, skipped = _named("failed", last, last_sync), _named("skipped", last, last_sync)
    words = [*notices, *stats.notices, *_state_in_words(stored, wanted, unavailable), *missing_in_words(lacking)]
    words += [f"{path} {one.reason}" for path, one in odd_files(store).items() if one.is_read and path in known]
    words += [f"{path} could not be indexed: {reason}" for path, reason in failed.items()]
    words += [f"the flush of session {key!r} failed: {reason}" for key, reason in (flush or {}).items()]
    words += filter(None, [workspace.suggest_setup(len(scan.files)), _too_large(stats, rules.search.memory_mb)])
    meta = wanted or stored
    matches = embedder is not None and (stored is None or stored.identity == embedder.identity)
    without = stats.without_tokens
    if without and matches and not lacking and isinstance(get_inner(embedder), TokenEmbedder):
        words.append(
            f"{without} of {stats.chunks} chunks have no tokens: a search that finds one compares words instead"
        )
    speaks = matches and (not lacking or _holds_vectors(store, stored))
    vector = _vector(embedder, stats, stored)
    if deep and embedder is not None:
        vector = _tried(vector, embedder, store if speaks else None, stats)
    fails = vector.answers is False or vector.fits is not None
    dirty = why_behind(workspace, scan, known, {**failed, **skipped})
    seen = {file.path for file in scan.skipped}
    lacks = waiting(scan.files, known)
    return Status(
        workspace=str(workspace.root),
        store=stats.backend,
        index_path=stats.location,
        provider=meta.provider if meta else "",
        model=meta.model if meta else "",
        requested_provider=requested_provider,
        unavailable=dict(unavailable),
        mode="hybrid" if speaks and not fails else "keyword",
        files=stats.files,
        chunks=stats.chunks,
        sources=stats.sources,
        dirty={workspace.files.mask_path(path): why for path, why in dirty.items()},
        skipped=(
            *scan.skipped,
            *(
                Skipped(path, why)
                for path, why in skipped.items()
                if (path in dirty or why.startswith(IN_PART)) and path not in seen
            ),
            *_left_out_of(workspace, scan.files, _as_they_are(workspace, stored, known, dirty, lacks)),
        ),
        vector=vector,
        fts=_fts(store if stats.exists else None, try_it=deep),
        cache=CacheStatus(embedder is not None, cached, rules.embedding.max_entries),
        index_bytes=stats.size_bytes,
        notices=tuple(dict.fromkeys(words)),
        engine=stats.engine,
        problems=store.verify() if deep else (),
        waiting=lacks,
        extra_paths=workspace.files.settings.extra_paths,
        fallback=_fallback(embedder, requested_provider, unavailable),
        batch={} if (batches := get_preparing(embedder)) is None else batches.describe(store),
        last_sync=last_sync,
        last_error=_last_error(store, last_sync, last_error),
        watcher=watcher,
        bytes=_bytes(scan.files, stats),
        flush=dict(flush or {}),
        heartbeat=heartbeat,
    )


def _left_out_of(
    workspace: Workspace, files: Sequence[MemoryFile], known: Mapping[str, FileRecord]
) -> Iterator[Skipped]:
    """Yield the notes of which policies leave lines out: as their records in `known` say, without one they are read."""
    policies = workspace.policies
    for file in files if policies else ():
        if file.source != "memory":
            continue
        with suppress(OpenClawMemoryError, OSError):  # what cannot be read is named elsewhere
            record = known.get(file.path)
            if names := record.left_out if record else policies.name_matches(workspace.read(file.path)):
                yield Skipped(file.path, f"is shown and indexed without what policies say never to store: {names}")


def _as_they_are(
    workspace: Workspace,
    stored: IndexMeta | None,
    known: Mapping[str, FileRecord],
    dirty: Mapping[str, str],
    lacking: Sequence[Skipped],
) -> Mapping[str, FileRecord]:
    """Return what the index knows of the files whose text is the one that was indexed, by the rules of today."""
    if stored is None or not is_of_rules(stored, workspace.policies):
        return {}
    changed = dirty.keys() - {file.path for file in lacking}
    return {path: record for path, record in known.items() if path not in changed} if changed else known


def _too_large(stats: StoreInfo, memory_mb: int) -> str | None:
    """Return why searches read the index from its file, where that is for want of memory."""
    if not memory_mb or stats.memory_bytes <= memory_mb << 20:
        return None
    needed = -(-stats.memory_bytes >> 20)
    return (
        f"searches read the index from its file, which is slower: it would take up to {needed} MB of memory, and "
        f"search.memory_mb is {memory_mb}"
    )


def _state_in_words(
    stored: IndexMeta | None, wanted: IndexMeta | None, unavailable: Mapping[str, str]
) -> Iterator[str]:
    if stored is None:
        yield NOTHING_YET
    elif lost := explain_unavailable(stored, unavailable):
        yield lost
    elif wanted is not None and (reason := outdated(stored, wanted)):
        yield f"the next sync builds the index again: {reason}"
    elif not stored.complete:
        yield "the index is not complete: its building goes on elsewhere or was cut short; sync the memory"


def _named(what: str, last: SyncReport | None, last_sync: SyncRecord | None) -> dict[str, str]:
    """Return the files that the latest sync left out as `failed` or `skipped`, with their reasons.

    A sync ends with its record: where that is not the report's own, the report is older.
    """
    here = {file.path: file.reason for file in getattr(last, what)} if last else {}
    if last_sync is None:
        return here
    noted: Mapping[str, str] = getattr(last_sync, what)
    is_of_the_report = len(noted) == MOST_FILES and noted.items() <= here.items()  # it names no more than these
    return here if is_of_the_report else dict(noted)


def _last_error(store: Store, last_sync: SyncRecord | None, last_error: str | None) -> SyncFailure | None:
    """Return what ended the latest sync, here or in another process; None where a later one succeeded."""
    error = sync_failure(last_error) or sync_failure(store.get_meta(LAST_ERROR))
    if error is None or (last_sync is not None and error.at is not None and last_sync.at >= error.at):
        return None
    return error


def _fallback(embedder: Embedder | None, requested: str, unavailable: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return which provider another one replaces, and why; what `auto` chose replaces none."""
    if embedder is None or requested in {"auto", embedder.provider}:
        return None
    built = f"the index was built by {embedder.provider} when {requested} was unavailable; the next sync asks again"
    return {"from": requested, "reason": unavailable.get(requested, built)}


def _bytes(files: Sequence[MemoryFile], stats: StoreInfo) -> DiskUsage:
    return DiskUsage(
        index=stats.size_bytes - stats.log_bytes,
        log=stats.log_bytes,
        notes=sum(file.size for file in files if file.source == "memory"),
        sessions=sum(file.size for file in files if file.source == "sessions"),
    )


def _vector(embedder: Embedder | None, stats: StoreInfo, stored: IndexMeta | None) -> VectorStatus:
    return VectorStatus(
        enabled=embedder is not None,
        available=embedder is not None and stats.vector_path != "none",
        path=stats.vector_path,
        error=stats.vector_error,
        extension_path=stats.extension_path,
        dims=stored.dims if stored else None,
    )


def _holds_vectors(store: Store | None, stored: IndexMeta | None) -> bool:
    """Return whether any chunk has a vector, by searching the nearest to an arbitrary one."""
    if store is None or stored is None or stored.dims is None:
        return False
    import numpy as np

    return bool(store.search_vector(np.eye(1, stored.dims, dtype=np.float32)[0], 1))


def _tried(vector: VectorStatus, embedder: Embedder, store: Store | None, stats: StoreInfo) -> VectorStatus:
    """Complete `vector` by asking the embedder; without a `store` its answer is compared with nothing."""
    try:
        answer = probe(embedder)
    except EmbedderError as error:
        return replace(vector, available=False, error=str(error), answers=False)
    if store is None:
        return replace(vector, answers=True)
    try:
        hits = store.search_vector(answer, 1)
    except OpenClawMemoryError as error:
        fits = not isinstance(error, EmbedderError)
        return replace(vector, available=False, error=str(error), answers=True, fits=fits)
    return replace(vector, answers=True, verified=bool(hits) or stats.chunks == 0)


def _fts(store: Store | None, *, try_it: bool) -> KeywordStatus:
    if not try_it or store is None:
        return KeywordStatus(available=store is not None)
    try:
        store.search_text(["memory"], 1)
    except OpenClawMemoryError as error:
        return KeywordStatus(available=False, error=str(error))
    return KeywordStatus(available=True, verified=True)


NEW, CHANGED, GONE = "new", "changed since it was indexed", "gone from disk"
IN_DOUBT = "written so soon before it was read that it may have changed"


def why_behind(
    workspace: Workspace, scan: Scan, known: Mapping[str, FileRecord], failed: Mapping[str, str]
) -> dict[str, str]:
    """Return why the next sync would write or forget files, by path, in order.

    Files are compared by stamps. Where a stamp leaves doubt, the note is read: it then matches the index, or has
    changed. `failed` says what kept the last sync from indexing a file; it counts as long as the file is behind.
    """
    difference = compared(scan, known)
    why = {path: "cannot be looked at" if scan.is_unknown(path) else GONE for path in difference.vanished}
    why |= {file.path: NEW for file in difference.fresh}
    lacking = {file.path: file.reason for file in waiting(difference.touched, known)}
    why |= {file.path: CHANGED for file in difference.touched}
    why |= {path: f"has no vectors yet: {reason}" for path, reason in lacking.items()}
    for file in difference.doubtful:
        if (reason := _of_doubtful(workspace, file, known[file.path])) is not None:
            why[file.path] = reason
    why |= {path: f"failed: {failed[path]}" for path in why if path in failed and why[path] in {NEW, CHANGED, IN_DOUBT}}
    return dict(sorted(why.items()))


def waiting(files: tuple[MemoryFile, ...], known: Mapping[str, FileRecord]) -> tuple[Skipped, ...]:
    """Return the files that are up to date except for their vectors, and why they lack those."""
    lacks = {path: record.vectors_missing for path, record in known.items() if record.vectors_missing is not None}
    lacking = [file for file in files if file.path in lacks]
    changed = set(compare(lacking, {path: replace(known[path], vectors_missing=None) for path in lacks}).dirty)
    return tuple(Skipped(file.path, lacks[file.path]) for file in lacking if file.path not in changed)


def _of_doubtful(workspace: Workspace, file: MemoryFile, record: FileRecord) -> str | None:
    """Return why a file with the same stamp is behind; None where its text matches the index.

    A transcript only grows: one of the same size is the same.
    """
    if file.source == "sessions":
        return None
    from openclaw_memory.indexing.pipeline import read

    try:
        found, _ = read(workspace, file)
    except (OpenClawMemoryError, OSError):
        return IN_DOUBT
    return None if found.hash == record.hash else CHANGED
