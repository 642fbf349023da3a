"""An embedding service, or an address of one, that is out to be seen in a log or to fill the memory."""

import json
import logging
import traceback
import tracemalloc
from base64 import b64encode
from dataclasses import replace

import embedding_faults as faults
import pytest
from embedding_wire import Answer

from openclaw_memory import load_embedder
from openclaw_memory.embeddings.remote.service import RetryPolicy
from openclaw_memory.embeddings.vectors import MAX_DIMENSIONS
from openclaw_memory.errors import EmbedderError

ONCE = RetryPolicy(query_seconds=60, request_seconds=60, tries=1, busy_tries=1, first_wait=0.001)
SERVICES = ("openai", "gemini", "voyage")
PASSWORD = 'hunter2-é"x'  # what a service repeats is escaped in JSON
SHOWN = ("hunter2", b64encode(f"user:{PASSWORD}".encode()).decode(), "hunter2-%C3%A9")


@pytest.fixture
def load(embedding_server):
    made = []

    def load(provider, **options):
        options = {
            "base_url": embedding_server.base_url(provider),
            "api_key": "key-0123456789",
            "retry": ONCE,
            **options,
        }
        made.append(load_embedder(provider, **options))
        return made[-1]

    yield load
    for embedder in made:
        embedder.close()


def echoed(asked, _answer):
    """Everything that was sent, as an error."""
    said = f"{asked.method} {asked.path} {dict(asked.headers)} {PASSWORD} {json.dumps(PASSWORD)}"
    return Answer(401, json.dumps({"error": {"message": said}}, ensure_ascii=False).encode())


def with_password(url):
    return url.replace("://", "://user:hunter2-%C3%A9%22x@")


@pytest.mark.parametrize("provider", SERVICES)
def test_a_password_in_the_address_is_in_no_log_and_no_message(provider, load, embedding_server, caplog):
    caplog.set_level(logging.DEBUG)
    embedder = load(provider, base_url=with_password(embedding_server.base_url(provider)))
    embedder.embed_query("where is the key?")
    embedding_server.always(echoed)
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_query("and now?")

    said = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(embedder.service) + embedder.identity
    assert [part for part in SHOWN if part in said] == []
    assert str(embedding_server.port) in caplog.text  # the requests are in the log


@pytest.mark.parametrize("provider", SERVICES)
def test_a_password_in_the_address_is_sent_to_the_service(provider, load, embedding_server):
    load(provider, base_url=with_password(embedding_server.base_url(provider))).embed_query("where is the key?")
    basic = b64encode(f"user:{PASSWORD}".encode()).decode()
    assert embedding_server.seen()[0].headers["authorization"] == f"Basic {basic}"


@pytest.mark.parametrize("provider", SERVICES)
@pytest.mark.parametrize("end", ["?key=hunter2", "/?key=hunter2#part", "#hunter2"])
def test_a_query_in_the_address_is_refused_and_not_shown(provider, end, load, embedding_server):
    with pytest.raises(EmbedderError, match=r"base_url .* (query|fragment).*headers") as caught:
        load(provider, base_url=embedding_server.base_url(provider) + end)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("provider", SERVICES)
def test_more_dimensions_than_an_index_takes_are_refused(provider, load):
    with pytest.raises(EmbedderError, match=f"dimensions=200000.*{MAX_DIMENSIONS}"):
        load(provider, dimensions=200_000)
    load(provider, dimensions=MAX_DIMENSIONS)


@pytest.mark.parametrize("provider", SERVICES)
def test_an_answer_of_more_dimensions_is_refused(provider, load, embedding_server):
    embedding_server.dims = MAX_DIMENSIONS + 1
    with pytest.raises(EmbedderError, match=f"{MAX_DIMENSIONS + 1} dimensions"):
        load(provider).embed_query("how many?")


@pytest.mark.parametrize("provider", SERVICES)
@pytest.mark.parametrize(
    "lie", [faults.huge_body, lambda asked, answer: replace(faults.huge_body(asked, answer), status=500)]
)
@pytest.mark.sampled(1)
def test_an_endless_answer_is_cut_off_by_what_was_asked_for(provider, lie, load, embedding_server):
    embedder = load(provider)
    embedder.embed_documents(["one", "two"])  # imports what it needs
    embedder.embed_documents(["one", "two"])
    embedding_server.always(lie)
    tracemalloc.start()
    try:
        with pytest.raises(EmbedderError, match="sent more than"):
            embedder.embed_query("how much?")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * faults.MEGABYTE


def test_an_endless_first_answer_is_cut_off(load, embedding_server):
    embedding_server.always(faults.huge_body)
    with pytest.raises(EmbedderError, match="sent more than"):
        load("openai").embed_query("how much?")


@pytest.mark.parametrize("provider", SERVICES)
def test_the_largest_honest_answer_passes(provider, load, embedding_server):
    embedding_server.dims = MAX_DIMENSIONS
    assert load(provider).embed_documents(["one", "two", "three"]).shape == (3, MAX_DIMENSIONS)
