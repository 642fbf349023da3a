"""Gemini as a provider: what the real SDK sends and makes of answers, with the embedding server on the other side."""

import os
import sys

import embedding_faults as faults
import numpy as np
import pytest

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.batch.api import JobState
from openclaw_memory.embeddings.remote.client import RemoteEmbedder
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

pytest.importorskip("httpx")

SECRET = "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe"
SECOND = "gemini-embedding-2"


@pytest.fixture
def load(load_from):
    return load_from("gemini", SECRET)


# --- what is asked -----------------------------------------------------------------------------------------------


def test_questions_and_documents_are_sent_as_what_they_are(load, server):
    embedder = load()
    embedder.embed_query("When is the launch?")
    embedder.embed_documents(["The launch is on Friday.", "The boiler is old."])
    assert [(asked.model, asked.task, asked.texts) for asked in server.seen()] == [
        ("gemini-embedding-001", "RETRIEVAL_QUERY", ("When is the launch?",)),
        ("gemini-embedding-001", "RETRIEVAL_DOCUMENT", ("The launch is on Friday.", "The boiler is old.")),
    ]


def test_the_second_generation_is_told_in_words_and_still_makes_a_vector_of_each_text(load, server):
    embedder = load(SECOND)
    embedder.embed_query("When is the launch?")
    assert embedder.embed_documents(["On Friday.", "The boiler is old."]).shape == (2, server.dims)
    assert [(asked.task, asked.texts) for asked in server.seen()] == [
        (None, ("task: search result | query: When is the launch?",)),
        (None, ("title: none | text: On Friday.", "title: none | text: The boiler is old.")),
    ]


@pytest.mark.parametrize(("model", "pieces"), [(None, 3), (SECOND, 1)], ids=["first", "second"])
def test_a_text_longer_than_the_model_reads_is_embedded_in_pieces(load, server, model, pieces):
    server.max_text_bytes = {None: 2048, SECOND: 8192}[model]
    assert load(model).embed_documents(["launch on Friday. " * 320]).shape == (1, server.dims)
    assert server.asked.total() == pieces


def test_more_texts_than_a_request_may_hold_take_several(load, server):
    server.max_items = 100
    assert load().embed_documents([f"note {place}" for place in range(201)]).shape == (201, server.dims)
    assert sorted(len(asked.texts) for asked in server.seen()) == [1, 100, 100]


def test_settings_for_vertex_in_the_environment_change_nothing(load, server, monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "some-project")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v7")
    load().embed_query("The launch is on Friday.")
    (asked,) = server.seen()
    assert asked.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"


def test_a_proxy_in_the_environment_is_used(load, server, monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, server.root)
    assert load(base_url="http://gemini.invalid/gemini").embed_query("The launch is on Friday.").any()


# --- keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "used"),
    [
        ({"GEMINI_API_KEY": "one"}, "one"),
        ({"GOOGLE_API_KEY": "two"}, "two"),
        ({"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two"}, "one"),
    ],
    ids=["gemini", "google", "both"],
)
def test_the_key_is_found_in_the_environment(load, server, monkeypatch, environment, used):
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    for variable, key in environment.items():
        monkeypatch.setenv(variable, key)
    server.key = used
    assert load(api_key=None).embed_query("The launch is on Friday.").any()


def test_without_a_key_the_error_says_where_to_put_it(load, monkeypatch):
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(EmbedderError, match=r"GEMINI_API_KEY or GOOGLE_API_KEY.*option api_key") as raised:
        load(api_key=None)
    assert not isinstance(raised.value, MissingExtraError)


def test_without_the_package_the_error_says_how_to_install_it(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "openclaw-memory-index\[gemini\]"'):
        load()


# --- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "meaning", "asked"),
    [
        (faults.status(429), FailureKind.BUSY, 3),
        (faults.quota(retry_delay=0.001), FailureKind.BUSY, 3),
        (faults.quota(), FailureKind.EXHAUSTED, 1),
        (faults.status(500), FailureKind.PASSING, 3),
        (faults.status(503), FailureKind.PASSING, 3),
        (faults.status(520), FailureKind.PASSING, 3),
        (faults.status(403), FailureKind.DENIED, 1),
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


def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"API key not valid.*check key") as raised:
        load().embed_documents(["one note", "another note", "a third"])
    assert (raised.value.kind, len(server.seen())) == (FailureKind.DENIED, 1)


def test_the_wait_that_google_names_behind_many_words_is_understood(load, server):
    server.always(faults.quota(retry_delay=34))
    with pytest.raises(ServiceError) as raised:
        load().embed_query("The launch is on Friday.")
    assert raised.value.retry_after == 34


# --- batch jobs --------------------------------------------------------------------------------------------------

TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]
ITEMS = [(f"{place:064x}", text) for place, text in enumerate(TEXTS)]


@pytest.mark.parametrize("model", [None, SECOND])
def test_a_job_gives_the_vectors_that_requests_give(load, model, work):
    embedder = load(model, dimensions=128)
    job = work(embedder, "submit", ITEMS)
    assert [work(embedder, "state", job) for _ in range(2)] == [JobState.RUNNING, JobState.DONE]
    found = work(embedder, "results", job)
    expected = embedder.embed_documents(TEXTS)
    assert sorted(found) == [key for key, _ in ITEMS]
    np.testing.assert_allclose([found[key] for key, _ in ITEMS], expected, atol=1e-6)


def test_a_job_that_nobody_knows_is_unknown(load, work):
    assert work(load(), "state", "batches/gone") is JobState.UNKNOWN


@pytest.mark.enable_socket
@pytest.mark.skipif(not os.environ.get("GEMINI_API_KEY"), reason="needs GEMINI_API_KEY")
class TestAgainstTheRealService:
    def test_the_contract_of_an_embedder_is_kept(self):
        embedder = load_embedder("gemini", dimensions=768)
        assert isinstance(embedder, RemoteEmbedder)
        check_embedder(embedder)
        embedder.close()
