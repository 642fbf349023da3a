"""Damage is told from a lock and from missing rights, and a damaged index is kept, out of the way."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from openclaw_memory.errors import CorruptIndexError, StoreError
from openclaw_memory.store import SqliteStore, connection
from openclaw_memory.store.integrity import KEPT, set_aside

pytestmark = pytest.mark.sqlite_only
FLIPS = 300


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


def test_an_index_that_is_missing_or_empty_is_not_damaged(tmp_path):
    assert problems(tmp_path / "index.sqlite") == ()
    (tmp_path / "index.sqlite").touch()
    assert problems(tmp_path / "index.sqlite") == ()


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


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_any_damage_to_the_header_is_found_or_does_no_harm(index, tmp_path, step):
    content = index.read_bytes()
    copy = tmp_path / "copy.sqlite"
    for bit in range(0, 800, step):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        try:
            with closing(SqliteStore.open(copy)) as store:
                store.remove_files(["memory/0.md"])
                assert len(store.files()) == 19
        except CorruptIndexError:
            assert problems(copy) != (), f"bit {bit} is damage to a writer alone"


def test_a_flipped_bit_gives_the_right_rows_or_an_error_that_says_damage(index, tmp_path, place):
    content = index.read_bytes()
    with closing(SqliteStore.open(index)) as store:
        right = {found.id: found for path in store.files() for found in store.file_chunks(path)}
    assert len(right) > 50
    question, bits = place.embedder.embed_query("memo apple"), random.Random(3)
    copy, told = tmp_path / "copy.sqlite", 0
    for _ in range(FLIPS):
        changed = bytearray(content)
        bit = bits.randrange(len(content) * 8)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        try:
            with closing(SqliteStore.open(copy)) as store:
                hits = [*store.search_text(["memo"], 1000), *store.search_vector(question, 1000)]
                found = store.chunks(hit.chunk_id for hit in hits)
                store.files()
        except CorruptIndexError:
            assert problems(copy) != (), f"bit {bit} is damage to a search alone"
            told += 1
        else:
            assert [chunk for chunk in found if right[chunk.id] != chunk] == [], f"bit {bit}"
    assert told > FLIPS / 20


def test_a_folder_in_the_place_of_an_index_is_not_damage(tmp_path):
    (tmp_path / "index.sqlite").mkdir()
    with pytest.raises(StoreError) as caught:
        problems(tmp_path / "index.sqlite")
    assert not isinstance(caught.value, CorruptIndexError)


# --- what is done with it
def test_the_index_and_its_companions_are_renamed_and_keep_their_content(tmp_path):
    index = tmp_path / "index.sqlite"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{index}{suffix}").write_text(f"content{suffix}")
    aside = set_aside(index)
    assert aside.name.startswith("index.sqlite.damaged-")
    assert aside.read_text() == "content"
    assert Path(f"{aside}-wal").read_text() == "content-wal"
    assert not [path for path in tmp_path.iterdir() if path.name in {"index.sqlite", "index.sqlite-wal"}]


def test_the_three_newest_damaged_indexes_are_kept_and_no_other_file_is_touched(tmp_path):
    index = tmp_path / "index.sqlite"
    others = [tmp_path / name for name in ("index.sqlite.damaged-notes.txt", "other.sqlite.damaged-20200101T000000")]
    for other in others:
        other.touch()
    for stamp in ("20200101T000000", "20200101T000000-2", "20200101T000000-10", "20200102T000000"):
        for suffix in ("", "-wal"):
            (tmp_path / f"index.sqlite.damaged-{stamp}{suffix}").write_text(stamp)
    index.write_text("newest")
    newest = set_aside(index)
    kept = sorted(
        file.read_text() for file in tmp_path.glob("index.sqlite.damaged-2*") if not file.name.endswith("wal")
    )
    assert kept == ["20200101T000000-10", "20200102T000000", "newest"]
    assert len(kept) == KEPT
    assert [file.name for file in tmp_path.glob("*-2-wal")] == []
    assert newest.read_text() == "newest"
    described = SqliteStore(index).describe(counts=False).damaged
    assert [Path(file).read_text() for file in described] == kept
    assert all(other.exists() for other in others)


def test_an_earlier_damaged_index_is_not_overwritten(tmp_path):
    index = tmp_path / "index.sqlite"
    kept = []
    for content in ("first", "second", "third"):
        index.write_text(content)
        kept.append(set_aside(index))
    assert [path.read_text() for path in kept] == ["first", "second", "third"]


def test_an_index_that_cannot_be_renamed_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(StoreError, match="delete it"):
        set_aside(tmp_path / "index.sqlite")
