"""OpenAI, Gemini and Voyage as providers, with the embedding server as each of them."""

import json
import sys

import embedding_faults as faults
import pytest
from embedding_wire import Answer

from openclaw_memory.embeddings.service import FailureKind, ServiceError
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.testing import check_embedder

SECRETS = {
    "openai": "sk-proj-4rX9kQ7zAb12Cd34Ef56",
    "gemini": "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "voyage": "pa-5Yk3JsXZHjGw7ISLn3namBGewQe0aDmW",
}
KEYS = {"openai": ["OPENAI_API_KEY"], "gemini": ["GEMINI_API_KEY", "GOOGLE_API_KEY"], "voyage": ["VOYAGE_API_KEY"]}
MOST_ITEMS = {"openai": 2048, "gemini": 100, "voyage": 1000}
SECOND = "gemini-embedding-2"
QUESTION = "When is the launch?"
TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "line one\nline two\u2028line three"]


@pytest.fixture(params=SECRETS)
def provider(request):
    return request.param


# --- requests
def test_the_contract_of_an_embedder_is_kept(load, provider, server):
    server.dims = 256
    check_embedder(load(provider))


def test_queries_and_documents_are_told_apart(load, provider, server):
    embedder = load(provider)
    embedder.embed_query(QUESTION)
    embedder.embed_documents(TEXTS)
    model, query, document = {
        "openai": ("text-embedding-3-small", None, None),
        "gemini": ("gemini-embedding-001", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
        "voyage": ("voyage-4-large", "query", "document"),
    }[provider]
    assert [(asked.model, asked.task, asked.texts) for asked in server.seen()] == [
        (model, query, (QUESTION,)),
        (model, document, tuple(TEXTS)),
    ]


@pytest.mark.parametrize(
    ("provider", "model", "options"),
    [
        ("gemini", SECOND, {}),
        ("openai", None, {"query_prefix": "task: search result | query: ", "document_prefix": "title: none | text: "}),
    ],
)
def test_queries_and_documents_are_told_apart_by_prefixes(load, server, provider, model, options):
    embedder = load(provider, model, **options)
    embedder.embed_query(QUESTION)
    embedder.embed_documents(["On Friday."])
    assert [(asked.task, asked.texts) for asked in server.seen()] == [
        (None, ("task: search result | query: When is the launch?",)),
        (None, ("title: none | text: On Friday.",)),
    ]


def test_voyage_never_cuts_a_text(load, server):
    load("voyage").embed_query(QUESTION)
    assert json.loads(server.seen()[0].body)["truncation"] is False


def test_more_texts_than_a_request_may_hold_take_several(load, provider, server):
    most = server.max_items = MOST_ITEMS[provider]
    assert load(provider).embed_documents([str(place % 10) for place in range(2 * most + 1)]).shape[0] == 2 * most + 1
    assert sorted(len(asked.texts) for asked in server.seen()) == [1, most, most]


def test_dimensions_and_the_names_of_headers_belong_to_the_identity(load, provider, server):
    embedder = load(provider, dimensions=128, headers={"X-Gateway": "hush-hush"})
    assert embedder.embed_query(QUESTION).shape == (128,)
    assert (server.seen()[0].dims, server.seen()[0].headers["x-gateway"]) == (128, "hush-hush")
    assert "x-gateway" in embedder.identity
    assert "hush-hush" not in embedder.identity
    assert len({embedder.identity, load(provider).identity, load(provider, dimensions=128).identity}) == 3


def test_the_identity_of_openai_tells_apart_all_that_changes_a_vector(load):
    options = [
        {}, {"model": "m"}, {"dimensions": 8}, {"query_prefix": "q"}, {"document_prefix": "q"},
        {"headers": {"x": ""}}, {"base_url": "http://localhost:1/v1"}, {"max_input_tokens": 100},
    ]  # fmt: skip
    assert len({load("openai", **each).identity for each in options}) == len(options)


def test_the_identity_names_service_model_and_settings(load):
    identities = {name: load(name, base_url=None, dimensions=256).identity for name in SECRETS}
    assert identities == {
        "openai": 'openai https://api.openai.com/v1 text-embedding-3-small {"dimensions": 256}',
        "gemini": 'gemini https://generativelanguage.googleapis.com gemini-embedding-001 {"dimensions": 256}',
        "voyage": 'voyage https://api.voyageai.com/v1 voyage-4-large {"dimensions": 256}',
    }


@pytest.mark.parametrize(
    "options", [{"dimensions": 0}, {"max_items": "x"}, {"max_input_tokens": -1}, {"base_url": "localhost:80"}]
)
def test_an_option_that_cannot_be_used_is_named(options, load, provider):
    with pytest.raises(EmbedderError, match=next(iter(options))):
        load(provider, **options)


@pytest.mark.parametrize(
    "body", [b"{}", b'{"data": null}', b'{"data": [1]}', b'{"data": [{"index": 0, "embedding": "not base64!"}]}']
)
def test_an_answer_of_another_shape_is_an_error(body, load, provider, server):
    server.always(lambda _asked, _answer: Answer(200, body))
    with pytest.raises(EmbedderError, match=server.base_url(provider)):
        load(provider).embed_query("lock")
    assert len(server.seen()) == 3


# --- keys
@pytest.mark.parametrize("name", [name for names in KEYS.values() for name in names])
def test_the_key_is_found_in_the_environment(load, server, monkeypatch, name):
    provider = next(provider for provider, names in KEYS.items() if name in names)
    monkeypatch.setenv(name, "key")
    server.key = "key"
    assert load(provider, api_key=None).embed_query(QUESTION).any()


def test_a_server_on_this_machine_needs_no_key(load, server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    load("openai", base_url=None, api_key=None).embed_query("lock")
    assert server.seen()[0].headers["authorization"] == "Bearer none"


def test_without_a_key_the_error_says_where_to_put_it(load, provider):
    with pytest.raises(EmbedderError, match=rf"{' or '.join(KEYS[provider])}.*option api_key") as raised:
        load(provider, api_key=None, base_url=None)
    assert not isinstance(raised.value, MissingExtraError)


@pytest.mark.parametrize(
    ("key", "endpoint"), [("pa-one", "https://api.voyageai.com/v1"), ("al-two", "https://ai.mongodb.com/v1")]
)
def test_the_kind_of_key_says_who_is_asked(load, key, endpoint):
    assert load("voyage", api_key=key, base_url=None).endpoint == endpoint


def test_without_the_package_the_error_says_how_to_install_it(load, provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai" if provider == "openai" else "httpx", None)
    with pytest.raises(MissingExtraError, match=rf'pip install "\.\[{provider}\]"'):
        load(provider)


WORDS = "Incorrect API key provided: my-own-key-42, header-value-7"
ECHOES = {
    "401": faults.status(401, words=WORDS),
    "not JSON": faults.not_json,
    "no rows": lambda _asked, _answer: Answer(200, json.dumps({"words": "x" * 150 + WORDS}).encode()),
    "redirect": faults.redirect(),
    "reset": faults.reset,
}


@pytest.mark.parametrize("fault", ECHOES.values(), ids=ECHOES.keys())
@pytest.mark.sampled(4)
def test_no_secret_is_shown_although_the_server_repeats_it(load, provider, server, fault):
    server.always(fault)
    embedder = load(provider, api_key="my-own-key-42", headers={"X-Team": "Basic header-value-7"})
    with pytest.raises(ServiceError) as raised:
        embedder.embed_query(QUESTION)
    shown = f"{raised.value} {embedder.identity} {embedder!r} {embedder.service!r}"
    assert [part for part in ("my-own", "header-v") if part in shown] == []
    assert server.root in shown


# --- failures
def test_a_bad_key_is_asked_with_once_and_not_for_each_text(load, provider, server):
    server.key = "another"
    with pytest.raises(ServiceError, match=r"(?i)API key.*check key") as raised:
        load(provider).embed_documents(["one note", "another note", "a third"])
    assert (raised.value.kind, len(server.seen())) == (FailureKind.DENIED, 1)


def test_the_wait_that_google_names_behind_many_words_is_understood(load, server):
    server.always(faults.quota(retry_delay=34))
    with pytest.raises(ServiceError) as raised:
        load("gemini").embed_query(QUESTION)
    assert (raised.value.kind, raised.value.retry_after) == (FailureKind.BUSY, 34)


def test_openai_itself_is_asked_for_base64(load, server, monkeypatch):
    load("openai").embed_query(QUESTION)
    monkeypatch.setattr("openclaw_memory.embeddings.openai.DEFAULT_URL", server.base_url("openai"))
    load("openai").embed_query(QUESTION)
    assert [json.loads(asked.body)["encoding_format"] for asked in server.seen()] == ["float", "base64"]


@pytest.mark.fault(20)
@pytest.mark.parametrize("fault", [faults.status(429), faults.status(500), faults.reset, faults.half_body])
def test_openai_is_asked_by_its_own_sdk_which_tries_again(load, server, fault):
    embedder = load("openai", headers={"OpenAI-Organization": "org-1"})
    server.script(fault, fault)
    assert embedder.embed_query(QUESTION).any()
    sent = [asked.headers for asked in server.seen()]
    assert [(headers["x-stainless-retry-count"], headers["openai-organization"]) for headers in sent] == [
        (str(number), "org-1") for number in range(3)
    ]
    server.always(fault)
    with pytest.raises(ServiceError) as raised:
        embedder.embed_documents(TEXTS)
    assert (raised.value.is_passing, len(server.seen())) == (True, 6)
