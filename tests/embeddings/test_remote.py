"""The pipeline that every service is asked through, with the real OpenAI SDK against a server that lies."""

import json
import subprocess
import sys
import threading
from dataclasses import replace

import embedding_faults as lies
import numpy as np
import pytest

from openclaw_memory.embeddings.remote.client import RemoteEmbedder
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.service import Limits, RetryPolicy, Service
from openclaw_memory.errors import EmbedderError

pytest.importorskip("openai")

TEXTS = [f"note {number} about lock {number % 7}" for number in range(40)]


def digits(asked, answer):
    """One number of the answer is an integer that no float can hold."""
    data = [{"index": place, "embedding": [10**400] + [1] * 63} for place in range(len(asked.texts))]
    return replace(answer, body=json.dumps({"data": data}).encode())


PASSING = {
    "500": lies.status(500),
    "502": lies.status(502),
    "503": lies.status(503),
    "520": lies.status(520),
    "reset": lies.reset,
    "half a body": lies.half_body,
    "not JSON": lies.not_json,
    "one vector too few": lies.wrong_count(),
    "one vector too many": lies.wrong_count(1),
    "unequal dimensions": lies.mixed_dims,
    "null": lies.null,
    "zeros": lies.zeros,
    "no number": lies.all_nan,
    "the same index": lies.same_index,
    "four hundred digits": digits,
}
LASTING = {
    "401": lies.status(401),
    "403": lies.status(403),
    "404": lies.status(404),
    "quota": lies.quota(),
    "redirect": lies.redirect(),
    "gzip": lies.gzip_bomb(lies.MEGABYTE),
}


def table(cases):
    return pytest.mark.parametrize("lie", cases.values(), ids=cases.keys())


def unit(vectors):
    return bool(np.isfinite(vectors).all()) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


# --- failures
@table(PASSING)
@pytest.mark.sampled(4)
def test_a_failure_that_may_pass_is_met_with_three_tries(lie, embedder, server):
    server.always(lie)
    with pytest.raises(EmbedderError, match=r"127\.0\.0\.1"):
        embedder.embed_documents(TEXTS[:2])
    assert len(server.seen()) == 3


@table(PASSING)
@pytest.mark.sampled(4)
def test_a_failure_that_passes_leaves_no_trace(lie, embedder, server):
    expected = embedder.embed_documents(TEXTS[:3])
    server.script(lie, lie)
    assert np.array_equal(embedder.embed_documents(TEXTS[:3]), expected)


@table(LASTING)
def test_a_failure_that_will_not_pass_is_met_with_one_try(lie, embedder, server):
    server.always(lie)
    with pytest.raises(EmbedderError):
        embedder.embed_documents(TEXTS[:2])
    assert len(server.seen()) == 1


def test_a_server_that_is_not_there_is_named(embedder, server):
    server.stop()
    with pytest.raises(EmbedderError, match=f"{server.root}.*cannot be reached.*ConnectError"):
        embedder.embed_query("lock")


def test_a_busy_service_is_given_more_tries_for_documents_than_for_a_question(embedder, server):
    server.always(lies.status(429))
    with pytest.raises(EmbedderError):
        embedder.embed_documents(TEXTS[:1])
    for_documents = len(server.seen())
    with pytest.raises(EmbedderError):
        embedder.embed_query("lock")
    assert (for_documents, len(server.seen()) - for_documents) == (5, 3)


@pytest.mark.parametrize("date", [False, True], ids=["number", "date"])
def test_the_wait_that_a_busy_service_asks_for_is_kept(date, connect, server):
    asked_for = "Wed, 21 Oct 2015 07:28:00 GMT" if date else 0
    server.script(lies.status(429, retry_after=asked_for))
    embedder = connect({"busy_first_wait": 1000, "busy_longest_wait": 1000})
    assert len(embedder.submit(TEXTS[:2]).result(60)) == 1


def test_no_wait_is_longer_than_the_pace_allows(connect, server):
    server.script(lies.status(500), lies.status(429), lies.status(429, retry_after=1000))
    embedder = connect({"first_wait": 1000, "busy_first_wait": 1000, "longest_wait": 0, "busy_longest_wait": 0})
    assert unit(_vectors(embedder.submit(TEXTS[:2]).result(60)))


