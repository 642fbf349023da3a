"""Answer a `HitRequest` by the other methods of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from openclaw_memory.types import Hits, SourceHits
from openclaw_memory.types.files import SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openclaw_memory.types import HitRequest, Source, Store


def gather_hits(
    store: Store, request: HitRequest, *, frequencies: Mapping[str, int], chunk_count: int, sources: Collection[Source]
) -> Hits:
    """Answer a request by keyword search and vector search: an implementation of `Store.find_hits`.

    Args:
        store: The store, in a state that does not change meanwhile.
        request: The terms, the vector and the limits.
        frequencies: In how many chunks each term of `request.counted` occurs.
        chunk_count: How many chunks the store holds.
        sources: The sources that hold files.

    Raises:
        EmbedderError: The vector does not fit the index.
    """
    searched: Sequence[Source | None] = [source for source in SOURCES if source in sources]
    if request.source is not None or len(searched) < 2:  # one source alone needs no filter, which costs time
        searched = [request.source]
    by_source = [_search_source(store, request, source) for source in searched] if request.terms else []
    return Hits(by_source, frequencies, chunk_count)


def _search_source(store: Store, request: HitRequest, source: Source | None) -> SourceHits:
    search = partial(store.search_text, request.terms, request.text_hits, source=source, where=request.where)
    hits = search(match=request.match)
    if request.match == "all" and len(hits) < request.enough:
        hits = [*search(), *hits]
    text = {hit.chunk_id: hit.score for hit in hits}
    if request.vector is None:
        return SourceHits(text, None)
    near = store.search_vector(request.vector, request.vector_hits, source=source, where=request.where)
    cosines = {hit.chunk_id: hit.score for hit in near}
    if text and not cosines:  # no chunk has a vector yet, or that of the query is zero
        return SourceHits(text, None)
    missing = [chunk_id for chunk_id in text if chunk_id not in cosines] if request.all_cosines else []
    vectors = store.get_vectors(missing)
    if not vectors:
        return SourceHits(text, cosines, cosines)
    import numpy as np

    scores = np.clip(np.stack(list(vectors.values())) @ np.asarray(request.vector, np.float32), -1, 1)
    return SourceHits(text, cosines, cosines | dict(zip(vectors, scores.tolist(), strict=True)))
