"""Text that has changed on the disk is never taken for what was written."""

import apsw
import pytest

from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.types import Chunk


def change(path, statement):
    db = apsw.Connection(str(path))
    db.execute(statement)
    db.close()


@pytest.mark.fault(6)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunks SET text = 'text 8' WHERE id = 8", "UPDATE chunks SET text = CAST(x'ff' AS TEXT) WHERE id = 8",
        "UPDATE chunks SET text = CAST(text AS BLOB) WHERE id = 8", "UPDATE chunks SET start_line = 1 WHERE id = 8",
        "UPDATE chunks SET end_line = 9 WHERE id = 8", "UPDATE chunks SET start_char = 9 WHERE id = 8",
        "UPDATE chunks SET section = 9 WHERE id = 8", "UPDATE chunks SET context = 'x' WHERE id = 8",
        "UPDATE chunks SET checksum = checksum + 1 WHERE id = 8", "UPDATE chunks SET id = 1000 WHERE id = 8",
        "UPDATE chunks SET file_id = 2 WHERE id = 8", "UPDATE chunks SET file_id = 999 WHERE id = 8",
        "UPDATE files SET path = 'memory/9.md' WHERE path = 'memory/0.md'",
        "UPDATE files SET source = 'sessions' WHERE path = 'memory/0.md'",
    ],
)  # fmt: skip
@pytest.mark.sampled(8)
def test_a_chunk_that_is_not_what_was_written_is_damage(store, path, build, statement):
    build.fill(store, build.units(100))
    change(path, statement)
    with pytest.raises(CorruptIndexError, match=r"is damaged .*Sync again: the index is built again"):
        store.get_chunks([8, 1000])
    assert [found.id for found in store.get_chunks([60])] == [60] or "file" in statement


def test_a_deep_check_names_the_chunks_that_changed(store, path, build):
    build.fill(store, build.units(100))
    change(path, "UPDATE chunks SET text = 'x' WHERE id > 80")
    found = store.verify()
    assert len(found) == 10
    assert found[0] == "chunk 81 of 'memory/50.md' is not what was written"


@pytest.mark.parametrize("text", ["", "a\0b", "ä 数 🙂\r\n", "x" * 100_000])
def test_any_text_comes_back_as_it_was_written(store, build, text):
    store.begin_build(build.META).publish()
    chunk = Chunk(1, 2, 3, text, text, 1)
    row = type(build.row(1))(chunk, "term", "", None)
    store.replace_files([(build.record("memory/ä.md"), [row])])
    store.extend_file(build.record("memory/ä.md"), [row], 5)
    assert [found.chunk for found in store.get_chunks(range(9))] == [chunk, chunk]
    assert store.verify() == ()
