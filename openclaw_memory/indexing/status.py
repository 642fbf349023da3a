"""Read the state of an index without changing it: its contents, its gaps, and the paths of the engine that work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from openclaw_memory.embeddings.selection import describe_receiver, explain_unavailable, get_inner, get_preparing, probe
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.indexing.changes import DAMAGED, IN_PART, compare, compare_scan, count_missing_vectors
from openclaw_memory.indexing.changes import explain_missing_vectors as explain_missing
from openclaw_memory.indexing.staleness import NOTHING_YET, load_failure, load_sync
from openclaw_memory.indexing.sync import describe_index, explain_outdated, has_current_rules
from openclaw_memory.types import Embedder, FileRecord, IndexMeta, MemoryFile, Status, Store, StoreInfo
from openclaw_memory.types.codec import SUFFIX
from openclaw_memory.types.files import Skipped
from openclaw_memory.types.protocols import TokenEmbedder
from openclaw_memory.types.results import HeartbeatRecord, SyncFailure, SyncRecord
from openclaw_memory.types.status import CacheStatus, DiskUsage, KeywordStatus, VectorStatus
from openclaw_memory.workspace.paths import split_below

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.scan import Scan

NEW, CHANGED, GONE = "new", "changed since it was indexed", "gone from disk"


def read_status(
    service: IndexService,
    *,
    notices: Sequence[str],
    flush: Mapping[str, str],
    heartbeat: HeartbeatRecord | None,
    deep: bool = False,
) -> Status:
    """Compare the workspace with its index by stamps, and ask the store which of its paths work.

    With `deep`, the embedder is asked, both legs of the search are tried with a real query, failures are reported in
    `fts` and `vector`, and the whole index is checked. `vector.answers` concerns the embedder alone, `vector.verified`
    is only set if the index has vectors of its model, and `vector.fits` is False if the embedder's vectors cannot
    be compared with those, for instance because of other dimensions.

    Args:
        service: The index, its files and its settings.
        notices: Sentences of other parts.
        flush: Why the flushes of sessions failed, by session.
        heartbeat: The latest heartbeat.
        deep: Whether to try everything.

    Raises:
        WorkspaceError: The folder has gone.
        StoreError: The index cannot be read.
    """
    workspace, embedders, config, store = service.workspace, service.embedders, service.config, service.store()
    scan, info, stored, records = workspace.scan(), store.describe(), store.read_meta(), store.get_files()
    lines, embedder, current = list(notices), None, None
    try:
        embedder = embedders.select_for_search(stored)
        current = describe_index(embedder, config.chunking, policies=workspace.policies)
    except EmbedderError as error:
        lines.append(f"no embedder, search is by keywords: {error}")
    if embedder is not None and (receiver := describe_receiver(embedder)) is not None:
        lines.append(receiver)
    if embedder is not None and embedder.failure and not deep:  # a deep status asks again
        lines.append(f"the latest question was answered by keywords: {embedder.failure}")
    if "sync" in info.locked:
        lines.append("a sync is under way")

    lacking, last_sync = count_missing_vectors(records), load_sync(store)
    failed, skipped = ({}, {}) if last_sync is None else (last_sync.failed, last_sync.skipped)
    dirty = explain_dirty(scan, records, {**failed, **skipped})
    waiting = list_waiting(scan.files, records)
    matches = embedder is not None and (stored is None or stored.identity == embedder.identity)
    has_vectors = matches and (not lacking or has_any_vector(store, stored))
    vector = _describe_vectors(embedder, info, stored)
    if deep and embedder is not None:
        vector = _try_vectors(vector, embedder, store if has_vectors else None, info)
    is_hybrid = has_vectors and vector.answers is not False and vector.fits is None

    lines += [*info.notices, *_explain_state(stored, current, embedders.unavailable), *explain_missing(lacking)]
    lines += [f"{path} could not be indexed: {reason}" for path, reason in failed.items()]
    lines += [f"the flush of session {key!r} failed: {reason}" for key, reason in flush.items()]
    interim, advice = service.explain_interim(stored), workspace.suggest_setup(len(scan.files))
    size, plain = _explain_size(info, config.search.memory_mb), _count_plain(workspace, scan)
    lines += filter(None, [interim, advice, size, plain])
    if info.without_tokens and matches and not lacking and isinstance(get_inner(embedder), TokenEmbedder):
        without = f"{info.without_tokens} of {info.chunks} chunks have no tokens"
        lines.append(f"{without}: a search that finds one compares words instead")

    requested, fallback = embedders.requested, None
    if embedder is not None and embedder is not embedders.get_wanted() and requested != "auto":
        built = f"the index was built by {embedder.provider} when {requested} was unavailable; the next sync asks again"
        fallback = {"from": requested, "reason": embedders.unavailable.get(requested) or interim or built}
    batches = get_preparing(embedders.get_wanted())
    batch = {} if batches is None else batches.describe(store)
    if reason := batch.get("error"):
        lines.append(f"a batch job failed: {reason}")
    cache, meta = service.make_cache(), current or stored
    policy_records = _select_current(workspace, stored, records, dirty.keys() - {file.path for file in waiting})
    return Status(
        workspace=str(workspace.root),
        store=info.backend,
        index_path=info.location,
        provider=meta.provider if meta else "",
        model=meta.model if meta else "",
        requested_provider=requested,
        unavailable=dict(embedders.unavailable),
        mode="hybrid" if is_hybrid else "keyword",
        files=info.files,
        chunks=info.chunks,
        sources=info.sources,
        dirty={workspace.files.mask_path(path): reason for path, reason in dirty.items()},
        skipped=(
            *scan.skipped,
            *_list_skipped(scan, skipped, dirty),
            *_list_hidden(workspace, scan.files, policy_records),
        ),
        vector=vector,
        fts=_describe_keywords(store if info.exists else None, try_it=deep),
        cache=CacheStatus(embedder is not None, cache.count() if cache else 0, config.embedding.max_entries),
        notices=tuple(dict.fromkeys(lines)),
        engine=info.engine,
        problems=store.verify() if deep else (),
        waiting=waiting,
        extra_paths=workspace.files.settings.extra_paths,
        fallback=fallback,
        batch=batch,
        last_sync=last_sync,
        last_error=_find_last_error(service, store, last_sync),
        watcher=_describe_watcher(service, info),
        bytes=DiskUsage(
            index=info.size_bytes - info.log_bytes,
            log=info.log_bytes,
            notes=sum(file.size for file in scan.files if file.source == "memory"),
            sessions=sum(file.size for file in scan.files if file.source == "sessions"),
        ),
        flush=dict(flush),
        heartbeat=heartbeat,
    )


# --- files -----------------------------------------------------------------------------------------------------------


def explain_dirty(scan: Scan, records: Mapping[str, FileRecord], failed: Mapping[str, str]) -> dict[str, str]:
    """Return why the next sync would write or forget files, by path, in order.

    Files are compared by their stamps.

    Args:
        scan: The stamps of the files.
        records: Their records in the index.
        failed: Why the last sync could not index a file; it counts as long as the file is behind.
    """
    difference = compare_scan(scan, records)
    reasons = {path: "cannot be looked at" if scan.is_unknown(path) else GONE for path in difference.vanished}
    reasons |= {file.path: NEW for file in difference.fresh}
    reasons |= {file.path: CHANGED for file in difference.touched}
    reasons |= {file.path: f"has no vectors yet: {file.reason}" for file in list_waiting(difference.touched, records)}
    for path, reason in reasons.items():
        if path in failed and reason in {NEW, CHANGED}:
            reasons[path] = f"failed: {failed[path]}"
    return dict(sorted(reasons.items()))


def list_waiting(files: Sequence[MemoryFile], records: Mapping[str, FileRecord]) -> tuple[Skipped, ...]:
    """Return the files that are up to date except for their vectors, and why they lack those."""
    reasons = {path: record.vectors_missing for path, record in records.items() if record.vectors_missing is not None}
    lacking = [file for file in files if file.path in reasons]
    changed = {*compare(lacking, {path: replace(records[path], vectors_missing=None) for path in reasons}).dirty}
    return tuple(Skipped(file.path, reasons[file.path]) for file in lacking if file.path not in changed)


def _list_skipped(scan: Scan, skipped: Mapping[str, str], dirty: Mapping[str, str]) -> Iterator[Skipped]:
    """Yield the files that the latest sync skipped, and that are not skipped by the scan already."""
    scanned = {file.path for file in scan.skipped}
    for path, reason in skipped.items():
        if (path in dirty or reason.startswith((IN_PART, DAMAGED))) and path not in scanned:
            yield Skipped(path, reason)


def _list_hidden(
    workspace: Workspace, files: Sequence[MemoryFile], records: Mapping[str, FileRecord]
) -> Iterator[Skipped]:
    """Yield the notes with lines that policies leave out, by their records, or without one by their text."""
    policies = workspace.policies
    for file in files if policies else ():
        if file.source != "memory":
            continue
        with suppress(OpenClawMemoryError, OSError):  # unreadable files are named elsewhere
            record = records.get(file.path)
            if names := record.left_out if record else policies.list_matching_rules(workspace.read(file.path)):
                yield Skipped(file.path, f"is shown and indexed without what policies say never to store: {names}")


def _select_current(
    workspace: Workspace, stored: IndexMeta | None, records: Mapping[str, FileRecord], changed: set[str]
) -> Mapping[str, FileRecord]:
    """Return the records of files that still have the text that was indexed, by the present rules."""
    if stored is None or not has_current_rules(stored, workspace.policies):
        return {}
    return {path: record for path, record in records.items() if path not in changed} if changed else records


# --- parts of the state ----------------------------------------------------------------------------------------------


def _explain_state(
    stored: IndexMeta | None, current: IndexMeta | None, unavailable: Mapping[str, str]
) -> Iterator[str]:
    if stored is None:
        yield NOTHING_YET
    elif missing := explain_unavailable(stored, unavailable):
        yield missing
    elif current is not None and (reason := explain_outdated(stored, current)):
        yield f"the next sync builds the index again: {reason}"
    elif not stored.complete:
        yield "the index is not complete: its building goes on elsewhere or was cut short; sync the memory"


def _explain_size(info: StoreInfo, memory_mb: int) -> str | None:
    """Return why searches read the index from its file, if that is for want of memory."""
    if not memory_mb or info.memory_bytes <= memory_mb << 20:
        return None
    needed = -(-info.memory_bytes >> 20)
    return (
        f"searches read the index from its file, which is slower: it would take up to {needed} MB of memory, and "
        f"search.memory_mb is {memory_mb}"
    )


def _count_plain(workspace: Workspace, scan: Scan) -> str | None:
    """Return how many notes of the workspace are not encrypted, if new ones are."""
    plain = (file.path for file in scan.files if file.source == "memory" and not file.path.endswith(SUFFIX))
    count = sum(split_below(path, ".") is not None for path in plain) if workspace.files.codec.is_sealing("note") else 0
    return f"plain notes, though new ones are encrypted: {count:,}; run `openclaw-memory encrypt`" if count else None


def _find_last_error(service: IndexService, store: Store, last_sync: SyncRecord | None) -> SyncFailure | None:
    """Return the error that ended the latest sync, here or in another process; None if a later one succeeded."""
    error = service.last_error or load_failure(store)
    if error is None or (last_sync is not None and error.at is not None and last_sync.at >= error.at):
        return None
    return error


def _describe_watcher(service: IndexService, info: StoreInfo) -> str | None:
    """Return the state of the watcher of these files, here or in another process; None without a watcher."""
    if service.watcher is not None and service.watcher.is_running:
        return service.watcher.state
    return "in another process: at work" if "watch" in info.locked else None


def _describe_vectors(embedder: Embedder | None, info: StoreInfo, stored: IndexMeta | None) -> VectorStatus:
    return VectorStatus(
        enabled=embedder is not None,
        available=embedder is not None and info.vector_path != "none",
        path=info.vector_path,
        error=info.vector_error,
        extension_path=info.extension_path,
        dims=stored.dims if stored else None,
    )


def has_any_vector(store: Store, stored: IndexMeta | None) -> bool:
    """Return whether any chunk has a vector, by searching the nearest to an arbitrary one."""
    if stored is None or stored.dims is None:
        return False
    import numpy as np

    return bool(store.search_vector(np.eye(1, stored.dims, dtype=np.float32)[0], 1))


def _try_vectors(vector: VectorStatus, embedder: Embedder, store: Store | None, info: StoreInfo) -> VectorStatus:
    """Complete the state by asking the embedder; without a `store` its answer is compared with nothing."""
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
    return replace(vector, answers=True, verified=bool(hits) or info.chunks == 0)


def _describe_keywords(store: Store | None, *, try_it: bool) -> KeywordStatus:
    if not try_it or store is None:
        return KeywordStatus(available=store is not None)
    try:
        store.search_text(["memory"], 1)
    except OpenClawMemoryError as error:
        return KeywordStatus(available=False, error=str(error))
    return KeywordStatus(available=True, verified=True)
