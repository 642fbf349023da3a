-- Made by the first row: an empty table with its indexes would take three pages of every index. `key` is the whole
-- SHA-256.
CREATE TABLE IF NOT EXISTS document_vectors (
  id INTEGER PRIMARY KEY,
  file_id INTEGER NOT NULL,
  model_id INTEGER NOT NULL,
  key BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS document_vectors_by_file ON document_vectors (file_id);
CREATE INDEX IF NOT EXISTS document_vectors_by_model ON document_vectors (model_id);
