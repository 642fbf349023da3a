"""A reranker of the user's: a function, a cross-encoder or a service decides the order, and its faults only say so."""

import json
import re
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from index_files import write_files

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError

NOTES = {
    "house": "The boiler is serviced by Van Dam.\nHe has the spare key.",
    "garden": "The boiler in the garden is cold.",
    "car": "The boiler of the car is blue.",
}
QUESTION = "Who services the boiler?"


@pytest.fixture
def search(tmp_path, monkeypatch):
    """A function that searches three notes with a reranker, and without vectors."""
    for name in ("COHERE_API_KEY", "JINA_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_files(tmp_path, {f"memory/{name}.md": f"# {name.title()}\n\n{text}\n" for name, text in NOTES.items()})

    def search(rerank, **embedding):
        config = MemoryConfig().replace({"search": {"rerank": rerank}, "embedding": embedding})
        with Memory.open(tmp_path, embedder=None, config=config) as memory:
            return memory.search(QUESTION, options={"explain": True})

    return search


def names(results):
    return [result.path.removeprefix("memory/").removesuffix(".md") for result in results]


def prefer_blue(_query, texts):
    return [("blue" in text) + 0.5 * ("cold" in text) for text in texts]


def test_a_function_decides_the_order_and_each_place_keeps_its_score(search):
    asked = []

    def compare(query, texts):
        asked.append((query, texts))
        return prefer_blue(query, texts)

    own, results = search(None), search(compare)
    assert (names(own)[0], names(results)) == ("house", ["car", "garden", "house"])
    assert [result.score for result in results] == [result.score for result in own]
    assert [result.parts["rerank"] for result in results] == [1.0, 0.5, 0.0]
    assert results.reason is None
    ((query, texts),) = asked
    assert (query, texts[0]) == (QUESTION, "# House\nThe boiler is serviced by Van Dam.")


FAULTS = {
    "ZeroDivisionError": lambda *_: 1 / 0,
    "no number for each of 3": lambda *_: [1.0],
    "no number": lambda *_: [0, 1, float("nan")],
    "more than 0.05 s": lambda *_: time.sleep(3),
}


@dataclass
class Own:
    """A function that has no hash and shows its key."""

    words: str
    calls: list
    key: str = "my-own-key-42"

    def __call__(self, query, texts):
        self.calls.append(texts)
        return FAULTS[self.words](query, texts)


@pytest.mark.parametrize("words", FAULTS)
def test_one_that_fails_or_takes_too_long_leaves_the_order_and_is_left_alone_for_a_while(search, words):
    calls = []
    for _ in range(3):
        results = search({"model": Own(words, calls), "milliseconds": 50})
        assert (names(results), "my-own" in results.reason) == (names(search(None)), False)
        assert re.search(f"own order: the reranker Own .*{words}", results.reason)
    assert len(calls) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_searches_do_without_a_model_while_it_is_loaded_once(search, monkeypatch, fails):
    may_end, calls = Event(), []

    def load(*arguments):
        calls.append(arguments)
        may_end.wait()
        return 1 / 0 if fails else prefer_blue

    monkeypatch.setattr("openclaw_memory.embeddings.local.load_model", load)
    rerank = {"model": f"cross-encoder/{fails}", "milliseconds": 50}
    for _ in range(2):
        assert search(rerank).reason.endswith(f"the reranker cross-encoder/{fails} is being loaded, for later searches")
    may_end.set()
    while "is being loaded" in ((results := search(rerank)).reason or ""):
        pass
    assert (names(results), len(calls)) == (names(search(None if fails else prefer_blue)), 1)
    assert ("failed: ZeroDivisionError" in (results.reason or "")) is fails


def test_one_that_is_not_installed_says_how_to_install_it(search, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    results = search("cross-encoder/ms-marco-MiniLM-L-6-v2")
    assert names(results) == names(search(None))
    assert 'pip install ".[onnx]"' in results.reason


@pytest.mark.parametrize(
    ("rerank", "words"),
    [
        *((wrong, "search.rerank must be the name") for wrong in (7, {"milliseconds": 3}, ["model"], "", {"model": 3})),
        ({"model": "x", "seconds": 1}, "unknown key search.rerank.seconds"),
        ({"model": "x", "milliseconds": "soon"}, "search.rerank.milliseconds must be a number"),
        ({"model": "x", "milliseconds": -5}, r"search.rerank.milliseconds = -5 is outside \[1, 3.6e\+06\]"),
    ],
)
def test_what_is_no_reranker_is_refused(rerank, words):
    with pytest.raises(ConfigError, match=words):
        MemoryConfig().replace({"search": {"rerank": rerank}})


@pytest.fixture
def service():
    """The address of a server that ranks as `prefer_blue`, and its requests."""
    pytest.importorskip("httpx")
    requests = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            body, key = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.headers["Authorization"]
            requests.append((self.path, key, body))
            scores = enumerate(prefer_blue(body["query"], body["documents"]))
            rows = [{"index": at, "relevance_score": score} for at, score in scores][::-1]
            self.send_response(401 if "my-own" in key else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"data" if "voyage" in self.path else "results": rows, "key": key}).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


@pytest.mark.parametrize(
    ("provider", "model"),
    [("voyage", "rerank-2.5"), ("cohere", "rerank-v3.5"), ("jina", "jina-reranker-v2-base-multilingual")],
)
def test_a_service_is_asked_with_the_key_of_the_environment(search, service, monkeypatch, provider, model):
    address, requests = service
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "key-0123456789")
    rerank = {"model": f"{provider}/{model}", "base_url": f"{address}/{provider}", "milliseconds": 60_000}
    results = search(rerank, allow_remote=False)
    assert (names(results), results.reason) == (["car", "garden", "house"], None)
    ((path, key, body),) = requests
    assert (path, key) == (f"/{provider}/rerank", "Bearer key-0123456789")
    assert (body["model"], body["query"], len(body["documents"])) == (model, QUESTION, 3)


