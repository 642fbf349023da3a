"""Voyage as a provider: what the real SDK sends and makes of answers, with the embedding server on the other side."""

import json
import os
import socket
import sys

import embedding_faults as faults
import numpy as np
import pytest
from embedding_wire import Answer

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.batch.api import JobState
from openclaw_memory.embeddings.remote.client import RemoteEmbedder
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError, StatusError, failure
from openclaw_memory.embeddings.remote.retry import RetryPolicy
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

pytest.importorskip("httpx")

SECRET = "pa-5Yk3JsXZHjGw7ISLn3namBGewQe0aDmW"


@pytest.fixture
def load(load_from):
    return load_from("voyage", SECRET)


# --- what is asked -----------------------------------------------------------------------------------------------


def test_questions_and_documents_are_sent_as_what_they_are_and_never_cut(load, server):
    embedder = load()
    embedder.embed_query("When is the launch?")
    embedder.embed_documents(["The launch is on Friday.", "The boiler is old."])
    assert [(asked.model, asked.task, asked.texts) for asked in server.seen()] == [
        ("voyage-4-large", "query", ("When is the launch?",)),
        ("voyage-4-large", "document", ("The launch is on Friday.", "The boiler is old.")),
    ]
    assert [json.loads(asked.body)["truncation"] for asked in server.seen()] == [False, False]


def test_an_answer_in_another_order_is_put_in_order(load, server):
    texts = [f"note {place}" for place in range(20)]
    embedder = load()
    expected = embedder.embed_documents(texts)
    server.script(faults.shuffled)
    assert np.array_equal(embedder.embed_documents(texts), expected)


def test_a_text_longer_than_the_model_reads_is_embedded_in_pieces(load, server):
    server.max_text_bytes = 4000
    assert load("voyage-2", max_input_tokens=4000).embed_documents(["launch on Friday. " * 400]).shape == (1, 64)
    assert server.asked.total() == 2


def test_more_texts_than_a_request_may_hold_take_several(load, server):
    server.max_items = 1000
    assert load().embed_documents([str(place % 10) for place in range(2001)]).shape == (2001, server.dims)
    assert sorted(len(asked.texts) for asked in server.seen()) == [1, 1000, 1000]


def test_a_proxy_in_the_environment_is_used(load, server, monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, server.root)
    assert load(base_url="http://voyage.invalid/voyage/v1").embed_query("The launch is on Friday.").any()


def test_texts_for_this_machine_go_past_a_proxy(load, monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert load().embed_query("The launch is on Friday.").any()


# --- keys --------------------------------------------------------------------------------------------------------


def test_the_key_is_found_in_the_environment(load, server, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", "one")
    server.key = "one"
    assert load(api_key=None).embed_query("The launch is on Friday.").any()


def test_without_a_key_the_error_says_where_to_put_it(load, monkeypatch):
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    with pytest.raises(EmbedderError, match=r"VOYAGE_API_KEY.*option api_key") as raised:
        load(api_key=None)
    assert not isinstance(raised.value, MissingExtraError)


@pytest.mark.parametrize(
    ("key", "endpoint"),
    [("pa-one", "https://api.voyageai.com/v1"), ("al-two", "https://ai.mongodb.com/v1")],
    ids=["voyage", "atlas"],
)
def test_the_kind_of_key_says_who_is_asked(load, key, endpoint):
    assert load(api_key=key, base_url=None).endpoint == endpoint


def test_without_the_package_the_error_says_how_to_install_it(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "openclaw-memory-index\[voyage\]"'):
        load()


# --- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "meaning", "asked"),
    [
        (faults.status(429), FailureKind.BUSY, 3),
        (faults.status(429, retry_after=0.001), FailureKind.BUSY, 3),
        (faults.quota(), FailureKind.EXHAUSTED, 1),
        (faults.status(500), FailureKind.PASSING, 3),
        (faults.status(503), FailureKind.PASSING, 3),
        (faults.status(520), FailureKind.PASSING, 3),
        (faults.status(507, words="Insufficient storage"), FailureKind.PASSING, 3),
        (faults.status(401), FailureKind.DENIED, 1),
        (faults.status(404), FailureKind.DENIED, 1),
        (faults.wrong_count(1), FailureKind.PASSING, 3),
        (faults.wrong_count(-1), FailureKind.PASSING, 3),
        (faults.null, FailureKind.PASSING, 3),
        (faults.zeros, FailureKind.PASSING, 3),
        (faults.not_json, FailureKind.PASSING, 3),
        (faults.half_body, FailureKind.PASSING, 3),
        (faults.reset, FailureKind.PASSING, 3),
        (faults.gzip_bomb(2 * faults.MEGABYTE), FailureKind.DENIED, 1),
        (faults.redirect(), FailureKind.DENIED, 1),
    ],
)
def test_failures_are_told_apart_and_retried_only_where_that_helps(load, server, fault, meaning, asked):
    server.always(fault)
    with pytest.raises(ServiceError) as raised:
        load().embed_query("The launch is on Friday.")
    assert (raised.value.kind, len(server.seen())) == (meaning, asked)
    assert not server.seen("elsewhere")


@pytest.mark.parametrize("fault", [faults.same_index, faults.mixed_dims])
def test_vectors_that_cannot_be_told_apart_are_not_taken(load, server, fault):
    server.always(fault)
    with pytest.raises(ServiceError):
        load().embed_documents(["The launch is on Friday.", "The boiler is old."])
    assert len(server.seen()) == 3


def test_the_wait_that_comes_with_a_packed_refusal_is_understood(load, server):
    server.always(lambda *_: Answer(429, b"packed", {"content-encoding": "gzip", "retry-after": "0.001"}))
    with pytest.raises(ServiceError) as raised:
        load().embed_query("The launch is on Friday.")
    assert (raised.value.kind, raised.value.retry_after) == (FailureKind.BUSY, 0.001)


def test_an_endless_answer_is_given_up(load, server):
    server.always(faults.huge_body)
    with pytest.raises(ServiceError, match="more than 67,108,864 bytes"):
        load(retry=RetryPolicy(tries=1)).embed_query("The launch is on Friday.")


def test_a_server_that_is_not_there_is_told_apart_by_the_systems_own_words(load):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ServiceError, match="refused"):
            load(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1").embed_query("The launch is on Friday.")


def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"API key is invalid.*check key") as raised:
        load().embed_documents(["one note", "another note", "a third"])
    assert (raised.value.kind, len(server.seen())) == (FailureKind.DENIED, 1)


# --- batch jobs --------------------------------------------------------------------------------------------------

TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]
ITEMS = [(f"{place:064x}", text) for place, text in enumerate(TEXTS)]


