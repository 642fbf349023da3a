"""OpenAI, Gemini and Voyage as providers: what is sent and made of answers, with the embedding server as each of them."""

import json
import os
import sys

import embedding_faults as faults
import numpy as np
import pytest
from embedding_wire import Answer

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError, StatusError, failure
from openclaw_memory.embeddings.remote.service import JobState
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

pytest.importorskip("httpx")
pytest.importorskip("openai")

SECRETS = {
    "openai": "sk-proj-4rX9kQ7zAb12Cd34Ef56",
    "gemini": "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "voyage": "pa-5Yk3JsXZHjGw7ISLn3namBGewQe0aDmW",
}
KEYS = {
    "openai": ["OPENAI_API_KEY"],
    "gemini": ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    "voyage": ["VOYAGE_API_KEY"],
}
MOST_ITEMS = {"openai": 2048, "gemini": 100, "voyage": 1000}
SECOND = "gemini-embedding-2"
QUESTION = "When is the launch?"
TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]
ITEMS = [(f"{place:064x}", text) for place, text in enumerate(TEXTS)]


@pytest.fixture(params=SECRETS)
def provider(request, monkeypatch):
    for name in KEYS[request.param]:
        monkeypatch.delenv(name, raising=False)
    return request.param


@pytest.fixture
def load(load_from, provider):
    return load_from(provider, SECRETS[provider])


@pytest.fixture
def gemini(load_from):
    return load_from("gemini", SECRETS["gemini"])


@pytest.fixture
def voyage(load_from):
    return load_from("voyage", SECRETS["voyage"])


# --- what is asked
def test_the_contract_of_an_embedder_is_kept(load, server):
    server.dims = 256
    check_embedder(load())


def test_questions_and_documents_are_sent_as_what_they_are(load, provider, server):
    embedder = load()
    embedder.embed_query(QUESTION)
    embedder.embed_documents(TEXTS)
    model, question, document = {
        "openai": ("text-embedding-3-small", None, None),
        "gemini": ("gemini-embedding-001", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
        "voyage": ("voyage-4-large", "query", "document"),
    }[provider]
    assert [(asked.model, asked.task, asked.texts) for asked in server.seen()] == [
        (model, question, (QUESTION,)),
        (model, document, tuple(TEXTS)),
    ]


def test_the_second_generation_of_gemini_is_told_in_words(gemini, server):
    embedder = gemini(SECOND)
    embedder.embed_query(QUESTION)
    assert embedder.embed_documents(["On Friday.", "The boiler is old."]).shape == (2, server.dims)
    assert [(asked.task, asked.texts) for asked in server.seen()] == [
        (None, ("task: search result | query: When is the launch?",)),
        (None, ("title: none | text: On Friday.", "title: none | text: The boiler is old.")),
    ]


def test_voyage_never_cuts_a_text(voyage, server):
    voyage().embed_query(QUESTION)
    assert json.loads(server.seen()[0].body)["truncation"] is False


@pytest.mark.parametrize(
    ("name", "model", "longest", "pieces"),
    [("gemini", None, 2048, 3), ("gemini", SECOND, 8192, 1), ("voyage", "voyage-2", 4000, 2)],
)
def test_a_text_longer_than_the_model_reads_is_embedded_in_pieces(load_from, server, name, model, longest, pieces):
    server.max_text_bytes = longest
    options = {"max_input_tokens": longest} if name == "voyage" else {}
    text = "launch on Friday. " * (400 if name == "voyage" else 320)
    assert load_from(name, SECRETS[name])(model, **options).embed_documents([text]).shape == (1, server.dims)
    assert server.asked.total() == pieces


def test_more_texts_than_a_request_may_hold_take_several(load, provider, server):
    most = server.max_items = MOST_ITEMS[provider]
    assert load().embed_documents([str(place % 10) for place in range(2 * most + 1)]).shape[0] == 2 * most + 1
    assert sorted(len(asked.texts) for asked in server.seen()) == [1, most, most]


def test_dimensions_and_the_names_of_headers_belong_to_the_identity(load, server):
    embedder = load(dimensions=128, headers={"X-Gateway": "hush-hush"})
    assert embedder.embed_query(QUESTION).shape == (128,)
    assert (server.seen()[0].dims, server.seen()[0].headers["x-gateway"]) == (128, "hush-hush")
    assert "x-gateway" in embedder.identity
    assert "hush-hush" not in embedder.identity
    assert len({embedder.identity, load().identity, load(dimensions=128).identity}) == 3


def test_the_identity_is_as_it_was_in_earlier_versions(load_from):
    named = {name: load_from(name, SECRETS[name])(base_url=None, dimensions=256).identity for name in SECRETS}
    assert named == {
        "openai": 'openai https://api.openai.com/v1 text-embedding-3-small {"dimensions": 256}',
        "gemini": 'gemini https://generativelanguage.googleapis.com gemini-embedding-001 {"dimensions": 256}',
        "voyage": 'voyage https://api.voyageai.com/v1 voyage-4-large {"dimensions": 256}',
    }


@pytest.mark.parametrize(
    "options", [{"dimensions": 0}, {"max_items": 0}, {"max_input_tokens": -1}, {"base_url": "localhost:80"}]
)
def test_an_option_that_cannot_be_used_is_named(options, load):
    with pytest.raises(EmbedderError, match=next(iter(options))):
        load(**options)


# --- keys
@pytest.mark.parametrize("name", [name for names in KEYS.values() for name in names])
def test_the_key_is_found_in_the_environment(load_from, server, monkeypatch, name):
    for each in [name for names in KEYS.values() for name in names]:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "one")
    server.key = "one"
    provider = next(provider for provider, names in KEYS.items() if name in names)
    assert load_from(provider, "")(api_key=None).embed_query(QUESTION).any()


