"""A hook of SqliteStore: it has every connection before its first statement, and adds to what is known of the index."""

from contextlib import closing
from functools import partial

import pytest
from msgspec.structs import replace

from openclaw_memory.errors import CorruptIndexError, StoreError
from openclaw_memory.store import SqliteStore
from openclaw_memory.testing import check_store


class Password:
    """A hook that encrypts an index with a password of the program."""

    def __init__(self, password):
        self.password, self.begun, self.connections = password, [], 0

    def begin(self, index):
        self.begun.append(index)

    def open(self, _index, connect):
        return connect(self.on_connect)

    def on_connect(self, db):
        self.connections += 1
        db.pragma("key", self.password)
        return 4096

    def get_uri_options(self, _db):
        return f"key={self.password}"

    def describe(self, info, db):
        return replace(info, engine={**info.engine, "cipher": db.pragma("cipher")})


def test_a_hook_has_each_connection_before_anything_is_read(path, build):
    hook = Password("s3cret")
    with closing(SqliteStore(path, hook=hook)) as store:
        build.fill(store, build.units(60))
        assert hook.begun == [path]
        assert len(store.search_text(["all"], 99)) == 60
        assert store.describe().engine["cipher"]
    assert not path.read_bytes().startswith(b"SQLite format 3")
    again = Password("s3cret")
    with closing(SqliteStore(path, hook=again)) as store:
        assert len(store.get_files()) == 2
        assert not again.begun
        assert again.connections


def test_an_index_under_another_password_is_an_error(path, build):
    with closing(SqliteStore(path, hook=Password("s3cret"))) as store:
        build.fill(store, build.units(3))
    with closing(SqliteStore(path, hook=Password("other"))) as store, pytest.raises(CorruptIndexError):
        store.get_files()


def test_the_next_index_is_built_through_the_hook_too(path, build):
    with closing(SqliteStore(path, hook=Password("s3cret"))) as store:
        build.fill(store, build.units(3))
        store.begin_build(replace(build.META, model="next")).publish()
        assert store.read_meta().model == "next"
    assert not path.read_bytes().startswith(b"SQLite format 3")


def test_an_index_is_written_anew_through_another_hook_and_as_a_plain_one(path, build):
    with closing(SqliteStore(path, hook=Password("s3cret"))) as store:
        build.fill(store, build.units(60))
        before = store.read_meta(), store.get_files(), store.get_chunks(range(99))
    for old, new in (("s3cret", "other"), ("other", None)):
        announced = []
        with closing(SqliteStore(path, hook=Password(old))) as store:
            store.rewrite(lambda new=new: new and Password(new), partial(announced.append, True))
        assert announced == [True]
        with closing(SqliteStore(path, hook=new and Password(new))) as store:
            assert (store.read_meta(), store.get_files(), store.get_chunks(range(99))) == before
            assert store.verify() == ()
    assert path.read_bytes().startswith(b"SQLite format 3")


def test_without_the_hook_it_was_written_with_an_index_says_that_one_is_missing(path, build):
    with closing(SqliteStore(path, hook=Password("s3cret"))) as store:
        build.fill(store, build.units(3))
    before = path.read_bytes()
    with closing(SqliteStore(path)) as store:
        for call in (store.read_meta, lambda: store.set_meta("a", "b")):
            with pytest.raises(StoreError, match=r"written through a connection hook.*hook="):
                call()
    assert path.read_bytes() == before


@pytest.mark.nightly
def test_a_store_with_a_hook_keeps_the_contract(tmp_path):
    numbers = iter(range(999))
    check_store(lambda: SqliteStore(tmp_path / f"{next(numbers)}.sqlite", hook=Password("s3cret")))
