"""In one process searches go before syncs."""

from __future__ import annotations

import threading
from pathlib import Path

from openclaw_memory import Memory
from openclaw_memory.indexing import background
from openclaw_memory.indexing.background import Courtesy

SECONDS = 60


def test_a_sync_waits_until_the_last_search_is_done():
    polite, order = Courtesy(), []
    under_way, may_end = threading.Event(), threading.Event()

    def search() -> None:
        with polite.first(), polite.first():
            under_way.set()
            assert may_end.wait(SECONDS)
            order.append("search")

    thread = threading.Thread(target=search)
    thread.start()
    assert under_way.wait(SECONDS)
    threading.Timer(0.01, may_end.set).start()
    while not order:
        polite.give_way()
    order.append("sync")
    thread.join(SECONDS)
    assert order == ["search", "sync"]


def test_it_gets_on_under_searches_without_end(monkeypatch):
    monkeypatch.setattr(background, "LONGEST_WAIT_SECONDS", 0.01)
    polite = Courtesy()
    with polite.first():
        polite.give_way()


def test_without_searches_nobody_waits(monkeypatch):
    monkeypatch.setattr(background, "LONGEST_WAIT_SECONDS", SECONDS * 100)
    Courtesy().give_way()


def test_a_search_that_fails_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(background, "LONGEST_WAIT_SECONDS", SECONDS * 100)
    polite = Courtesy()
    try:
        with polite.first():
            raise ZeroDivisionError
    except ZeroDivisionError:
        polite.give_way()


def test_the_sync_of_a_memory_gives_way_to_its_searches(notes: Path, monkeypatch):
    waited: list[int] = []
    with Memory.open(notes, embedder="static") as memory:
        memory.sync()
        monkeypatch.setattr(
            memory._upkeep.courtesy, "give_way", lambda: waited.append(memory._upkeep.courtesy._searches)
        )
        memory.sync(force=True)
        assert len(waited) >= 4  # each of four files
        real = memory._embedders.wanted().inner.embed_query
        seen: list[int] = []
        monkeypatch.setattr(
            memory._embedders.wanted().inner,
            "embed_query",
            lambda text: (seen.append(memory._upkeep.courtesy._searches), real(text))[1],
        )
        memory.search("boiler")
        assert seen == [1]
        assert memory._upkeep.courtesy._searches == 0
