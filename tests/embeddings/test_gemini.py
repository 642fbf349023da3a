"""Gemini as a provider: what the real SDK sends and makes of answers, with the embedding server on the other side."""

import os
import sys

import embedding_faults as faults
import numpy as np
import pytest

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings._failures import Meaning, ServiceError
from openclaw_memory.embeddings._jobs import JobState
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._remote import RemoteEmbedder
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

pytest.importorskip("google.genai")

SECRET = "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe"
SECOND = "gemini-embedding-2"


@pytest.fixture
def load(load_from):
    return load_from("gemini", SECRET)


# --- what is asked -----------------------------------------------------------------------------------------------


def test_the_contract_of_an_embedder_is_kept(load, server):
    server.dims = 256
    check_embedder(load())


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


def test_dimensions_are_asked_for_and_belong_to_the_identity(load, server):
    embedder = load(dimensions=128)
    assert embedder.embed_query("The launch is on Friday.").shape == (128,)
    assert server.seen()[0].dims == 128
    assert embedder.identity != load().identity


def test_extra_headers_are_sent_and_only_their_names_belong_to_the_identity(load, server):
    embedder = load(headers={"X-Gateway": "hush-hush"})
    embedder.embed_query("The launch is on Friday.")
    assert server.seen()[0].headers["x-gateway"] == "hush-hush"
    assert "x-gateway" in embedder.identity
    assert "hush-hush" not in embedder.identity


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


def test_a_key_that_the_service_repeats_is_shown_nowhere(load, server):
    server.always(faults.status(401, words="Incorrect API key provided: my-own-key-42, header-value-7"))
    embedder = load(api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    shown = f"{raised.value} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v") if part in shown] == []


def test_a_password_in_the_address_is_shown_nowhere(load, server):
    server.always(faults.wrong_count(-1))
    embedder = load(base_url=server.base_url("gemini").replace("://", "://user:hunter2@"))
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    assert "hunter2" not in f"{raised.value} {embedder.identity} {embedder!r} {embedder.service!r}"


@pytest.mark.parametrize(
    "options", [{"dimensions": 0}, {"max_items": 0}, {"max_input_tokens": -1}, {"base_url": "localhost:80"}]
)
def test_an_option_that_cannot_be_used_is_named(options, load):
    with pytest.raises(EmbedderError, match=next(iter(options))):
        load(**options)


def test_without_the_package_the_error_says_how_to_install_it(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(MissingExtraError, match=r'pip install "openclaw-memory-index\[gemini\]"'):
        load()


def test_the_key_is_shown_nowhere(load, server):
    server.key = "another"
    embedder = load(base_url=server.base_url("gemini"))
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    assert SECRET not in f"{raised.value} {embedder.identity} {embedder.service!r} {embedder!r}"


# --- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "meaning", "asked"),
    [
        (faults.status(429), Meaning.BUSY, 3),
        (faults.quota(retry_delay=0.001), Meaning.BUSY, 3),
        (faults.quota(), Meaning.EXHAUSTED, 1),
        (faults.status(500), Meaning.PASSING, 3),
        (faults.status(503), Meaning.PASSING, 3),
        (faults.status(520), Meaning.PASSING, 3),
        (faults.status(403), Meaning.DENIED, 1),
        (faults.status(404), Meaning.DENIED, 1),
        (faults.wrong_count(1), Meaning.PASSING, 3),
        (faults.wrong_count(-1), Meaning.PASSING, 3),
        (faults.null, Meaning.PASSING, 3),
        (faults.zeros, Meaning.PASSING, 3),
        (faults.not_json, Meaning.PASSING, 3),
        (faults.half_body, Meaning.PASSING, 3),
        (faults.reset, Meaning.PASSING, 3),
        (faults.gzip_bomb(2 * faults.MEGABYTE), Meaning.DENIED, 1),
        (faults.redirect(), Meaning.DENIED, 1),
    ],
)
def test_failures_are_told_apart_and_retried_only_where_that_helps(load, server, fault, meaning, asked):
    server.always(fault)
    with pytest.raises(ServiceError) as raised:
        load().embed_query("The launch is on Friday.")
    assert (raised.value.meaning, len(server.seen())) == (meaning, asked)
    assert not server.seen("elsewhere")


