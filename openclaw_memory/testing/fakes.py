"""Fakes for tests of programs that use a memory: an embedder that records its texts, a workspace, and a store."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import EmbedderError, StoreError, SyncBusyError, WorkspaceError
from openclaw_memory.types import (
    Build,
    CandidateRequest,
    Candidates,
    ChunkRow,
    FileRecord,
    Hit,
    IndexMeta,
    Matrix,
    Source,
    Store,
    StoredChunk,
    StoreInfo,
    Vector,
    Where,
    gather_candidates,
)
from openclaw_memory.types.where import chunk_test

CONTEXT_WEIGHT = 0.5  # a word of the heading says less about a chunk than a word of its text
K1, B = 1.2, 0.75  # the usual constants of BM25
NOTIFY_SECONDS = 1.0


class RecordingEmbedder:
    """An embedder that needs no model and no network: the same text always has the same vector.

    Texts that share words have similar vectors. `documents` and `queries` are the texts that it embedded, in order.
    While `failure` is an error, such as `EmbedderError("the service is down")`, every call raises it.

    >>> embedder = RecordingEmbedder()
    >>> embedder.embed_query("ferry").shape
    (64,)
    >>> embedder.queries
    ['ferry']
    """

    leaves_machine = False

    def __init__(self, dims: int = 64, *, name: str = "recording") -> None:
        """Make an embedder of `dims` dimensions; two of different names have vectors of different identities."""
        self._vectors = HashingEmbedder(dims)
        self.provider, self.model, self.identity = name, f"{name}-{dims}", f"{name}:{dims}"
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.failure: Exception | None = None
        self.closed = False

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, and record it."""
        self._check()
        self.queries.append(text)
        return self._vectors.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, and record them."""
        self._check()
        self.documents += texts
        return self._vectors.embed_documents(texts)

    def close(self) -> None:
        """Note in `closed` that it was closed."""
        self.closed = True

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure


def sample_workspace(folder: str | os.PathLike[str]) -> Path:
    """Write a small workspace of notes, that of `openclaw-memory demo`, and return its path.

    Args:
        folder: A folder that is empty, or does not exist yet.

    Raises:
        WorkspaceError: There is something in the folder.
    """
    path = Path(folder)
    if path.exists() and any(path.iterdir()):
        raise WorkspaceError(f"{path} is not empty: name a folder that does not exist yet")
    with as_file(files("openclaw_memory") / "data" / "demo") as notes:
        shutil.copytree(notes, path, dirs_exist_ok=True)
    return path


# --- a store in dictionaries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A row with its id. `counts` holds how often each term occurs in it, those of the context by their weight."""

    stored: StoredChunk
    row: ChunkRow
    counts: Mapping[str, float]
    length: int


@dataclass(slots=True)
class State:
    """All that an index holds. A state that readers see is never changed: each write changes a copy."""

    meta: IndexMeta | None = None
    files: dict[str, FileRecord] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)  # ids ascend
    vectors: dict[tuple[str, str], Vector] = field(default_factory=dict)  # by identity and key, longest unused first
    texts: dict[str, str] = field(default_factory=dict)
    last_id: int = 0
    token_codes: dict[tuple[str, str], bytes] = field(default_factory=dict)  # by identity and key, as vectors

    def copied(self) -> State:
        """Return a state that can be changed."""
        files, entries, vectors = dict(self.files), dict(self.entries), dict(self.vectors)
        return State(self.meta, files, entries, vectors, dict(self.texts), self.last_id, dict(self.token_codes))

    def rows(self, identity: str | None = None) -> list[Entry]:
        """Return the chunks, or the rows with an identity, by ascending id."""
        return [one for one in self.entries.values() if one.row.identity == identity]

    def name(self, identity: str | None = None) -> str:
        """Return the identity, by default that of the index."""
        if identity is None and self.meta is None:
            raise StoreError("the index has no meta yet; call begin_build(meta) first, or name the identity")
        return identity or (self.meta.identity if self.meta else "")

    def dims(self, identity: str) -> int | None:
        """Return the length of the vectors of an identity; None before the first one."""
        known = next((len(vector) for (name, _), vector in self.vectors.items() if name == identity), None)
        return self.meta.dims if known is None and self.meta and self.meta.identity == identity else known

    def vector(self, row: ChunkRow) -> Vector | None:
        """Return the vector of a row; None where it has none, and for a chunk whose vector is zero."""
        found = self.vectors.get((self.name(row.identity), row.vector_key)) if row.vector_key else None
        return found if found is not None and (row.identity or found.any()) else None

    def drop(self, ids: Iterable[int]) -> None:
        """Remove rows; their vectors stay, as those that were used last."""
        for row in [self.entries.pop(at).row for at in ids]:
            key = (self.name(row.identity), row.vector_key or "")
            if key in self.vectors:
                self.vectors[key] = self.vectors.pop(key)

    def add(self, record: FileRecord, rows: Sequence[ChunkRow], first: int = 0) -> None:
        """Add rows to a file, numbered from `first` on."""
        for ordinal, row in enumerate(rows, first):
            if row.vector_key and row.identity is None and (self.name(), row.vector_key) not in self.vectors:
                raise StoreError(f"no vector is stored under {row.vector_key!r}; call add_vectors before the rows")
            self.last_id += 1
            stored = StoredChunk(self.last_id, record.path, record.source, row.chunk, 0 if row.identity else ordinal)
            terms, context = row.terms.split(), row.context_terms.split()
            counts = {term: 1.0 * count for term, count in Counter(terms).items()}
            for term in context:
                counts[term] = counts.get(term, 0.0) + CONTEXT_WEIGHT
            self.entries[self.last_id] = Entry(stored, row, counts, len(terms) + len(context))


