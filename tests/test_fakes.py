"""The fakes that ship: an embedder that records, a sample workspace, and chat models that reply by a script."""

import doctest
import importlib

import pytest

from openclaw_memory import Memory, load_embedder
from openclaw_memory.errors import EmbedderError, WorkspaceError
from openclaw_memory.testing import (
    InMemoryStore,
    RecordingEmbedder,
    check_embedder,
    check_store,
    sample_workspace,
)
from openclaw_memory.testing.server import EmbeddingServer


def test_the_recording_embedder_keeps_the_contract_of_an_embedder():
    check_embedder(RecordingEmbedder())


def test_the_store_in_memory_keeps_the_contract_of_a_store():
    check_store(InMemoryStore)


def test_it_records_what_it_was_asked_and_that_it_was_closed(tmp_path):
    embedder = RecordingEmbedder()
    with Memory.open(sample_workspace(tmp_path / "notes"), embedder=embedder) as memory:
        memory.sync()
        assert memory.search("What does E_CAL_DRIFT mean?")[0].path.startswith("memory/")
    assert any("E_CAL_DRIFT" in text for text in embedder.documents)
    assert "What does E_CAL_DRIFT mean?" in embedder.queries


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


def test_vectors_of_two_names_are_never_compared():
    assert RecordingEmbedder(name="a").identity != RecordingEmbedder(name="b").identity


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(WorkspaceError, match="not empty"):
        sample_workspace(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("openclaw_memory.testing.fakes", "numpy"),
        ("openclaw_memory.testing.server", "openai"),
        ("langchain_openclaw_memory.testing", "langchain_core"),
        ("llama_index_openclaw_memory.testing", "llama_index.core"),
    ],
)
def test_the_tours_in_the_docstrings_are_true(module, needs):
    pytest.importorskip(needs)
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 1
    assert result.failed == 0


def test_a_served_embedder_has_the_vectors_of_the_one_behind_it():
    pytest.importorskip("openai")
    behind = load_embedder("hashing")
    with EmbeddingServer(behind) as server:
        served = load_embedder("openai", "any-name", base_url=server.url, api_key="none")
        assert served.embed_query("the boiler") == pytest.approx(behind.embed_query("the boiler"), abs=1e-6)
        port = server.port
    server.close()  # twice does no harm
    with EmbeddingServer(behind, port) as again:  # the port is free again
        assert again.url == f"http://127.0.0.1:{port}/v1"


def test_the_copying_script_quotes_its_source_looks_up_what_it_does_not_know_and_saves_facts():
    pytest.importorskip("langchain_core")
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openclaw_memory.testing import Request, asked_for, copying

    notes = "[memory/2026-02-17.md#L3]\nThe celadon glaze has 42 parts of feldspar.\nQuestion: "
    asked = Request([HumanMessage(f"{notes}How much feldspar has the celadon glaze?")])
    assert copying(asked) == "The celadon glaze has 42 parts of feldspar. [memory/2026-02-17.md#L3]"
    assert copying(Request([HumanMessage("Question: Who sings?")])) == "I do not know."
    (call,) = copying(Request([HumanMessage("Question: Who sings?")], ["memory_search"])).tool_calls
    assert (call["name"], call["args"]) == ("memory_search", {"query": "Who sings?"})

    talk = [HumanMessage("The van comes on 14 March. I worry about shelves."), HumanMessage("Save what lasts.")]
    flush = Request(talk, ["memory_append"])
    assert asked_for(flush) == "flush"
    assert copying(flush).tool_calls[0]["args"] == {"text": "- The van comes on 14 March."}
    assert copying(Request([*talk, ToolMessage("done", tool_call_id="call")], ["memory_append"])) == "NO_REPLY"
