"""Search in PostgreSQL: BM25 over terms, exact cosines, and both in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, get_args

from openclaw_memory.store import clean_terms
from openclaw_memory.types import Hit, HitRequest, Hits, Source, SourceHits, StoredChunk
from openclaw_memory_postgres import rows as rows_of
from openclaw_memory_postgres.rows import hash_term

if TYPE_CHECKING:
    import psycopg

K1, B = 1.2, 0.75  # the usual constants of BM25, as FTS5 has them
# As in the index of SQLite: in a large one, a term of so many chunks ranks nothing.
COMMON_SHARE, LARGE_INDEX = 0.5, 4096
SOURCES: tuple[Source, ...] = get_args(Source)


def _read_statements() -> dict[str, str]:
    statements: dict[str, str] = {}
    text = (files("openclaw_memory_postgres") / "statements.sql").read_text(encoding="utf-8")
    for part in text.split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        for earlier, words in statements.items():
            statement = statement.replace(f"<{earlier}>", words)
        statements[name] = statement.partition("\n\n")[0].strip("\n")
    return statements


STATEMENTS = _read_statements()
Run = Callable[..., "psycopg.Cursor[Any]"]


def make_parameters(*, telling: bool) -> dict[str, Any]:
    """Return the constants of BM25, and which terms count as common."""
    return {"k1": K1, "b": B, "telling": telling, "share": COMMON_SHARE, "large": LARGE_INDEX}


def read_chunks(rows: list[tuple[Any, ...]], *, token_codes: bool = False) -> list[StoredChunk]:
    """Return the chunks of the rows of `stored`, or of `stored_with_codes`."""
    if token_codes:
        return [rows_of.read_chunk(row[:-1], bytes(row[-1] or b"")) for row in rows]
    return [rows_of.read_chunk(row) for row in rows]


def read_hits(rows: Iterable[tuple[Any, ...]]) -> list[Hit]:
    """Return the hits of the rows of `nearest`; a cosine that rounding has put outside of -1 to 1 is put back."""
    return [Hit(chunk_id, min(1.0, max(-1.0, float(score)))) for chunk_id, score in rows]


def is_usual(request: HitRequest, dims: int | None) -> bool:
    """Return whether one round trip answers a request: nothing is filtered, and any term will do.

    Args:
        request: The terms, the vector and the limits.
        dims: How long the vectors of the index are; a vector that does not fit is left to those who say so.
    """
    import numpy as np

    vector = request.vector
    if (vector is not None and not request.terms) or request.match != "any" or request.where:
        return False
    return vector is None or (vector.shape == (dims,) and bool(np.isfinite(vector).all()) and bool(vector.any()))


def find_usual(run: Run, request: HitRequest) -> Hits | None:
    """Answer a usual request in one round trip.

    Args:
        run: Runs a statement of this module on a connection.
        request: The terms, the vector and the limits; see `is_usual`.

    Returns:
        The hits; None where terms were left out as common, and without them there are too few chunks.
    """
    terms = [hash_term(term) for term in clean_terms(request.terms)]
    keys = {term: hash_term(next(iter(clean_terms([term])), "")) for term in request.counted}
    names = ["by_terms", "found"] if request.vector is None else ["by_terms", "by_cosines", "found", "found_near"]
    names += ["cosines"] if request.vector is not None and request.all_cosines else []
    cursor = run(
        "\n".join(STATEMENTS[name] for name in names),
        terms=terms,
        counted=list(keys.values()),
        sources=list(SOURCES) if request.source is None else [request.source],
        text_hits=request.text_hits,
        vector_hits=request.vector_hits,
        vector=_as_vector(request),
        **make_parameters(telling=True),
    )
    scores = _group_scores(cursor.fetchall())
    sources = [source for source in SOURCES if ("source", source) in scores]
    searched = [request.source] if request.source else sources or [SOURCES[0]]
    hits = [_select_hits(scores, source, request) for source in searched]
    if ("common", "") in scores and any(len(by_source.text) < request.text_hits for by_source in hits):
        return None
    counts = scores.get(("counted", ""), {})
    frequencies = {term: int(counts.get(key, 0)) for term, key in keys.items()}
    return Hits(hits, frequencies, next(iter(scores.get(("chunks", ""), {0: 0.0}))))


def _as_vector(request: HitRequest) -> Any:
    import numpy as np

    return None if request.vector is None else np.asarray(request.vector, np.float32)


def _group_scores(rows: list[tuple[Any, ...]]) -> dict[tuple[str, str], dict[int, float]]:
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for kind, source, chunk_id, score in rows:
        scores.setdefault((kind, source), {})[chunk_id] = score
    return scores


def _select_hits(scores: Mapping[tuple[str, str], Mapping[int, float]], source: str, request: HitRequest) -> SourceHits:
    text = dict(scores.get(("text", source), {}))
    near, further = (
        {chunk_id: min(1.0, max(-1.0, score)) for chunk_id, score in scores.get((kind, source), {}).items()}
        for kind in ("near", "cosine")
    )
    if request.vector is None or (text and not near):
        return SourceHits(text, None)
    return SourceHits(text, near, near | further)
