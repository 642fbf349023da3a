"""Providers by name, by entry point and by function; normalised vectors."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.embeddings.registry import list_providers
from openclaw_memory.embeddings.vectors import normalize
from openclaw_memory.errors import EmbedderError, MissingExtraError


def test_the_default_embedder_ships_and_auto_takes_it():
    assert load_embedder().provider == "static"
    assert load_embedder("auto").identity == load_embedder().identity
    assert load_embedder(None) is load_embedder("none") is None


@pytest.mark.parametrize("provider", ["", "nonesuch", "../static", "static:create", "Static"])
def test_an_unknown_provider_is_refused_with_the_known_ones(provider):
    with pytest.raises(EmbedderError, match=r"unknown embedder .*auto, none, .*hashing.*static"):
        load_embedder(provider)


def test_an_option_that_the_provider_lacks_is_refused_without_its_value():
    with pytest.raises(EmbedderError, match=r"'hashing'.*'api_key'.*takes model, dims") as raised:
        load_embedder("hashing", api_key="hush-hush")
    assert "hush-hush" not in str(raised.value)


PLUGIN = """
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import MissingExtraError
def create(model=None, *, dims=5):
    return HashingEmbedder(dims)
def poor(model=None):
    return object()
def needy(model=None):
    raise MissingExtraError("vectors need a package: pip install vectors")
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package, installed beside us, that registers embedders."""
    (tmp_path / "acme_vectors.py").write_text(PLUGIN, encoding="utf-8")
    folder = tmp_path / "acme_vectors-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-vectors\nVersion: 1.0\n", encoding="utf-8")
    names = {"acme": "create", "acme-poor": "poor", "acme-needy": "needy", "acme-lost": "lost", "static": "poor"}
    lines = [f"{name} = acme_vectors:{function}" for name, function in names.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[openclaw_memory.embedders]", *lines]), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_vectors", None)


@pytest.mark.usefixtures("plugin")
def test_another_package_brings_an_embedder_and_takes_no_name_of_ours():
    assert load_embedder("acme", dims=3).embed_query("kettle").shape == (3,)
    assert {"acme", "static", "hashing"} <= set(list_providers())
    assert load_embedder("static").model == "multilingual-static-256"


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("provider", "error", "words"),
    [
        ("acme-poor", EmbedderError, r"lacks parts of .*types\.Embedder"),
        ("acme-needy", MissingExtraError, "pip install vectors"),
        ("acme-lost", EmbedderError, "cannot be loaded.*install it again"),
    ],
)
def test_an_embedder_of_another_package_that_fails_says_why(provider, error, words):
    with pytest.raises(error, match=words):
        load_embedder(provider)


# --- a function as an embedder
def measure(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0, float(text.count("a"))] for text in texts]


def test_a_function_becomes_an_embedder():
    embedder = CustomEmbedder(measure, model="lengths")
    assert (embedder.provider, embedder.model) == ("callable", "lengths")
    assert np.allclose(embedder.embed_query("aaaa"), np.array([4, 1, 4]) / np.sqrt(33))
    assert embedder.embed_documents(("a", "b")).dtype == np.float32
    assert embedder.identity != CustomEmbedder(measure, model="other").identity


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\) for 2 texts"),
        ([[], []], r"shape \(2, 0\) for 2 texts"),
        ([[1.0], [1.0, 2.0]], "no table of numbers"),
        ([["one"], ["two"]], "no table of numbers"),
        (None, r"shape \(\) for 2 texts"),
        ([[0.0], [0.0]], "zeros for 2 texts"),
    ],
)
def test_a_function_that_returns_no_vectors_is_refused(answer, words):
    with pytest.raises(EmbedderError, match=f"the function 'liar' .*{words}"):
        CustomEmbedder(lambda _: answer, model="liar").embed_documents(["a", "b"])


def test_a_function_that_fails_is_an_embedder_error_with_its_cause():
    with pytest.raises(EmbedderError, match=r"the function 'cold' failed: KeyError: 'text'; fix it") as raised:
        CustomEmbedder(lambda texts: {}[texts[0]], model="cold").embed_query("text")
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_function_that_changes_its_dimensions_is_refused():
    embedder = CustomEmbedder(lambda texts: [[1.0] * len(text) for text in texts], model="elastic")
    embedder.embed_query("abc")
    with pytest.raises(EmbedderError, match="returned 4 dimensions after 3"):
        embedder.embed_query("abcd")


# --- vectors
@pytest.mark.fault(22)
@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(width=32)))
def test_normalised_rows_are_finite_and_of_length_one_or_as_short_as_they_were(matrix):
    rows = normalize(matrix)
    clean = np.where(np.isfinite(matrix), matrix, 0)
    before, after = np.linalg.norm(clean, axis=1), np.linalg.norm(rows.astype(np.float64), axis=1)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert np.allclose(after[before > 1e-9], 1, atol=1e-5)
    assert np.allclose(after[before < 1e-11], before[before < 1e-11], atol=1e-20)
