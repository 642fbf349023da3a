-- The long statements of the store, by their names. `<name>` stands for the statement of that name, above.
--
-- In all statements `{s}` is the schema, `{here}` the rows of the tenant's index, and `{v}` the operator of pgvector.
-- The server's statistics know nothing of a tenant that is new: it takes each to have one row. So connections have no
-- loops over loops (`connections.PLANS`), and where single rows are wanted by their whole key, a LATERAL with a
-- LIMIT leaves the planner no other way: a search took 0.4 s among 1,000 chunks without that.

-- The columns of a chunk, in the order in which `rows.read_chunk` takes them.
-- name: columns
c.id, c.path, c.source, c.ordinal, c.start_line, c.end_line, c.start_char, c.text, c.context, c.section, c.metadata

-- name: stored
SELECT <columns> FROM {s}.chunks AS c WHERE {here} AND id = ANY(%(ids)s) ORDER BY id

-- name: stored_with_codes
SELECT <columns>, v.token_codes FROM {s}.chunks AS c
JOIN {s}.generations AS g ON g.tenant = c.tenant AND g.generation = c.generation
LEFT JOIN LATERAL (
    SELECT token_codes FROM {s}.vectors
    WHERE tenant = %(tenant)s AND identity = g.identity AND key = c.vector_key LIMIT 1
) AS v ON true
WHERE c.tenant = %(tenant)s AND c.generation = %(generation)s AND c.id = ANY(%(ids)s) ORDER BY c.id

-- name: of_files
SELECT <columns> FROM {s}.chunks AS c WHERE {here} AND path = ANY(%(paths)s) AND identity = %(identity)s ORDER BY id

-- In a large index, terms that are in half of the chunks rank nothing; they are left out where `telling` says so.
-- name: terms
here AS MATERIALIZED (
    SELECT chunks, terms, identity FROM {s}.generations WHERE {here}
), found AS MATERIALIZED (
    SELECT term, source, unnest(chunks) AS chunk, unnest(weights) AS weight, unnest(lengths) AS length
    FROM {s}.postings WHERE {here} AND term = ANY(%(terms)s)
), rarity AS MATERIALIZED (
    SELECT term, greatest(ln((here.chunks - count(*) + 0.5) / (count(*) + 0.5)), 1e-6)::float8 AS idf,
        %(telling)s AND count(*) >= %(share)s * here.chunks AND here.chunks >= %(large)s AS is_common
    FROM found, here GROUP BY term, here.chunks
)

-- name: score
sum(idf * weight * (%(k1)s + 1) / (
    weight + %(k1)s * (1 - %(b)s + %(b)s * length / (here.terms::float8 / here.chunks))
))

-- name: ranked
WITH <terms>
SELECT chunk, <score> AS score FROM found JOIN rarity USING (term), here
WHERE NOT is_common AND (%(source)s::text IS NULL OR source = %(source)s)
    AND (%(ids)s::bigint[] IS NULL OR chunk = ANY(%(ids)s))
GROUP BY chunk HAVING count(*) >= %(needed)s ORDER BY score DESC, chunk LIMIT %(k)s

-- Cosines come before the join, whose hash then has no vectors in it.
-- name: nearest
WITH cosines AS MATERIALIZED (
    SELECT key, -(vector {v} %(vector)s) AS score FROM {s}.vectors
    WHERE tenant = %(tenant)s AND identity = %(model)s AND (%(zeros)s OR NOT is_zero)
)
SELECT chunks.id, cosines.score FROM {s}.chunks JOIN cosines ON cosines.key = chunks.vector_key
WHERE chunks.tenant = %(tenant)s AND chunks.generation = %(generation)s AND chunks.identity = %(identity)s
    AND (%(source)s::text IS NULL OR chunks.source = %(source)s)
    AND (%(ids)s::bigint[] IS NULL OR chunks.id = ANY(%(ids)s))
ORDER BY score DESC, chunks.id LIMIT %(k)s

-- name: by_terms
WITH <terms>, asked AS MATERIALIZED (
    SELECT source FROM unnest(%(sources)s::text[]) AS source
    WHERE (SELECT true FROM {s}.files WHERE {here} AND files.source = source.source LIMIT 1)
), ranked AS MATERIALIZED (
    SELECT chunk, source, <score> AS score FROM found JOIN rarity USING (term), here WHERE NOT is_common
    GROUP BY chunk, source
), text AS MATERIALIZED (
    SELECT asked.source, best.chunk, best.score FROM asked, LATERAL (
        SELECT chunk, score FROM ranked WHERE ranked.source = asked.source
        ORDER BY score DESC, chunk LIMIT %(text_hits)s
    ) AS best
)

-- name: by_cosines
, cosines AS MATERIALIZED (
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
)

-- name: found
SELECT 'chunks' AS kind, '' AS source, chunks AS id, 0::float8 AS score FROM here
UNION ALL SELECT 'source', source, 0, 0 FROM asked
UNION ALL SELECT 'common', '', term, 0 FROM rarity WHERE is_common
UNION ALL SELECT 'counted', '', term, sum(cardinality(chunks)) FROM {s}.postings
    WHERE {here} AND term = ANY(%(counted)s) GROUP BY term
UNION ALL SELECT 'text', source, chunk, score FROM text

