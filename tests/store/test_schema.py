"""An index with the tables of an older version: it answers, takes no rows, and is made again by a sync."""

from dataclasses import replace

import apsw
import pytest
from index_files import index_file

from openclaw_memory import Memory, MemoryConfig, SyncConfig
from openclaw_memory.errors import EmbedderError, StoreError
from openclaw_memory.store import SqliteStore
from openclaw_memory.store.schema import SCHEMA_VERSION

OLDER = SCHEMA_VERSION - 1


def make_older(path):
    """Turn an index into one as the version before would have left it, as far as that can be told from the outside."""
    db = apsw.Connection(str(path))
    db.execute(f"UPDATE meta SET value = json_set(value, '$.schema_version', {OLDER}) WHERE key LIKE 'memory_index%'")
    db.execute(f"PRAGMA user_version = {OLDER}")
    db.close()


@pytest.fixture
def old(store, path, build):
    """A store opened on an older file that holds 60 chunks."""
    build.fill(store, build.units(60), per_file=20)
    store.close()
    make_older(path)
    opened = SqliteStore.open(path)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path):
    notes = tmp_path / "agent" / "memory"
    notes.mkdir(parents=True)
    for number, text in enumerate(["The plumber comes on Friday.", "Anna plays the cello.", "The boat is blue."]):
        (notes / f"note-{number}.md").write_text(f"# Note\n\n{text}\n", encoding="utf-8")
    return notes.parent


def test_an_older_index_is_read_as_ever(old, build):
    vector = build.units(60)[7]
    assert old.meta().schema_version == OLDER
    assert old.files()["memory/0.md"] == build.record("memory/0.md")
    assert (old.describe().chunks, len(old.files()), len(old.file_chunks("memory/20.md"))) == (60, 3, 20)
    assert len(old.search_text(["all"], 100)) == 60
    assert [hit.chunk_id for hit in old.search_vector(vector, 1)] == [8]
    assert old.vectors([8])[8] == pytest.approx(vector, abs=1e-5)
    assert old.known_vectors([build.key(7)]) == {build.key(7)}
    assert old.describe().vectors == 60
    assert old.verify() == ()


@pytest.mark.usefixtures("old")
def test_an_older_index_is_read_where_it_may_not_be_written(path, build):
    reader = SqliteStore.open(path, read_only=True)
    assert reader.files()["memory/0.md"] == build.record("memory/0.md")
    reader.close()


@pytest.mark.parametrize("method", ["replace_files", "remove_files", "prune"])
def test_an_older_index_takes_no_rows_and_says_what_to_do(old, build, method):
    record = build.record("memory/0.md")
    values = {"replace_files": [[(record, [])]], "remove_files": [[record.path]], "prune": []}[method]
    with pytest.raises(StoreError, match=r"tables of another version .*sync to build the index again"):
        getattr(old, method)(*values)
    assert old.describe().chunks == 60


def test_vectors_can_be_gathered_in_an_older_index_and_a_reset_keeps_them(old, build):
    old.add_vectors([build.key("next")], build.units(1), "check/next")
    old.begin_build(build.META).publish()
    assert (old.describe().chunks, old.files()) == (0, {})
    assert old.describe().vectors == 61
    assert old.known_vectors([build.key("next")], "check/next") == {build.key("next")}
    old.replace_files([(build.record("memory/0.md"), [build.row(7)])])
    assert [hit.chunk_id for hit in old.search_vector(build.units(60)[7], 5)] == [61]
    assert old.prune() == 60
    assert old.verify() == ()


def test_a_memory_answers_from_an_older_index_and_a_sync_builds_it_again(folder):
    with Memory.open(folder, embedder="hashing") as memory:
        assert memory.sync().embedded == 3
        expected = [result.citation for result in memory.search("When does the plumber come?")]
    index = index_file(folder)
    make_older(index)
    (folder / "memory" / "note-1.md").write_text("# Note\n\nAnna plays the viola.\n", encoding="utf-8")
    by_hand = MemoryConfig(sync=SyncConfig(on_search=False))
    with Memory.open(folder, embedder="hashing", config=by_hand) as memory:
        found = memory.search("When does the plumber come?")
        assert (found[0].citation, found.mode, found.stale) == (expected[0], "hybrid", True)
        assert any(f"schema {OLDER}" in notice for notice in memory.status(deep=True).notices)
        report = memory.sync()
        assert report.rebuilt == f"the index had schema {OLDER}, this version writes {SCHEMA_VERSION}"
        assert (report.changed, report.unchanged, report.embedded) == (("memory/note-1.md",), 2, 1)
        assert memory.search("Anna viola")[0].path == "memory/note-1.md"
        assert memory.sync().rebuilt is None
        assert memory.status(deep=True).problems == ()


@pytest.mark.parametrize("older", [True, False])
def test_a_reset_that_is_refused_changes_nothing(request, store, build, older):
    index = request.getfixturevalue("old") if older else store
    if not older:
        build.fill(index, build.units(60), per_file=20)
    with pytest.raises(EmbedderError, match="have 99 dimensions"):
        index.begin_build(replace(build.META, dims=99)).publish()
    assert (index.describe().chunks, len(index.search_text(["all"], 100))) == (60, 60)
    assert [hit.chunk_id for hit in index.search_vector(build.units(60)[7], 1)] == [8]
    assert index.verify() == ()
