"""Work in a thread of its own: once for many requests, at an interval, never longer than its owner lives; searches first."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import ExitStack

import pytest
from watching import eventually

from openclaw_memory import Memory
from openclaw_memory.indexing import background
from openclaw_memory.indexing.background import Background, SearchPriority

SECONDS = 60  # how long a test waits for something to happen


class Owner:
    """Counts how often its work was done; each time waits until it may go on."""

    def __init__(self, every_seconds: float = 0.0) -> None:
        self.done = 0
        self.began, self.go_on = threading.Event(), threading.Event()
        self.background = Background(self.work, every_seconds)

    def work(self) -> None:
        self.began.set()
        assert self.go_on.wait(SECONDS)
        self.done += 1


def test_requests_that_come_during_the_work_are_one_more_piece_of_it():
    owner = Owner()
    owner.background.request()
    assert owner.began.wait(SECONDS)
    for _ in range(20):
        owner.background.request()
    owner.go_on.set()
    eventually(lambda: owner.done == 2)
    owner.background.stop()
    assert owner.done == 2


def test_a_request_after_an_idle_time_is_met_by_a_new_thread(monkeypatch):
    monkeypatch.setattr(background, "IDLE_SECONDS", 0.01)
    owner = Owner()
    owner.go_on.set()
    for wanted in (1, 2):
        owner.background.request()
        eventually(lambda: owner.done == wanted and owner.background._thread is None)  # noqa: B023 - called at once


def test_at_an_interval_nobody_needs_to_ask():
    owner = Owner(every_seconds=0.01)
    owner.go_on.set()
    owner.background.start()
    eventually(lambda: owner.done >= 3)
    owner.background.stop()


def test_without_an_interval_nothing_starts_by_itself():
    owner = Owner()
    owner.background.start()
    assert owner.background._thread is None


def test_stopping_waits_for_the_work_under_way_and_begins_none():
    owner = Owner()
    owner.background.request()
    assert owner.began.wait(SECONDS)
    threading.Timer(0.05, owner.go_on.set).start()
    owner.background.stop()
    assert owner.done == 1
    owner.background.request()
    owner.background.stop()
    assert owner.done == 1


def test_the_work_may_stop_itself():
    class Ending(Owner):
        def work(self) -> None:
            super().work()
            self.background.stop()

    owner = Ending()
    owner.go_on.set()
    owner.background.request()
    eventually(lambda: owner.background._thread is None)
    assert owner.done == 1


def test_the_thread_ends_with_its_owner():
    owner = Owner(every_seconds=0.01)
    owner.go_on.set()
    owner.background.start()
    thread, gone = owner.background._thread, weakref.ref(owner)
    assert thread is not None
    assert owner.began.wait(SECONDS)
    del owner
    gc.collect()
    eventually(lambda: gone() is None)
    thread.join(SECONDS)
    assert not thread.is_alive()


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
