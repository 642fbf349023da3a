import json
import random
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from static_models import small_model
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import static
from openclaw_memory.embeddings.static import INVISIBLE, WORD, StaticEmbedder, split_words
from openclaw_memory.errors import EmbedderError
from tools.static_model.model_file import read_model

SHIPPED = static.DATA / f"{static.MODEL}.oms"

SENTENCES = (
    "When did Caroline go to the LGBTQ support group?",
    "The GEO-1000 gauge reported E_CAL_DRIFT at 14:35; see snake_case and camelCase, or https://example.org/a?b=c.",
    "Der Kühlschrank wurde am Donnerstag repariert, die Straßenbahn fuhr trotzdem nicht.",
    "¿Cuándo empezó la niña a tocar el violín en la escuela?",
    "Le café d'à côté n'ouvre qu'à dix heures, dit-elle.",
    "Het recept vraagt om twee eieren en een kop bloem.",
    "我们在北京的一家小餐馆里讨论了新的数据库索引设计。",
    "昨日、東京の小さなレストランで新しいデータベースの設計について話しました。",
    "어제 서울의 작은 식당에서 새로운 데이터베이스 설계에 대해 이야기했습니다.",
    "Ｆｕｌｌｗｉｄｔｈ ﬁne \u00a0 spaces\tand\n\nlines ▁ already marked",
    "Smile 🦄 says ☃ and ꙮ amid words, 🦄glued🦄too",
    "supercalifragilisticexpialidocious" * 3,
)


@pytest.fixture(scope="module")
def embedder():
    return StaticEmbedder()


def parts_of(path: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Pieces, costs in nats and float rows of a model file of 4 bits, read as its description says."""
    data = path.read_bytes()
    header = json.loads(data[:128])
    count, dims, offsets_at = header["n"], header["dim"], (128 + header["pieces"] + 3) // 4 * 4
    offsets = np.frombuffer(data, "<u4", count + 1, offsets_at).tolist()
    pieces = [data[128 + start : 128 + end].decode() for start, end in pairwise(offsets)]
    costs_at = offsets_at + 4 * (count + 1)
    scales = np.frombuffer(data, "<f2", count, costs_at + 2 * count).astype(np.float32)
    halves = np.frombuffer(data, np.uint8, count * dims // 2, (costs_at + 4 * count + 63) // 64 * 64)
    rows = np.stack([halves & 15, halves >> 4], axis=1).reshape(count, dims).astype(np.int8) - 8
    return pieces, np.frombuffer(data, "<u2", count, costs_at) / 1024, rows * scales[:, None]


@pytest.fixture(scope="module")
def reference():
    """Hugging Face's Unigram over the same pieces and scores after an unknown one, and the rows."""
    pieces, costs, rows = parts_of(SHIPPED)
    scores = list(zip(pieces, (-costs).tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), *scores], unk_id=0))
    seen = normalizers.Replace(Regex(INVISIBLE.pattern), "")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), seen])
    words = pre_tokenizers.Split(Regex(WORD.pattern), "removed", invert=True)
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, metaspace])
    return tokenizer, np.concatenate([np.zeros((1, rows.shape[1]), np.float32), rows])


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / (np.linalg.norm(vector) or 1)


@given(st.one_of(st.sampled_from(SENTENCES), st.text(st.sampled_from("aebnst 数据的🦄éß-1ﬁ"), max_size=60), st.text()))
def test_each_word_is_cut_as_hugging_face_cuts_it_and_unknown_words_add_nothing(embedder, reference, text):
    tokenizer, rows = reference
    expected = np.zeros(256)
    for word in split_words(text):
        pieces = [piece for piece in tokenizer.encode(word).ids if piece != 0]
        if pieces != [tokenizer.token_to_id("▁")]:
            expected += rows[pieces].astype(np.float64).sum(axis=0)
    assert np.allclose(embedder.embed_query(text), unit(expected), atol=5e-6)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("- **Boiler**: (leaks), see [manual](manual.md#leaks)", "boiler leaks see manual manual md leaks"),
        ("¿Casero? ¡Sí! «hola»", "casero sí hola"),
        ("数据、索引。", "数据 索引"),
        ("■ call → the plumber: 50€", "call the plumber 50"),
        ("Kranken\u00adhaus \ufeffboi\u200bler ⚠\ufe0f", "krankenhaus boiler"),
    ],
)
def test_signs_part_words_and_say_nothing(embedder, written, meant):
    assert np.array_equal(embedder.embed_query(written), embedder.embed_query(meant))


def test_no_letter_parts_words_or_is_invisible():
    letters = filter(str.isalpha, map(chr, range(sys.maxunicode + 1)))
    assert [letter for letter in letters if not WORD.match(letter) or INVISIBLE.match(letter)] == []


def test_words_of_any_length_are_cut_together_as_each_alone(embedder):
    letters = random.Random(5)
    words = ["".join(letters.choices("aebnst数据é🦄", k=letters.randrange(1, 40))) for _ in range(1200)]
    words += ["x" * 200, "数据" * 200, "▁"]
    together = StaticEmbedder().embed_words(words)
    assert np.array_equal(together, np.concatenate([embedder.embed_words([word]) for word in words]))


@pytest.mark.parametrize("text", ["", "   \n\t", "🦄🎉", "▁ ▁", "\x00", "\ud800"])
def test_a_text_without_a_known_piece_has_the_zero_vector(embedder, text):
    assert not embedder.embed_query(text).any()
    assert not embedder.embed_words([text]).any()


def test_word_vectors_add_up_to_the_vector_of_their_text(embedder):
    words = ["Caroline", "joined", "the", "Caroline", "Straßenbahn", "🦄", "数据库"]
    total = embedder.embed_words(words).sum(axis=0)
    assert np.allclose(embedder.embed_query(" ".join(words)), total / np.linalg.norm(total), atol=1e-6)


# --- small models ---

PIECES = {
    "▁": 3.0, "a": 5.0, "b": 9.0, "▁a": 7.0, "ab": 8.5, "▁ab": 10.5, "ba": 10.0, "aba": 12.5, "ca": 12.5
}  # fmt: skip


@pytest.mark.parametrize("bits", [8, 4])
def test_the_vectors_are_those_in_the_file_whatever_its_bits(tmp_path, bits):
    path = small_model(tmp_path / "small.oms", PIECES, bits=bits)
    model = StaticEmbedder(path)
    pieces, _, rows = read_model(path)
    expected = sum(rows[pieces.index(piece)] for piece in ("▁ab", "ba"))
    assert np.allclose(model.embed_words(["abba"])[0], expected, atol=1e-6)
    assert np.allclose(model.embed_documents(["abba"])[0], unit(expected), atol=1e-6)


def test_only_the_model_that_ships_has_a_name():
    assert load_embedder("static", static.MODEL).model == static.MODEL
    with pytest.raises(EmbedderError, match="minilm"):
        load_embedder("static", "minilm")