def test_one_refused_text_costs_only_itself(load, server):
    server.refused = {"note 3"}
    answers = load().submit([f"note {place}" for place in range(6)]).result(20)
    found = {place: answer.error for answer in answers for place in answer.places}
    assert [place for place, error in found.items() if error] == [3]
    assert found[3].meaning is Meaning.REFUSED


def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"API key not valid.*check key") as raised:
        load().embed_documents(["one note", "another note", "a third"])
    assert (raised.value.meaning, len(server.seen())) == (Meaning.DENIED, 1)


def test_the_wait_that_google_names_behind_many_words_is_understood(load, server):
    server.always(faults.quota(retry_delay=34))
    with pytest.raises(ServiceError) as raised:
        load().embed_query("The launch is on Friday.")
    assert raised.value.retry_after == 34


def test_a_request_that_is_too_large_is_halved(load, server):
    server.max_items = 3
    assert load().embed_documents([f"note {place}" for place in range(8)]).shape == (8, server.dims)


def test_an_answer_that_drips_is_ended_in_time(load, server):
    server.always(faults.drip())
    with pytest.raises(ServiceError, match=r"within 0.5 s"):
        load(pace=Pace(query_seconds=0.5)).embed_query("The launch is on Friday.")


def test_it_can_be_closed_and_asked_again(load, server):
    embedder = load()
    before = embedder.embed_query("The launch is on Friday.")
    embedder.close()
    assert np.array_equal(embedder.embed_query("The launch is on Friday."), before)
    assert server.connections == 2


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


def test_a_job_is_taken_up_by_its_name_alone(load, work):
    job = work(load(), "submit", ITEMS)
    another = load()
    assert work(another, "state", job) is JobState.RUNNING
    work(another, "state", job)
    assert len(work(another, "results", job)) == len(ITEMS)


def test_texts_of_a_job_that_failed_are_left_out(load, server, work):
    server.batch.refused = {TEXTS[1]}
    server.batch.polls = 0
    embedder = load()
    job = work(embedder, "submit", ITEMS)
    assert work(embedder, "state", job) is JobState.DONE
    assert sorted(work(embedder, "results", job)) == [ITEMS[0][0], ITEMS[2][0]]


@pytest.mark.parametrize(("outcome", "state"), [("failed", JobState.FAILED), ("expired", JobState.EXPIRED)])
def test_a_job_that_came_to_nothing_says_so(load, server, outcome, state, work):
    server.batch.outcome, server.batch.polls = outcome, 0
    embedder = load()
    assert work(embedder, "state", work(embedder, "submit", ITEMS)) is state


def test_a_job_that_is_cancelled_comes_to_nothing(load, work):
    embedder = load()
    job = work(embedder, "submit", ITEMS)
    work(embedder, "cancel", job)
    assert work(embedder, "state", job) is JobState.FAILED


def test_a_job_that_nobody_knows_is_unknown(load, work):
    assert work(load(), "state", "batches/gone") is JobState.UNKNOWN


def test_the_answer_to_the_largest_job_fits_what_is_read_of_an_answer(load, work):
    embedder = load(dimensions=512)
    items = embedder.service.jobs.max_items
    job = work(embedder, "submit", [(f"{place:064x}", f"note {place}") for place in range(items)])
    while work(embedder, "state", job) is JobState.RUNNING:
        pass
    assert len(work(embedder, "results", job)) == items > 5000


@pytest.mark.enable_socket
@pytest.mark.skipif(not os.environ.get("GEMINI_API_KEY"), reason="needs GEMINI_API_KEY")
class TestAgainstTheRealService:
    def test_the_contract_of_an_embedder_is_kept(self):
        embedder = load_embedder("gemini", dimensions=768)
        assert isinstance(embedder, RemoteEmbedder)
        check_embedder(embedder)
        embedder.close()
