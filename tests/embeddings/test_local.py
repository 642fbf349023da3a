"""The provider `local`: its rules with a model that counts letters, and the contract with real weights for PyTorch."""

import re
import shutil
import sys
import time
from threading import Event, Thread, active_count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory, load_embedder
from openclaw_memory.embeddings.local import LocalEmbedder, create, split_by_tokens
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder


# --- rules, with a fake
class Words:
    """A model that reads `limit` words and counts letters; `log` has what it was given."""

    has_tokens, fingerprint, prompts = False, "words", {}

    def __init__(self, limit=8):
        self.limit = limit
        self.log = []
        self.started = Event()

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def encode(self, texts, prompt, *, as_query):
        if not as_query:
            self.started.set()
            time.sleep(0.002)  # a turn that takes time, as a model's does
        read = [prompt + text for text in texts]
        self.log += [("query" if as_query else "document", text) for text in read]
        counts = [[1 + text.count("a"), 1 + text.count("b"), 1 + text.count("c")] for text in read]
        return np.array(counts, np.float32), [None] * len(texts)


@given(st.text("ab \n é\ud800", max_size=400), st.integers(1, 9))
def test_pieces_joined_are_the_text_and_each_fits(text, limit):
    pieces = split_by_tokens(text, len(text), limit, len)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(tokens == len(piece) <= limit for piece, tokens in pieces)


def test_the_prompt_counts_among_what_a_model_reads():
    words = Words(limit=8)
    LocalEmbedder(words, "words", prompts=("it is asked: ", "")).embed_query("a b c d e f g h")
    read = [text for task, text in words.log if task == "query"]
    assert all(text.startswith("it is asked: ") and len(text.split()) <= 8 for text in read)
    assert "".join(text.removeprefix("it is asked: ") for text in read).split() == "a b c d e f g h".split()


def test_a_prompt_that_leaves_no_room_is_refused():
    with pytest.raises(EmbedderError, match=r"'one two three.*more than half of what words reads"):
        LocalEmbedder(Words(limit=8), "words", prompts=("", "one two three four five "))


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

    def __init__(self):
        super().__init__()
        self.hangs, self.go_on = Event(), Event()

    def encode(self, *args, **options):
        if self.hangs.is_set():
            self.go_on.wait()
        return super().encode(*args, **options)


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


@pytest.mark.parametrize("options", [{}, {"backend": "onnx"}, {"backend": "torch"}])
def test_without_a_backend_the_message_has_the_commands(monkeypatch, options):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[onnx\]".* pip install "\.\[local\]"'):
        load_embedder("local", **options)


SECONDS = [(name, seconds) for name in ("query_seconds", "batch_seconds") for seconds in (0, -1, 1e9, float("nan"))]
OPTIONS = [
    ({"batch_size": 0}, "option batch_size=0 "),
    ({"backend": "tensorflow"}, "backend must be one of onnx, torch, not 'tensorflow'"),
    *(({name: seconds}, f"option {name}=") for name, seconds in SECONDS),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_an_option_out_of_range_is_refused(options, words):
    with pytest.raises(EmbedderError, match=words):
        load_embedder("local", "anything", **options)


@pytest.mark.parametrize("name", ["/no/such/folder", "./none", "~/none", "a/b/c", "a/b/c.gguf", "c.gguf"])
def test_a_folder_or_file_that_is_not_there_is_named(name):
    with pytest.raises(EmbedderError, match=r"there is no .*give the folder of a saved model, or a GGUF file"):
        create(name)


# --- real weights for PyTorch
@pytest.fixture(scope="module")
def embedder(local_folder):
    pytest.importorskip("sentence_transformers")
    return create(local_folder, backend="torch", device="cpu")


@pytest.mark.nightly  # they take a minute
class TestPyTorch:
    def test_the_contract_is_kept(self, embedder):
        check_embedder(embedder)

    def test_other_weights_in_the_same_place_are_another_model(self, embedder, local_folder, tmp_path):
        from safetensors.numpy import load_file, save_file

        file = shutil.copytree(local_folder, tmp_path / "model") / "model.safetensors"
        tensors = load_file(file)
        name = next(name for name in tensors if name.endswith("layer.3.output.dense.weight"))
        save_file({**tensors, name: tensors[name] * np.float32(1.01)}, file, {"format": "pt"})
        assert create(file.parent, backend="torch", device="cpu").identity != embedder.identity

    def test_a_device_that_is_not_there_is_named(self, local_folder):
        with pytest.raises(EmbedderError, match=r"cannot be loaded .*abacus.*check its name or folder, and the device"):
            create(local_folder, device="abacus")