def test_without_a_key_the_error_says_where_to_put_it(load, provider):
    with pytest.raises(EmbedderError, match=rf"{' or '.join(KEYS[provider])}.*option api_key") as raised:
        load(api_key=None, base_url=None)
    assert not isinstance(raised.value, MissingExtraError)


@pytest.mark.parametrize(
    ("key", "endpoint"),
    [("pa-one", "https://api.voyageai.com/v1"), ("al-two", "https://ai.mongodb.com/v1")],
    ids=["voyage", "atlas"],
)
def test_the_kind_of_key_says_who_is_asked(voyage, key, endpoint):
    assert voyage(api_key=key, base_url=None).endpoint == endpoint


def test_without_the_package_the_error_says_how_to_install_it(load, provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai" if provider == "openai" else "httpx", None)
    with pytest.raises(MissingExtraError, match=rf'pip install "\.\[{provider}\]"'):
        load()


WORDS = "Incorrect API key provided: my-own-key-42, header-value-7, hunter2"
ECHOES = {
    "401": faults.status(401, words=WORDS),
    "not JSON": faults.not_json,
    "no rows": lambda _asked, _answer: Answer(200, json.dumps({"said": "x" * 150 + WORDS}).encode()),
    "redirect": faults.redirect(),
    "reset": faults.reset,
}


@pytest.mark.parametrize("fault", ECHOES.values(), ids=ECHOES.keys())
@pytest.mark.sampled(4)
def test_no_secret_is_shown_although_the_server_repeats_it(load, provider, server, fault):
    server.always(fault)
    url = server.base_url(provider).replace("://", "://user:hunter2@")
    embedder = load(base_url=url, api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query(QUESTION)
    shown = f"{raised.value} {embedder.identity} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v", "hunter2") if part in shown] == []
    assert server.root in shown


# --- what goes wrong
@pytest.mark.parametrize(
    ("fault", "kind", "asked"),
    [
        (faults.status(429, retry_after=0.001), FailureKind.BUSY, 3),
        (faults.quota(), FailureKind.EXHAUSTED, 1),
        (faults.status(503), FailureKind.PASSING, 3),
        (faults.status(404), FailureKind.DENIED, 1),
        (faults.wrong_count(1), FailureKind.PASSING, 3),
        (faults.not_json, FailureKind.PASSING, 3),
        (lambda *_: Answer(200, b"[]"), FailureKind.PASSING, 3),
        (faults.gzip_bomb(2 * faults.MEGABYTE), FailureKind.DENIED, 1),
        (faults.redirect(), FailureKind.DENIED, 1),
    ],
)
@pytest.mark.sampled(9)
def test_failures_are_told_apart_and_retried_only_where_that_helps(load, server, fault, kind, asked):
    server.always(fault)
    with pytest.raises(ServiceError) as raised:
        load().embed_query(QUESTION)
    assert (raised.value.kind, len(server.seen())) == (kind, asked)
    assert not server.seen("elsewhere")


def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"(?i)API key.*check key") as raised:
        load().embed_documents(["one note", "another note", "a third"])
    assert (raised.value.kind, len(server.seen())) == (FailureKind.DENIED, 1)


def test_the_wait_that_google_names_behind_many_words_is_understood(gemini, server):
    server.always(faults.quota(retry_delay=34))
    with pytest.raises(ServiceError) as raised:
        gemini().embed_query(QUESTION)
    assert (raised.value.kind, raised.value.retry_after) == (FailureKind.BUSY, 34)


