"""A store in a file of its own, and hand-made rows to fill it with."""

from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest

from openclaw_memory.store import SqliteStore
from openclaw_memory.store.schema import SCHEMA_VERSION
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, IndexMeta

META = IndexMeta("check", "model", "check/model", None, {"style": "headings"}, SCHEMA_VERSION)


def key(text):
    return sha256(str(text).encode()).hexdigest()


def units(count, dims=32, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def row(number, terms="term", with_vector=True):
    return ChunkRow(Chunk(number, number, 0, f"text {number}"), terms, "", key(number) if with_vector else None)


def record(path, source="memory"):
    return FileRecord(path, source, "hash", 1, 2, 3, 4)


def fill(store, vectors, per_file=50):
    """One chunk a vector, numbered; every third file is a transcript. Ids are 1, 2, 3 and on in a new index."""
    store.begin_build(META).publish()
    store.add_vectors([key(number) for number in range(len(vectors))], vectors)
    files = []
    for first in range(0, len(vectors), per_file):
        numbers = range(first, min(first + per_file, len(vectors)))
        source = "sessions" if first // per_file % 3 == 2 else "memory"
        files.append((record(f"{source}/{first}.md", source), [row(n, f"n{n} all") for n in numbers]))
    store.replace_files(files)


@pytest.fixture(scope="session")
def build():
    return SimpleNamespace(META=META, key=key, units=units, row=row, record=record, fill=fill)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent" / ".memory" / "index.sqlite"


@pytest.fixture
def store(path):
    opened = SqliteStore.open(path)
    yield opened
    opened.close()
