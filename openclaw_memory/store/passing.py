"""Which chunks pass a filter: read once for each filter, and afterwards only of chunks that are new.

An id never comes to name another chunk, so that what was found out about it stays true.
"""

from __future__ import annotations

from functools import cache as cache_of
from typing import TYPE_CHECKING, TypeAlias

from openclaw_memory.store.connection import fetch
from openclaw_memory.store.rows import metadata_in
from openclaw_memory.types.where import ChunkTest, Where, chunk_test

if TYPE_CHECKING:
    import apsw

# By the index file and the filter: up to which chunk all are known, and the ids of those that pass.
Cache: TypeAlias = dict[tuple[object, ChunkTest], tuple[int, frozenset[int]]]

MOST_IDS = 250_000  # of all filters together, about 16 MB; the latest filter is always kept
OF_FILE = "SELECT value FROM meta WHERE key = 'signature'"
# Where a chunk has no file, reading it finds the damage.
LATER = """
SELECT chunks.id, coalesce(path, ''), metadata FROM chunks LEFT JOIN files ON files.id = file_id WHERE chunks.id > ?
"""


def ids_of(db: apsw.Connection, cache: Cache, where: Where) -> frozenset[int]:
    """Return the ids of all chunks that pass a filter; ids of chunks that are gone may be among them.

    Raises:
        QueryError: The filter is not valid.
    """
    test = chunk_test(where)
    key = tuple(fetch(db, OF_FILE)), test
    known, ids = cache.pop(key, (0, frozenset[int]()))
    ((last,),) = fetch(db, "SELECT coalesce(max(id), 0) FROM chunks")
    if last > known:
        ((count,),) = fetch(db, "SELECT count(*) FROM chunks")
        if len(ids) > 2 * count:  # most of them are gone
            known, ids = 0, frozenset()
        later = fetch(db, LATER, (known,))
        passes = cache_of(lambda path, written: test(path, metadata_in(written)))  # mostly the same in a whole file
        ids |= {chunk_id for chunk_id, path, written in later if passes(path, written)}
    cache[key] = max(known, last), ids
    left = MOST_IDS
    for kept in reversed(list(cache)):
        left -= len(cache[kept][1]) if kept in cache else 0
        if left < 0 and kept != key:
            cache.pop(kept, None)
    return ids