@pytest.mark.parametrize("lie", [lies.hang, lies.drip(), lies.status(500)], ids=["hang", "drip", "500"])
def test_a_question_ends_by_its_deadline_which_holds_for_all_its_tries(lie, connect, server):
    server.always(lie)
    embedder = connect({"query_seconds": 0.4, "first_wait": 0.3, "longest_wait": 1000, "tries": 1000})
    with pytest.raises(EmbedderError, match=r"0\.4 s"):
        embedder.embed_query("lock")


@pytest.mark.parametrize("lie", [lies.hang, lies.drip()], ids=["hang", "drip"])
def test_each_request_for_documents_ends_by_its_deadline(lie, connect, server):
    server.always(lie)
    with pytest.raises(EmbedderError, match=r"no whole answer within 0\.3 s"):
        connect({"request_seconds": 0.3}).embed_documents(TEXTS[:2])


# --- answers
def test_vectors_go_by_their_index(embedder, server):
    expected = embedder.embed_documents(TEXTS)
    server.always(lies.shuffled)
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)


def test_other_dimensions_than_before_are_refused(embedder, server):
    embedder.embed_query("lock")
    embedder.embed_query("key")
    server.always(lies.wrong_dims())
    with pytest.raises(EmbedderError, match="65 dimensions where 64"):
        embedder.embed_documents(TEXTS[:2])
    server.always(lies.honest)
    assert unit(embedder.embed_documents(TEXTS[:2]))


def test_other_dimensions_than_asked_for_are_refused_at_once(connect, server):
    server.always(lies.wrong_dims(-1))
    with pytest.raises(ServiceError, match=r"31 dimensions where 32.*option dimensions") as caught:
        connect(dimensions=32).embed_query("lock")
    assert (caught.value.kind, len(server.seen())) == (FailureKind.DENIED, 1)


def _vectors(answers):
    return np.concatenate([answer.vectors for answer in answers])


# --- in parallel
@pytest.mark.parametrize("concurrency", [1, 4])
def test_so_many_requests_run_at_once_and_no_more(concurrency):
    together, running, most = threading.Barrier(concurrency), [], []

    def send(texts, _as_query):
        running.append(texts)
        most.append(len(running))
        together.wait(60)  # broken, and so an error, where fewer run at once
        running.remove(texts)
        return np.ones((len(texts), 4))

    service = Service("fake", "m", "http://localhost:1/v1", Limits(1, 100), send)
    embedder = RemoteEmbedder(service, RetryPolicy(concurrency=concurrency, tries=1))
    assert embedder.embed_documents(TEXTS).shape == (len(TEXTS), 4)
    embedder.close()
    assert max(most) == concurrency


def test_the_first_failure_ends_the_call(connect, server):
    server.always(lies.status(401))
    embedder = connect({"concurrency": 2}, max_items=1)
    with pytest.raises(EmbedderError, match="401"):
        embedder.embed_documents(TEXTS)
    assert len(server.seen()) < len(TEXTS)


# --- names
def _service(endpoint="http://localhost:1/v1", send=None, secrets=(), **settings):
    def ones(texts, _as_query):
        return np.ones((len(texts), 4))

    service = Service("fake", "m", endpoint, Limits(8, 100), send or ones, settings, secrets=secrets)
    return RemoteEmbedder(service, RetryPolicy(tries=1))


def test_the_identity_names_what_changes_a_vector_and_holds_no_secret():
    embedder = _service("https://user:hunter2@host.example/v1/?key=hunter2#x", dimensions=8, prefix=None)
    assert embedder.identity == 'fake https://host.example/v1 m {"dimensions": 8}'


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://localhost:11434/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://127.evil.example/v1", True),
        ("http://127.0.0.1@evil.example/v1", True),
        ("http://192.168.1.5:11434/v1", True),
        ("https://api.openai.com/v1", True),
    ],
)
def test_it_knows_whether_texts_leave_the_machine(url, leaves):
    assert _service(url).leaves_machine is leaves


# --- memory ---

BOMB = """
import resource, sys
from openclaw_memory.embeddings import load_embedder
embedder = load_embedder("openai", base_url=sys.argv[1])
embedder.embed_query("lock")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    embedder.embed_query("lock")
except Exception as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="measures memory as Unix does")
def test_a_gzip_bomb_costs_no_memory(server):
    server.script(lies.honest, lies.gzip_bomb(300 * lies.MEGABYTE))
    run = [sys.executable, "-c", BOMB, server.base_url("openai")]
    kilobytes, error = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split(" ", 1)
    assert "compressed" in error
    # macOS counts bytes, Linux KiB.
    assert int(kilobytes) // (1024 if sys.platform == "darwin" else 1) <= 32 * 1024