def test_a_service_that_refuses_is_named_and_its_key_is_not(search, service):
    rerank = {"model": "cohere/rerank-v3.5", "base_url": service[0], "api_key": "my-own-key-42", "milliseconds": 60_000}
    results = search(rerank)
    assert names(results) == names(search(None))
    assert f"{service[0]} answered 401" in results.reason
    assert "my-own" not in results.reason + repr(MemoryConfig().replace({"search": {"rerank": rerank}}))


def test_a_service_elsewhere_gets_nothing_where_nothing_may_leave_the_machine_or_without_a_key(search):
    rerank = {"model": "voyage/rerank-2.5", "milliseconds": 60_000}
    assert "embedding.allow_remote is off" in search(rerank, allow_remote=False).reason
    assert "set VOYAGE_API_KEY in the environment" in search(rerank).reason


# --- cross-encoders
@pytest.fixture
def tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cold", "blue"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: at for at, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    (tmp_path / "encoder").mkdir()
    tokenizer.save(str(tmp_path / "encoder" / "tokenizer.json"))
    return tokenizer


def test_an_onnx_file_ranks(search, tokenizer, tmp_path):  # noqa: ARG001 - it is in the folder
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    make, number = onnx.helper.make_node, onnx.TensorProto
    graph = onnx.helper.make_graph(
        [
            make("Cast", ["input_ids"], ["ids"], to=number.FLOAT),
            make("ReduceMax", ["ids"], ["logits"], axes=[1], keepdims=1),
        ],
        "largest id",
        [onnx.helper.make_tensor_value_info("input_ids", number.INT64, ["batch", "sequence"])],
        [onnx.helper.make_tensor_value_info("logits", number.FLOAT, ["batch", 1])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "encoder" / "model.onnx")
    results = search({"model": str(tmp_path / "encoder"), "milliseconds": 60_000})
    assert (names(results), results.reason) == (["car", "garden", "house"], None)


@pytest.mark.nightly  # PyTorch takes long to load
def test_a_cross_encoder_of_sentence_transformers_ranks_as_it_predicts(search, tokenizer, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    import transformers

    folder = str(tmp_path / "encoder")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=6, num_labels=1, max_position_embeddings=64, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    texts = {name: f"# {name.title()}\n{text}".split("\nHe")[0] for name, text in NOTES.items()}
    scores = sentence_transformers.CrossEncoder(folder, device="cpu").predict(
        [(QUESTION, text) for text in texts.values()]
    )
    results = search({"model": folder, "milliseconds": 60_000})
    assert names(results) == [name for _, name in sorted(zip(-scores, texts, strict=True))]
    transformers.BertModel(config).save_pretrained(folder)
    results = search({"model": folder, "milliseconds": 60_001})
    assert (names(results), "no head that ranks" in results.reason) == (names(search(None)), True)
