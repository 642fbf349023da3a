"""Rows that contradict each other, or that no version ever wrote, are damage to every reader."""

import subprocess
import sys
from contextlib import closing

import apsw
import numpy as np
import pytest

from openclaw_memory.errors import CorruptIndexError, EmbedderError, StoreError
from openclaw_memory.store import SqliteStore, connection


def change(path, statement, *values):
    with closing(apsw.Connection(str(path))) as db:
        connection.load_extension(db, connection.find_extension()[0])
        db.execute(statement, values)


def nearest(store, build):
    store.search_vector(build.units(1)[0], 5)


def words(store, _):
    store.search_text(["all"], 5)


def files(store, _):
    store.get_files()


def meta(store, _):
    store.read_meta()


def write(store, build):
    store.add_vectors([build.key("new")], build.units(1, seed=5))
    store.replace_files([(build.record("memory/0.md"), [build.row("new")])])


META = "UPDATE meta SET value = json_set(value, '$.{}', {}) WHERE key = 'memory_index_meta_v1'"


@pytest.mark.parametrize(
    ("statement", "reader", "found"),
    [
        ("UPDATE vectors SET embedding = substr(embedding, 1, 17) WHERE id = 8", nearest, "not one of 32 finite"),
        ("UPDATE vectors SET embedding = 'text'", nearest, "not one of 32 finite"),
        ("UPDATE vectors SET embedding = CAST(zeroblob(124) || x'0000c07f' AS BLOB)", nearest, "not one of 32 finite"),
        ("UPDATE vectors SET embedding = CAST(zeroblob(124) || x'0000807e' AS BLOB)", nearest, "not one of 32 finite"),
        ("DELETE FROM vectors", nearest, "100 chunks have a vector that does not exist"),
        ("UPDATE chunks SET vector_id = 999 WHERE id = 1", nearest, "1 chunks have a vector that does not exist"),
        ("UPDATE chunks SET vector_id = x'00' WHERE id = 1", None, "1 chunks have a vector that does not exist"),
        ("UPDATE models SET dims = 8", nearest, "its model has 8 dimensions, its meta says 32"),
        (META.format("dims", 9), nearest, "its model has 32 dimensions, its meta says 9"),
        ("DELETE FROM models", nearest, "100 vectors have a model that does not exist"),
        ("DELETE FROM chunk_vectors_chunks", None, "sqlite-vec finds nothing"),
        ("DELETE FROM chunk_vectors_vector_chunks00", nearest, "could not open vectors blob"),
        ("DELETE FROM chunk_terms", None, "100 chunks are not in the keyword index"),
        ("DELETE FROM chunk_terms_docsize", words, "100 chunks are not in the keyword index"),
        ("DROP TABLE chunk_terms", words, "no such table: chunk_terms"),
        ("DROP TABLE term_counts", None, "no such table: term_counts"),
        ("DROP TABLE chunks", nearest, "no such table"),
        ("ALTER TABLE chunks DROP COLUMN section", None, "no such column"),
        ("UPDATE files SET path = CAST(x'ff' AS TEXT) WHERE id = 1", files, "decode"),
        ("DELETE FROM chunks", nearest, "100 rows of the keyword index belong to no chunk"),
        ("DELETE FROM sqlite_sequence", write, "the last chunk is 100, and 0 is said to be"),
        ("UPDATE sqlite_sequence SET seq = 'x'", write, "the last chunk is 100, and 'x' is said to be"),
        ("UPDATE files SET lacks = x'ff'", files, "the record of 'memory/0.md' is odd"),
        (META.format("chunking", "'x'"), meta, "its meta cannot be read"),
        (META.format("identity", "7"), meta, "its meta cannot be read"),
        (META.format("dims", "'x'"), meta, "its meta cannot be read"),
        (META.format("schema_version", "'x'"), meta, "its meta cannot be read"),
    ],
)
@pytest.mark.sampled(8)
def test_contradictions_are_damage_and_the_deep_check_names_them(store, path, build, statement, reader, found):
    build.fill(store, build.units(100))
    change(path, statement)
    if reader is not None:
        with pytest.raises(CorruptIndexError):
            reader(store, build)
    if reader not in {meta, files}:
        assert found in "; ".join(store.verify())
    else:
        with pytest.raises(CorruptIndexError, match=found):
            reader(store, build)


@pytest.mark.parametrize("vector_extension", [True, False])
def test_a_vector_that_is_damaged_is_met_with_and_without_sqlite_vec(store, path, build, vector_extension):
    build.fill(store, build.units(100))
    change(path, "UPDATE vectors SET embedding = zeroblob(7) WHERE id = 8")
    with closing(SqliteStore.open(path, vector_extension=vector_extension)) as damaged:
        for meet in (nearest, lambda store, _: store.get_vectors([8])):
            with pytest.raises(CorruptIndexError, match="not one of 32 finite numbers"):
                meet(damaged, build)
        assert "vectors 1 to 100" in damaged.verify()[0]


def test_codes_of_tokens_without_a_vector_are_found(store, path, build):
    build.fill(store, build.units(3))
    store.add_vectors([build.key(1)], build.units(1), token_codes=[b"codes"])
    assert store.verify() == ()
    change(path, "INSERT INTO token_codes VALUES (999, x'00')")
    assert store.verify() == ("1 codes of tokens have a vector that does not exist",)


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38, -3e38])
def test_nothing_is_stored_that_would_be_taken_for_damage(store, build, number):
    build.fill(store, build.units(3))
    with pytest.raises(EmbedderError, match="are not stored"):
        store.add_vectors([build.key("new")], np.full((1, 32), number, np.float32))
    assert store.verify() == ()


def test_a_full_disk_is_no_damage_in_whatever_table_it_shows(store, build):
    build.fill(store, build.units(500))
    store.add_vectors([build.key(number) for number in range(500, 1500)], build.units(1000, seed=1))
    new = [(build.record("memory/new.md"), [build.row(number) for number in range(500, 1500)])]
    failed_in_vec0 = False
    for room in range(100):
        with store._connections.open() as db:
            ((pages,),) = db.execute("PRAGMA page_count").fetchall()
            db.execute(f"PRAGMA max_page_count = {pages + room}").fetchall()
        try:
            store.replace_files(new)
        except CorruptIndexError as error:
            pytest.fail(str(error))
        except StoreError as error:
            failed_in_vec0 |= "sqlite-vec" in str(error)
        else:
            break
    assert failed_in_vec0
    assert store.verify() == ()


RESETS_AND_GOES_ON = """
import sys
from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.store import SqliteStore
store = SqliteStore.open(sys.argv[1])
for work in (lambda: store.begin_build(store.read_meta()).publish(), lambda: store.remove_files(["memory/0.md"])):
    try: work()
    except CorruptIndexError: print("damaged")
"""


def test_a_store_whose_reset_has_failed_says_what_is_wrong_and_does_not_end_the_process(path, build):
    with closing(SqliteStore.open(path)) as store:
        build.fill(store, build.units(10))
    with closing(apsw.Connection(str(path))) as db:
        ((page,),) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunk_vectors_chunks'").fetchall()
    content, at = bytearray(path.read_bytes()), (page - 1) * connection.PAGE_SIZE
    content[at : at + 100] = b"\xa5" * 100
    path.write_bytes(content)
    command = [sys.executable, "-c", RESETS_AND_GOES_ON, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("damaged\ndamaged\n", 0), done.stderr
