"""Work in a thread of its own: once for many requests, at an interval, and never longer than its owner lives."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable

from openclaw_memory.indexing import background
from openclaw_memory.indexing.background import Background

SECONDS = 60  # how long a test waits for something to happen


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


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
    assert until(lambda: owner.done == 2)
    owner.background.stop()
    assert owner.done == 2


def test_a_request_after_an_idle_time_is_met_by_a_new_thread(monkeypatch):
    monkeypatch.setattr(background, "IDLE_SECONDS", 0.01)
    owner = Owner()
    owner.go_on.set()
    for wanted in (1, 2):
        owner.background.request()
        assert until(lambda: owner.done == wanted and owner.background._thread is None)  # noqa: B023 - called at once


def test_at_an_interval_nobody_needs_to_ask():
    owner = Owner(every_seconds=0.01)
    owner.go_on.set()
    owner.background.start()
    assert until(lambda: owner.done >= 3)
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
    assert until(lambda: owner.background._thread is None)
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
    assert until(lambda: gone() is None)
    thread.join(SECONDS)
    assert not thread.is_alive()
