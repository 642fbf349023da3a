"""Batch jobs of one index that several processes look after at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest
from batch_place import Place

from openclaw_memory.embeddings.batch import state
from openclaw_memory.embeddings.batch.api import JobState
from openclaw_memory.embeddings.batch.jobs import Batch
from openclaw_memory.embeddings.vectors import vector_key
from openclaw_memory.errors import StoreError
from openclaw_memory.types import SyncReport


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path / "workspace", tmp_path / "index.sqlite")


@pytest.fixture
def two(place: Place) -> Iterator[tuple[Batch, Batch]]:
    """Two processes that have read the file before either has written to it."""
    both = place.batch(), place.batch()
    yield both
    for batch in both:
        batch.embedder.close()


def texts(*numbers: int) -> list[tuple[str, str]]:
    return [(vector_key(f"text {number}"), f"text {number}") for number in numbers]


def test_what_two_hand_over_is_remembered_by_both(place: Place, two: tuple[Batch, Batch]) -> None:
    first, second = two
    with place.opened() as store:
        first.advance(store, texts(*range(8)))
        second.advance(store, texts(*range(8, 16)))
        first.advance(store, [])
    assert [job["name"] for job in place.remembered()] == ["job-1", "job-2"]
    assert len(first.held()) == len(second.held()) == 16


def test_the_second_of_two_that_lack_the_same_texts_leaves_them_to_the_first_ones_job(place: Place) -> None:
    place.write("memory/first.md", "the very first note")
    place.sync()
    place.fill(8)
    reports: list[SyncReport] = []
    other = threading.Thread(target=lambda: reports.append(place.sync()))

    def begin() -> None:
        if not other.ident:
            other.start()
            other.join(0.5)  # it has submitted the same texts by now, if nothing keeps it from that

    place.service.on_submit = begin
    reports.append(place.sync())
    other.join()
    assert [len(job) for job in place.service.jobs.values()] == [8]
    assert [len(report.waiting) for report in reports] == [8, 8]
    assert len(place.service.ordinary) == 1


def test_a_few_texts_that_another_left_are_not_worth_a_job(place: Place, two: tuple[Batch, Batch]) -> None:
    first, second = two
    with place.opened() as store:

        def missing() -> Iterator[tuple[str, str]]:
            yield from texts(*range(9))
            first.advance(store, texts(*range(8)))

        second.advance(store, missing())
    assert [len(job) for job in place.service.jobs.values()] == [8]
    assert {key for key, _ in texts(8)}.isdisjoint(second.held())


def test_what_another_has_stored_meanwhile_is_not_handed_over(place: Place, two: tuple[Batch, Batch]) -> None:
    first, second = two
    place.service.finish()
    with place.opened() as store:

        def missing() -> Iterator[tuple[str, str]]:
            yield from texts(*range(8))
            first.advance(store, texts(*range(8)))
            first.advance(store, [])

        second.advance(store, missing())
    assert (len(place.service.jobs), place.file.exists()) == (1, False)


def test_a_failure_that_two_see_is_counted_once(place: Place, two: tuple[Batch, Batch]) -> None:
    first, second = two
    with place.opened() as store:
        first.advance(store, texts(*range(8)))
        second.advance(store, [])
        place.service.state = JobState.FAILED
        (job,) = second.known.jobs
        first.advance(store, [])
        assert second._collected(job, store) == 0  # it has asked for the state before the first one forgot the job
    assert (first.known.failures, second.known.failures) == (1, 1)


def test_nobody_is_kept_out_while_one_waits(place: Place) -> None:
    place.fill(8)
    place.service.polls = 2
    tried: list[float] = []

    def sleep(seconds: float) -> None:
        with filelock.FileLock(f"{place.file}.lock", timeout=0):
            tried.append(seconds)

    place.clock.sleep = sleep  # type: ignore[method-assign]
    assert (place.sync("wait").ok, tried) == (True, [2.0, 2.0])


def test_a_lock_that_is_never_let_go_is_told_in_words(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LOCK_SECONDS", 0.01)
    place.fill(8)
    with (
        filelock.FileLock(f"{place.file}.lock"),
        pytest.raises(StoreError, match=r"is held for over 0\.01 s; end the process"),
    ):
        place.sync()
    assert place.service.jobs == {}
