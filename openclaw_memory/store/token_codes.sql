-- Made by the first codes: most embedders give no tokens. A row belongs to a vector, and is removed with it.
CREATE TABLE IF NOT EXISTS token_codes (vector_id INTEGER PRIMARY KEY, codes BLOB NOT NULL);
