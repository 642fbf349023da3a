"""What a search asks of a store in one call, and what the store returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from openclaw_memory.types.files import SOURCES, Source
from openclaw_memory.types.index import Hit, StoredChunk, Vector
from openclaw_memory.types.where import Where, conditions, matches


@dataclass(frozen=True, slots=True)
class SourceHits:
    """Scores by chunk id of what was found in one source.

    Attributes:
        text: The scores of keyword search.
        vector: The cosines of vector search, or None if it did not run.
        cosines: The cosines of all chunks that either search found, as far as they are known.
    """

    text: Mapping[int, float]
    vector: Mapping[int, float] | None
    cosines: Mapping[int, float] = field(default_factory=dict)


def _nothing(_hits: Sequence[SourceHits]) -> Iterable[int]:
    return ()


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """Everything that one search needs of a store.

    Attributes:
        terms: Segmented terms of the keyword search. Without any, nothing is searched.
        vector: The unit vector of the query, or None to search by keywords alone.
        text_hits: How many chunks keyword search finds at most, in each source.
        vector_hits: How many chunks vector search finds at most, in each source.
        match: Whether a chunk needs any of the terms, or all of them.
        enough: With `match="all"`, chunks with any of the terms are added if fewer than this have all.
        source: The one source to search. None searches each source that holds files, one after the other.
        all_cosines: Whether chunks that only keyword search found get a cosine too.
        counted: The terms whose document frequencies are wanted.
        choose: Picks from the hits of all sources the ids of the chunks to return.
        named: Returns whether the file of a path is wanted because the query names it; None if no file is.
        where: A filter on the metadata of chunks.
    """

    terms: Sequence[str]
    vector: Vector | None = None
    text_hits: int = 60
    vector_hits: int = 50
    match: Literal["any", "all"] = "any"
    enough: int = 0
    source: Source | None = None
    all_cosines: bool = False
    counted: Sequence[str] = ()
    choose: Callable[[Sequence[SourceHits]], Iterable[int]] = _nothing
    named: Callable[[str], bool] | None = None
    where: Where | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a store returns for a `CandidateRequest`, all of one state of the index.

    Attributes:
        hits: One entry for each source that was searched, in the order of `SOURCES`.
        chunks: At least the chunks that `CandidateRequest.choose` picked, as far as they exist, by ascending id.
        frequencies: In how many chunks each of the counted terms occurs.
        chunk_count: How many chunks the index holds.
        named: The chunks of each file that the query names.
    """

    hits: Sequence[SourceHits]
    chunks: Sequence[StoredChunk]
    frequencies: Mapping[str, int]
    chunk_count: int
    named: Sequence[Sequence[StoredChunk]] = ()


class Searcher(Protocol):
    """The part of `Store` that `gather_candidates` calls."""

    def search_text(
        self,
        terms: Sequence[str],
        k: int,
        *,
        match: Literal["any", "all"] = "any",
        source: Source | None = None,
        where: Where | None = None,
    ) -> list[Hit]: ...

    def search_vector(
        self, vector: Vector, k: int, *, source: Source | None = None, where: Where | None = None
    ) -> list[Hit]: ...

    def vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, Vector]: ...

    def chunks(self, ids: Iterable[int]) -> list[StoredChunk]: ...

    def file_chunks(self, path: str) -> list[StoredChunk]: ...


def gather_candidates(
    store: Searcher,
    request: CandidateRequest,
    *,
    frequencies: Mapping[str, int],
    chunk_count: int,
    sources: Iterable[Source],
    paths: Callable[[], Iterable[str]],
) -> Candidates:
    """Answer a request through the other methods of a store: an implementation of `Store.candidates`.

    Args:
        store: The store, in a state that does not change meanwhile.
        request: What is wanted.
        frequencies: In how many chunks each term of `request.counted` occurs.
        chunk_count: How many chunks the store holds.
        sources: The sources that hold files.
        paths: Returns the path of every indexed file; called only where the request names files.

    Returns:
        What was found.

    Raises:
        EmbedderError: The vector does not fit the index.
    """
    held: list[Source] = [source for source in SOURCES if source in set(sources)]
    # One source alone needs no filter, which costs time.
    wanted: Sequence[Source | None] = held if request.source is None and len(held) > 1 else [request.source]
    hits = [_hits(store, request, source) for source in wanted] if request.terms else []
    filters = conditions(request.where)
    files = [store.file_chunks(path) for path in paths() if request.named(path)] if request.named else []
    named = [file for file in files if all(matches(stored.chunk.metadata, filters) for stored in file)]
    return Candidates(hits, store.chunks(request.choose(hits)), frequencies, chunk_count, named)


def _hits(store: Searcher, request: CandidateRequest, source: Source | None) -> SourceHits:
    """Return what keyword and vector search find in one source; None searches all."""
    where = request.where
    found = store.search_text(request.terms, request.text_hits, match=request.match, source=source, where=where)
    if request.match == "all" and len(found) < request.enough:
        found = [*store.search_text(request.terms, request.text_hits, match="any", source=source, where=where), *found]
    text = {hit.chunk_id: hit.score for hit in found}
    if request.vector is None:
        return SourceHits(text, None)
    near = store.search_vector(request.vector, request.vector_hits, source=source, where=where)
    vector = {hit.chunk_id: hit.score for hit in near}
    if text and not vector:  # no chunk has a vector yet, or that of the query is zero
        return SourceHits(text, None)
    others = [chunk_id for chunk_id in text if chunk_id not in vector] if request.all_cosines else []
    return SourceHits(text, vector, vector | _cosines(request.vector, store.vectors(others)))


def _cosines(query: Vector, vectors: Mapping[int, Vector]) -> dict[int, float]:
    """Return the cosine of each vector with that of the query."""
    if not vectors:
        return {}
    import numpy as np

    scores = np.clip(np.stack(list(vectors.values())) @ np.asarray(query, np.float32), -1, 1)
    return dict(zip(vectors, scores.tolist(), strict=True))
