"""The provider `openai`: what it asks for, which answers it takes, its batch API, and its keys."""

import json
import os
import sys

import embedding_faults as lies
import numpy as np
import pytest
from embedding_wire import Answer, error

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.remote.service import JobState, RetryPolicy
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

pytest.importorskip("openai")

KEY = "sk-test-0123456789abcdef"
REAL_KEY = os.environ.get("OPENAI_API_KEY")  # as it was before the fixture below hides it
TEXTS = ["the key of the boat", "a lock in the canal", "two eggs and some flour"]


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def connect(server):
    made = []

    def connect(model=None, **options):
        options = {"base_url": server.base_url("openai")} | options
        made.append(load_embedder("openai", model, retry=RetryPolicy(first_wait=0.01, longest_wait=0.02), **options))
        return made[-1]

    yield connect
    for embedder in made:
        embedder.close()


def sent(server, place=-1):
    return json.loads(server.seen()[place].body)


# --- what it asks
def test_it_keeps_the_contract(connect):
    check_embedder(connect())


def test_it_asks_for_base64_from_the_default_model(connect, server):
    connect().embed_query("lock")
    assert sent(server) == {"input": ["lock"], "model": "text-embedding-3-small", "encoding_format": "base64"}


def test_it_asks_for_model_and_dimensions(connect, server):
    embedder = connect("text-embedding-3-large", dimensions=32)
    assert embedder.embed_query("lock").shape == (32,)
    assert (sent(server)["model"], sent(server)["dimensions"]) == ("text-embedding-3-large", 32)


def test_questions_and_documents_have_their_prefixes(connect, server):
    embedder = connect(query_prefix="task: search result | query: ", document_prefix="title: none | text: ")
    embedder.embed_query("lock")
    embedder.embed_documents(["lock"])
    assert [sent(server, place)["input"] for place in (0, 1)] == [
        ["task: search result | query: lock"],
        ["title: none | text: lock"],
    ]


def test_a_prefix_counts_towards_the_limit_of_a_text(connect, server):
    connect(document_prefix="text: ", max_input_tokens=20).embed_documents(["lock " * 10])
    assert all(len(text) <= 20 for asked in server.seen() for text in asked.texts)


@pytest.mark.parametrize(("model", "longest"), [(None, 8191), ("embeddinggemma", 2048)])
def test_a_long_text_is_parted_at_what_the_model_reads(model, longest, connect, server):
    connect(model).embed_documents(["lock " * 2000])
    assert max(len(text) for asked in server.seen() for text in asked.texts) == longest


def test_no_request_has_more_texts_than_max_items(connect, server):
    connect(max_items=2).embed_documents(TEXTS)
    assert sorted(len(asked.texts) for asked in server.seen()) == [1, 2]


def test_headers_are_sent_and_only_their_names_are_told(connect, server):
    embedder = connect(headers={"X-Team": "hunter2"}, organization="org-1", project="proj-1")
    embedder.embed_query("lock")
    headers = server.seen()[0].headers
    found = [headers.get(name) for name in ("x-team", "openai-organization", "openai-project")]
    assert found == ["hunter2", "org-1", "proj-1"]
    assert "x-team" in embedder.identity
    assert "hunter2" not in embedder.identity


# --- which answers it takes
def test_numbers_are_taken_where_base64_was_asked_for(connect, server):
    expected = connect().embed_documents(TEXTS)
    server.always(lies.null_number)  # base64 cannot hold null, so that the server sends lists
    assert np.allclose(connect().embed_documents(TEXTS)[:, 1:], expected[:, 1:], atol=0.3)


def test_a_server_that_refuses_base64_is_asked_for_numbers_from_then_on(connect, server):
    expected = connect().embed_documents(TEXTS)
    before = len(server.seen())
    server.always(
        lambda asked, answer: error(asked, 400, "encoding_format: 'base64' is unknown") if asked.base64 else answer
    )
    embedder = connect()
    for _ in range(2):
        assert np.allclose(embedder.embed_documents(TEXTS), expected)
    assert [asked.base64 for asked in server.seen()[before:]] == [True, False, False]


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"{}", b'{"data": null}', b'{"data": [1]}', b'{"data": []}', b'{"data": [{"embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": "not base64!"}]}',
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_an_error(body, connect, server):
    server.always(lambda _asked, _answer: Answer(200, body))
    with pytest.raises(EmbedderError, match=server.base_url("openai")):
        connect().embed_query("lock")
    assert len(server.seen()) == 3


