"""An index with the tables of another version is built again from the notes."""

import apsw
import pytest
from index_files import index_file

from openclaw_memory import Memory
from openclaw_memory.errors import CorruptIndexError, EmbedderError
from openclaw_memory.store import SqliteStore
from openclaw_memory.store.schema import SCHEMA_VERSION


def make_older(path):
    with apsw.Connection(str(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    db.close()


@pytest.mark.parametrize("by", ["search", "sync"])
def test_an_index_of_an_earlier_version_is_built_again_and_says_why(tmp_path, by):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "MEMORY.md").write_text("The plumber comes on Friday.\n")
    with Memory.open(tmp_path / "agent", embedder=None) as memory:
        memory.sync()
    make_older(index_file(tmp_path / "agent"))
    with Memory.open(tmp_path / "agent", embedder=None) as memory:
        results = memory.search("plumber") if by == "search" else None
        reason = results.reason if results else memory.sync().rebuilt
        assert f"its tables are of version {SCHEMA_VERSION - 1}" in str(reason)
        assert memory.search("plumber")[0].path == "MEMORY.md"
        assert memory.status(deep=True).problems == ()


def test_a_store_of_an_earlier_version_is_neither_read_nor_written(store, path, build):
    build.fill(store, build.units(3))
    store.close()
    make_older(path)
    with pytest.raises(CorruptIndexError, match="its tables are of version"):
        SqliteStore.open(path)


def test_a_reset_that_is_refused_changes_nothing(store, build):
    build.fill(store, build.units(60), per_file=20)
    with pytest.raises(EmbedderError, match="have 99 dimensions"):
        store.begin_build(type(build.META)(**{**_fields(build.META), "dims": 99})).publish()
    assert (store.describe().chunks, len(store.search_text(["all"], 100))) == (60, 60)
    assert [hit.chunk_id for hit in store.search_vector(build.units(60)[7], 1)] == [8]
    assert store.verify() == ()


def _fields(meta):
    return {name: getattr(meta, name) for name in ("provider", "model", "identity", "chunking", "schema_version")}
