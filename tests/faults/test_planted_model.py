"""The model file that ships, exchanged for another with a header to match: no vector of it is kept."""

import hashlib
import shutil
from hashlib import blake2b

import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings import static
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.errors import EmbedderError

SHIPPED = static.DATA / f"{static.MODEL}.oms"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """In the place of the file that ships, one with other rows, whose header has the digest of these."""
    path = tmp_path / "data" / SHIPPED.name
    path.parent.mkdir()
    shutil.copy(SHIPPED, path)
    data = bytearray(path.read_bytes())
    old = StaticEmbedder()._file.layout
    data[old.rows_at : old.rows_at + 4096] = bytes(4096)
    digest = blake2b(memoryview(data)[128:], digest_size=8).hexdigest()
    path.write_bytes(bytes(data).replace(old.digest.encode(), digest.encode(), 1))
    monkeypatch.setattr(static, "DATA", path.parent)
    return path


@pytest.mark.fault(62)
def test_the_file_that_ships_is_the_one_that_the_package_knows():
    assert StaticEmbedder().embed_documents(["a note"]).any()


def test_a_file_is_checked_once_for_an_embedder_and_again_for_the_next(tmp_path, monkeypatch):
    path = tmp_path / SHIPPED.name
    shutil.copy(SHIPPED, path)
    monkeypatch.setattr(static, "DATA", tmp_path)
    read = []
    monkeypatch.setattr(hashlib, "sha256", lambda data, real=hashlib.sha256: read.append(len(data)) or real(data))
    embedder = StaticEmbedder()
    for _ in range(3):
        embedder.embed_documents(["a note"])
    assert read == [SHIPPED.stat().st_size]
    data = bytearray(path.read_bytes())
    data[StaticEmbedder()._file.layout.rows_at] ^= 1
    path.write_bytes(data)
    with pytest.raises(EmbedderError, match="is not this version's file"):
        StaticEmbedder().embed_documents(["a note"])


@pytest.mark.fault(62)
@pytest.mark.usefixtures("planted")
def test_an_exchanged_model_makes_no_vector_that_is_kept(tmp_path):
    with pytest.raises(EmbedderError, match=r"is not this version's file: its SHA-256 .*install openclaw_memory again"):
        StaticEmbedder().embed_documents(["a note"])
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("The blue key opens the boathouse.\n")
    with Memory.open(notes) as memory:
        report = memory.sync()
        assert "SHA-256" in str(report.waiting)
        assert memory.search("boathouse")[0].path == "MEMORY.md"  # by words
        assert memory.search("boathouse").mode == "keyword"


def test_a_model_of_ones_own_is_read_as_it_is(planted):
    assert StaticEmbedder(planted).embed_documents(["a note"]).any()
