"""The provider `openai`, beside what it shares with other services: what it asks for, and which answers it takes."""

import json

import numpy as np
import pytest
from embedding_wire import Answer, error

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.remote.service import RetryPolicy
from openclaw_memory.errors import EmbedderError

pytest.importorskip("openai")

KEY = "sk-test-0123456789abcdef"
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


def test_headers_are_sent_and_only_their_names_are_told(connect, server):
    embedder = connect(headers={"X-Team": "hunter2"}, organization="org-1", project="proj-1")
    embedder.embed_query("lock")
    headers = server.seen()[0].headers
    found = [headers.get(name) for name in ("x-team", "openai-organization", "openai-project")]
    assert found == ["hunter2", "org-1", "proj-1"]
    assert "x-team" in embedder.identity
    assert "hunter2" not in embedder.identity


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


def test_the_identity_tells_apart_what_makes_other_vectors(connect):
    options = [
        {}, {"model": "m"}, {"dimensions": 8}, {"query_prefix": "q"}, {"document_prefix": "q"},
        {"headers": {"x": ""}}, {"base_url": "http://localhost:1/v1"}, {"max_input_tokens": 100},
    ]  # fmt: skip
    assert len({connect(**each).identity for each in options}) == len(options)
