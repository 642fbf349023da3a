"""What holds for Gemini and Voyage alike, each by its own SDK, with the embedding server on the other side."""

import embedding_faults as faults
import numpy as np
import pytest

from openclaw_memory.embeddings.batch.api import JobState
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.retry import RetryPolicy
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import check_embedder

SECRETS = {"gemini": "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe", "voyage": "pa-5Yk3JsXZHjGw7ISLn3namBGewQe0aDmW"}
TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]
ITEMS = [(f"{place:064x}", text) for place, text in enumerate(TEXTS)]


@pytest.fixture(params=SECRETS)
def provider(request):
    pytest.importorskip("httpx")
    return request.param


@pytest.fixture
def load(load_from, provider):
    return load_from(provider, SECRETS[provider])


# --- what is asked -----------------------------------------------------------------------------------------------


def test_the_contract_of_an_embedder_is_kept(load, server):
    server.dims = 256
    check_embedder(load())


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


def test_a_key_that_the_service_repeats_is_shown_nowhere(load, server):
    server.always(faults.status(401, words="Incorrect API key provided: my-own-key-42, header-value-7"))
    embedder = load(api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    shown = f"{raised.value} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v") if part in shown] == []


def test_a_password_in_the_address_is_shown_nowhere(load, server, provider):
    server.always(faults.wrong_count(-1))
    embedder = load(base_url=server.base_url(provider).replace("://", "://user:hunter2@"))
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    assert "hunter2" not in f"{raised.value} {embedder.identity} {embedder!r} {embedder.service!r}"


@pytest.mark.parametrize(
    "options", [{"dimensions": 0}, {"max_items": 0}, {"max_input_tokens": -1}, {"base_url": "localhost:80"}]
)
def test_an_option_that_cannot_be_used_is_named(options, load):
    with pytest.raises(EmbedderError, match=next(iter(options))):
        load(**options)


def test_the_key_is_shown_nowhere(load, server, provider):
    server.key = "another"
    embedder = load(base_url=server.base_url(provider))
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query("The launch is on Friday.")
    assert SECRETS[provider] not in f"{raised.value} {embedder.identity} {embedder.service!r} {embedder!r}"


def test_one_refused_text_costs_only_itself(load, server):
    server.refused = {"note 3"}
    answers = load().submit([f"note {place}" for place in range(6)]).result(20)
    found = {place: answer.error for answer in answers for place in answer.places}
    assert [place for place, error in found.items() if error] == [3]
    assert found[3].kind is FailureKind.REFUSED


def test_a_request_that_is_too_large_is_halved(load, server):
    server.max_items = 3
    assert load().embed_documents([f"note {place}" for place in range(8)]).shape == (8, server.dims)


def test_an_answer_that_drips_is_ended_in_time(load, server):
    server.always(faults.drip())
    with pytest.raises(ServiceError, match=r"within 0.5 s"):
        load(retry=RetryPolicy(query_seconds=0.5)).embed_query("The launch is on Friday.")


def test_it_can_be_closed_and_asked_again(load, server):
    embedder = load()
    before = embedder.embed_query("The launch is on Friday.")
    embedder.close()
    assert np.array_equal(embedder.embed_query("The launch is on Friday."), before)
    assert server.connections == 2


# --- batch jobs --------------------------------------------------------------------------------------------------


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


def test_the_answer_to_the_largest_job_fits_what_is_read_of_an_answer(load, work):
    embedder = load(dimensions=512)
    items = embedder.service.batch.max_items
    job = work(embedder, "submit", [(f"{place:064x}", f"note {place}") for place in range(items)])
    while work(embedder, "state", job) is JobState.RUNNING:
        pass
    assert len(work(embedder, "results", job)) == items > 5000