# --- batch jobs
@pytest.mark.parametrize("name", ["openai", "gemini", "second", "voyage"])
def test_a_job_gives_the_vectors_that_requests_give_to_whoever_knows_its_name(load_from, name, work):
    provider = "gemini" if name == "second" else name
    load = load_from(provider, SECRETS[provider])
    model = SECOND if name == "second" else None
    job = work(load(model, dimensions=128), "submit", ITEMS)
    embedder = load(model, dimensions=128)
    assert [work(embedder, "state", job) for _ in range(2)] == [JobState.RUNNING, JobState.DONE]
    found = work(embedder, "results", job)
    assert sorted(found) == [key for key, _ in ITEMS]
    np.testing.assert_allclose([found[key] for key, _ in ITEMS], embedder.embed_documents(TEXTS), atol=1e-6)


def test_texts_of_a_job_that_failed_are_left_out(load, server, work):
    server.batch.refused, server.batch.polls = {TEXTS[1]}, 0
    embedder = load()
    job = work(embedder, "submit", ITEMS)
    assert work(embedder, "state", job) is JobState.DONE
    assert sorted(work(embedder, "results", job)) == [ITEMS[0][0], ITEMS[2][0]]


@pytest.mark.parametrize(("outcome", "state"), [("failed", JobState.FAILED), ("expired", JobState.EXPIRED)])
def test_a_job_that_came_to_nothing_says_so(load, server, outcome, state, work):
    server.batch.outcome, server.batch.polls = outcome, 0
    embedder = load()
    assert work(embedder, "state", work(embedder, "submit", ITEMS)) is state
    other = work(embedder, "submit", ITEMS)
    work(embedder, "cancel", other)
    assert work(embedder, "state", other) in {JobState.FAILED, state}


def test_the_results_of_a_job_are_fetched_from_where_voyage_keeps_them_without_the_key(voyage, server, work):
    server.batch.polls = 0
    embedder = voyage(headers={"X-Gateway": "hush-hush"})
    job = work(embedder, "submit", ITEMS)
    work(embedder, "state", job)
    server.script(
        faults.redirect(f"{server.base_url('voyage')}/files/{server.jobs.jobs[job].output}/content"), at="download"
    )
    assert len(work(embedder, "results", job)) == len(ITEMS)
    first, second = server.seen("download")
    assert (first.headers["authorization"], first.headers["x-gateway"]) == (f"Bearer {SECRETS['voyage']}", "hush-hush")
    assert not {"authorization", "x-gateway"} & set(second.headers)


@pytest.mark.parametrize("to", ["http://127.0.0.1:9/secrets", "file:///etc/passwd", "/elsewhere", ""])
def test_the_results_of_a_job_are_not_fetched_from_anywhere_else(voyage, server, to, work):
    server.batch.polls = 0
    embedder = voyage()
    job = work(embedder, "submit", ITEMS)
    work(embedder, "state", job)
    server.always(faults.redirect(to), at="download")
    with pytest.raises(ServiceError, match="redirect"):
        work(embedder, "results", job)
    assert not server.seen("elsewhere")


@pytest.mark.parametrize("name", ["gemini", "voyage"])
@pytest.mark.parametrize(("call", "value"), [("state", "batches/gone"), ("submit", ITEMS)])
def test_what_goes_wrong_with_a_job_is_told_with_its_status(load_from, server, work, name, call, value):
    server.key = "another" if call == "submit" else None
    with pytest.raises(StatusError) as raised:
        work(load_from(name, SECRETS[name])(), call, value)
    assert failure(raised.value, "the service").kind is FailureKind.DENIED


@pytest.mark.nightly
def test_the_answer_to_the_largest_job_fits_what_is_read_of_an_answer(load, work):
    embedder = load(dimensions=512)
    items = embedder.service.batch.max_items
    job = work(embedder, "submit", [(f"{place:064x}", f"note {place}") for place in range(items)])
    while work(embedder, "state", job) is JobState.RUNNING:
        pass
    assert len(work(embedder, "results", job)) == items > 5000


@pytest.mark.enable_socket
@pytest.mark.parametrize("name", SECRETS)
def test_the_real_service_keeps_the_contract(name):
    if not os.environ.get(KEYS[name][0]):
        pytest.skip(f"needs {KEYS[name][0]}")
    embedder = load_embedder(name, dimensions={"openai": 256, "gemini": 768, "voyage": 512}[name])
    check_embedder(embedder)
    embedder.close()
