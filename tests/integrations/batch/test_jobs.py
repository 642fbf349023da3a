"""Texts that go to a batch API: what is handed over, how it is waited for, and what is collected."""

from __future__ import annotations

import os
import runpy
import stat
from contextlib import closing
from pathlib import Path

import embedding_faults as faults
import httpx
import numpy as np
import pytest
from batch_place import MIN_TEXTS, NOON, PROVIDER, FakeService, Place, reasons, refuse
from openclaw_memory_batch import BatchEmbedder, create
from openclaw_memory_batch.embedder import Job, JobsState, load, save
from openclaw_memory_batch.services import APIS

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import ConfigError, OpenClawMemoryError
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.sync import sync
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import Progress
from openclaw_memory.workspace import Workspace


# --- handed over, and collected
def test_many_missing_texts_go_to_the_batch_api_and_a_later_sync_collects_them(place):
    place.fill(8)
    first = place.sync()
    assert (len(first.added), len(first.waiting), first.embedded) == (8, 8, 0)
    (reason,) = reasons(first)
    assert reason.startswith(f"8 texts are with {PROVIDER}'s batch API since 2026-")
    assert reason.endswith("; the next sync collects them")
    assert (place.found("memo"), place.vectors()) == (8, 0)
    place.service.finish()
    then = place.sync()
    assert (then.waiting, then.embedded, then.unchanged, place.vectors()) == ((), 8, 8, 8)
    assert then.tokens == sum(len(text) for text in place.service.jobs["job-1"].values())
    assert (len(place.service.jobs), place.service.ordinary) == (1, [])
    assert not place.file.exists()


def test_texts_are_parted_into_jobs_as_large_as_the_service_takes(place):
    place.fill(12)
    place.max_texts, place.concurrency = 5, 3
    place.sync()
    assert [len(job) for job in place.service.jobs.values()] == [5, 5, 2]
    place.service.finish()
    assert (place.sync().embedded, place.vectors()) == (12, 12)


def test_two_jobs_run_at_a_time_and_the_other_texts_wait_for_them(place):
    place.fill(20)
    place.max_texts = 5
    report = place.sync()
    assert [len(job) for job in place.service.jobs.values()] == [5, 5]
    assert len(report.waiting) == 20
    assert {"waits for one of 2 jobs" in reason for reason in reasons(report)} == {True, False}
    place.service.finish()
    place.sync()
    place.sync()
    assert [len(job) for job in place.service.jobs.values()] == [5, 5, 5, 5]
    assert (place.vectors(), place.service.ordinary) == (20, [])


@pytest.mark.parametrize(
    ("use", "count", "options"), [("later", MIN_TEXTS - 1, {}), ("off", 8, {})], ids=["few texts", "off"]
)
def test_ordinary_calls_are_made_otherwise(place, use, count, options):
    place.fill(count)
    report = place.sync(use, **options)
    assert (report.embedded, report.ok, len(place.service.ordinary)) == (count, True, count)
    assert (place.service.jobs, place.file.exists()) == ({}, False)


def test_an_interval_that_is_none_is_an_error():
    with pytest.raises(ConfigError, match="poll_seconds must be more than 0"):
        create(provider="voyage", api_key="any", poll_seconds=0)


@pytest.mark.parametrize("inner", [HashingEmbedder(), None])
def test_an_embedder_without_a_batch_api_is_an_error(inner):
    with pytest.raises(ConfigError, match="has no batch API"):
        BatchEmbedder(inner)


def test_a_note_written_meanwhile_is_embedded_at_once(place):
    place.fill(8)
    place.sync()
    place.write("memory/new.md", "a zeppelin was seen")
    report = place.sync()
    assert (report.added, report.embedded, len(report.waiting)) == (("memory/new.md",), 1, 8)
    assert ["zeppelin" in text for text in place.service.ordinary] == [True]
    assert place.vectors() == 1


def test_what_is_remembered_is_private_and_tells_the_job(place):
    place.fill(8)
    place.sync()
    assert stat.S_IMODE(place.file.stat().st_mode) == 0o600
    (job,) = place.remembered()
    assert (job["name"], len(job["keys"]), job["submitted"], job["failures"]) == ("job-1", 8, NOON, 0)
    assert [path.name for path in place.file.parent.glob("*.json*")] == [place.file.name]