class InMemoryStore:
    """A `Store` in dictionaries. One process sees it, and it ends with the process; closing it forgets nothing.

    It keeps the whole contract and ranks like the built-in store, but compares a query with every chunk.
    `Memory.open(path, store=InMemoryStore())` makes no file for its index.
    """

    def __init__(self, state: State | None = None) -> None:
        """Make a store that holds `state`, by default nothing."""
        self.state = state or State()
        self._writing = threading.RLock()
        self._locks: dict[str, threading.Lock] = {}
        self._holders: dict[str, int] = {}

    @contextmanager
    def _write(self, made_for: IndexMeta | None = None) -> Iterator[State]:
        """Yield a copy to change, which takes the place of the state unless something is raised: a transaction."""
        with self._writing:
            state = self.state.copied()
            if made_for is not None and state.meta is not None:
                there, wanted = state.meta, made_for
                if (there.identity, dict(there.chunking)) != (wanted.identity, dict(wanted.chunking)):
                    raise StoreError("the index was built again by another thread meanwhile; sync again")
            yield state
            self.state = state

    # --- meta and builds -----------------------------------------------------------------------------------------

    def meta(self) -> IndexMeta | None:
        return self.state.meta

    def get_meta(self, name: str) -> str | None:
        return self.state.texts.get(name)

    def set_meta(self, name: str, text: str) -> None:
        with self._write() as state:
            state.texts[name] = text

    def begin_build(self, meta: IndexMeta, *, keep_rows: bool = False) -> Build:
        """Begin the next index: in a store of its own where this one answers, else in this one."""
        stored = self.state.meta
        first = stored is None or not stored.complete
        store = self if first else InMemoryStore(self.state)
        if stored is None or not keep_rows:
            store._reset(meta)
        return _Build(store, self)

    def _reset(self, meta: IndexMeta) -> None:
        """Forget files and rows, and begin with `meta`; vectors are kept."""
        with self._write() as state:
            known = state.dims(meta.identity)
            if known is not None and meta.dims not in {None, known}:
                raise EmbedderError(f"{meta.identity!r} has vectors of {known} dimensions, meta says {meta.dims}")
            state.drop(list(state.entries))
            state.files = {}
            state.meta = replace(meta, dims=known or meta.dims, building=os.urandom(8).hex())

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        yield InMemoryStore(self.state)

    # --- writing -------------------------------------------------------------------------------------------------

    def replace_files(
        self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow] | None]], made_for: IndexMeta | None = None
    ) -> None:
        with self._write(made_for) as state:
            state.name()
            paths = {record.path for record, rows in files if rows is not None}
            state.drop([at for at, one in state.entries.items() if one.stored.path in paths])
            for record, rows in files:
                if rows is not None:
                    state.files[record.path] = record
                    state.add(record, rows)
                elif (old := state.files.get(record.path)) is not None:
                    state.files[record.path] = replace(
                        record, doc_id=old.doc_id, part_of=old.part_of, left_out=old.left_out
                    )

    def extend_file(
        self, record: FileRecord, chunks: Sequence[ChunkRow], from_line: int, made_for: IndexMeta | None = None
    ) -> None:
        with self._write(made_for) as state:
            if record.path not in state.files:
                raise StoreError(f"{record.path} is not indexed, and cannot be extended: sync again")
            there = [one.stored for one in state.rows() if one.stored.path == record.path]
            state.files[record.path] = record
            state.drop([one.id for one in there if one.chunk.start_line >= from_line])
            state.add(record, chunks, sum(one.chunk.start_line < from_line for one in there))

    def remove_files(self, paths: Iterable[str]) -> int:
        with self._write() as state:
            gone = {path for path in paths if state.files.pop(path, None) is not None}
            state.drop([at for at, one in state.entries.items() if one.stored.path in gone])
            return len(gone)

    # --- vectors -------------------------------------------------------------------------------------------------

    def known_vectors(
        self, keys: Iterable[str], identity: str | None = None, *, with_token_codes: bool = False
    ) -> set[str]:
        state = self.state
        known = identity is not None or state.meta is not None
        stored: Container[tuple[str, str]] = state.token_codes if with_token_codes else state.vectors
        return {key for key in keys if known and (state.name(identity), key) in stored}

    def add_vectors(
        self,
        keys: Sequence[str],
        vectors: Matrix,
        identity: str | None = None,
        *,
        token_codes: Sequence[bytes] | None = None,
    ) -> None:
        import numpy as np

        if not keys:
            return
        with self._write() as state:
            name, matrix = state.name(identity), np.asarray(vectors, np.float32)
            dims = state.dims(name) or (matrix.shape[-1] if matrix.ndim else 0)
            if not dims or matrix.shape != (len(keys), dims) or not np.isfinite(matrix).all():
                raise EmbedderError(
                    f"{len(keys)} finite vectors of {dims} dimensions are wanted under {name!r}, not {matrix.shape}"
                )
            for key, row in zip(keys, matrix, strict=True):
                state.vectors.setdefault((name, key), row.copy())
            for key, codes in zip(keys, token_codes or (), strict=token_codes is not None):
                state.token_codes.setdefault((name, key), codes)
            if state.meta is not None and state.meta.identity == name:
                state.meta = replace(state.meta, dims=dims)

    def prune(self, max_entries: int | None) -> int:
        if max_entries is None:
            return 0
        with self._write() as state:
            used = {(state.name(one.row.identity), one.row.vector_key) for one in state.entries.values()}
            gone = [key for key in state.vectors if key not in used][: max(0, len(state.vectors) - max_entries)]
            for key in gone:
                del state.vectors[key]
                state.token_codes.pop(key, None)
            return len(gone)

    # --- searching -----------------------------------------------------------------------------------------------

    def candidates(self, request: CandidateRequest) -> Candidates:
        frozen = InMemoryStore(self.state)
        chunks = frozen.state.rows()
        return gather_candidates(
            frozen,
            request,
            frequencies={term: sum(term in one.counts for one in chunks) for term in request.counted},
            chunk_count=len(chunks),
            sources={record.source for record in frozen.state.files.values()},
            paths=lambda: frozen.state.files,
        )

    def search_text(
        self,
        terms: Sequence[str],
        k: int,
        *,
        match: Literal["any", "all"] = "any",
        source: Source | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best chunks by BM25 over segmented terms, with the figures of SQLite's FTS5."""
        chunks, wanted = self.state.rows(), list(dict.fromkeys(filter(None, terms)))
        if not chunks or not wanted or k < 1:
            return []
        with_term = {term: sum(term in one.counts for one in chunks) for term in wanted}
        rarity = {
            term: max(math.log((len(chunks) - count + 0.5) / (count + 0.5)), 1e-6) for term, count in with_term.items()
        }
        average = sum(one.length for one in chunks) / len(chunks) or 1
        hits = []
        for one in _filtered(self.state, chunks, source, where):
            found = [term for term in wanted if term in one.counts]
            if not found or (match == "all" and len(found) < len(wanted)):
                continue
            long = K1 * (1 - B + B * one.length / average)
            scores = (rarity[term] * (one.counts[term] * (K1 + 1) / (one.counts[term] + long)) for term in found)
            hits.append(Hit(one.stored.id, sum(scores)))
        return sorted(hits, key=lambda hit: -hit.score)[:k]

    def search_vector(
        self,
        vector: Vector,
        k: int,
        *,
        source: Source | None = None,
        identity: str | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k chunks nearest to a unit vector by exact cosine; with an `identity`, the rows under it."""
        import numpy as np

        state, query = self.state, np.asarray(vector, np.float32)
        dims = state.dims(state.name(identity)) if identity or state.meta else None
        if dims is None:
            return []
        if query.shape != (dims,) or not np.isfinite(query).all():
            raise EmbedderError(f"a finite query vector of {dims} dimensions is wanted, not one of shape {query.shape}")
        rows = _filtered(state, state.rows(identity), source, where)
        found = {one.stored.id: own for one in rows if (own := state.vector(one.row)) is not None}
        if not found or k < 1 or not (identity or query.any()):
            return []
        ids, scores = list(found), np.clip(np.stack(list(found.values())) @ query, -1, 1)
        return [Hit(ids[at], float(scores[at])) for at in np.argsort(-scores, kind="stable")[:k].tolist()]

    # --- reading -------------------------------------------------------------------------------------------------

    def vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, Vector]:
        state = self.state
        found = {at: state.vector(state.entries[at].row) for at in chunk_ids if at in state.entries}
        return {at: vector for at, vector in found.items() if vector is not None}

    def chunks(self, ids: Iterable[int], *, token_codes: bool = False) -> list[StoredChunk]:
        state = self.state
        found = [state.entries[at] for at in sorted(set(ids)) if at in state.entries]
        if not token_codes:
            return [one.stored for one in found]
        keys = [(state.name(), one.row.vector_key or "") for one in found]
        codes = [state.token_codes.get(key, b"") for key in keys]
        return [replace(one.stored, token_codes=own) for one, own in zip(found, codes, strict=True)]

    def file_chunks(self, path: str, identity: str | None = None) -> list[StoredChunk]:
        return [one.stored for one in self.state.rows(identity) if one.stored.path == path]

    def files(
        self,
        paths: Iterable[str] | None = None,
        *,
        ids: Iterable[str] | None = None,
        part_of: str | None = None,
    ) -> Mapping[str, FileRecord]:
        named, known = None if paths is None else set(paths), None if ids is None else set(ids)
        return {
            path: record
            for path, record in sorted(self.state.files.items())
            if (named is None or path in named)
            and (known is None or record.doc_id in known)
            and (part_of is None or record.part_of == part_of)
        }

    def identities(self) -> Mapping[str, tuple[int, int]]:
        state = self.state
        rows = [one.row for one in state.entries.values() if one.row.identity]
        ready = Counter(row.identity for row in rows if state.vector(row) is not None)
        return {str(name): (count, ready[name]) for name, count in Counter(row.identity for row in rows).items()}

    # --- looking after it ----------------------------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str, wait: float | None = None, notify: Callable[[str], None] | None = None) -> Iterator[bool]:
        """Keep every other thread that asks for `name` out while the block runs."""
        lock, me = self._locks.setdefault(name, threading.Lock()), threading.get_ident()
        if self._holders.get(name) == me:
            yield False
            return
        end = math.inf if wait is None else time.monotonic() + wait
        pause = 0.0
        while not lock.acquire(timeout=pause):
            who = f"thread {self._holders.get(name)} holds the lock {name!r}"
            pause = min(NOTIFY_SECONDS, end - time.monotonic())
            if pause <= 0:
                raise SyncBusyError(f"{who}, and was waited for {wait:g} s; try again, or wait for longer")
            if notify is not None:
                notify(f"waiting: {who}")
        self._holders[name] = me
        try:
            yield True
        finally:
            del self._holders[name]
            lock.release()

    def verify(self) -> tuple[str, ...]:
        return ()

    def recover(self, reason: str) -> str:
        with self._writing:
            self.state = State(last_id=self.state.last_id)
        return f"the index was damaged ({reason}) and was emptied"

    def describe(self, *, counts: bool = True) -> StoreInfo:
        state = self.state
        exists = state.meta is not None or bool(state.texts or state.vectors)
        info = StoreInfo("memory", exists=exists, locked=frozenset(self._holders), vector_path="scan")
        if not counts:
            return info
        files = Counter(record.source for record in state.files.values())
        chunks = Counter(one.stored.source for one in state.rows())
        ids = [one.stored.id for one in state.rows()]
        return replace(
            info,
            files=len(state.files),
            chunks=chunks.total(),
            vectors=len(state.vectors),
            without_tokens=sum(not one.token_codes for one in self.chunks(self.vectors(ids), token_codes=True)),
            sources={source: (count, chunks[source]) for source, count in files.items()},
        )

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class _Build:
    """The next index of a store, in that store where it answers nothing yet, else in one of its own."""

    def __init__(self, store: InMemoryStore, live: InMemoryStore) -> None:
        self.store, self._live = store, live
        self._name = store.state.meta.building if store.state.meta else None

    def publish(self) -> None:
        """Put it in the place of the index that answers; texts of `set_meta` stay as they are there."""
        with self._live._write() as state:
            built = self.store.state
            if built.meta is None or built.meta.building != self._name:
                return  # another build has begun since
            state.meta = replace(built.meta, building=None)
            state.files, state.entries = built.files, built.entries
            state.vectors, state.token_codes = built.vectors, built.token_codes
            state.last_id = max(state.last_id, built.last_id)

    def abort(self) -> None:
        """Do nothing: what was built of a first index stays, and the next build goes on from there."""


def _filtered(state: State, entries: Iterable[Entry], source: Source | None, where: Where | None) -> Iterator[Entry]:
    """Return the rows of one source that pass a filter."""
    test = chunk_test(where or {})
    first = {one.stored.path: one.row.chunk.metadata for one in reversed(state.rows())}
    for one in entries:
        path, chunk = one.stored.path, one.row.chunk
        metadata = chunk.metadata if one.row.identity is None else first.get(path)
        if source in {None, one.stored.source} and (metadata is None or test(path, metadata)):
            yield one
