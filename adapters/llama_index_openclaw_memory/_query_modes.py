"""Answer a query in its mode: by vectors, by words, by both, without repeats, and by filters alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias, cast

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from llama_index_openclaw_memory._filters import Where, build_filter
from llama_index_openclaw_memory._vector_origin import VectorOrigins
from openclaw_memory.errors import EmbedderError, QueryError
from openclaw_memory.types import Document

Scored: TypeAlias = list[tuple[Document, float]]

# MMR chooses from so many times as many nodes as are wanted, and from so many at least: of more, those far away would
# be chosen because they are far away.
_MMR_WIDER, _MMR_LEAST = 10, 100

# What LlamaIndex's hybrid stores weigh the vectors with by default, and OpenClaw too.
_ALPHA = 0.7


def answer(
    origins: VectorOrigins, query: VectorStoreQuery, is_shown: Callable[[str], bool] | None = None, *, folder: str = ""
) -> Scored:
    """Return the documents that answer a query in its mode, best first, with their similarities.

    With `is_shown` those alone whose path it allows, and with a `folder` those in it.

    Raises:
        QueryError: The mode is not in `_MODES`, an argument is missing or has a wrong value, or a filter is not valid.
        EmbedderError: The vector has other dimensions than those in the store, or is known to be of another model.
        ConfigError: A vector has to be made, and there is no model.
    """
    try:
        find = _MODES[VectorStoreQueryMode(query.mode)]
    except (KeyError, ValueError):
        modes = ", ".join(mode.value for mode in _MODES)
        raise QueryError(f"the mode {query.mode!r} is not a mode of this store: use one of {modes}") from None
    k = query.similarity_top_k
    if not isinstance(k, int) or isinstance(k, bool) or k < 0:
        raise QueryError(f"similarity_top_k must be a whole number of at least 0, not {k!r}")
    tests = [] if is_shown is None else [lambda document: is_shown(document.path)]
    ids, parts_of = _check_names("node_ids", query.node_ids), _check_names("doc_ids", query.doc_ids)
    where = build_filter(query.filters, tests, ids=ids, parts_of=parts_of, folder=folder)
    if k == 0:
        return []
    is_filtered = bool(query.node_ids or query.doc_ids or (query.filters and query.filters.filters))
    if is_filtered and query.query_embedding is None and not (query.query_str or "").strip():
        return [(document, 0.0) for document in islice(_list_documents(origins, query, where), k)]
    return find(origins, query, where)


def _search_vectors(origins: VectorOrigins, query: VectorStoreQuery, where: Where | None) -> Scored:
    return _find_nearest(origins, _get_vector(origins, query), query.similarity_top_k, where)


def _find_nearest(origins: VectorOrigins, vector: Sequence[float], k: int, where: Where | None) -> Scored:
    documents, there = origins.documents, origins.model_there
    if there is not None:
        return documents.search_vector(vector, k, identity=there, where=where)
    if not origins.is_own(None):
        return []
    try:
        return documents.search_vector(vector, k, where=where)
    except EmbedderError:
        # Before the first node is added, nothing says what makes the vectors: the memory has none of these dimensions.
        return []


def _search_words(origins: VectorOrigins, query: VectorStoreQuery, where: Where | None) -> Scored:
    k = query.sparse_top_k or query.similarity_top_k
    return origins.documents.search_keywords(_require_words(query), k, where=where)


def _search_both(origins: VectorOrigins, query: VectorStoreQuery, where: Where | None) -> Scored:
    k = query.hybrid_top_k or query.similarity_top_k
    if query.alpha is None and not _is_fused(origins, query):
        return origins.documents.search(_require_words(query), k, where=where)
    alpha = _check_share("alpha", query.alpha, _ALPHA)
    dense = _search_vectors(origins, query, where) if alpha > 0 else []
    sparse = _search_words(origins, query, where) if alpha < 1 else []
    return _fuse(dense, sparse, alpha)[:k]


def _is_fused(origins: VectorOrigins, query: VectorStoreQuery) -> bool:
    """Tell whether the nodes have vectors of another model than the memory's, comparable with the query."""
    there = origins.model_there
    if there is None or origins.is_own(there):
        return False
    query_model = origins.get_query_model(query)
    return query_model == there if query.query_embedding is None else query_model in {None, there}


