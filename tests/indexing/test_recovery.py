"""Damage is told from a lock and from missing rights, and a damaged index is deleted."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.store import SqliteStore, connection

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def index(place, tmp_path):
    """A closed index of notes of which no two chunks are alike."""
    words = random.Random(5)
    for number in range(20):
        place.write(f"memory/{number}.md", *(f"- memo {words.random()} apple {words.random()}" for _ in range(60)))
    place.sync()
    place.store.close()
    return tmp_path / "index.sqlite"


def problems(path: Path) -> tuple[str, ...]:
    with closing(SqliteStore(path)) as store:
        return store.verify()


# --- what is damage
def test_a_sound_index_is_not_damaged_and_looking_changes_nothing(index):
    before = index.read_bytes()
    assert problems(index) == ()
    assert index.read_bytes() == before


@pytest.mark.fault(5)
@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_garbage_in_any_page_and_a_cut_at_any_page_are_found(index, damage):
    content, size = index.read_bytes(), connection.PAGE_SIZE
    with closing(apsw.Connection(str(index))) as db:
        free = db.execute("PRAGMA freelist_count").fetchall()[0][0]
    assert free == 0
    missed = []
    for page in range(len(content) // size):
        middle = b"\xa5" * size if damage == "garbage" else b""
        index.write_bytes(content[: page * size] + middle + (content[(page + 1) * size :] if middle else b""))
        if problems(index) == ():
            missed.append(page)
    # An index that is cut before its first page is empty, and not damaged.
    assert missed == ([0] if damage == "cut" else [])


@pytest.mark.fault(6)
@pytest.mark.parametrize("flips", [80, pytest.param(300, marks=pytest.mark.nightly)])
def test_a_flipped_bit_gives_the_right_rows_or_an_error_that_says_damage(index, tmp_path, place, flips):
    content = index.read_bytes()
    with closing(SqliteStore.open(index)) as store:
        right = {found.id: found for path in store.get_files() for found in store.get_file_chunks(path)}
    assert len(right) > 50
    question, bits = place.embedder.embed_query("memo apple"), random.Random(3)
    copy, told = tmp_path / "copy.sqlite", 0
    for _ in range(flips):
        changed = bytearray(content)
        bit = bits.randrange(len(content) * 8)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        try:
            with closing(SqliteStore.open(copy)) as store:
                hits = [*store.search_text(["memo"], 1000), *store.search_vector(question, 1000)]
                found = store.get_chunks(hit.chunk_id for hit in hits)
                store.get_files()
        except CorruptIndexError:
            assert problems(copy) != (), f"bit {bit} is damage to a search alone"
            told += 1
        else:
            assert [chunk for chunk in found if right[chunk.id] != chunk] == [], f"bit {bit}"
    assert told > flips / 20


# --- what is done with it
def test_a_file_that_is_not_an_index_is_not_lost(tmp_path):
    (tmp_path / "notes").mkdir()
    file = tmp_path / "thesis.txt"
    file.write_text("Chapter one. " * 100)
    with Memory.open(tmp_path / "notes", embedder=None, index_path=file) as memory:
        memory.append("The ferry sails on Friday.")
        assert "damaged" in str(memory.sync().rebuilt)
    (aside,) = tmp_path.glob("thesis.txt.damaged-*")
    assert aside.read_text() == "Chapter one. " * 100
