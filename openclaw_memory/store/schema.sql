-- The index of one memory. Everything here is derived from the Markdown files and may be deleted at any time.
-- A reset makes the tables again, except those that are made IF NOT EXISTS.

-- 'memory_index_meta_v1': what the index was built with, as JSON.
-- 'note:<name>': a short text that outlives a reset.
-- 'files_change': another text after each change of files.
-- 'document_vectors_change': another text after each change of document_vectors or of the vectors that it names.
-- 'changes': which chunks the last writes removed, as JSON (rows.py).
-- 'chunk_vectors_dims': dimensions of chunk_vectors; absent while that table does not match chunks.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

CREATE TABLE files (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  source TEXT NOT NULL,
  hash NOT NULL, -- a SHA-256 as 32 bytes, or the mark of a transcript as text
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  checked_ns INTEGER NOT NULL,
  lacks TEXT, -- why some of its chunks have no vectors yet; NULL when they have all
  ctime_ns INTEGER NOT NULL,
  doc_id TEXT, -- of the document in it; NULL for any other file
  part_of TEXT, -- the id of what that document is a part of
  left_out TEXT -- the marks of the policies that leave lines of it out; NULL for none
);
CREATE INDEX files_by_document ON files (doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX files_by_whole ON files (part_of) WHERE part_of IS NOT NULL;

-- AUTOINCREMENT: an id is never used twice, so that an old hit cannot come to name another chunk.
-- vector_id comes before text, to be read without walking a long row.
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  file_id INTEGER NOT NULL,
  vector_id INTEGER,
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  start_char INTEGER NOT NULL,
  section INTEGER NOT NULL,
  ordinal INTEGER NOT NULL, -- position among the chunks of its file, from 0
  metadata TEXT, -- a JSON object of scalars to filter by; NULL for none
  checksum INTEGER NOT NULL, -- keyed hash of all that a chunk says, its file included
  context TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX chunks_by_file ON chunks (file_id);

-- Vectors are addressed by content and outlive their chunks until the end of a sync. Little-endian: int16 for the model
-- of the chunks, whose vectors are of length 1; float32 for those of documents. The length of the row says which.
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dims INTEGER);
CREATE TABLE IF NOT EXISTS vectors (
  id INTEGER PRIMARY KEY,
  model_id INTEGER NOT NULL,
  key BLOB NOT NULL,
  embedding BLOB NOT NULL,
  UNIQUE (model_id, key)
);

-- The codes of the tokens of a text, with its vector.
CREATE TABLE IF NOT EXISTS token_codes (vector_id INTEGER PRIMARY KEY, codes BLOB NOT NULL);

-- The vectors that came with documents, in no chunk. `key` is the whole SHA-256.
CREATE TABLE document_vectors (
  id INTEGER PRIMARY KEY,
  file_id INTEGER NOT NULL,
  model_id INTEGER NOT NULL,
  key BLOB NOT NULL
);
CREATE INDEX document_vectors_by_file ON document_vectors (file_id);

-- Terms arrive segmented and folded, parted by spaces. Every ASCII sign but the double quote may occur in a term.
CREATE VIRTUAL TABLE chunk_terms USING fts5 (
  terms, context_terms, content='', contentless_delete=1,
  tokenize="ascii tokenchars '!#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);
CREATE VIRTUAL TABLE term_counts USING fts5vocab (chunk_terms, 'row');