def _search_diverse(origins: VectorOrigins, query: VectorStoreQuery, where: Where | None) -> Scored:
    """Return nodes that are near to a vector and repeat nothing, in the order they are chosen, with scores.

    They go by the vectors they came with, or else by those of their chunks. Each is the one of the rest with the
    largest `threshold * nearness - (1 - threshold) * likeness`, by cosines, where the likeness is that to the one
    chosen just before, as in LlamaIndex's `get_top_k_mmr_embeddings`; the first goes by nearness alone.
    """
    import numpy as np

    threshold, k = _check_share("mmr_threshold", query.mmr_threshold, 0.5), query.similarity_top_k
    vector = _get_vector(origins, query)
    near = [document for document, _ in _find_nearest(origins, vector, max(_MMR_LEAST, _MMR_WIDER * k), where)]
    rows = origins.documents.get_vectors(near, origins.model_there)
    embedded = [(document, row) for document, row in zip(near, rows, strict=True) if row is not None]
    if not embedded:
        return []
    query_vector = np.asarray(vector, dtype=np.float64)
    matrix = np.asarray([row for _, row in embedded], dtype=np.float64)
    near_by = matrix @ (query_vector / (float(np.linalg.norm(query_vector)) or 1.0)) * threshold
    score, left = near_by.copy(), np.ones(len(embedded), dtype=bool)
    selection: Scored = []
    while len(selection) < min(k, len(embedded)):
        at = int(np.argmax(np.where(left, score, -np.inf)))
        selection.append((embedded[at][0], float(score[at])))
        left[at] = False
        score = near_by - (1 - threshold) * (matrix @ matrix[at])
    return selection


_MODES: Mapping[VectorStoreQueryMode, Callable[[VectorOrigins, VectorStoreQuery, Where | None], Scored]] = {
    VectorStoreQueryMode.DEFAULT: _search_vectors,
    VectorStoreQueryMode.TEXT_SEARCH: _search_words,
    VectorStoreQueryMode.SPARSE: _search_words,
    VectorStoreQueryMode.HYBRID: _search_both,
    VectorStoreQueryMode.SEMANTIC_HYBRID: _search_both,
    VectorStoreQueryMode.MMR: _search_diverse,
}


def _list_documents(origins: VectorOrigins, query: VectorStoreQuery, where: Where | None) -> Iterable[Document]:
    if not query.node_ids:
        return origins.documents.iterate(where, masked=True)
    documents = origins.documents.get(query.node_ids, masked=True)
    return (document for document in documents if where is None or where(document))


def _get_vector(origins: VectorOrigins, query: VectorStoreQuery) -> Sequence[float]:
    """Return the vector of a query, of dims numbers, as it came or made here."""
    if query.query_embedding is None and not query.query_str:
        raise QueryError("a search by vectors takes a query_embedding, or a query_str to make one of")
    model = origins.get_embedding() if query.query_embedding is None else None
    origins.check(origins.get_query_model(query))
    return cast("Any", query.query_embedding) if model is None else model.get_query_embedding(query.query_str or "")


def _check_names(name: str, ids: Any) -> frozenset[str]:
    if isinstance(ids, str):
        raise QueryError(f"{name} must be a list of ids, not the text {ids!r}: [{ids!r}]")
    return frozenset(ids or ())


def _require_words(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        mode = VectorStoreQueryMode(query.mode).value
        raise QueryError(f"the mode {mode!r} searches by words: pass a query_str")
    return query.query_str


def _check_share(name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise QueryError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


def _fuse(dense: Scored, sparse: Scored, alpha: float) -> Scored:
    """Fuse both rankings, best first: `alpha` times the score of the first plus `1 - alpha` times that of the second.

    The scores of each leg are scaled to 0..1 by its least and its largest (relative score fusion, as other hybrid
    stores of LlamaIndex do it), and are 1 where they are the same; what a leg lacks has 0 there.
    """
    total: dict[str, tuple[Document, float]] = {}
    for leg, weight in ((dense, alpha), (sparse, 1 - alpha)):
        scores = [score for _, score in leg]
        least, largest = min(scores, default=0.0), max(scores, default=0.0)
        for document, score in leg:
            share = (score - least) / (largest - least) if largest > least else 1.0
            before = total.get(document.id, (document, 0.0))[1]
            total[document.id] = (document, before + weight * share)
    return sorted(total.values(), key=lambda pair: -pair[1])
