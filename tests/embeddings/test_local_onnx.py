"""The provider `local` without PyTorch: all-MiniLM-L6-v2 as an ONNX file of 8 bits, its tokens, and what a model may lack."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings.local import create
from openclaw_memory.embeddings.local_onnx import choose_file
from openclaw_memory.embeddings.token_codes import pack_tokens
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import check_embedder

pytest.importorskip("onnxruntime")

QUESTION = "What does she drink in the morning?"
FACT = "Ines starts every day with a double espresso."


@pytest.fixture(scope="module")
def embedder(local_folder):
    return create(local_folder)


@pytest.fixture
def changed(local_folder, tmp_path):
    """A function that copies the model and writes values into one of its JSON files, or removes it."""

    def change(file, values, name="changed"):
        folder = shutil.copytree(local_folder, tmp_path / name, symlinks=True)
        (folder / file).unlink(missing_ok=True)
        if values is not None:
            (folder / file).write_text(json.dumps(values))
        return folder

    return change


def test_the_contract_is_kept(embedder):
    check_embedder(embedder)
    assert (embedder.provider, embedder.dims, embedder.model) == ("local", 384, "minilm")


def test_the_onnx_file_is_taken_before_the_weights_for_pytorch_which_is_not_loaded(local_folder):
    code = (
        "import sys; from openclaw_memory import load_embedder; e = load_embedder('local', sys.argv[1]);"
        "e.embed_query('boiler'); print(e.identity, {'torch', 'transformers'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code, local_folder], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == (f"{create(local_folder, backend='onnx').identity} set()\n", "")


def test_the_vector_of_a_text_does_not_depend_on_its_company(embedder):
    texts = [FACT, "Short.", "A longer one. " * 60, ""]
    alone = np.concatenate([embedder.embed_documents([text]) for text in texts])
    assert np.array_equal(embedder.embed_documents(texts), alone)


def test_fewer_dimensions_are_the_first_ones_normalised(local_folder, embedder):
    short = create(local_folder, dims=64)
    whole = embedder.embed_query(FACT)[:64]
    assert np.allclose(short.embed_query(FACT), whole / np.linalg.norm(whole), atol=1e-5)
    assert short.identity != embedder.identity


@pytest.mark.nightly  # PyTorch takes long to load
def test_vectors_point_where_those_of_sentence_transformers_do(embedder, local_folder):
    pytest.importorskip("sentence_transformers")
    texts = [FACT, QUESTION, "Two lines\n\nof a note.", "A long text. " * 200]
    rows = create(local_folder, backend="torch", device="cpu").embed_documents(texts)
    assert ((rows * embedder.embed_documents(texts)).sum(axis=1) > 0.98).all()


def test_a_text_is_cut_where_the_model_says(changed, embedder):
    short = create(changed("sentence_bert_config.json", {"max_seq_length": 16}))
    text = "The boiler is serviced in October. " * 20
    assert len(short.embed_query_tokens(text)[1][0]) > len(embedder.embed_query_tokens(text)[1][0])
    assert short.identity != embedder.identity


@pytest.mark.parametrize(
    "config", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}, {"pooling_mode": ["cls"]}]
)
def test_the_pooling_is_that_of_the_model(changed, embedder, config):
    first = create(changed("1_Pooling/config.json", config))
    assert not np.allclose(first.embed_query(FACT), embedder.embed_query(FACT), atol=0.01)
    assert first.identity != embedder.identity


@pytest.mark.parametrize("names", [("query", "document"), ("query", "passage"), ("query", "corpus")])
def test_prompts_of_the_model_are_used(changed, embedder, names):
    prompts = dict(zip(names, ("ask: ", "note: "), strict=True))
    prompted = create(changed("config_sentence_transformers.json", {"prompts": prompts}))
    assert np.allclose(prompted.embed_query(FACT), embedder.embed_query(f"ask: {FACT}"), atol=1e-5)
    assert np.allclose(prompted.embed_documents([FACT]), embedder.embed_documents([f"note: {FACT}"]), atol=1e-5)
    assert prompted.identity != embedder.identity


def test_prompts_of_the_caller_win_over_the_models_and_those_over_the_familys(changed, embedder):
    family = create(changed("README.md", "", name="my-e5-small"))
    assert np.allclose(family.embed_query(FACT), embedder.embed_query(f"query: {FACT}"), atol=1e-5)
    folder = changed("config_sentence_transformers.json", {"prompts": {"query": "ask: "}}, name="e5-base")
    own, callers = create(folder), create(folder, query_prompt="", document_prompt="note: ")
    assert np.allclose(own.embed_query(FACT), embedder.embed_query(f"ask: {FACT}"), atol=1e-5)
    assert np.allclose(own.embed_documents([FACT]), embedder.embed_documents([FACT]), atol=1e-5)
    assert np.allclose(callers.embed_query(FACT), embedder.embed_query(FACT), atol=1e-5)
    assert np.allclose(callers.embed_documents([FACT]), embedder.embed_documents([f"note: {FACT}"]), atol=1e-5)


PARTS = [
    ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "its pooling .* only known to sentence-tr"),
    ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "its pooling .*include_prompt"),
    (
        "modules.json",
        [{"type": "x.Transformer", "path": ""}, {"type": "x.Dense", "path": "2"}],
        "its part Dense is not",
    ),
    ("tokenizer.json", None, "No such file .*changed/tokenizer.json"),
]


@pytest.mark.parametrize(("name", "values", "words"), PARTS)
def test_a_model_that_has_more_than_its_onnx_file_or_less_is_refused(changed, name, values, words):
    with pytest.raises(EmbedderError, match=f"cannot be loaded .*{words}"):
        create(changed(name, values), backend="onnx")


ALONE = "runs by backend 'onnx', on the processor"
OPTIONS = [
    ({"dims": 0}, "dims must be from 1 to 384.*not 0"),
    ({"dims": 385}, "not 385"),
    ({"file_name": "model_q4.onnx"}, "it has no ONNX file model_q4.onnx, but onnx/model_quantized.onnx"),
    ({"file_name": "model_quantized.onnx", "backend": "torch"}, ALONE),
    ({"file_name": "model_quantized.onnx", "device": "cuda"}, ALONE),
    ({"backend": "onnx", "device": "cuda"}, ALONE),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_an_option_that_does_not_fit_is_refused_and_no_other_backend_taken(local_folder, options, words):
    with pytest.raises(EmbedderError, match=words):
        create(local_folder, **options)


def test_where_only_onnxruntime_is_there_a_model_without_a_file_for_it_names_the_other_extra(changed, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderError, match=r'it has no ONNX file.*pip install "\.\[local\]"'):
        create(changed("onnx/model_quantized.onnx", None))


HUB = ["onnx/model_O4.onnx", "onnx/model_qint8_arm64.onnx", "onnx/model.onnx", "openvino/x.bin"]


@pytest.mark.parametrize(
    ("names", "file_name", "chosen"),
    [
        (HUB, None, "onnx/model.onnx"),
        (HUB[:2], None, "onnx/model_qint8_arm64.onnx"),
        (["onnx/model_O4.onnx"], None, "onnx/model_O4.onnx"),
        (HUB, "model_qint8_arm64.onnx", "onnx/model_qint8_arm64.onnx"),
        (HUB, "onnx/model_O4.onnx", "onnx/model_O4.onnx"),
    ],
)
def test_the_most_exact_file_is_taken_unless_one_is_named(names, file_name, chosen):
    assert choose_file(names, file_name) == chosen


def test_a_file_that_is_not_a_model_is_named(changed):
    folder = changed("onnx/model.onnx", {})
    with pytest.raises(EmbedderError, match=r"cannot be loaded \(onnx: .*model\.onnx"):
        create(folder, backend="onnx")
    assert re.match("local:384:", create(folder, backend="onnx", file_name="model_quantized.onnx").identity)


# --- tokens
PROMPTS = {"query_prompt": "query: ", "document_prompt": "passage: "}


@pytest.fixture(scope="module", params=["onnx", pytest.param("torch", marks=pytest.mark.nightly)])
def make(request, local_folder):
    """A function that loads the model with prompts by one of the backends."""
    pytest.importorskip("onnxruntime" if request.param == "onnx" else "sentence_transformers")
    return lambda: create(local_folder, backend=request.param, device="cpu", **PROMPTS)


@pytest.fixture(scope="module")
def prompted(make):
    return make()


def stored_codes(memory):
    chunks = memory._engine.service.store().get_chunks(range(1, 100), token_codes=True)
    return {stored.chunk.embedding_text: stored.token_codes for stored in chunks}


@pytest.mark.parametrize("text", ["two words", "  space around \n", "\n\nlines\n  of\ttext"])
def test_the_places_of_tokens_are_those_in_the_text_without_its_prompt(prompted, text):
    for _, spans in (prompted.embed_query_tokens(text)[1], prompted.embed_document_tokens([text])[1][0]):
        assert [text[start:end] for start, end in spans if end] == text.split()


def test_tokens_of_a_text_that_is_read_in_pieces_are_all_there(prompted):
    text = "The spare key is with Eva. " * 150
    vectors, spans = prompted.embed_document_tokens([text])[1][0]
    assert len(vectors) == len(spans)
    assert sum(text[start:end] == "Eva" for start, end in spans) == 150


def test_codes_are_the_same_at_the_sync_and_later_and_lines_are_compared_by_them(notes, make, prompted):
    with Memory.open(notes, embedder=prompted) as memory:
        memory.sync()
        stored = stored_codes(memory)
    assert len(stored) >= 2
    later = make()
    assert stored == {text: pack_tokens(text, later.embed_document_tokens([text])[1][0]) for text in stored}
    with Memory.open(notes, embedder=later) as memory:
        memory.sync(force=True)
        assert stored == stored_codes(memory)
        result = memory.search("Who services the boiler?", options={"explain": True})[0]
    assert (result.path, "tokens" in result.parts) == ("memory/household.md", True)
