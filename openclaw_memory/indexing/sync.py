"""Bring an index up to date with its files: decide whether to build it again, gather vectors, write, report."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field, structs
from msgspec.structs import replace

from openclaw_memory.config.environment import should_mask_listed_secrets
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.embeddings.selection import get_inner, get_preparing, probe
from openclaw_memory.embeddings.token_codes import CODES_VERSION
from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.changes import Difference, SyncParts, compare_scan, count_missing_vectors
from openclaw_memory.store.schema import SCHEMA_VERSION
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.types import Embedder, FileRecord, IndexMeta, MemoryFile, Progress, Store, SyncReport
from openclaw_memory.types.files import Skipped
from openclaw_memory.types.protocols import TokenEmbedder
from openclaw_memory.workspace.scan import Scan

if TYPE_CHECKING:
    from openclaw_memory.embeddings.stream import Embedded

# The code that reads, cuts and embeds files is imported if there are any: most syncs find nothing to do.

# Raise it when chunking/, text/ or indexing/ begin to give other rows for the same file: every index is then built
# again, as it is when the user's policies change.
ROWS_VERSION = 18
# So many texts may be refused for themselves: more speak of a service that refuses any.
MAX_REFUSED = 10
REFUSED_SHARE = 0.05


class Survey(NamedTuple):
    """The files and the index at the beginning of a pass."""

    scan: Scan
    stored: IndexMeta | None
    records: Mapping[str, FileRecord]
    difference: Difference


class Plan(Struct):
    """The future of an index.

    `meta` describes the index to build, `rebuilt` why it is built again, `error` why its vectors are unavailable.
    `postponed` has the keys of vectors that come later, with the reasons. `waiting` tells why a rebuild for another
    model has to wait. `embedded` and `tokens` count the texts that planning has embedded, and their tokens at most.
    """

    meta: IndexMeta
    rebuilt: str | None = None
    error: EmbedderError | None = None
    postponed: Mapping[str, str] = field(default_factory=dict)
    embedded: int = 0
    tokens: int = 0
    waiting: str | None = None


def sync(parts: SyncParts, *, force: bool = False, is_alone: bool = True) -> SyncReport:
    """Bring the index up to date with the workspace, and report the changes.

    A file that cannot be read or chunked is named in `failed`, one that is not text in `skipped`. Both keep their rows,
    and are tried again next time, even if they have not been touched since. A file whose vectors are unavailable is
    named in `waiting`: keywords find it, and the next sync asks again. `unchanged` counts files by content: in an index
    that was built again (`rebuilt` says why) a file with the same text still counts as unchanged.

    An index is only built again when its vectors exist: until then `waiting` names every file.

    Args:
        parts: The parts of the sync.
        force: Whether to build the index again in any case.
        is_alone: Whether the caller holds the lock `sync` of the store, so that no other sync is at work.

    Raises:
        WorkspaceError: The folder has gone; nothing is removed from the index.
        StoreError: The index cannot be written.
    """
    started, preparing = time.perf_counter(), get_preparing(parts.embedder)
    report = sync_once(parts, force=force)
    while preparing is not None and preparing.wait(parts.store, parts.progress):
        report = merge_reports(report, sync_once(parts, force=False))
    # Vectors that another sync has embedded and not yet written are in no file, and must not be pruned; nor those that
    # were gathered for an index that waits for the others.
    if is_alone:
        parts.store.prune(keep_unused=parts.is_interim or bool(report.waiting))
    return replace(report, seconds=time.perf_counter() - started)


def sync_once(parts: SyncParts, *, force: bool) -> SyncReport:
    """Do the work of `sync` once; the report leaves out the time.

    A complete index is rebuilt in a copy; a first index is built in place, so that one that was cut short continues.
    """
    scan, records, stored = parts.workspace.scan(), parts.store.get_files(), parts.store.read_meta()
    survey = Survey(scan, stored, records, compare_scan(scan, records))
    plan = _make_plan(parts, survey, force=force)
    if stored is not None and stored.complete and plan.rebuilt is None:
        return _write(parts, parts.store, survey, plan)
    build = parts.store.begin_build(plan.meta, keep_rows=plan.rebuilt is None)
    try:
        report = _write(parts, build.store, survey, plan)
    except BaseException:
        build.abort()
        raise
    build.publish()
    return report


def sync_paths(parts: SyncParts, paths: Iterable[str]) -> SyncReport | None:
    """Bring the rows of the notes at these paths up to date, whatever else has changed; nothing is pruned.

    None, if it takes a whole sync to decide about them, or about the index.
    """
    store, embedder, paths = parts.store, parts.embedder, list(paths)
    stored = store.read_meta()
    is_ready = parts.trouble is None and not _is_unheard(embedder) and get_preparing(embedder) is None
    if stored is None or not stored.complete or not is_ready:
        return None
    plan = Plan(describe_index(embedder, parts.config.chunking, policies=parts.workspace.policies))
    files = parts.workspace.list_notes_at(paths)
    if files is None or explain_outdated(stored, plan.meta):
        return None
    scan, records = Scan(tuple(files), ()), store.get_files(paths)
    return _write(parts, store, Survey(scan, stored, records, compare_scan(scan, records)), plan)


def merge_reports(first: SyncReport, second: SyncReport) -> SyncReport:
    """Return one report of two passes over the same files; the second one decides which still fail or wait."""
    added = {*first.added, *second.added} - {*second.removed}
    changed = {*first.changed, *second.changed} - added - {*second.removed}
    news = len(second.added) + len(second.changed)
    return replace(
        second,
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted({*first.removed, *second.removed} - added)),
        unchanged=second.unchanged + news - len(added) - len(changed),
        embedded=first.embedded + second.embedded,
        tokens=first.tokens + second.tokens,
        rebuilt=second.rebuilt or first.rebuilt,
    )


# --- writing ---------------------------------------------------------------------------------------------------------


def _write(parts: SyncParts, store: Store, survey: Survey, plan: Plan) -> SyncReport:
    """Bring the rows of `store` up to date, or build all again."""
    scan, stored, records, difference = survey
    is_rebuilding = stored is None or plan.rebuilt is not None
    files: Sequence[MemoryFile] = scan.files if is_rebuilding else difference.to_read
    report = SyncReport(
        unchanged=0 if is_rebuilding else difference.unchanged,
        skipped=scan.skipped,
        embedded=plan.embedded,
        tokens=plan.tokens,
        rebuilt=plan.rebuilt,
    )
    vanished = set(difference.vanished)
    if files:
        from openclaw_memory.indexing.pipeline import Run

        meta = plan.meta if stored is None or is_rebuilding else stored
        run = Run(parts, store, meta, {} if is_rebuilding else records, records, plan.error, dict(plan.postponed))
        run.update(files)
        report = run.extend_report(report)
        vanished |= records.keys() & set(run.vanished)
    # Files behind a folder that cannot be read just now may still be there.
    removed = sorted(path for path in vanished if not scan.is_unknown(path))
    if removed and not is_rebuilding:
        store.remove_files(removed)
    if plan.waiting is not None:
        report = replace(report, waiting=tuple(Skipped(file.path, plan.waiting) for file in scan.files))
    return replace(report, removed=tuple(parts.workspace.files.mask_path(path) for path in removed))


# --- planning --------------------------------------------------------------------------------------------------------


def _make_plan(parts: SyncParts, survey: Survey, *, force: bool) -> Plan:
    """Decide; a working index is only given up when all the vectors of the next one exist."""
    embedder, stored = parts.embedder, survey.stored
    error = None if parts.trouble is None else EmbedderError(parts.trouble)
    plan = Plan(describe_index(embedder, parts.config.chunking, policies=parts.workspace.policies), error=error)
    outdated = None if stored is None else explain_outdated(stored, plan.meta)
    is_idle = stored is not None and not (survey.difference.to_read or force or outdated)
    if embedder is not None and not is_idle and (count_missing_vectors(survey.records) or _is_unheard(embedder)):
        try:
            probe(embedder)  # its deadline is shorter than for documents
        except EmbedderError as failure:
            plan.error = error = failure
    if stored is None:
        if embedder is not None and error is None:
            _prepare_texts(parts, plan, survey.scan.files)
        return plan
    if error is not None:
        return _keep_vectors(parts, plan, stored, error)
    plan.rebuilt = outdated or ("it was asked for" if force else None)
    if plan.rebuilt:
        _prepare_texts(parts, plan, survey.scan.files)
    else:
        _prepare_texts(parts, plan, survey.difference.to_read, survey.records)
    if embedder is None or not outdated:  # a model that stays has nearly all its vectors there
        return plan
    try:
        embedded, tokens = gather_vectors(parts, embedder, survey.scan.files, postponed=plan.postponed)
    except EmbedderError as failure:
        return _keep_vectors(parts, plan, stored, failure)
    plan.embedded, plan.tokens = plan.embedded + embedded, plan.tokens + tokens
    if plan.postponed:
        return _keep_vectors(parts, plan, stored, EmbedderError(next(iter(plan.postponed.values()))))
    return plan


def _keep_vectors(parts: SyncParts, plan: Plan, stored: IndexMeta, error: EmbedderError) -> Plan:
    """Return the plan for unavailable vectors: the index keeps those that it has."""
    plan.error = error
    keywords = describe_index(None, parts.config.chunking, policies=parts.workspace.policies)
    plan.meta = replace(
        keywords, provider=stored.provider, model=stored.model, identity=stored.identity, dims=stored.dims
    )
    plan.rebuilt = None
    provider = parts.embedder.provider if parts.embedder is not None else parts.requested
    identity = parts.embedder.identity if parts.embedder is not None else stored.identity
    is_other_model = stored.identity != identity or provider not in {None, stored.provider}
    if is_other_model or explain_outdated(stored, plan.meta):
        plan.waiting = str(error)
    return plan


def _prepare_texts(
    parts: SyncParts, plan: Plan, files: Sequence[MemoryFile], records: Mapping[str, FileRecord] | None = None
) -> None:
    """Show the missing texts to an embedder that wants to see them first."""
    if (embedder := get_preparing(parts.embedder)) is not None:
        missing = list_missing_texts(parts, embedder.identity, files, records)
        plan.postponed, plan.embedded, plan.tokens = embedder.prepare(parts.store, missing)


def _is_unheard(embedder: Embedder | None) -> bool:
    from openclaw_memory.embeddings.stream import find_service

    service = find_service(embedder)
    return service is not None and not service.has_answered


# --- vectors ---------------------------------------------------------------------------------------------------------


class _Counts(Struct):
    """The files that were read for their missing texts, and the texts that were embedded, with their tokens, or not."""

    files: int = 0
    embedded: int = 0
    tokens: int = 0
    refused: int = 0


def gather_vectors(
    parts: SyncParts, embedder: Embedder, files: Sequence[MemoryFile], *, postponed: Container[str] = ()
) -> tuple[int, int]:
    """Store every vector that an index of these files will need from the embedder, except `postponed` ones.

    Files that cannot be read, and a few texts that are refused for themselves, are left to the run that builds the
    index.

    Returns:
        How many texts were embedded, and their tokens at most.

    Raises:
        EmbedderError: The embedder failed, or refuses many of the texts. The vectors from before are stored.
    """
    from openclaw_memory.embeddings.stream import add_vectors, stream

    started, counts = time.perf_counter(), _Counts()
    pending: dict[str, int] = {}  # keys in their order, each with how many files were read before

    def take_texts() -> Iterator[tuple[str, str]]:
        for counts.files, file in enumerate(files):
            parts.priority.yield_to_searches()
            for key, text in list_missing_texts(parts, embedder.identity, [file]):
                if key not in pending and key not in postponed:
                    pending[key] = counts.files
                    yield key, text
        counts.files = len(files)

    for batch in stream(embedder, take_texts()):
        for key in batch.keys:
            del pending[key]
        _record_batch(counts, batch)
        add_vectors(parts.store, batch, embedder.identity, parts.cache)
        if parts.progress:
            files_done, seconds = next(iter(pending.values()), counts.files), time.perf_counter() - started
            parts.progress(Progress(files_done, len(files), "files embedded", counts.embedded, counts.tokens, seconds))
    return counts.embedded, counts.tokens


def _record_batch(counts: _Counts, batch: Embedded) -> None:
    """Count the texts of a batch; raise its error, unless that lies in a few texts."""
    if batch.error is None:
        counts.embedded, counts.tokens = counts.embedded + len(batch.keys), counts.tokens + batch.tokens
        return
    counts.refused += len(batch.keys)
    if not batch.isolated or counts.refused > max(MAX_REFUSED, REFUSED_SHARE * counts.embedded):
        raise batch.error


def list_missing_texts(
    parts: SyncParts, identity: str, files: Iterable[MemoryFile], records: Mapping[str, FileRecord] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield key and text of each vector that an index of these files needs and the store lacks, each once.

    Of transcripts whose `records` say that they lack nothing, only the new part counts.
    """
    from openclaw_memory.embeddings.stream import find_vectors
    from openclaw_memory.indexing.file_rows import list_rows

    listed: set[str] = set()
    for file in files:
        for rows in list_rows(parts.workspace, parts.config.chunking, file, (records or {}).get(file.path)):
            texts = {row.vector_key: row.chunk.embedding_text for row in rows if row.vector_key is not None}
            texts = {key: text for key, text in texts.items() if key not in listed}
            listed |= texts.keys()
            stored = find_vectors(parts.store, texts, identity, parts.embedder, parts.cache)
            yield from ((key, text) for key, text in texts.items() if key not in stored)


