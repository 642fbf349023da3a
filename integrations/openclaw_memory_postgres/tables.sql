-- The indexes of many agents in one PostgreSQL database, and their notes. Every key begins with `tenant`, so that Citus can
-- put the rows of one agent on one server: see citus.sql.

CREATE TABLE IF NOT EXISTS {schema}.generations (
    tenant uuid NOT NULL,
    generation integer NOT NULL,
    live boolean NOT NULL,
    meta text,                       -- JSON; NULL before the first build
    identity text,                   -- the model of the chunks' vectors, as meta has it
    last_id bigint NOT NULL,         -- ids are never given twice
    chunks bigint NOT NULL DEFAULT 0,
    terms bigint NOT NULL DEFAULT 0, -- occurrences in all chunks, for the average length
    change text NOT NULL,            -- another one after each write
    PRIMARY KEY (tenant, generation)
);
CREATE UNIQUE INDEX IF NOT EXISTS generations_live ON {schema}.generations (tenant) WHERE live;
CREATE TABLE IF NOT EXISTS {schema}.texts (
    tenant uuid NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE IF NOT EXISTS {schema}.files (
    tenant uuid NOT NULL,
    generation integer NOT NULL,
    path text NOT NULL,
    source text NOT NULL,
    hash text NOT NULL,
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    inode numeric(20) NOT NULL,      -- unsigned, of 64 bits
    checked_ns bigint NOT NULL,
    vectors_missing text,
    ctime_ns bigint NOT NULL,
    doc_id text,
    part_of text,
    left_out text,
    PRIMARY KEY (tenant, generation, path)
);
CREATE INDEX IF NOT EXISTS files_doc_id ON {schema}.files (tenant, generation, doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS files_part_of ON {schema}.files (tenant, generation, part_of) WHERE part_of IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.chunks (
    tenant uuid NOT NULL,
    generation integer NOT NULL,
    id bigint NOT NULL,
    block bigint NOT NULL,           -- the first id of those that were written with it
    path text NOT NULL,
    source text NOT NULL,
    identity text NOT NULL,          -- '' for a chunk, else the model of a vector that came with the file
    vector_key text,
    ordinal integer NOT NULL,
    start_line integer NOT NULL,
    end_line integer NOT NULL,
    start_char bigint NOT NULL,
    section integer NOT NULL,
    length integer NOT NULL,         -- in terms
    terms bigint[] NOT NULL,         -- the keys of its postings: an index of them by chunk would cost far more
    text text NOT NULL,
    context text NOT NULL,
    metadata text NOT NULL,          -- JSON in ASCII, which may hold NUL, as jsonb may not
    PRIMARY KEY (tenant, generation, id)
);
CREATE INDEX IF NOT EXISTS chunks_path ON {schema}.chunks (tenant, generation, path);
CREATE INDEX IF NOT EXISTS chunks_vector
    ON {schema}.chunks (tenant, generation, identity, source) INCLUDE (vector_key, id);
-- A row has all chunks of a block with a term, in arrays side by side: a row for each would take eight times the disk, and
-- most of the time of an index. A term is a hash of 64 bits: terms of any length, with any character.
CREATE TABLE IF NOT EXISTS {schema}.postings (
    tenant uuid NOT NULL,
    generation integer NOT NULL,
    term bigint NOT NULL,
    block bigint NOT NULL,
    source text NOT NULL,
    chunks bigint[] NOT NULL,        -- their ids
    weights real[] NOT NULL,         -- occurrences in the text, and half of those in the context
    lengths real[] NOT NULL,         -- of the chunks, in terms
    PRIMARY KEY (tenant, generation, term, block, source)
);
-- Vectors outlive their chunks, and belong to all generations: they are what costs most.
CREATE TABLE IF NOT EXISTS {schema}.vectors (
    tenant uuid NOT NULL,
    identity text NOT NULL,
    key text NOT NULL,
    vector {vectors}.vector NOT NULL,
    is_zero boolean NOT NULL,
    token_codes bytea,
    PRIMARY KEY (tenant, identity, key)
);
-- The notes of tenants whose address says files=column. One that has gone keeps a row without path and bytes: other copies
-- have to learn that it has.
CREATE TABLE IF NOT EXISTS {schema}.notes (
    tenant uuid NOT NULL,
    key text NOT NULL,               -- the SHA-256 of the path
    path text,
    bytes bytea,
    hash text,
    changed_ns bigint NOT NULL,
    version bigint NOT NULL,         -- counts the changes of a tenant
    PRIMARY KEY (tenant, key)
);
CREATE INDEX IF NOT EXISTS notes_version ON {schema}.notes (tenant, version);