def test_a_job_gives_the_vectors_that_requests_give(load, work):
    embedder = load(dimensions=128)
    job = work(embedder, "submit", ITEMS)
    assert [work(embedder, "state", job) for _ in range(2)] == [JobState.RUNNING, JobState.DONE]
    found = work(embedder, "results", job)
    expected = embedder.embed_documents(TEXTS)
    assert sorted(found) == [key for key, _ in ITEMS]
    np.testing.assert_allclose([found[key] for key, _ in ITEMS], expected, atol=1e-6)


def test_the_results_of_a_job_are_fetched_from_where_the_service_keeps_them_without_the_key(load, server, work):
    server.batch.polls = 0
    embedder = load(headers={"X-Gateway": "hush-hush"})
    job = work(embedder, "submit", ITEMS)
    work(embedder, "state", job)
    server.script(
        faults.redirect(f"{server.base_url('voyage')}/files/{server.jobs.jobs[job].output}/content"), at="download"
    )
    assert len(work(embedder, "results", job)) == len(ITEMS)
    first, second = server.seen("download")
    assert (first.headers["authorization"], first.headers["x-gateway"]) == (f"Bearer {SECRET}", "hush-hush")
    assert not {"authorization", "x-gateway"} & set(second.headers)


@pytest.mark.parametrize("to", ["http://127.0.0.1:9/secrets", "file:///etc/passwd", "/elsewhere", ""])
def test_the_results_of_a_job_are_not_fetched_from_anywhere_else(load, server, to, work):
    server.batch.polls = 0
    embedder = load()
    job = work(embedder, "submit", ITEMS)
    work(embedder, "state", job)
    server.always(faults.redirect(to), at="download")
    with pytest.raises(ServiceError, match="redirect"):
        work(embedder, "results", job)
    assert not server.seen("elsewhere")


def test_what_goes_wrong_with_a_job_is_told_with_its_status(load, server, work):
    server.key = "another"
    embedder = load()
    with pytest.raises(StatusError) as raised:
        work(embedder, "submit", ITEMS)
    assert failure(raised.value, "voyage").kind is FailureKind.DENIED


def test_a_job_that_nobody_knows_is_unknown(load, work):
    assert work(load(), "state", "gone") is JobState.UNKNOWN


@pytest.mark.enable_socket
@pytest.mark.skipif(not os.environ.get("VOYAGE_API_KEY"), reason="needs VOYAGE_API_KEY")
class TestAgainstTheRealService:
    def test_the_contract_of_an_embedder_is_kept(self):
        embedder = load_embedder("voyage", dimensions=512)
        assert isinstance(embedder, RemoteEmbedder)
        check_embedder(embedder)
        embedder.close()