# --- the description of an index -------------------------------------------------------------------------------------


def describe_index(embedder: Embedder | None, chunking: ChunkingConfig, *, policies: Policies = NONE) -> IndexMeta:
    """Return the meta of an index built now with these parts; its vectors set the dimensions."""
    rules = {"policies": policies.digest} if policies else {}
    codes = {"token_codes": CODES_VERSION} if isinstance(get_inner(embedder), TokenEmbedder) else {}
    return IndexMeta(
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        identity=embedder.identity if embedder else "none",
        dims=None,
        chunking={
            "rows": ROWS_VERSION,
            "masks": should_mask_listed_secrets(),
            **codes,
            **rules,
            **structs.asdict(chunking),
        },
        schema_version=SCHEMA_VERSION,
    )


def explain_outdated(stored: IndexMeta, current: IndexMeta) -> str | None:
    """Return the reason the index is outdated, or None if it is current."""
    if stored.identity != current.identity:
        return f"the embedder was {_name_embedder(stored)} and is now {_name_embedder(current)}"
    old, new = stored.chunking, current.chunking
    if old.get("policies") != new.get("policies"):
        return "the policies have changed"
    changes = [
        f"{key} was {old.get(key)} and is now {new.get(key)}" for key in {**old, **new} if old.get(key) != new.get(key)
    ]
    return f"chunking: {', '.join(changes)}" if changes else None


def has_current_rules(stored: IndexMeta, policies: Policies) -> bool:
    """Return whether an index was built by this version with these policies."""
    return (stored.chunking.get("rows"), stored.chunking.get("policies", "")) == (ROWS_VERSION, policies.digest)


def _name_embedder(meta: IndexMeta) -> str:
    name = f"{meta.provider} {meta.model}".strip()
    return name if name != "none" else "none (keywords only)"
