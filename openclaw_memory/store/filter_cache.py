"""Find the chunks that pass a filter: all once for each filter, and afterwards only those that are new.

The paths and metadata of chunks that filters test are read once and kept, so that a new filter reads no table. An id
never comes to name another chunk, so that a cached answer stays true.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache as cache_of
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from openclaw_memory.store.connection import fetch
from openclaw_memory.store.rows import decode_metadata
from openclaw_memory.store.schema import SCHEMA_VERSION
from openclaw_memory.types.conditions import FileRange, Metadata, Where, get_ranges

if TYPE_CHECKING:
    import apsw


class Run(NamedTuple):
    """Chunks with successive ids, of one file and with equal metadata."""

    first: int
    last: int
    path: str
    metadata: Metadata


class Cache(Struct):
    """The `runs` of an index by its file, and the ids of `passing` chunks by file and filter.

    Each with the id up to which chunks were read.
    """

    runs: dict[object, tuple[int, tuple[Run, ...]]] = field(default_factory=dict)
    passing: dict[tuple[object, Where], tuple[int, frozenset[int]]] = field(default_factory=dict)


MOST_IDS = 250_000  # of all filters together, about 16 MB; the latest filter is always kept
LEAST_IDS = 100  # that a filter counts as, however few pass: it takes memory itself
MOST_RUNS = 50_000  # that are kept, 20 MB where each has metadata of its own
OF_FILE = "SELECT value FROM meta WHERE key = 'index_id'"
# Where a chunk has no file, reading it finds the damage.
LATER = """
SELECT chunks.id, coalesce(path, ''), metadata FROM chunks LEFT JOIN files ON files.id = file_id WHERE chunks.id > ?
ORDER BY chunks.id
"""
# Of `{files}` alone, from the index of chunks by file.
LATER_IN_FILES = """
SELECT chunks.id, path, metadata FROM ({files}) AS wanted CROSS JOIN files ON files.id = wanted.id
CROSS JOIN chunks ON chunks.file_id = wanted.id WHERE chunks.id > ? ORDER BY chunks.id
"""
NO_FILES = "SELECT id FROM files WHERE FALSE"
WITH_TEXT = "SELECT id FROM files WHERE {column} IN (SELECT value FROM json_each(?))"
WITH_PREFIX = "SELECT id FROM files WHERE {column} >= ? AND {column} < ?"


def find_ids(db: apsw.Connection, cache: Cache, test: Where) -> frozenset[int]:
    """Return the ids of all chunks that pass a filter; ids of chunks that are gone may be among them."""
    file = tuple(fetch(db, OF_FILE))
    start, ids = cache.passing.pop((file, test), (0, frozenset[int]()))
    ((last,),) = fetch(db, "SELECT coalesce(max(id), 0) FROM chunks")
    if last > start:
        ((count,),) = fetch(db, "SELECT count(*) FROM chunks")
        if len(ids) > 2 * count:  # most of them are gone
            start, ids = 0, frozenset()
        if (ranges := get_ranges(test)) and fetch(db, "PRAGMA user_version") == [(SCHEMA_VERSION,)]:
            later = tuple(_read(db, start, ranges))
        else:
            runs = _list_runs(db, cache, file, last, count)
            later = runs[bisect_right(runs, start, key=lambda run: run.last) :]
        ids = ids.union(*(range(run.first, run.last + 1) for run in later if test(run.path, run.metadata)))
    cache.passing[file, test] = max(start, last), ids
    left = MOST_IDS
    for key in reversed(list(cache.passing)):
        left -= max(LEAST_IDS, len(cache.passing[key][1])) if key in cache.passing else 0
        if left < 0 and key != (file, test):
            cache.passing.pop(key, None)
    return ids


def _list_runs(db: apsw.Connection, cache: Cache, file: object, last: int, count: int) -> tuple[Run, ...]:
    """Return the runs of all chunks up to `last`, by ascending ids; `count` chunks still exist."""
    start, runs = cache.runs.get(file, (0, ()))
    if last > start:
        runs = (*runs, *_read(db, start))
        if len(runs) > 2 * count:  # most of them are gone
            runs = tuple(_read(db, 0))
        cache.runs.clear()
        if len(runs) <= MOST_RUNS:
            cache.runs[file] = last, runs
    return runs


def end_of_prefix(prefix: str) -> str:
    """Return the least text above all that begin with a prefix, which is not empty."""
    following = ord(prefix[-1]) + 1
    if following > sys.maxunicode:
        return end_of_prefix(prefix[:-1]) if prefix[:-1] else 2 * prefix
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)


def _select_files(ranges: Iterable[FileRange]) -> tuple[str, list[str]]:
    """Return the statement that selects the ids of the files in ranges by indexes alone, and its values."""
    parts: list[str] = []
    values: list[str] = []
    texts: dict[str, list[str]] = {}
    for column, text, is_prefix in ranges:
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            continue  # no file has it
        if is_prefix:
            parts.append(WITH_PREFIX.format(column=column))
            values += [text, end_of_prefix(text)]
        else:
            texts.setdefault(column, []).append(text)
    parts += [WITH_TEXT.format(column=column) for column in texts]
    return " UNION ".join(parts or [NO_FILES]), values + list(map(json.dumps, texts.values()))


def _read(db: apsw.Connection, start: int, ranges: Sequence[FileRange] = ()) -> Iterator[Run]:
    """Yield the runs of the chunks with an id above `start`, of the files in ranges if there are any."""
    decode = cache_of(decode_metadata)  # one object for the many files that say the same
    run = last_raw = None
    files, values = _select_files(ranges) if ranges else ("", [])
    statement = LATER_IN_FILES.format(files=files) if ranges else LATER
    for chunk_id, path, raw in fetch(db, statement, (*values, start)):
        if run is not None and (chunk_id, path, raw) == (run.last + 1, run.path, last_raw):
            run = run._replace(last=chunk_id)
            continue
        if run is not None:
            yield run
        run, last_raw = Run(chunk_id, chunk_id, path, decode(raw)), raw
    if run is not None:
        yield run
