"""A memory whose embedding service fails in every way: what is found, what is told, and what is left in the index."""

from __future__ import annotations

from typing import Any

import embedding_faults as faults
import numpy as np
import pytest

from openclaw_memory import Memory, load_embedder
from openclaw_memory.embeddings.service import RetryPolicy
from openclaw_memory.store.connection import fetch
from openclaw_memory.store.vectors import decode_rows

# It waits for an answer as long as a busy machine may take, and gives up at once what is wrong.
PATIENT = RetryPolicy(query_seconds=60, request_seconds=60)
HASTY = RetryPolicy(query_seconds=0.5, request_seconds=0.5)  # for answers that do not come at all
# An answer that is wrong, or none: the whole of it is refused.
LIES = {
    "429": faults.status(429),
    "429 with Retry-After": faults.status(429, retry_after=0.001),
    "quota": faults.quota(),
    "500": faults.status(500),
    "503": faults.status(503),
    "reset": faults.reset,
    "half a body": faults.half_body,
    "drip": faults.drip(0.05),
    "hang": faults.hang,
    "no JSON": faults.not_json,
    "redirect": faults.redirect(),
    "too few": faults.wrong_count(-1),
    "too many": faults.wrong_count(1),
    "zeros": faults.zeros,
    "all NaN": faults.all_nan,
    "null": faults.null,
    "a small gzip bomb": faults.gzip_bomb(1_000_000),
}
ENDLESS = ("drip", "hang")
# Of one text alone the answer is right: questions are answered.
LIES_ABOUT_SEVERAL = {"the same index twice": faults.same_index, "mixed dimensions": faults.mixed_dims}


@pytest.fixture
def opened(notes, embedding_server, tries_again_at_once):  # noqa: ARG001 - no test waits
    """The notes with the OpenAI provider, whose service is the server of this test."""
    memories = []

    def open_memory(pace: RetryPolicy = PATIENT) -> Memory:
        embedder = load_embedder("openai", base_url=embedding_server.base_url("openai"), api_key="sk-test", retry=pace)
        memories.append((Memory.open(notes, embedder=embedder), embedder))
        return memories[-1][0]

    yield open_memory
    for memory, embedder in memories:
        memory.close()
        embedder.close()  # type: ignore[union-attr]


@pytest.mark.fault(20, 22)
@pytest.mark.parametrize("name", LIES)
@pytest.mark.sampled(3)
def test_a_first_index_is_built_by_keywords_and_gets_its_vectors_later(opened, embedding_server, name):
    embedding_server.always(LIES[name])
    memory = opened(HASTY if name in ENDLESS else PATIENT)
    report = memory.sync()
    assert (len(report.added), len(report.waiting), report.ok, report.embedded) == (4, 4, False, 0)
    assert embedding_server.root.removeprefix("http://") in report.waiting[0].reason
    results = memory.search("When is the boiler serviced?")
    assert (results[0].path, results.mode, results.stale) == ("memory/household.md", "keyword", True)
    assert results.reason
    state = memory.status()
    assert len(state.dirty) == 4
    assert any("4 files without vectors, found by keywords alone" in notice for notice in state.notices)
    assert stored_vectors(memory) == []
    embedding_server.always(faults.honest)
    caught_up = opened()
    assert (caught_up.sync().ok, caught_up.status().dirty) == (True, {})
    assert caught_up.search("boiler").mode == "hybrid"


@pytest.mark.parametrize("lie", LIES_ABOUT_SEVERAL.values(), ids=LIES_ABOUT_SEVERAL.keys())
def test_vectors_that_are_mixed_up_are_not_stored(opened, embedding_server, lie):
    embedding_server.always(lie)
    memory = opened()
    assert (len(memory.sync().waiting), stored_vectors(memory)) == (4, [])
    results = memory.search("When is the boiler serviced?")
    assert (results[0].path, results.stale) == ("memory/household.md", True)
    assert "4 files without vectors, found by keywords alone" in str(results.reason)


@pytest.mark.fault(20)
@pytest.mark.parametrize("name", ["500", "hang", "too few", "zeros", "quota"])
@pytest.mark.sampled(2)
def test_an_index_that_is_there_keeps_its_vectors(opened, embedding_server, notes, name):
    assert opened().sync().ok
    memory = opened(HASTY if name in ENDLESS else PATIENT)
    before = stored_vectors(memory)
    embedding_server.always(LIES[name])
    (notes / "memory/new.md").write_text("A zeppelin was seen over the harbour.\n")
    report = memory.sync()
    assert [file.path for file in report.waiting] == ["memory/new.md"]
    np.testing.assert_array_equal(stored_vectors(memory), before)
    assert memory.search("zeppelin")[0].path == "memory/new.md"
    asked = len(embedding_server.requests)
    memory.search("boiler")
    assert len(embedding_server.requests) == asked  # a service that just failed is left alone
    embedding_server.always(faults.honest)
    memory = opened() if name in ENDLESS else memory
    assert (memory.sync().embedded, memory.search("zeppelin").stale) == (1, False)


@pytest.mark.fault(21)
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.sampled(1)
def test_a_search_whose_service_never_answers_ends_by_its_deadline(opened, embedding_server, name):
    opened().sync()
    embedding_server.always(LIES[name])
    results = opened(HASTY).search("boiler")
    assert (results.mode, "0.5 s" in str(results.reason)) == ("keyword", True)


@pytest.mark.fault(22)
@pytest.mark.parametrize("lie", [faults.nan, faults.infinity, faults.null_number], ids=["NaN", "infinity", "null"])
def test_a_number_that_is_none_is_stored_as_zero(opened, embedding_server, lie):
    embedding_server.always(lie)
    memory = opened()
    memory.sync()
    stored = stored_vectors(memory)
    assert len(stored) >= 4
    assert np.isfinite(stored).all()
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-5)


def test_one_bad_answer_among_good_ones_costs_nothing(opened, embedding_server):
    for lie in (faults.status(500), faults.reset, faults.wrong_count(-1), faults.zeros):
        embedding_server.script(lie)
    memory = opened()
    report = memory.sync()
    if not report.ok:  # three of the four may have fallen to one request, which has three tries
        report = memory.sync()
    assert (report.ok, memory.search("boiler").mode) == (True, "hybrid")


def stored_vectors(memory: Memory) -> list[Any]:
    store: Any = memory._engine.service.store()
    with store._connections.read() as db:
        rows = fetch(db, "SELECT id, embedding FROM vectors ORDER BY id")
        return list(decode_rows(rows, store.read_meta().dims or 0)[1])
