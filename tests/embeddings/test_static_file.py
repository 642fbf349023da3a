"""The file of a static model: what is wrong with it is said, and its identity covers all of it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from static_models import small_model

from openclaw_memory.embeddings import static
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.embeddings.static_file import open_model
from openclaw_memory.errors import EmbedderError
from tools.static_model.model_file import check_digest

SHIPPED = static.DATA / f"{static.MODEL}.oms"
PIECES = {"▁": 3.0, "a": 5.0, "b": 9.0, "ab": 8.5, "▁a": 7.0, "ba": 10.0}
# Where the parts of that model lie: 13 bytes of pieces ("a", "ab", "b", "ba", "▁", "▁a"), then offsets, costs, scales.
PIECES_AT, OFFSETS_AT, SCALES_AT, ROWS_AT = 128, 144, 184, 256


@pytest.fixture
def small(tmp_path):
    return small_model(tmp_path / "small.oms", PIECES)


def changed(path: Path, at: int, new: bytes) -> Path:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)
    return path


def test_another_build_of_a_model_is_another_identity(tmp_path):
    first = StaticEmbedder(small_model(tmp_path / "small.oms", PIECES)).identity
    assert first.startswith("static:small:4:")
    assert StaticEmbedder(small_model(tmp_path / "small.oms", PIECES)).identity == first
    others = [
        StaticEmbedder(small_model(tmp_path / "small.oms", pieces, **other)).identity
        for pieces, other in ((PIECES, {"scale": 0.02}), ({**PIECES, "c": 9.0}, {}), (PIECES, {"seed": 2}))
    ]
    assert len({first, *others}) == 4


def test_the_model_that_ships_is_what_was_written():
    check_digest(open_model(SHIPPED))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"magic": "oms1"}, "not of format oms2"),
        ({"dim": 99}, "bytes where"),
        ({"digest": "short"}, "not of format oms2"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_refused(tmp_path, header, words):
    with pytest.raises(EmbedderError, match=words):
        StaticEmbedder(small_model(tmp_path / "small.oms", PIECES, **header))


@pytest.mark.parametrize("size", [0, 5, 127, 128, 400_000, SHIPPED.stat().st_size - 1])
def test_a_model_cut_short_is_refused(tmp_path, size):
    path = tmp_path / "short.oms"
    path.write_bytes(SHIPPED.read_bytes()[:size])
    with pytest.raises(EmbedderError, match=r"short\.oms.*install openclaw_memory again"):
        StaticEmbedder(path)


@pytest.mark.parametrize("bad", [b"[1, 2]", b"null", b"{}", b'{"magic": "oms1"}', b"\xff\xfe", b"[" * 128])
def test_a_file_that_is_no_model_is_refused(tmp_path, bad):
    path = tmp_path / "other.oms"
    path.write_bytes(bad.ljust(4096))
    with pytest.raises(EmbedderError, match="no static model's header"):
        StaticEmbedder(path)


@given(at=st.integers(PIECES_AT, ROWS_AT + 23), new=st.binary(min_size=1, max_size=8))
def test_whatever_is_damaged_a_question_has_a_vector_or_an_error_that_says_so(tmp_path_factory, at, new):
    path = changed(small_model(tmp_path_factory.mktemp("model") / "small.oms", PIECES), at, new)
    try:
        model = StaticEmbedder(path)
        found = model.embed_query("abba ab a b baab")
        assert np.isfinite(found).all()
        assert len(found) == 4
        model.embed_documents(["abba" * number for number in range(60)])
    except EmbedderError:
        pass
