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
from openclaw_memory.embeddings._failures import Meaning, ServiceError, failure
from openclaw_memory.embeddings._jobs import JobState
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._remote import RemoteEmbedder
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

voyageai = pytest.importorskip("voyageai")

SECRET = "pa-5Yk3JsXZHjGw7ISLn3namBGewQe0aDmW"


@pytest.fixture
def load(load_from):
    return load_from("voyage", SECRET)


# --- what is asked -----------------------------------------------------------------------------------------------


def test_the_contract_of_an_embedder_is_kept(load, server):
    server.dims = 256
    check_embedder(load())


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


def test_a_key_that_the_service_repeats_is_shown_nowhere(load, server):
    server.always(faults.status(401, words="Incorrect API key provided: my-own-key-42, header-value-7"))
    embedder = load(api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    shown = f"{raised.value} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v") if part in shown] == []


def test_a_password_in_the_address_is_shown_nowhere(load, server):
    server.always(faults.wrong_count(-1))
    embedder = load(base_url=server.base_url("voyage").replace("://", "://user:hunter2@"))
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
    monkeypatch.setitem(sys.modules, "voyageai", None)
    with pytest.raises(MissingExtraError, match=r'pip install "openclaw-memory-index\[voyage\]"'):
        load()


def test_the_key_is_shown_nowhere(load, server):
    server.key = "another"
    embedder = load(base_url=server.base_url("voyage"))
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    assert SECRET not in f"{raised.value} {embedder.identity} {embedder.service!r} {embedder!r}"


# --- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "meaning", "asked"),
    [
        (faults.status(429), Meaning.BUSY, 3),
        (faults.status(429, retry_after=0.001), Meaning.BUSY, 3),
        (faults.quota(), Meaning.EXHAUSTED, 1),
        (faults.status(500), Meaning.PASSING, 3),
        (faults.status(503), Meaning.PASSING, 3),
        (faults.status(520), Meaning.PASSING, 3),
        (faults.status(507, words="Insufficient storage"), Meaning.PASSING, 3),
        (faults.status(401), Meaning.DENIED, 1),
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
    assert (raised.value.meaning, raised.value.retry_after) == (Meaning.BUSY, 0.001)


def test_an_endless_answer_is_given_up(load, server):
    server.always(faults.huge_body)
    with pytest.raises(ServiceError, match="more than 67,108,864 bytes"):
        load(pace=Pace(tries=1)).embed_query("The launch is on Friday.")


def test_a_server_that_is_not_there_is_told_apart_by_the_systems_own_words(load):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ServiceError, match="Connect call failed"):
            load(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1").embed_query("The launch is on Friday.")


def test_one_refused_text_costs_only_itself(load, server):
    server.refused = {"note 3"}
    answers = load().submit([f"note {place}" for place in range(6)]).result(20)
    found = {place: answer.error for answer in answers for place in answer.places}
    assert [place for place, error in found.items() if error] == [3]
    assert found[3].meaning is Meaning.REFUSED


def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"API key is invalid.*check key") as raised:
        load().embed_documents(["one note", "another note", "a third"])
    assert (raised.value.meaning, len(server.seen())) == (Meaning.DENIED, 1)


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


def test_a_job_gives_the_vectors_that_requests_give(load, work):
    embedder = load(dimensions=128)
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
    with pytest.raises(voyageai.error.APIError) as raised:
        work(embedder, "submit", ITEMS)
    assert failure(raised.value, "voyage").meaning is Meaning.DENIED


def test_a_job_that_is_cancelled_comes_to_nothing(load, work):
    embedder = load()
    job = work(embedder, "submit", ITEMS)
    work(embedder, "cancel", job)
    assert work(embedder, "state", job) is JobState.FAILED


def test_a_job_that_nobody_knows_is_unknown(load, work):
    assert work(load(), "state", "gone") is JobState.UNKNOWN


def test_the_answer_to_the_largest_job_fits_what_is_read_of_an_answer(load, work):
    embedder = load(dimensions=512)
    items = embedder.service.jobs.max_items
    job = work(embedder, "submit", [(f"{place:064x}", f"note {place}") for place in range(items)])
    while work(embedder, "state", job) is JobState.RUNNING:
        pass
    assert len(work(embedder, "results", job)) == items > 5000


@pytest.mark.enable_socket
@pytest.mark.skipif(not os.environ.get("VOYAGE_API_KEY"), reason="needs VOYAGE_API_KEY")
class TestAgainstTheRealService:
    def test_the_contract_of_an_embedder_is_kept(self):
        embedder = load_embedder("voyage", dimensions=512)
        assert isinstance(embedder, RemoteEmbedder)
        check_embedder(embedder)
        embedder.close()
