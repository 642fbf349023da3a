"""Work in a thread of its own: once for many requests, at an interval, never longer than its owner lives; searches first."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from openclaw_memory import Memory
from openclaw_memory.indexing import background
from openclaw_memory.indexing.background import SearchPriority

SECONDS = 60  # how long a test waits for something to happen


# --- searches go before syncs
def test_a_sync_waits_until_the_last_search_is_done():
    priority, order = SearchPriority(), []
    under_way, may_end = threading.Event(), threading.Event()

    def search() -> None:
        with priority.searching(), priority.searching():
            under_way.set()
            assert may_end.wait(SECONDS)
            order.append("search")

    thread = threading.Thread(target=search)
    thread.start()
    assert under_way.wait(SECONDS)
    threading.Timer(0.01, may_end.set).start()
    while not order:
        priority.yield_to_searches()
    order.append("sync")
    thread.join(SECONDS)
    assert order == ["search", "sync"]


@pytest.mark.parametrize("searching", ["yes", "no", "failed"])
def test_a_sync_gets_on_under_searches_without_end_and_waits_for_none_that_is_over(monkeypatch, searching):
    monkeypatch.setattr(background, "LONGEST_WAIT_SECONDS", 0.01 if searching == "yes" else SECONDS * 100)
    priority = SearchPriority()
    with ExitStack() as search:
        if searching != "no":
            search.enter_context(priority.searching())
        if searching == "failed":
            search.close()
        priority.yield_to_searches()


def test_the_sync_of_a_memory_yields_to_its_searches(notes, monkeypatch):
    waited: list[int] = []
    with Memory.open(notes, embedder="static") as memory:
        memory.sync()
        priority = memory._service.priority
        monkeypatch.setattr(priority, "yield_to_searches", lambda: waited.append(priority._searches))
        memory.sync(force=True)
        assert len(waited) >= 4  # each of four files
        embedder = memory.embedder.inner
        real, seen = embedder.embed_query, []
        monkeypatch.setattr(embedder, "embed_query", lambda text: (seen.append(priority._searches), real(text))[1])
        memory.search("boiler")
        assert seen == [1]
        assert priority._searches == 0
