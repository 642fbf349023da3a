"""The fakes that ship: an embedder that records, a sample workspace, and chat models that reply by a script."""

import doctest
import importlib

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import check_embedder
from openclaw_memory.testing.fakes import RecordingEmbedder, sample_workspace


def test_the_recording_embedder_keeps_the_contract_of_an_embedder():
    check_embedder(RecordingEmbedder())


def test_it_fails_on_demand_and_works_again(tmp_path):
    embedder = RecordingEmbedder()
    with Memory.open(sample_workspace(tmp_path / "notes"), embedder=embedder) as memory:
        memory.sync()
        embedder.failure = EmbedderError("the service is down")
        results = memory.search("E_CAL_DRIFT")
        assert "the service is down" in (results.reason or "")
        assert results[0].path.startswith("memory/")
        embedder.failure = None
        assert memory.search("E_CAL_DRIFT").reason is None


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("openclaw_memory.testing.fakes", "numpy"),
        ("langchain_openclaw_memory.testing", "langchain_core"),
        ("llama_index_openclaw_memory.testing", "llama_index.core"),
    ],
)
def test_the_tours_in_the_docstrings_are_true(module, needs):
    pytest.importorskip(needs)
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 1
    assert result.failed == 0
