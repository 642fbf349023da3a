"""A store whose two legs find what a test has written down."""

import numpy as np

from openclaw_memory.store import gather_hits
from openclaw_memory.types import Chunk, Hit, StoredChunk
from openclaw_memory.types.files import SOURCES

VECTOR = np.array([1.0], np.float32)  # of every query: a vector of one number is then its own cosine


def stored(at, path, text="the boiler", start_line=1, start_char=0):
    source = "sessions" if path.startswith("sessions/") else "memory"
    return StoredChunk(at, path, source, Chunk(start_line, start_line + text.count("\n"), start_char, text), at)


class Shelf:
    """Holds `chunks`; finds the ids in `text` by any term, those in `every` by all of them, those in `near` by vector.

    `text`, `every`, `near` and `cosines` map ids to scores. What is `gone` is found and no longer there. Every call of a
    leg is noted in `calls`.
    """

    def __init__(self, chunks=(), text=None, every=None, near=None, cosines=None, gone=()):
        self.all = {chunk.id: chunk for chunk in chunks}
        self.there = {at: chunk for at, chunk in self.all.items() if at not in gone}
        self.legs = {"any": text or {}, "all": every or {}, "vector": near or {}}
        self.known = {**(cosines or {}), **self.legs["vector"]}
        self.calls = []

    def _hits(self, leg, k, source):
        self.calls.append((leg, source))
        hits = [Hit(at, score) for at, score in self.legs[leg].items()]
        return [hit for hit in hits if source is None or self.all[hit.chunk_id].source == source][:k]

    def search_text(self, _terms, k, *, match="any", source=None, where=None):
        assert where is None
        return self._hits(match, k, source)

    def search_vector(self, _vector, k, *, source=None, where=None):
        assert where is None
        return self._hits("vector", k, source)

    def get_vectors(self, ids):
        return {at: np.array([self.known[at]], np.float32) for at in ids if at in self.known}

    def get_chunks(self, ids):
        return [self.there[at] for at in sorted(ids) if at in self.there]

    def get_file_chunks(self, path):
        return [chunk for chunk in self.there.values() if chunk.path == path]

    def get_files(self):
        return dict.fromkeys(chunk.path for chunk in self.there.values())

    def find_hits(self, request):
        held = {chunk.source for chunk in self.there.values()}
        frequencies = dict.fromkeys(request.counted, 1)
        sources = [source for source in SOURCES if source in held]
        return gather_hits(self, request, frequencies=frequencies, chunk_count=len(self.there), sources=sources)
