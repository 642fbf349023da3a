import json
import sys
from contextlib import closing
from importlib.metadata import version

import apsw
import pytest

from openclaw_memory.errors import EmbedderError, IndexReplacedError, StoreError
from openclaw_memory.store import SqliteStore
from openclaw_memory.testing import check_store
from openclaw_memory.types import Chunk, ChunkRow


@pytest.mark.parametrize("vector_extension", [True, False], ids=["sqlite-vec", "scan"])
def test_it_keeps_the_contract_of_a_store(tmp_path, vector_extension):
    numbers = iter(range(1000))
    check_store(lambda: SqliteStore.open(tmp_path / f"{next(numbers)}" / "i.sqlite", vector_extension=vector_extension))


@pytest.mark.parametrize("value", ["ends in half a pair \ud83d", "a\ud800b"])
def test_text_that_is_no_unicode_is_refused_whole(store, value, build):
    store.begin_build(build.META).publish()
    bad = ChunkRow(Chunk(1, 1, 0, value), "term", "", None)
    with pytest.raises(StoreError, match="lone surrogates"):
        store.replace_files(
            [
                (build.record("memory/good.md"), [build.row(1, with_vector=False)]),
                (build.record("memory/bad.md"), [bad]),
            ]
        )
    assert store.get_files() == {}


def test_a_store_without_meta_takes_no_rows(store, build):
    with pytest.raises(StoreError, match="begin_build"):
        store.replace_files([(build.record("memory/0.md"), [])])
    with pytest.raises(StoreError, match="begin_build"):
        store.add_vectors([build.key(1)], build.units(1))


def test_a_key_that_is_no_hash_is_named(store, build):
    store.begin_build(build.META).publish()
    with pytest.raises(StoreError, match="'not hex'"):
        store.add_vectors(["not hex"], build.units(1))


def test_stats_name_the_engine_and_what_lies_on_disk(store, path, build):
    build.fill(store, build.units(300))
    stats = store.describe()
    assert (stats.files, stats.chunks, stats.vectors) == (6, 300, 300)
    assert stats.size_bytes == path.stat().st_size + path.with_name("index.sqlite-wal").stat().st_size
    assert stats.engine["journal_mode"] == "wal"
    assert stats.engine["sqlite_vec"] == f"v{version('sqlite-vec')}"


def test_the_meta_key_is_the_one_that_openclaw_uses(store, path, build):
    store.begin_build(build.META).publish()
    db = apsw.Connection(str(path))
    ((value,),) = db.execute("SELECT value FROM meta WHERE key = 'memory_index_meta_v1'").fetchall()
    db.close()
    assert json.loads(value)["identity"] == "check/model"


def test_without_the_package_the_scan_takes_over_and_says_why(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    store = SqliteStore.open(path)
    assert store.describe().vector_path == "scan"
    assert store.describe().vector_error == "the package sqlite-vec is not installed"
    store.close()


def test_reading_writes_nothing(store, path, build):
    vectors = build.units(20)
    build.fill(store, vectors)
    store.prune()
    watcher = apsw.Connection(str(path))
    before = watcher.execute("PRAGMA data_version").fetchall()
    store.find_keys([build.key(3), build.key("other")])
    store.find_keys([build.key(3)], "check/other")
    store.search_vector(vectors[3], 5)
    store.search_text(["all"], 5)
    store.get_vectors([1, 2])
    store.prune()
    assert watcher.execute("PRAGMA data_version").fetchall() == before
    store.remove_files(["memory/0.md"])
    assert watcher.execute("PRAGMA data_version").fetchall() != before
    watcher.close()


def test_dimensions_that_do_not_fit_name_both_numbers_and_the_identity(store, build):
    store.add_vectors([build.key(1)], build.units(1, dims=8), "check/next")
    with pytest.raises(EmbedderError, match=r"have 16 dimensions, .* some of 8 .* 'check/next'; name the dimensions"):
        store.add_vectors([build.key(2)], build.units(1, dims=16), "check/next")


def test_rows_whose_vectors_went_with_a_deleted_index_are_told_from_rows_without_vectors(store, path, build):
    store.begin_build(build.META).publish()
    store.add_vectors([build.key(1)], build.units(1))
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    with closing(SqliteStore.open(path)) as other:  # of another process, which has built the index again
        other.begin_build(build.META).publish()
    rows = [(build.record("memory/a.md"), [build.row(1)])]
    with pytest.raises(IndexReplacedError, match="deleted and built again"):
        store.replace_files(rows, made_for=build.META)
    with pytest.raises(StoreError, match="call add_vectors"):
        store.replace_files(rows)
