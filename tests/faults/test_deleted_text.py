"""What was deleted from the notes is gone from every byte of the index after the next sync."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

import pytest
from index_files import index_file, index_folder

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.types import Document

QUIET = MemoryConfig(sync=SyncConfig(on_open=False, on_search=False, interval_seconds=0))
SENTENCE = "The marmalade boathouse belongs to Quillfeather."
# The beginnings of its words: the index holds stems.
WORDS = ("marmal", "boathous", "quillfeath")


def left(folder: Path, words: Iterable[str] = WORDS) -> dict[str, list[str]]:
    """The files below a folder whose bytes hold one of the words, in any case."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            content = file.read_bytes().lower()
            if inside := [word for word in words if word.lower().encode() in content]:
                found[file.name] = inside
    return found


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A workspace in which there is something besides what is deleted."""
    root = tmp_path / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("Anna prefers tea.\n")
    for number in range(8):
        (root / f"memory/{number}.md").write_text("\n\n".join(f"# Part {n}\n\nPears {n} of {number}" for n in range(9)))
    return root


def talk(*texts: str) -> str:
    records = [{"type": "message", "message": {"role": "user", "content": text}} for text in texts]
    return "".join(f"{json.dumps(record)}\n" for record in ({"type": "session", "version": 3, "id": "talk"}, *records))


NAMED = "memory/quillfeather-boathouse-marmalade.md"
PEARS = "\n\n".join(f"# Part {n}\n\nPears {n} of 3" for n in range(9))
# A file with what is deleted, and without it: None where the file goes, and another name where it is renamed.
WAYS: dict[str, tuple[str, str | bytes, str | Path | None]] = {
    "a line of a note": ("memory/3.md", f"{PEARS}\n\n{SENTENCE}\n", PEARS),
    "a line in the midst": ("memory/3.md", PEARS.replace("# Part 4", f"{SENTENCE}\n\n# Part 4"), PEARS),
    "a whole note": (NAMED, f"# Quillfeather\n\n{SENTENCE}\n", None),
    "a renamed note": (NAMED, "Nothing but a name.\n", Path("memory/other.md")),
    "a message": ("sessions/talk.jsonl", talk("Hello there.", SENTENCE, "Bye."), talk("Hello there.", "Bye.")),
    "an unreadable note": (NAMED, b"\xff\xfe\x00\xd8" * 9, None),
}


def planted(root: Path, way: str = "a whole note") -> Callable[[], object]:
    """Write what is to be deleted, and return what deletes it."""
    path, text, rest = WAYS[way]
    file = root / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    if isinstance(rest, Path):
        return lambda: file.rename(root / rest)
    return file.unlink if rest is None else lambda: file.write_text(rest)


@pytest.mark.fault(60)
@pytest.mark.parametrize("way", WAYS)
def test_deleted_text_is_gone_from_the_bytes_after_the_next_sync(notes, way):
    delete = planted(notes, way)
    with Memory.open(notes, config=QUIET) as memory:
        memory.sync()
        assert left(index_folder(notes)), "it is there while it is in the notes"
        delete()
        memory.sync()
        assert left(index_folder(notes)) == {}
        assert memory.status(deep=True).problems == ()
    assert left(index_folder(notes)) == {}


@pytest.mark.fault(60)
@pytest.mark.parametrize("embedder", ["static", None])
def test_a_rebuild_leaves_nothing_of_what_was_deleted_and_no_free_page(notes, embedder):
    import apsw

    delete = planted(notes)
    with Memory.open(notes, embedder=embedder, config=QUIET) as memory:
        memory.sync()
        delete()
        assert memory.sync(force=True).rebuilt
        assert left(index_folder(notes)) == {}
        db = apsw.Connection(str(index_file(notes)))
        assert db.execute("PRAGMA freelist_count").fetchall() == [(0,)]
        db.close()


@pytest.mark.fault(60)
def test_a_document_that_was_deleted_is_gone_with_its_vector(notes):
    from openclaw_memory.documents.vectors import VectorSource

    vector = [random.Random(7).uniform(-1, 1) for _ in range(32)]
    source = VectorSource("letters/1", "letters", make=lambda given: [vector for _ in given])
    with Memory.open(notes, config=QUIET) as memory:
        memory.documents.add([Document("quillfeather", SENTENCE, {"topic": "marmalade"})], [vector], source)
        memory.sync()
        assert memory.documents.search_vector(vector, 1, identity=source.identity, vector_source=source)
        stored = vectors_in(notes)
        memory.documents.delete(["quillfeather"])
        memory.sync()
        assert left(index_folder(notes)) == {}
        assert not held(notes, stored - vectors_in(notes))


def test_of_a_record_that_was_forgotten_no_byte_is_left_in_notes_index_cache_or_temporary_folder(
    notes, tmp_path, monkeypatch
):
    folders = [notes, tmp_path / "cache", tmp_path / "temporary"]
    for name, folder in (("OPENCLAW_MEMORY_HOME", folders[1]), ("TMPDIR", folders[2]), ("SQLITE_TMPDIR", folders[2])):
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Memory.open(notes, config=QUIET) as memory:
        memory.records.remember("fact", "boat.marmalade", SENTENCE, token="quillfeather")
        memory.records.remember("fact", "boat.marmalade", f"Not so: {SENTENCE}")
        memory.records.confirm("fact", "boat.marmalade")
        memory.sync()
        assert memory.search("marmalade boathouse")
        assert left(notes), "it is there while it is remembered"
        assert memory.records.forget("fact", "boat.marmalade")
        memory.sync()
        assert [left(folder) for folder in folders] == [{}, {}, {}]  # the index, its free pages and its WAL among them
    assert [left(folder) for folder in folders] == [{}, {}, {}]


def test_a_reader_that_is_open_meanwhile_keeps_it_no_longer_than_to_the_sync_after_it(notes):
    delete = planted(notes)
    with Memory.open(notes, config=QUIET) as memory:
        memory.sync()
        reader = SqliteStore.open(index_file(notes))
        with reader.snapshot() as frozen:
            assert frozen.get_files()
            delete()
            memory.sync()
            assert left(index_folder(notes)), "the reader still sees it"
            assert NAMED in frozen.get_files()
        memory.sync()
        assert left(index_folder(notes)) == {}
        reader.close()


class Hashed:
    """An embedder of 256 dimensions that is not one of the quick ones."""

    provider, model, identity, dims, leaves_machine = "own", "hash", "own:hash:256", 256, False

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [float(byte) - 127 for number in range(8) for byte in sha256(f"{number}{text}".encode()).digest()]

    def close(self):
        """Hold nothing."""


@pytest.mark.parametrize("embedder", [lambda: "default", Hashed], ids=["costs nothing", "another"])
def test_no_vector_of_a_deleted_text_stays_in_the_index(notes, embedder):
    delete = planted(notes, "a line of a note")
    with Memory.open(notes, embedder=embedder(), config=QUIET) as memory:
        memory.sync()
        with_it = vectors_in(notes)
        delete()
        memory.sync()
        gone = with_it - vectors_in(notes)
        assert gone
        assert not held(notes, gone)


KILLED = """
import os, sys
from pathlib import Path
from openclaw_memory import Memory
from openclaw_memory.store import rebuild

