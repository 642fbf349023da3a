"""The schema and the query that OpenClaw's own documents give, on the same chunks and vectors: what ours is set against.

Chunks with their embedding as JSON, contentful FTS5 whose other columns are UNINDEXED, vectors in vec0; a search joins
both tables for a scalar cosine of every row, asks FTS5 for all words at once, and adds 0.7 and 0.3 of the scores.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Sequence
from pathlib import Path

import apsw

from openclaw_memory.types import Embedder, StoredChunk

MODEL = "static"
CANDIDATES = 24  # 6 results x multiplier 4
RESULTS = 6
MIN_SCORE = 0.35
VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
SNIPPET_CHARS = 700
BATCH = 2048

SCHEMA = """
CREATE TABLE chunks (
  id TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory', start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL, hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, embedding TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX idx_chunks_path ON chunks(path);
CREATE INDEX idx_chunks_source ON chunks(source);
CREATE VIRTUAL TABLE chunks_fts USING fts5(
  text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED
);
CREATE VIRTUAL TABLE chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[{dims}]);
"""
ADD_CHUNK = "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
ADD_TEXT = "INSERT INTO chunks_fts VALUES (?, ?, ?, ?, ?, ?, ?)"
NEAREST = """
SELECT c.id, c.path, c.start_line, c.end_line, c.text, c.source, vec_distance_cosine(v.embedding, ?) AS dist
FROM chunks_vec v JOIN chunks c ON c.id = v.id
WHERE c.model = ? AND c.source IN ('memory', 'sessions') ORDER BY dist ASC LIMIT ?
"""
MATCHING = """
SELECT id, path, start_line, end_line, text, source, bm25(chunks_fts) AS rank FROM chunks_fts
WHERE chunks_fts MATCH ? AND model = ? AND source IN ('memory', 'sessions') ORDER BY rank ASC LIMIT ?
"""


def build(path: Path, chunks: Sequence[StoredChunk], embedder: Embedder) -> apsw.Connection:
    """OpenClaw's documented index of these chunks."""
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    spec = importlib.util.find_spec("sqlite_vec")
    assert spec is not None
    assert spec.submodule_search_locations
    db.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
    db.execute(SCHEMA.format(dims=len(embedder.embed_query("memory")))).fetchall()
    for first in range(0, len(chunks), BATCH):
        batch = chunks[first : first + BATCH]
        vectors = embedder.embed_documents([stored.chunk.embedding_text for stored in batch])
        with db:
            for stored, vector in zip(batch, vectors, strict=True):
                chunk, digest = stored.chunk, hashlib.sha256(stored.chunk.text.encode()).hexdigest()
                place = (stored.path, stored.source, chunk.start_line, chunk.end_line)
                key = hashlib.sha256(f"{place}:{digest}:{MODEL}:{stored.id}".encode()).hexdigest()
                db.execute(ADD_CHUNK, (key, *place, digest, MODEL, chunk.text, json.dumps(vector.tolist())))
                db.execute(ADD_TEXT, (chunk.text, key, *place[:2], MODEL, *place[2:]))
                db.execute("INSERT INTO chunks_vec VALUES (?, ?)", (key, vector.tobytes()))
    return db


def search(db: apsw.Connection, embedder: Embedder, question: str) -> list[tuple[float, str]]:
    """OpenClaw's documented query: scores and snippets, best first."""
    found: dict[str, list[float]] = {}
    texts: dict[str, str] = {}
    for row in db.execute(NEAREST, (embedder.embed_query(question).tobytes(), MODEL, CANDIDATES)):
        found[row[0]], texts[row[0]] = [1 - row[6], 0.0], row[4]
    words = " AND ".join(f'"{word}"' for word in re.findall(r"[A-Za-z0-9_]+", question))
    for row in db.execute(MATCHING, (words, MODEL, CANDIDATES)) if words else ():
        found.setdefault(row[0], [0.0, 0.0])[1] = 1 / (1 + max(0.0, row[6]))
        texts[row[0]] = row[4]
    scores = {key: VECTOR_WEIGHT * vector + TEXT_WEIGHT * text for key, (vector, text) in found.items()}
    best = sorted(scores, key=lambda key: -scores[key])
    return [(scores[key], texts[key][:SNIPPET_CHARS]) for key in best if scores[key] >= MIN_SCORE][:RESULTS]
