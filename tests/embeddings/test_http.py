"""The HTTP client that SDKs are given: what it refuses, and what it lets through."""

from contextlib import suppress

import embedding_faults as lies
import pytest
from embedding_wire import Answer

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.http import http_client

BODY = {"model": "m", "input": ["lock"]}


@pytest.fixture(params=["httpx", pytest.param("httpx2", marks=pytest.mark.nightly)])
def library(request):
    """The two HTTP libraries that OpenAI's SDK takes, each in some librarys."""
    pytest.importorskip(request.param)
    return request.param


def post(url, library, **options):
    with http_client(url, library=library, **options) as client:
        return client.post(f"{url}/embeddings", json=BODY)


def packed(status, **headers):
    return lambda _asked, _answer: Answer(
        status, lies.gzipped_zeros(1), {"content-encoding": "gzip", "retry-after": "7", **headers}
    )


def test_an_honest_answer_comes_through(server, library):
    answer = post(server.base_url("openai"), library)
    assert len(answer.json()["data"]) == 1
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_redirect_is_refused(server, library):
    server.always(lies.redirect("/elsewhere", code=307))
    with pytest.raises(ServiceError, match=f"{server.base_url('openai')}/embeddings answered 307.*base_url") as caught:
        post(server.base_url("openai"), library)
    assert caught.value.kind is FailureKind.DENIED
    assert len(server.requests) == 1


@pytest.mark.parametrize("packing", ["gzip", "br", "deflate, gzip"])
def test_a_compressed_answer_is_refused(packing, server, library):
    server.always(packed(200, **{"content-encoding": packing}))
    with pytest.raises(ServiceError, match=f"compressed answer .{packing}") as caught:
        post(server.base_url("openai"), library)
    assert caught.value.kind is FailureKind.DENIED


def test_a_compressed_error_keeps_its_status_and_its_wait_and_loses_its_words(server, library):
    server.always(packed(429))
    answer = post(server.base_url("openai"), library)
    assert (answer.status_code, answer.headers["retry-after"], answer.content) == (429, "7", b"")


def test_an_answer_that_says_identity_is_none_that_is_compressed(server, library):
    server.always(lambda _asked, _answer: Answer(200, b"{}", {"content-encoding": " Identity "}))
    assert post(server.base_url("openai"), library).json() == {}


def test_an_endless_answer_is_cut_off(server, library):
    server.always(lies.huge_body)
    with pytest.raises(ServiceError, match="more than 1,000,000 bytes") as caught:
        post(server.base_url("openai"), library, max_body_bytes=1_000_000)
    assert caught.value.kind is FailureKind.PASSING


@pytest.mark.parametrize(("limit", "passes"), [(1000, True), (999, False)])
def test_an_answer_may_be_as_long_as_the_limit(limit, passes, server, library):
    server.always(lambda _asked, _answer: Answer(200, b" " * 1000))
    if passes:
        assert len(post(server.base_url("openai"), library, max_body_bytes=limit).content) == 1000
    else:
        with pytest.raises(ServiceError):
            post(server.base_url("openai"), library, max_body_bytes=limit)


def test_an_error_in_words_of_ours_shows_no_password(server, library):
    server.always(lies.redirect())
    url = server.base_url("openai").replace("://", "://user:hunter2@")
    with pytest.raises(ServiceError) as caught:
        post(url, library)
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def proxy(server, monkeypatch):
    """Takes the server for a proxy, as the environment says."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.root)
    return server


def test_a_proxy_from_the_environment_is_used(proxy, library):
    answer = post("http://embeddings.example/openai/v1", library)
    assert answer.status_code == 200
    assert proxy.requests[0].headers["host"] == "embeddings.example"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_what_is_meant_for_this_machine_goes_past_the_proxy(host, proxy, library, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    answer = post(f"http://{host}:{proxy.port}/openai/v1", library)
    assert answer.status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.2", "LOCALHOST", "[::1]"])
def test_a_proxy_hears_nothing_that_is_meant_for_this_machine(host, proxy, library):
    with suppress(Exception):  # nobody listens there
        post(f"http://{host}:9/openai/v1", library)
    assert proxy.requests == []