-- name: found_near
UNION ALL SELECT 'near', source, id, score FROM near

-- name: cosines
UNION ALL SELECT 'cosine', text.source, scored.id, scored.score FROM text JOIN scored ON scored.id = text.chunk

-- name: drop
WITH gone AS (
    DELETE FROM {s}.chunks WHERE {here} AND {which}
    RETURNING id, block, source, identity, length, terms
), touched AS MATERIALIZED (
    SELECT place, count = cardinality(ids) AS is_empty FROM (
        SELECT block, source, term, count(*) FROM gone CROSS JOIN unnest(terms) AS own (term)
        GROUP BY 1, 2, 3
    ) AS own CROSS JOIN LATERAL (
        SELECT ctid AS place, chunks AS ids FROM {s}.postings
        WHERE {here} AND term = own.term AND block = own.block AND source = own.source LIMIT 1
    ) AS old
), emptied AS (
    DELETE FROM {s}.postings
    WHERE {here} AND ctid = ANY(ARRAY(SELECT place FROM touched WHERE is_empty))
), changed AS (
    UPDATE {s}.postings SET (chunks, weights, lengths) = (
        SELECT array_agg(chunk), array_agg(weight), array_agg(length)
        FROM unnest(chunks, weights, lengths) AS each (chunk, weight, length)
        WHERE chunk NOT IN (SELECT id FROM gone)
    ) WHERE {here} AND ctid = ANY(ARRAY(SELECT place FROM touched WHERE NOT is_empty))
) SELECT count(*), coalesce(sum(length), 0) FROM gone WHERE identity = ''

-- name: vectors
SELECT c.id, v.vector FROM {s}.chunks AS c
JOIN {s}.generations AS g ON g.tenant = c.tenant AND g.generation = c.generation
CROSS JOIN LATERAL (
    SELECT vector, is_zero FROM {s}.vectors WHERE tenant = %(tenant)s AND key = c.vector_key
        AND identity = coalesce(nullif(c.identity, ''), g.identity) LIMIT 1
) AS v
WHERE c.tenant = %(tenant)s AND c.generation = %(generation)s AND c.id = ANY(%(ids)s)
    AND (c.identity <> '' OR NOT v.is_zero)

-- name: checked
SELECT
    (SELECT chunks FROM {s}.generations WHERE {here}),
    (SELECT count(*) FROM {s}.chunks WHERE {here} AND identity = ''),
    (SELECT count(*) FROM {s}.chunks AS c WHERE {here} AND NOT EXISTS (SELECT 1 FROM {s}.files AS f
        WHERE f.tenant = c.tenant AND f.generation = c.generation AND f.path = c.path)),
    (SELECT count(*) FROM (SELECT unnest(chunks) AS chunk FROM {s}.postings WHERE {here}) AS p
        WHERE NOT EXISTS (SELECT 1 FROM {s}.chunks WHERE {here} AND id = p.chunk)),
    (SELECT coalesce(sum(length), 0) FROM {s}.chunks WHERE {here} AND identity = ''),
    (SELECT terms FROM {s}.generations WHERE {here})

-- name: described
SELECT EXISTS (SELECT 1 FROM {s}.generations WHERE tenant = %(tenant)s AND meta IS NOT NULL)
    OR EXISTS (SELECT 1 FROM {s}.texts WHERE tenant = %(tenant)s)
    OR EXISTS (SELECT 1 FROM {s}.vectors WHERE tenant = %(tenant)s),
    current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    array(SELECT ((classid::bigint << 32) | objid::bigint) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted)

-- name: counted
SELECT (SELECT count(*) FROM {s}.files WHERE {here}),
    (SELECT count(*) FROM {s}.chunks WHERE {here} AND identity = ''),
    (SELECT count(*) FROM {s}.vectors WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM {s}.chunks AS c
        JOIN {s}.generations AS g ON g.tenant = c.tenant AND g.generation = c.generation
        JOIN {s}.vectors AS v ON v.tenant = c.tenant AND v.identity = g.identity AND v.key = c.vector_key
        WHERE c.tenant = %(tenant)s AND c.generation = %(generation)s AND c.identity = ''
            AND NOT v.is_zero AND coalesce(length(v.token_codes), 0) = 0)

-- name: write_generation
INSERT INTO {s}.generations (tenant, generation, live, meta, identity, last_id, chunks, terms, change)
VALUES (%(tenant)s, %(generation)s, %(live)s, %(meta)s, %(model)s, %(last_id)s, %(chunks)s, %(terms)s,
    %(change)s)
ON CONFLICT (tenant, generation) DO UPDATE SET live = excluded.live, meta = excluded.meta,
    identity = excluded.identity, last_id = excluded.last_id, chunks = excluded.chunks,
    terms = excluded.terms, change = excluded.change

-- name: prune
DELETE FROM {s}.vectors AS v WHERE tenant = %(tenant)s AND NOT EXISTS (
    SELECT 1 FROM {s}.chunks AS c
    JOIN {s}.generations AS g ON g.tenant = c.tenant AND g.generation = c.generation
    WHERE c.tenant = %(tenant)s AND c.vector_key = v.key
        AND coalesce(nullif(c.identity, ''), g.identity) = v.identity
)