rebuild.erase = lambda *_: os._exit(9)
Memory.open(sys.argv[1]).sync()
"""


@pytest.mark.fault(60)
def test_after_a_crash_between_deleting_and_erasing_the_next_sync_erases(notes):
    delete = planted(notes, "a line of a note")
    with Memory.open(notes, config=QUIET) as memory:
        memory.sync()
    delete()
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(notes)], check=False, env=os.environ)
    assert killed.returncode == 9
    assert left(index_folder(notes))
    with Memory.open(notes, config=QUIET) as memory:
        report = memory.sync()
        assert (report.changed, report.removed) == ((), ())
        assert left(index_folder(notes)) == {}


def test_an_error_that_named_a_file_is_forgotten_with_the_next_sync(notes, monkeypatch):
    with Memory.open(notes, config=QUIET) as memory:
        memory.sync()

        def fail(*_: object, **__: object) -> None:
            raise OSError(5, "Input/output error", "quillfeather.md")

        monkeypatch.setattr("openclaw_memory.indexing.sync.sync_once", fail)
        with pytest.raises(OSError, match="quillfeather"):
            memory.sync()
        assert left(index_folder(notes))
        monkeypatch.undo()
        memory.sync()
        assert left(index_folder(notes)) == {}


@pytest.mark.fault(60)
@pytest.mark.parametrize("edits", [5, pytest.param(400, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(1)
def test_of_many_edits_no_deleted_word_is_left_anywhere(notes, edits, seed):
    """Words made up for each edit: neither they nor their halves, which FTS5 may store apart, are in any byte."""
    dice = random.Random(seed)
    said: dict[Path, set[str]] = {}
    ever: set[str] = set()

    def word() -> str:
        return "".join(dice.choices("bcdfghjklmnpqrstvwxz", k=16))

    with Memory.open(notes, config=QUIET) as memory:
        for _ in range(edits):
            for _ in range(dice.randrange(1, 6)):
                path = notes / f"memory/{dice.randrange(40)}.md"
                if dice.random() < 0.3:
                    path.unlink(missing_ok=True)
                    said.pop(path, None)
                    continue
                words = {word() for _ in range(dice.randrange(1, 200))}
                path.write_text("\n\n".join(" ".join(sorted(words)[n : n + 20]) for n in range(0, len(words), 20)))
                said[path] = words
                ever |= words
            memory.sync()
        there = set().union(*said.values())
        gone = {part.encode() for one in ever - there for part in (one[:8], one[-8:])}
        assert gone
        for file in index_folder(notes).iterdir():
            content = file.read_bytes()
            assert not gone & {content[at : at + 8] for at in range(len(content) - 7)}, file.name
        assert memory.status(deep=True).problems == ()


@pytest.mark.fault(61)
@pytest.mark.parametrize("edits", [8, pytest.param(1500, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("embedder", ["static", pytest.param("own", marks=pytest.mark.nightly)])
def test_an_index_of_edited_notes_stays_below_twice_the_size_of_a_new_one(notes, tmp_path, embedder, edits):
    """Every edit writes a note that was never there before; an own embedder's vectors of old ones are kept a while."""
    dice = random.Random(1)
    words = ["".join(dice.choices("bcdfghjklmnpqrstvwxz", k=7)) for _ in range(2000)]
    largest = 0
    with Memory.open(notes, embedder=Hashed() if embedder == "own" else "static", config=QUIET) as memory:
        for _ in range(edits):
            for number in range(10):
                sections = ["# " + " ".join(dice.choices(words, k=40)) for _ in range(9)]
                (notes / f"memory/{dice.randrange(30) if number else 0}.md").write_text("\n\n".join(sections))
            memory.sync()
            largest = max(largest, size_of(notes))
    new = tmp_path / "new"
    shutil.copytree(notes, new, ignore=shutil.ignore_patterns(".memory"))
    with Memory.open(new, embedder=Hashed() if embedder == "own" else "static", config=QUIET) as memory:
        memory.sync()
        fresh = size_of(new)
    assert largest <= 2 * fresh, f"{largest:,} bytes, a new one has {fresh:,}"


def size_of(root: Path) -> int:
    return sum(file.stat().st_size for file in index_folder(root).glob("index.sqlite*") if "-shm" not in file.name)


def vectors_in(root: Path) -> set[bytes]:
    import apsw

    db = apsw.Connection(str(index_file(root)))
    try:
        return {row[0] for row in db.execute("SELECT embedding FROM vectors")}
    finally:
        db.close()


def held(root: Path, vectors: Iterable[bytes]) -> bool:
    """Whether a file of the index holds a part of one of these vectors, or of its code for sqlite-vec."""
    content = b"".join(file.read_bytes() for file in index_folder(root).iterdir())
    return any(vector[at : at + 16] in content for vector in vectors for at in range(0, len(vector) - 15, 16))
