"""The next index is built in a file beside, and takes the place of the old one whole, under the eyes of readers."""

import stat
import subprocess
import sys

import apsw
import pytest

from openclaw_memory.errors import IndexLockedError
from openclaw_memory.store import SqliteStore, connection, rebuild

READER = """
import sys
import numpy as np
from openclaw_memory.store import SqliteStore
store = SqliteStore.open(sys.argv[1])
print("reading", flush=True)
query, looks, seen = np.eye(1, 32, dtype=np.float32)[0], 0, []
while looks < 5 or seen[-1] != "new":
    with store.snapshot() as frozen:
        hits = frozen.search_text(["all"], 5000)
        near = frozen.search_vector(query, 5000)
        texts = {found.chunk.text.split()[0] for found in frozen.get_chunks(hit.chunk_id for hit in [*hits, *near])}
    assert len(texts) == 1 and len(hits) == len(near), (texts, len(hits), len(near))
    seen += texts
    looks += 1
    assert looks < 20_000
print(seen.count("old"), seen.count("new"), seen == sorted(seen, reverse=True), flush=True)
"""


def names(path):
    """What lies beside the index and is none of its own companions."""
    return sorted(file.name for file in path.parent.iterdir() if rebuild.SUFFIX in file.name)


def filled(store, build, word, count=300):
    """Chunks whose text begins with a word, as another index of the same files would have them."""
    build.fill(store, build.units(count))
    rows = [build.row(number, f"n{number} all") for number in range(count)]
    texts = [
        type(row)(type(row.chunk)(n, n, 0, f"{word} {n}"), row.terms, "", row.vector_key)
        for n, row in enumerate(rows, start=1)
    ]
    store.remove_files(store.get_files())
    store.replace_files([(build.record("memory/all.md"), texts)])


def next_index(store, build, word, count=300):
    """An index beside that is filled and awaits its publishing."""
    next_one = store.begin_build(store.read_meta(), keep_rows=True)
    filled(next_one.store, build, word, count)
    return next_one


def first_words(store):
    return {
        found.chunk.text.split()[0] for found in store.get_chunks(hit.chunk_id for hit in store.search_text(["all"], 9))
    }


@pytest.mark.fault(44)
def test_the_file_beside_is_for_its_owner_alone(store, path, build):
    filled(store, build, "old", count=3)
    next_one = store.begin_build(store.read_meta(), keep_rows=True)
    modes = {stat.S_IMODE((path.parent / name).stat().st_mode) for name in names(path)}
    next_one.abort()
    assert modes == {0o600}


def test_readers_in_another_process_see_the_old_index_or_the_new_one(store, path, build):
    filled(store, build, "old")
    command = [sys.executable, "-W", "error", "-c", READER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "reading\n"
        for word in ("old", "old", "new"):
            next_index(store, build, word).publish()
        told = reader.stdout.read().split()
    assert reader.returncode == 0
    assert told[2] == "True", "the old index came back"


def test_a_reader_in_the_midst_of_an_old_index_keeps_it_until_it_is_done(store, build):
    filled(store, build, "old")
    with store.snapshot() as frozen:
        assert first_words(frozen) == {"old"}
        next_index(store, build, "new").publish()
        assert (first_words(frozen), first_words(store)) == ({"old"}, {"new"})
    assert first_words(store) == {"new"}


def test_a_writer_that_never_ends_is_named_and_the_old_index_stays(path, build, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 100)
    store = SqliteStore.open(path)
    filled(store, build, "old", count=3)
    next_one = next_index(store, build, "new", count=3)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(IndexLockedError):
        next_one.publish()
    other.execute("ROLLBACK")
    other.close()
    assert (first_words(store), names(path)) == ({"old"}, [])
    store.close()


def test_leftovers_are_swept_and_nothing_else(store, path, build):
    filled(store, build, "old", count=3)
    store.begin_build(store.read_meta()).store.close()
    persons = path.with_name("index.sqlite-rebuild.txt")
    persons.touch()
    assert names(path) != []
    rebuild.sweep(path)
    assert (names(path), persons.exists(), first_words(store)) == ([], True, {"old"})


def test_a_store_follows_its_file_when_that_is_deleted_or_replaced(store, path, build):
    filled(store, build, "old", count=3)
    path.rename(path.with_name("away"))
    assert (store.read_meta(), store.describe().exists, path.exists()) == (None, False, False)
    filled(store, build, "new", count=3)
    assert first_words(store) == {"new"}
