"""An embedding service, or an address of one, that is out to be seen in a log or to fill the index."""

import json
import logging
import traceback

import pytest
from embedding_wire import Answer

from openclaw_memory import load_embedder
from openclaw_memory.embeddings.service import RetryPolicy
from openclaw_memory.embeddings.vectors import MAX_DIMENSIONS
from openclaw_memory.errors import EmbedderError

SERVICES = ("openai", "gemini", "voyage")
KEY = "key-0123456789"


@pytest.fixture
def load(embedding_server):
    embedders = []

    def load(provider, **options):
        defaults = {"base_url": embedding_server.base_url(provider), "api_key": KEY, "retry": RetryPolicy(tries=1)}
        embedders.append(load_embedder(provider, **{**defaults, **options}))
        return embedders[-1]

    yield load
    for embedder in embedders:
        embedder.close()


def echo(asked, _answer):
    """Return all that was sent as an error."""
    words = f"{asked.method} {asked.path} {dict(asked.headers)}"
    return Answer(401, json.dumps({"error": {"message": words}}).encode())


@pytest.mark.fault(59)
@pytest.mark.parametrize("provider", SERVICES)
def test_a_key_is_in_no_log_and_no_message(provider, load, embedding_server, caplog):
    caplog.set_level(logging.DEBUG)
    embedder = load(provider)
    embedder.embed_query("where is the key?")
    embedding_server.always(echo)
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_query("and now?")
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(embedder.service)
    assert KEY not in shown
    assert str(embedding_server.port) in caplog.text  # the requests are in the log


@pytest.mark.fault(59)
@pytest.mark.parametrize("provider", SERVICES)
@pytest.mark.parametrize("hide", ["{}?key=hunter2", "{}/?key=hunter2#part", "{}#hunter2", "user:hunter2@"])
def test_a_password_or_a_query_in_the_address_is_refused_and_not_shown(provider, hide, load, embedding_server):
    url = embedding_server.base_url(provider)
    url = hide.format(url) if "{}" in hide else url.replace("://", f"://{hide}")
    with pytest.raises(EmbedderError, match=r"base_url .* password.*headers") as caught:
        load(provider, base_url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.fault(59)
@pytest.mark.parametrize("provider", SERVICES)
def test_more_dimensions_than_an_index_takes_are_refused(provider, load, embedding_server):
    with pytest.raises(EmbedderError, match=f"dimensions=200000.*{MAX_DIMENSIONS}"):
        load(provider, dimensions=200_000)
    embedding_server.dims = MAX_DIMENSIONS
    assert load(provider).embed_documents(["one", "two", "three"]).shape == (3, MAX_DIMENSIONS)
    embedding_server.dims = MAX_DIMENSIONS + 1
    with pytest.raises(EmbedderError, match=f"{MAX_DIMENSIONS + 1} dimensions"):
        load(provider).embed_query("how many?")