# --- keys and addresses
def test_the_key_is_sent_and_shown_nowhere(connect, server):
    server.key = KEY
    embedder = connect(api_key=KEY)
    embedder.embed_query("lock")
    with pytest.raises(EmbedderError) as caught:
        connect(api_key=KEY + "x").embed_query("lock")
    shown = f"{caught.value} {embedder.identity} {embedder!r} {embedder.service!r}"
    assert "0123456789" not in shown


WORDS = "Incorrect API key provided: my-own-key-42, header-value-7, hunter2"
ECHOES = {
    "401": lies.status(401, words=WORDS),
    "not JSON": lies.not_json,
    "no rows": lambda _asked, _answer: Answer(200, json.dumps({"said": "x" * 150 + WORDS}).encode()),
    "too few": lies.wrong_count(-1),
    "redirect": lies.redirect(),
    "reset": lies.reset,
}


@pytest.mark.parametrize("lie", ECHOES.values(), ids=ECHOES.keys())
def test_no_secret_is_shown_although_the_server_repeats_it(lie, connect, server):
    server.always(lie)
    url = server.base_url("openai").replace("://", "://user:hunter2@")
    embedder = connect(base_url=url, api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(TEXTS)
    shown = f"{caught.value} {embedder.identity} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v", "hunter2") if part in shown] == []
    assert server.root in shown


def test_key_and_address_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    server.key = KEY
    embedder = load_embedder("openai")
    assert embedder.embed_query("lock").any()
    embedder.close()


def test_a_server_on_this_machine_needs_no_key(connect, server):
    connect().embed_query("lock")
    assert server.seen()[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("base_url", [None, "http://192.168.1.5:11434/v1"])
def test_a_server_elsewhere_needs_a_key(base_url):
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY") as caught:
        load_embedder("openai", base_url=base_url)
    assert "api_key" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"dimensions": 0}, {"max_items": 0}, {"max_input_tokens": -1}, {"max_input_tokens": 3, "query_prefix": "query: "}],
)
def test_an_option_that_cannot_be_used_is_named(options, connect):
    with pytest.raises(EmbedderError, match=f"{next(iter(options))}={next(iter(options.values()))}"):
        connect(**options)


def test_without_the_sdk_the_error_says_how_to_get_it(connect, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[openai\]"'):
        connect()


def test_the_identity_tells_apart_what_makes_other_vectors(connect):
    options = [
        {}, {"model": "m"}, {"dimensions": 8}, {"query_prefix": "q"}, {"document_prefix": "q"},
        {"headers": {"x": ""}}, {"base_url": "http://localhost:1/v1"}, {"max_input_tokens": 100},
    ]  # fmt: skip
    assert len({connect(**each).identity for each in options}) == len(options)


# --- batch API
def test_a_job_brings_the_vectors_of_its_keys(connect, server):
    embedder = connect(dimensions=16, document_prefix="text: ")
    batch, items = embedder.service.batch, [(f"key{number}", text) for number, text in enumerate(TEXTS)]
    job = batch.submit(items)
    assert [batch.state(job), batch.state(job)] == [JobState.RUNNING, JobState.DONE]
    results = batch.results(job)
    assert np.allclose([results[key] for key, _ in items], embedder.embed_documents(TEXTS))
    server.batch.polls, server.batch.refused = 0, {f"text: {TEXTS[1]}"}
    batch.state(other := batch.submit(items))
    assert sorted(batch.results(other)) == ["key0", "key2"]


@pytest.mark.parametrize(("outcome", "state"), [("failed", JobState.FAILED), ("expired", JobState.EXPIRED)])
def test_a_job_that_did_not_end_well_says_so(outcome, state, connect, server):
    server.batch.polls, server.batch.outcome = 0, outcome
    batch = connect().service.batch
    job = batch.submit([("key", TEXTS[0])])
    assert (batch.state(job), batch.results(job)) == (state, {})
    batch.cancel(other := batch.submit([("key", TEXTS[0])]))
    assert batch.state(other) is JobState.FAILED


def test_a_job_is_charged_to_its_own_limits(connect):
    jobs = connect().service.batch
    assert (jobs.max_items, jobs.max_bytes) == (10_000, 200_000_000)


# --- the real service
@pytest.mark.enable_socket
@pytest.mark.skipif(not REAL_KEY, reason="needs OPENAI_API_KEY")
class TestAgainstTheRealService:
    @pytest.fixture
    def embedder(self):
        embedder = load_embedder("openai", dimensions=256, api_key=REAL_KEY)
        yield embedder
        embedder.close()

    def test_it_keeps_the_contract(self, embedder):
        check_embedder(embedder)

    def test_a_question_is_nearest_to_its_answer(self, embedder):
        documents = embedder.embed_documents(TEXTS)
        assert int((documents @ embedder.embed_query("What do I need for the cake?")).argmax()) == 2
