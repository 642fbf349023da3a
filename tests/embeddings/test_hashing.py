import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.embeddings.hashing import WORD, HashingEmbedder, create
from openclaw_memory.errors import EmbedderError


def test_every_process_makes_the_same_vectors():
    code = (
        "from openclaw_memory.embeddings.hashing import HashingEmbedder;"
        "print(HashingEmbedder(16).embed_query('Ines prefers trains, niña 数据').tobytes().hex())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert bytes.fromhex(shown.stdout) == HashingEmbedder(16).embed_query("Ines prefers trains, niña 数据").tobytes()


# In lower case, the dot of a dotted capital I is no letter: it parts the word in two, whose signs may cancel out.
one_word = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=30).filter(
    lambda word: WORD.fullmatch(word.lower())
)


@given(one_word, st.integers(1, 9))
def test_a_word_alone_is_never_zero(word, dims):
    assert np.linalg.norm(HashingEmbedder(dims).embed_query(word)) == pytest.approx(1, abs=1e-6)


def test_words_count_whatever_their_order_and_case():
    embedder = HashingEmbedder()
    assert np.array_equal(embedder.embed_query("Boiler, kettle"), embedder.embed_query("KETTLE boiler!"))


def test_dimensions_belong_to_the_identity():
    assert HashingEmbedder(8).identity != HashingEmbedder(9).identity
    assert HashingEmbedder(9).embed_documents(["a", "b"]).shape == (2, 9)


@pytest.mark.parametrize("dims", [0, -1])
def test_dimensions_must_be_positive(dims):
    with pytest.raises(EmbedderError, match=f"not {dims}"):
        create(dims=dims)
