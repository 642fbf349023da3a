"""The fakes that ship: an embedder that records, a sample workspace, and chat models that reply by a script."""

import doctest
import importlib

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import RecordingEmbedder, check_embedder, sample_workspace


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
