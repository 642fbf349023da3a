import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.testing import check_embedder


@pytest.mark.parametrize(
    "embedder",
    [load_embedder("static"), load_embedder("hashing"), CustomEmbedder(HashingEmbedder(32), model="hashing")],
    ids=lambda embedder: embedder.provider,
)
def test_what_ships_keeps_the_contract(embedder):
    check_embedder(embedder)


class Wrong(HashingEmbedder):
    """An embedder with one fault."""

    def __init__(self, change=lambda rows, _: rows, query=lambda row: row, **names):
        super().__init__(64)
        self._change, self._query = change, query
        self.__dict__.update(names)

    def embed_query(self, text):
        return self._query(super().embed_query(text))

    def embed_documents(self, texts):
        return self._change(super().embed_documents(texts), texts)


def fails_on_odd_input(rows, texts):
    "".join(texts).encode()
    return rows


noise = itertools.count(1)
FAULTS = {
    "float64": (Wrong(lambda rows, _: rows.astype(np.float64)), "must be float32"),
    "long": (Wrong(lambda rows, _: rows * 2), "length 2"),
    "not a number": (Wrong(lambda rows, _: rows * np.float32("nan")), "length nan"),
    "zero": (Wrong(lambda rows, _: rows * 0), r"length 0\.0"),
    "one short": (Wrong(lambda rows, _: rows[1:]), "3 texts gave 2 vectors"),
    "flat": (Wrong(lambda rows, _: rows.ravel()), "must have shape"),
    "depends on company": (Wrong(lambda rows, texts: np.roll(rows, len(texts), axis=1)), "alone than in company"),
    "random": (Wrong(lambda rows, _: np.roll(rows, next(noise), axis=1)), "alone than in company|second time"),
    "all the same": (
        Wrong(lambda rows, _: np.eye(1, 64, dtype=np.float32).repeat(len(rows), 0)), "nearer to|same vector"
    ),
    "short questions": (Wrong(query=lambda row: row[:32]), "a question has shape"),
    "long questions": (Wrong(query=lambda row: row * 3), "length 3"),
    "questions elsewhere": (Wrong(query=lambda row: np.roll(-row, 7)), "as a question is nearer"),
    "no provider": (Wrong(provider=""), "provider must not be empty"),
    "model is None": (Wrong(model=None), "model must be a string"),
    "key in identity": (Wrong(identity="openai:sk-abcdefghijklmnop1234"), "identity holds what looks like a key"),
    "flat for no texts": (Wrong(lambda rows, texts: rows if texts else rows.ravel()), "no texts must give shape"),
    "something for no texts": (
        Wrong(lambda rows, texts: rows if texts else np.zeros((1, 64), np.float32)), "no vectors"
    ),
    "leaves_machine is a word": (Wrong(leaves_machine="no"), "leaves_machine must be True or False"),
    "no embedder": (object(), "lacks a name or a method"),
}  # fmt: skip


@pytest.mark.parametrize(("embedder", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_an_embedder_with_a_fault_is_told_which(embedder, words):
    with pytest.raises(AssertionError, match=words):
        check_embedder(embedder)


def test_an_embedder_that_cannot_take_odd_input_fails():
    with pytest.raises(UnicodeEncodeError):
        check_embedder(Wrong(fails_on_odd_input))


def test_every_process_makes_the_same_vectors():
    code = (
        "from openclaw_memory.embeddings.hashing import HashingEmbedder;"
        "print(HashingEmbedder(16).embed_query('Ines prefers trains, niña 数据').tobytes().hex())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert bytes.fromhex(shown.stdout) == HashingEmbedder(16).embed_query("Ines prefers trains, niña 数据").tobytes()