# --- waiting for them
def test_a_sync_that_waits_polls_until_the_vectors_are_there(place):
    place.fill(8)
    place.service.polls = 4
    report = place.sync("wait")
    assert (len(report.added), report.unchanged, report.waiting, report.embedded) == (8, 0, (), 8)
    assert (place.vectors(), place.clock.slept) == (8, [2.0] * 4)
    told = [step for step in place.steps if step.label == "texts with the batch service"]
    assert [(step.completed, step.total, step.seconds) for step in told] == [(0, 8, 2.0 * at) for at in range(4)]


def test_a_sync_that_was_ended_while_it_waited_is_taken_up_again(place):
    place.fill(8)

    def end(step: Progress) -> None:
        if step.label == "texts with the batch service":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.sync("wait", progress=end)
    place.service.finish()
    assert (place.sync("wait").waiting, len(place.service.jobs), place.service.ordinary) == ((), 1, [])


def test_a_late_job_is_waited_for_twice_and_then_given_up(place):
    place.fill(8)
    place.service.on_submit = lambda: place.service.fails.update(submit=refuse("no"))
    report = place.sync("wait")
    assert place.clock.now - NOON == 2 * 100.0
    assert place.service.cancelled == ["job-1"]
    assert (report.waiting, len(place.service.ordinary), place.vectors()) == ((), 8, 8)


# --- through the front door
def remember(notes: Path, count: int = 1000) -> None:
    (notes / "memory" / "long.md").write_text("".join(f"## Topic {n}\n\nmemo number {n}\n\n" for n in range(count)))


@pytest.mark.nightly
def test_a_memory_hands_over_a_large_first_index_and_another_one_collects_it(notes):
    remember(notes)
    service = FakeService()
    with Memory.open(notes, embedder=BatchEmbedder(service.embedder(), api=service, max_texts=1000)) as memory:
        report = memory.sync()
        assert report.waiting
        assert ([len(job) for job in service.jobs.values()], service.ordinary) == ([1000, 4], [])
        assert memory.search("boiler")[0].path == "memory/household.md"
        assert any("batch API" in notice for notice in memory.status().notices)
    service.finish()
    with Memory.open(notes, embedder=BatchEmbedder(service.embedder(), api=service, max_texts=1000)) as memory:
        assert (memory.sync().ok, service.ordinary) == (True, [])
        results = memory.search("boiler")
        assert (results.mode, results.reason, results.stale) == ("hybrid", None, False)


def test_a_memory_and_a_server_agree_on_jobs(notes, embedding_server, tmp_path, monkeypatch):
    place = Place(notes, tmp_path / "index.sqlite")
    place.fill(8)
    embedder = load_embedder("openai", base_url=embedding_server.base_url("openai"))
    assert embedder is not None
    embedding_server.batch.polls = 3
    monkeypatch.setattr("openclaw_memory_batch.embedder.time", place.clock)
    batches = BatchEmbedder(embedder, wait=True, min_texts=MIN_TEXTS)
    with place.opened() as store:
        report = sync(SyncParts(Workspace.open(notes), store, batches, MemoryConfig()))
        assert (report.ok, len(embedding_server.seen("submit"))) == (True, 1)
        assert embedding_server.answered.total() - len(embedding_server.seen("embed")) == report.embedded
    embedder.close()


@pytest.mark.usefixtures("tries_again_at_once")
def test_jobs_under_way_at_a_batch_service_are_counted(notes):
    options = {"base_url": "http://127.0.0.1:9/v1", "model": "any", "api_key": "sk-any"}
    providers = {"batch": {"provider": "openai", **options}}
    config = MemoryConfig(embedding=EmbeddingConfig(provider="batch", providers=providers))
    with Memory.open(notes, config=config) as memory:
        memory.sync()
        index = Path(memory.status().index_path)
        with closing(SqliteStore.open(index)) as store:
            meta = store.read_meta()
        assert meta is not None
        jobs = (Job("batch_1", ["00", "01"], 10, 1e9), Job("batch_2", ["02"], 5, 1e9))
        record = Path(f"{index}.batches.json")
        save(record, {meta.identity: JobsState(jobs, 1, "it is expired"), "another": JobsState(jobs, 2)})
        state = memory.status()
        assert (state.fallback, "a batch job failed: it is expired" in state.notices) == (None, True)
        assert tuple(state.batch[name] for name in ("mode", "jobs", "texts", "failures")) == ("later", 2, 3, 1)
        record.unlink()
        record.mkdir()
        assert "batches.json" in memory.status().batch["error"]


