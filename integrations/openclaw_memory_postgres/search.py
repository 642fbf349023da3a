"""Search in PostgreSQL: BM25 over terms, exact cosines, and both in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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

# In all statements `{s}` is the schema, `{here}` the rows of the tenant's index, and `{v}` the operator of pgvector.
# The server's statistics know nothing of a tenant that is new: it takes each to have one row. So connections have no
# loops over loops (`connections.PLANS`), and where single rows are wanted by their whole key, a LATERAL with a
# LIMIT leaves the planner no other way: a search took 0.4 s among 1,000 chunks without that.
# In a large index, terms that are in half of the chunks rank nothing; they are left out where `telling` says so.
_TERMS = """
here AS MATERIALIZED (
    SELECT chunks, terms, identity FROM {s}.generations WHERE {here}
), found AS MATERIALIZED (
    SELECT term, source, unnest(chunks) AS chunk, unnest(weights) AS weight, unnest(lengths) AS length
    FROM {s}.postings WHERE {here} AND term = ANY(%(terms)s)
), rarity AS MATERIALIZED (
    SELECT term, greatest(ln((here.chunks - count(*) + 0.5) / (count(*) + 0.5)), 1e-6)::float8 AS idf,
        %(telling)s AND count(*) >= %(share)s * here.chunks AND here.chunks >= %(large)s AS is_common
    FROM found, here GROUP BY term, here.chunks
)"""
_SCORE = """sum(idf * weight * (%(k1)s + 1) / (
    weight + %(k1)s * (1 - %(b)s + %(b)s * length / (here.terms::float8 / here.chunks))
))"""
RANKED = f"""
WITH {_TERMS}
SELECT chunk, {_SCORE} AS score FROM found JOIN rarity USING (term), here
WHERE NOT is_common AND (%(source)s::text IS NULL OR source = %(source)s)
    AND (%(ids)s::bigint[] IS NULL OR chunk = ANY(%(ids)s))
GROUP BY chunk HAVING count(*) >= %(needed)s ORDER BY score DESC, chunk LIMIT %(k)s
"""
# Cosines come before the join, whose hash then has no vectors in it.
_OF_ALL = """
    SELECT key, -(vector {v} %(vector)s) AS score FROM {s}.vectors
    WHERE tenant = %(tenant)s AND identity = %(model)s AND (%(zeros)s OR NOT is_zero)"""
_BEST = """
)
SELECT chunks.id, cosines.score FROM {s}.chunks JOIN cosines ON cosines.key = chunks.vector_key
WHERE chunks.tenant = %(tenant)s AND chunks.generation = %(generation)s AND chunks.identity = %(identity)s
    AND (%(source)s::text IS NULL OR chunks.source = %(source)s)
    AND (%(ids)s::bigint[] IS NULL OR chunks.id = ANY(%(ids)s))
ORDER BY score DESC, chunks.id LIMIT %(k)s
"""
NEAREST = f"WITH cosines AS MATERIALIZED ({_OF_ALL}{_BEST}"

_BY_TERMS = f"""
WITH {_TERMS}, asked AS MATERIALIZED (
    SELECT source FROM unnest(%(sources)s::text[]) AS source
    WHERE (SELECT true FROM {{s}}.files WHERE {{here}} AND files.source = source.source LIMIT 1)
), ranked AS MATERIALIZED (
    SELECT chunk, source, {_SCORE} AS score FROM found JOIN rarity USING (term), here WHERE NOT is_common
    GROUP BY chunk, source
), text AS MATERIALIZED (
    SELECT asked.source, best.chunk, best.score FROM asked, LATERAL (
        SELECT chunk, score FROM ranked WHERE ranked.source = asked.source
        ORDER BY score DESC, chunk LIMIT %(text_hits)s
    ) AS best
)"""
_BY_COSINES = """, cosines AS MATERIALIZED (
    SELECT key, -(vector {v} %(vector)s) AS score FROM {s}.vectors
    WHERE tenant = %(tenant)s AND identity = (SELECT identity FROM here) AND NOT is_zero
), scored AS MATERIALIZED (
    SELECT chunks.id, chunks.source, cosines.score
    FROM {s}.chunks JOIN cosines ON cosines.key = chunks.vector_key
    WHERE chunks.tenant = %(tenant)s AND chunks.generation = %(generation)s AND chunks.identity = ''
        AND chunks.source = ANY(%(sources)s)
), near AS MATERIALIZED (
    SELECT asked.source, best.id, best.score FROM asked, LATERAL (
        SELECT id, score FROM scored WHERE scored.source = asked.source ORDER BY score DESC, id LIMIT %(vector_hits)s
    ) AS best
)"""
_FOUND = """
SELECT 'chunks' AS kind, '' AS source, chunks AS id, 0::float8 AS score FROM here
UNION ALL SELECT 'source', source, 0, 0 FROM asked
UNION ALL SELECT 'common', '', term, 0 FROM rarity WHERE is_common
UNION ALL SELECT 'counted', '', term, sum(cardinality(chunks)) FROM {s}.postings
    WHERE {here} AND term = ANY(%(counted)s) GROUP BY term
