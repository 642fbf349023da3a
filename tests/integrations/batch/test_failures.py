"""Batch jobs that fail, lie or belong to another model, and what a sync makes of them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from batch_place import reasons, refuse

from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.types import SyncReport


# --- failures
@pytest.mark.parametrize("unknown", [False, True])
def test_a_batch_api_that_failed_twice_is_off_for_this_process_and_says_why(place, unknown, caplog):
    place.fill(8)
    place.sync()
    place.service.fails = {"state": refuse("no such job")} if unknown else {}
    place.service.state = "failed"
    assert (len(place.sync().waiting), len(place.service.jobs)) == (8, 2)
    assert "it is failed; ordinary requests take its place after one more failure" in caplog.text
    embedder = place.embedder()
    place.embedder = lambda _use: embedder
    report = place.sync()
    assert (report.waiting, report.embedded, place.vectors()) == ((), 8, 8)
    assert "ordinary requests take its place until this process ends" in caplog.text
    place.fill(16)
    assert (place.sync().embedded, len(place.service.jobs), len(place.service.ordinary)) == (8, 2, 16)
    del place.embedder  # another process
    with place.opened() as store:
        states = [own.describe(store) for own in (embedder, place.embedder())]
    why = "of job job-2, it is failed"
    assert [(state["enabled"], state["error"]) for state in states] == [(False, why), (True, why)]
    place.fill(24)
    assert (len(place.sync().waiting), len(place.service.jobs)) == (8, 3)


def test_what_an_expired_job_gave_is_kept(place):
    place.fill(12)
    place.sync()
    place.service.state = "expired"
    place.service.lies = {f"number {number}": None for number in range(3, 12)}
    report = place.sync()
    assert (report.embedded, len(report.waiting), place.vectors()) == (3, 9, 3)
    assert [len(job) for job in place.service.jobs.values()] == [12, 9]


class Unreadable:
    """What no library expects: asking for its numbers fails in its own way."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError


LIES = {
    "left out": None,
    "zeros": np.zeros(64),
    "no numbers": "words",
    "null": [None] * 64,
    "not finite": [float("nan")] * 64,
    "beyond all numbers": [10**400] + [1] * 63,
    "an error of its own": Unreadable(),
    "other dimensions": [1.0, 2.0],
    "empty": [],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_bad_vector_of_a_job_is_not_stored_and_its_text_asked_for_ordinarily(place, lie):
    place.fill(8)
    place.sync()
    place.service.finish()
    place.service.lies = {"number 3": lie, "number 5": lie}
    report = place.sync()
    assert (report.embedded, report.waiting, place.vectors()) == (8, (), 8)
    assert sorted(text[-1] for text in place.service.ordinary) == ["3", "5"]
    assert len(place.service.jobs) == 1
    with place.opened() as store:
        best = store.search_vector(HashingEmbedder().embed_query("memo number 3"), 1)
        assert store.get_chunks([best[0].chunk_id])[0].path == "memory/3.md"


def test_a_job_whose_name_was_lost_on_the_way_is_not_submitted_again(place):
    place.fill(8)
    asked: list[int] = []

    def lose() -> None:
        asked.append(len(asked))
        raise ConnectionResetError("in the middle of the answer")

    place.service.on_submit = lose
    report = place.sync()
    assert (asked, report.ok, len(place.service.ordinary), place.file.exists()) == ([0], True, 8, False)


def test_a_service_that_is_down_keeps_its_jobs(place):
    place.fill(8)
    place.sync()
    for call in ("state", "results"):
        place.service.fails = {call: ConnectionResetError("gone")}
        place.service.state = "done"
        assert len(place.sync().waiting) == 8
    place.service.fails = {}
    assert (place.sync().ok, len(place.service.jobs), place.service.ordinary) == (True, 1, [])


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"identity": 1}', b"\xff\xfe", b'{"identity": {"jobs": [{}]}}'])
def test_a_damaged_file_counts_as_none(place, damage, caplog):
    place.fill(8)
    place.file.write_bytes(damage)
    assert len(place.sync().waiting) == 8
    assert "is damaged" in caplog.text
    place.service.finish()
    assert place.sync().ok


def test_no_job_is_submitted_that_could_not_be_remembered(place):
    place.fill(8)
    place.file.mkdir()
    with pytest.raises(OpenClawMemoryError, match=r"batches\.json"):
        place.sync()
    assert place.service.jobs == {}


def test_the_second_of_two_that_lack_the_same_texts_leaves_them_to_the_first_ones_job(place):
    place.fill(8)
    reports: list[SyncReport] = []
    other = threading.Thread(target=lambda: reports.append(place.sync()))
    place.service.on_submit = other.start
    reports.append(place.sync())
    other.join()
    assert [len(job) for job in place.service.jobs.values()] == [8]
    assert [len(report.waiting) for report in reports] == [8, 8]


# --- other models, and rebuilds
def test_the_jobs_of_another_model_wait_until_it_is_wanted_again(place):
    place.fill(8)
    place.sync()
    place.service.model = "fake-2"
    place.service.finish()
    assert reasons(place.sync())
    assert (len(place.service.jobs), place.service.polled) == (2, {})
    assert place.sync().ok
    assert place.service.polled == {"job-2": 1}
    place.service.model = "fake-1"
    report = place.sync()
    assert (report.ok, report.embedded, len(place.service.jobs), place.service.ordinary) == (True, 8, 2, [])
    assert (place.service.polled, place.file.exists()) == ({"job-1": 1, "job-2": 1}, False)


def test_a_rebuild_whose_texts_are_with_the_service_leaves_the_old_index_in_place(place):
    place.fill(8)
    place.sync("off")
    place.service.model = "fake-2"
    report = place.sync()
    assert (report.rebuilt, len(report.waiting), report.ok) == (None, 8, False)
    assert "batch API" in "".join(reasons(report))
    with place.opened() as store:
        assert "fake-1" in store.read_meta().identity
    assert place.vectors() == 8
    place.write("memory/new.md", "a zeppelin was seen")
    assert place.sync().rebuilt is None
    assert place.found("zeppelin") == 1
    place.service.finish()
    report = place.sync()
    assert "fake-2" in str(report.rebuilt)
    assert (report.ok, place.vectors()) == (True, 9)
    assert len(place.service.ordinary) == 8 + 1