def test_the_record_of_batch_jobs_is_neither_read_nor_written_through_a_link(tmp_path):
    victim, record = tmp_path / "victim", tmp_path / "index.sqlite.batches.json"
    victim.write_text('{"model": {"jobs": [], "failures": 7}}')
    record.symlink_to(victim)
    with pytest.raises(OpenClawMemoryError, match="link"):
        load(record)
    for number in range(os.getpid() - 3, os.getpid() + 4):
        (tmp_path / f"{record.name}.{number}").symlink_to(victim)
    jobs = {"model": JobsState((Job("job-1", ["key"], 1, 0.0),))}
    with pytest.raises(OpenClawMemoryError, match="link"):
        save(record, jobs)
    record.unlink()
    save(record, jobs)
    assert victim.read_text() == '{"model": {"jobs": [], "failures": 7}}'
    assert list(load(record)) == ["model"]


# --- the services
TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]
ITEMS = [(f"{place:064x}", text) for place, text in enumerate(TEXTS)]
services = pytest.mark.parametrize("provider", APIS)


def reach(server, provider, model=None, **options):
    """The batch API of a provider for which the server speaks, and the embedder."""
    embedder = load_embedder(provider, model, **{"api_key": "key-1", "base_url": server.base_url(provider), **options})
    return APIS[provider](embedder), embedder


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", None), ("gemini", None), ("gemini", "gemini-embedding-2"), ("voyage", None)]
)
def test_a_job_gives_the_vectors_that_requests_give(embedding_server, provider, model):
    api, embedder = reach(embedding_server, provider, model, dimensions=128)
    job = api.submit(ITEMS)
    assert [api.fetch_state(job) for _ in range(2)] == ["running", "done"]
    vectors = api.fetch_results(job)
    assert sorted(vectors) == [key for key, _ in ITEMS]
    np.testing.assert_allclose([vectors[key] for key, _ in ITEMS], embedder.embed_documents(TEXTS), atol=1e-6)
    embedder.close()


@services
def test_texts_of_a_job_that_failed_are_left_out(embedding_server, provider):
    embedding_server.batch.refused, embedding_server.batch.polls = {TEXTS[1]}, 0
    api, _ = reach(embedding_server, provider)
    job = api.submit(ITEMS)
    assert api.fetch_state(job) == "done"
    assert sorted(api.fetch_results(job)) == [ITEMS[0][0], ITEMS[2][0]]


@services
@pytest.mark.parametrize("outcome", ["failed", "expired"])
def test_a_job_that_came_to_nothing_says_so(embedding_server, provider, outcome):
    embedding_server.batch.outcome, embedding_server.batch.polls = outcome, 0
    api, _ = reach(embedding_server, provider)
    assert api.fetch_state(api.submit(ITEMS)) == outcome
    other = api.submit(ITEMS)
    api.cancel(other)
    assert api.fetch_state(other) in {"failed", outcome}


@pytest.mark.parametrize("location", ["{url}", "http://other.example/secrets", "file:///etc/passwd"])
def test_the_results_of_a_job_are_fetched_from_a_store_of_the_service_without_the_key(embedding_server, location):
    embedding_server.batch.polls = 0
    api, _ = reach(embedding_server, "voyage", headers={"X-Gateway": "hush-hush"})
    job = api.submit(ITEMS)
    api.fetch_state(job)
    url = f"{embedding_server.base_url('voyage')}/files/{embedding_server.jobs.jobs[job].output}/content"
    embedding_server.script(faults.redirect(location.format(url=url)), at="download")
    if location != "{url}":
        with pytest.raises(httpx.HTTPStatusError, match="Redirect"):
            api.fetch_results(job)
        return
    assert len(api.fetch_results(job)) == len(ITEMS)
    first, second = embedding_server.seen("download")
    assert (first.headers["authorization"], first.headers["x-gateway"]) == ("Bearer key-1", "hush-hush")
    assert not {"authorization", "x-gateway"} & set(second.headers)


@services
@pytest.mark.usefixtures("tries_again_at_once")
def test_the_script_for_real_services_prints_what_differs(embedding_server, provider, monkeypatch):
    async def skip(seconds: float) -> None:
        pass

    monkeypatch.setattr("openclaw_memory.embeddings.remote.wait", skip)
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "live_services.py"))
    server = embedding_server
    server.key, server.batch.polls, server.max_text_bytes = "key", 1, 50_000
    options = {"base_url": server.base_url(provider), "api_key": "key", "batch_seconds": 1}
    different = {name: words for name, words in script["check_embedder"](provider, **options) if words}
    dims = script["EMBEDDERS"][provider][1]
    assert different == {f"{dims} dimensions": "64 dimensions", "an unknown model is refused": "it was taken"}