UNION ALL SELECT 'text', source, chunk, score FROM text"""
_FOUND_NEAR = """
UNION ALL SELECT 'near', source, id, score FROM near"""
_COSINES = """
UNION ALL SELECT 'cosine', text.source, scored.id, scored.score FROM text JOIN scored ON scored.id = text.chunk"""

STORED = f"""
SELECT {", ".join(f"c.{name}" for name in rows_of.STORED)} FROM {{s}}.chunks AS c WHERE {{here}} AND id = ANY(%(ids)s)
ORDER BY id
"""
STORED_WITH_CODES = f"""
SELECT {", ".join(f"c.{name}" for name in rows_of.STORED)}, v.token_codes FROM {{s}}.chunks AS c
JOIN {{s}}.generations AS g ON g.tenant = c.tenant AND g.generation = c.generation
LEFT JOIN LATERAL (
    SELECT token_codes FROM {{s}}.vectors
    WHERE tenant = %(tenant)s AND identity = g.identity AND key = c.vector_key LIMIT 1
) AS v ON true
WHERE c.tenant = %(tenant)s AND c.generation = %(generation)s AND c.id = ANY(%(ids)s) ORDER BY c.id
"""
OF_FILES = f"""
SELECT {", ".join(rows_of.STORED)} FROM {{s}}.chunks WHERE {{here}} AND path = ANY(%(paths)s)
    AND identity = %(identity)s ORDER BY id
"""

Run = Callable[..., "psycopg.Cursor[Any]"]


def make_parameters(*, telling: bool) -> dict[str, Any]:
    """Return the constants of BM25, and which terms count as common."""
    return {"k1": K1, "b": B, "telling": telling, "share": COMMON_SHARE, "large": LARGE_INDEX}


def read_chunks(rows: list[tuple[Any, ...]], *, token_codes: bool = False) -> list[StoredChunk]:
    """Return the chunks of the rows of `STORED`, or of `STORED_WITH_CODES`."""
    if token_codes:
        return [rows_of.read_chunk(row[:-1], bytes(row[-1] or b"")) for row in rows]
    return [rows_of.read_chunk(row) for row in rows]


def read_hits(rows: Iterable[tuple[Any, ...]]) -> list[Hit]:
    """Return the hits of the rows of `NEAREST`; a cosine that rounding has put outside of -1 to 1 is put back."""
    return [Hit(chunk_id, min(1.0, max(-1.0, float(score)))) for chunk_id, score in rows]


def is_usual(request: HitRequest, dims: int | None) -> bool:
    """Return whether one round trip answers a request: nothing is filtered, and any of its terms will do.

    Args:
        request: The terms, the vector and the limits.
        dims: How long the vectors of the index are; a vector that does not fit is left to those who say so.
    """
    import numpy as np

    if not request.terms or request.match != "any" or request.where:
        return False
    vector = request.vector
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
    statement = _BY_TERMS + ("" if request.vector is None else _BY_COSINES) + _FOUND
    if request.vector is not None:
        statement += _FOUND_NEAR + (_COSINES if request.all_cosines else "")
    cursor = run(
        statement,
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
