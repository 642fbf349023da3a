"""The writer and reader of a static model's file: what is written comes back, as near as its bits allow."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from openclaw_memory.embeddings import static
from openclaw_memory.errors import EmbedderError
from tools.static_model.model_file import read_model, write_model

PIECE = st.text(st.sampled_from("▁abné数🦄\n\x00߿￿"), min_size=1, max_size=4)


@st.composite
def models(draw):
    pieces = draw(st.lists(PIECE, min_size=1, max_size=12, unique=True))
    dims = 2 * draw(st.integers(1, 5))
    value = st.floats(-50, 50, width=32, allow_subnormal=False)
    vectors = draw(arrays(np.float32, (len(pieces), dims), elements=value))
    costs = draw(arrays(np.uint16, len(pieces)))
    return pieces, costs, vectors


@given(models(), st.sampled_from([8, 4]))
def test_a_model_comes_back_in_the_order_of_its_pieces_bytes(tmp_path_factory, model, bits):
    pieces, costs, vectors = model
    path = tmp_path_factory.mktemp("model") / "m.oms"
    write_model(path, pieces, costs, vectors, bits)
    found, found_costs, found_vectors = read_model(path)
    order = [pieces.index(piece) for piece in found]
    assert [piece.encode() for piece in found] == sorted(piece.encode() for piece in pieces)
    assert np.array_equal(found_costs, costs[order])
    # Half a step; the scale is a float16 of at most 2^-10 more than the least that fits, or 6e-8 more.
    steps = np.abs(vectors[order]).max(axis=1) / {8: 127, 4: 7}[bits]
    near = 0.5 * steps * (1 + 2**-10) + 1e-6
    errors = np.abs(found_vectors - vectors[order])
    if bits == 8:
        assert (errors <= near[:, None]).all()
    # With 4 bits single values may be cut off; the row as a whole is nearer than without.
    assert (np.square(errors).sum(axis=1) <= np.square(near) * vectors.shape[1] * 1.001 + 1e-9).all()


def write_small(path: Path, bits: int = 8, **changed) -> None:
    parts = {
        "pieces": ["b", "数", "▁a"],
        "costs": np.array([1, 2, 515], np.uint16),
        "vectors": np.array([[1, -1], [0.5, 0.25], [0, 0]], np.float32),
        **changed,
    }
    write_model(path, **parts, bits=bits)


@pytest.mark.parametrize("bits", [8, 4])
def test_the_file_is_laid_out_as_described_byte_by_byte(tmp_path, bits):
    write_small(tmp_path / "m.oms", bits)
    data = (tmp_path / "m.oms").read_bytes()
    digest = hashlib.blake2b(data[128:], digest_size=8).hexdigest()
    assert json.loads(data[:128]) == {"magic": "oms2", "n": 3, "dim": 2, "bits": bits, "pieces": 8, "digest": digest}
    assert data[127:128] == b"\n"
    assert data[128:136] == "b▁a数".encode()  # the order of bytes: 62, e2 96 81 61, e6 95 b0
    assert struct.unpack_from("<4I", data, 136) == (0, 1, 5, 8)
    assert struct.unpack_from("<3H", data, 152) == (1, 515, 2)
    scales = struct.unpack_from("<3e", data, 158)
    assert not any(data[164:192])
    if bits == 8:
        rows = np.frombuffer(data, np.int8, offset=192).reshape(3, 2)
    else:
        assert data[193] == 0x88  # two zeros
        rows = np.array([[byte & 15, byte >> 4] for byte in data[192:]]) - 8
    assert np.allclose(rows * np.array(scales)[:, None], [[1, -1], [0, 0], [0.5, 0.25]], atol=0.07)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"pieces": ["b", "b", "a"]}, "different"),
        ({"pieces": ["b", "<unk>", "a"]}, "control pieces"),
        ({"pieces": ["b", "\ud800", "a"]}, "surrogates"),
        ({"costs": np.zeros(3, np.int64)}, "uint16"),
        ({"vectors": np.full((3, 2), np.nan, np.float32)}, "finite"),
        ({"vectors": np.zeros(3, np.float32)}, "shape"),
        ({"vectors": np.zeros((3, 3), np.float32), "bits": 4}, "whole bytes"),
        ({"bits": 5}, "8 or 4"),
    ],
)
def test_parts_that_do_not_fit_are_refused_and_the_old_file_stays(tmp_path, changed, words):
    path = tmp_path / "m.oms"
    write_small(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words):
        write_small(path, **changed)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m.oms"]


@pytest.mark.parametrize("at", [130, 137, 155, 159, 180, 192])
def test_any_changed_byte_is_found_when_a_model_is_read(tmp_path, at):
    path = tmp_path / "m.oms"
    write_small(path)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(EmbedderError, match="is damaged"):
        read_model(path)


@pytest.mark.nightly  # by day its digest is compared: `faults/test_planted_model.py`
def test_the_model_that_ships_is_whole_and_small_enough():
    path = static.DATA / f"{static.MODEL}.oms"
    pieces, costs, vectors = read_model(path)
    assert len(pieces) == len(costs) == len(vectors)
    assert path.stat().st_size <= 16_000_000
