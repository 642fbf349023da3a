"""Requests to any service: tries, deadlines, halves, parallel requests, and their end, against a server that lies."""

import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import embedding_faults as lies
import numpy as np
import pytest
from embedding_wire import Answer

from openclaw_memory import Memory
from openclaw_memory.embeddings.remote import RemoteEmbedder
from openclaw_memory.embeddings.service import FailureKind, Limits, RetryPolicy, Service, ServiceError
from openclaw_memory.errors import EmbedderError

pytest.importorskip("httpx")

TEXTS = [f"note {number} about lock {number % 7}" for number in range(40)]


def digits(asked, answer):
    """One number of the answer is an integer that no float can hold."""
    data = [{"index": place, "embedding": [10**400] + [1] * 63} for place in range(len(asked.texts))]
    return replace(answer, body=json.dumps({"data": data}).encode())


PASSING = {
    "500": lies.status(500),
    "520": lies.status(520),
    "reset": lies.reset,
    "half a body": lies.half_body,
    "not JSON": lies.not_json,
    "no object": lambda _asked, _answer: Answer(200, b"[]"),
    "one vector too few": lies.wrong_count(),
    "one vector too many": lies.wrong_count(1),
    "unequal dimensions": lies.mixed_dims,
    "null": lies.null,
    "zeros": lies.zeros,
    "no number": lies.all_nan,
    "the same index": lies.same_index,
    "four hundred digits": digits,
}
LASTING = {"401": lies.status(401), "404": lies.status(404), "quota": lies.quota(), "redirect": lies.redirect()}

BOTH_CLIENTS = pytest.mark.parametrize("provider", ["openai", "voyage"])  # an SDK's, and httpx


def table(cases):
    return pytest.mark.parametrize("lie", cases.values(), ids=cases.keys())


def unit(vectors):
    return bool(np.isfinite(vectors).all()) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


# --- failures
@pytest.mark.fault(20)
@table(PASSING)
@pytest.mark.sampled(4)
def test_a_failure_that_may_pass_is_tried_three_times(lie, embedder, server, pauses):
    expected = embedder.embed_documents(TEXTS[:3])
    server.script(lie, lie)
    assert np.array_equal(embedder.embed_documents(TEXTS[:3]), expected)
    assert (0.5 <= pauses[0] <= 0.6, 1 <= pauses[1] <= 1.2) == (True, True)
    server.always(lie)
    before = len(server.seen())
    with pytest.raises(EmbedderError, match=r"127\.0\.0\.1"):
        embedder.embed_documents(TEXTS[:2])
    assert len(server.seen()) - before == 3


@pytest.mark.fault(20)
@table(LASTING)
@BOTH_CLIENTS
def test_a_failure_that_will_not_pass_is_tried_once(lie, provider, load, server):
    server.always(lie)
    with pytest.raises(ServiceError) as raised:
        load(provider).embed_documents(TEXTS[:2])
    tries = 3 if provider == "openai" and lie is LASTING["quota"] else 1  # the SDK takes it for a rate limit
    assert (raised.value.is_passing, len(server.seen()), server.seen("elsewhere")) == (False, tries, [])


@pytest.mark.fault(23)
@BOTH_CLIENTS
def test_a_compressed_answer_is_refused_and_not_unpacked(provider, load, server):
    embedder = load(provider)
    embedder.embed_query("lock")
    server.always(lies.gzip_bomb(300 * lies.MEGABYTE))
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError, match="nonsense"):
            embedder.embed_query("lock")
        assert tracemalloc.get_traced_memory()[1] < 32 * lies.MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.fault(23)
@BOTH_CLIENTS
def test_an_endless_answer_is_cut_off(provider, load, server, monkeypatch):
    monkeypatch.setattr("openclaw_memory.embeddings.service.MAX_BYTES", lies.MEGABYTE)
    server.always(lies.huge_body)
    with pytest.raises(ServiceError, match="sent more than 1,048,576 bytes"):
        load(provider).embed_query("lock")


@pytest.mark.fault(20)
def test_a_rate_limit_gives_documents_more_tries_and_longer_waits_than_a_query(embedder, server, pauses):
    server.always(lies.status(429))
    with pytest.raises(EmbedderError):
        embedder.embed_documents(TEXTS[:1])
    assert (len(server.seen()), len(pauses), 5 <= pauses[0] <= 6, max(pauses) <= 60) == (5, 4, True, True)
    with pytest.raises(EmbedderError):
        embedder.embed_query("lock")
    assert len(server.seen()) == 8


@pytest.mark.parametrize(("wait", "seconds"), [("Wed, 21 Oct 2015 07:28:00 GMT", 0), (7, 7), (1000, 60)])
def test_the_wait_that_a_service_asks_for_is_kept_up_to_a_minute(wait, seconds, embedder, server, pauses):
    server.script(lies.status(429, retry_after=wait))
    assert unit(embedder.embed_documents(TEXTS[:2]))
    assert pauses == [seconds]


# --- deadlines
@pytest.mark.fault(21)
@pytest.mark.parametrize("lie", [lies.hang, lies.drip()], ids=["hang", "drip"])
@BOTH_CLIENTS
def test_a_query_and_a_request_for_documents_end_by_their_deadlines(lie, provider, load, server):
    server.always(lie)
    embedder = load(provider, retry=RetryPolicy(query_seconds=0.4, request_seconds=0.3, tries=1))
    with pytest.raises(EmbedderError, match=r"no whole answer within 0\.3 s|ReadTimeout"):
        embedder.embed_documents(TEXTS[:2])
    embedder = load(provider, retry=RetryPolicy(query_seconds=0.4))
    with pytest.raises(EmbedderError, match=r"0\.4 s"):
        embedder.embed_query("lock")


@pytest.mark.fault(21)
def test_all_tries_of_a_query_share_its_deadline(connect, server):
    server.always(lies.status(500))
    with pytest.raises(EmbedderError, match=r"0\.4 s"):
        connect({"query_seconds": 0.4, "tries": 10**9}).embed_query("lock")


# --- answers
@pytest.mark.fault(22)
def test_vectors_go_by_their_index(embedder, server):
    expected = embedder.embed_documents(TEXTS)
    server.always(lies.shuffled)
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)


@pytest.mark.fault(22)
def test_other_dimensions_than_before_are_refused(embedder, server):
    embedder.embed_query("lock")
    server.script(*[lies.wrong_dims()] * 3)
    with pytest.raises(EmbedderError, match="65 dimensions where 64"):
        embedder.embed_documents(TEXTS[:2])
    assert unit(embedder.embed_documents(TEXTS[:2]))


def test_blank_texts_are_not_sent_and_have_the_zero_vector(embedder, server):
    assert embedder.embed_documents(["", "lock", " \n"]).any(axis=1).tolist() == [False, True, False]
    assert not {text for asked in server.seen() for text in asked.texts if not text.strip()}


# --- the size of a request
@pytest.mark.parametrize("limit", [{"max_items": 12}, {"max_bytes": 400}, {"max_items": 12, "status": 413}])
def test_a_request_that_is_too_large_is_halved(limit, embedder, server):
    expected = embedder.embed_documents(TEXTS)
    if status := limit.pop("status", None):
        server.when_too_large = lies.status(status, words="batch size 40 > maximum allowed batch size 12")
    for name, value in limit.items():
        setattr(server, name, value)
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)


def test_a_text_that_is_too_long_is_cut_until_the_service_takes_it(embedder, server):
    server.max_text_bytes = 1000
    assert unit(embedder.embed_documents(["a lock and a key, and a boat in the lock. " * 60]))
    server.max_text_bytes = 3
    before = len(server.seen())
    with pytest.raises(EmbedderError, match="max allowed tokens"):
        embedder.embed_documents(["lock " * 400])
    assert len(server.seen()) - before < 20


def test_requests_hold_no_more_text_than_the_limit(embedder, server):
    embedder.embed_documents(["lock " * 300 for _ in range(20)])
    assert sorted(sum(map(len, asked.texts)) for asked in server.seen()) == [7500] * 4


@pytest.mark.parametrize("refused", [range(40), range(20), [3, 4]], ids=["all", "half", "neighbours"])
def test_refused_texts_cost_only_themselves(refused, embedder, server):
    server.refused = {TEXTS[place] for place in refused}
    ((vectors, errors),) = embedder.embed_requests([TEXTS])
    assert sorted(errors) == list(refused)
    assert {error.kind for error in errors.values()} <= {FailureKind.REFUSED}
    assert unit(vectors[[place for place in range(40) if place not in errors]])


@pytest.mark.parametrize("words", ["unknown option", "too many inputs", "input is too large"])
def test_a_service_that_refuses_everything_is_not_asked_for_every_text(words, embedder, server):
    server.always(lies.status(400, words=words))
    with pytest.raises(ServiceError, match=words) as raised:
        embedder.embed_documents(TEXTS)
    assert (raised.value.kind, len(server.seen())) == (FailureKind.DENIED, 2)


def test_a_failure_amid_the_halves_leaves_the_vectors_before_it(embedder, server):
    embedder.embed_query("lock")
    server.script(lies.status(413), lies.honest, lies.status(401))
    ((vectors, errors),) = embedder.embed_requests([TEXTS])
    assert (unit(vectors[:20]), sorted(errors)) == (True, list(range(20, 40)))
    assert {error.kind for error in errors.values()} == {FailureKind.DENIED}


# --- a sync
def test_a_service_that_goes_down_amid_a_sync_is_not_asked_for_every_text(notes, connect, server):
    for number in range(200):
        (notes / f"memory/{number}.md").write_text(f"Note number {number}.\n")
    server.script(lies.honest, lies.honest, lies.honest)
    server.always(lies.status(500))
    with Memory.open(notes, embedder=connect(max_items=4)) as memory:
        report = memory.sync()
        assert (len(report.added), len(report.waiting)) == (204, 204 - report.embedded)
        assert 0 < report.embedded <= 12
        assert len(server.seen()) < 100
        assert all("500" in file.reason for file in report.waiting)
        assert memory.search("boiler")[0].path == "memory/household.md"


# --- in parallel
def make_service(send, endpoint="http://localhost:1/v1", **fields):
    return Service("fake", "m", endpoint, Limits(1, 100), send, **fields)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_so_many_requests_run_at_once_and_no_more(concurrency):
    import asyncio

    running, most = [], []

    async def send(_client, texts, _as_query):
        running.append(texts)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(texts)
        return np.ones((len(texts), 4))

    embedder = RemoteEmbedder(make_service(send), RetryPolicy(concurrency=concurrency, tries=1))
    assert embedder.embed_documents(TEXTS).shape == (len(TEXTS), 4)
    embedder.close()
    assert max(most) == concurrency


# --- names
@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://localhost:11434/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://127.evil.example/v1", True),
        ("http://192.168.1.5:11434/v1", True),
        ("https://api.openai.com/v1", True),
    ],
)
def test_it_knows_whether_texts_leave_the_machine(url, leaves):
    assert RemoteEmbedder(make_service(None, url)).leaves_machine is leaves


@pytest.mark.parametrize("host", ["embeddings.example", "localhost"])
def test_the_proxy_of_the_environment_is_used_but_for_this_machine(host, server, load, monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.root if host != "localhost" else "http://127.0.0.1:9")
    assert load("openai", base_url=f"http://{host}:{server.port}/openai/v1").embed_query("lock").any()
    assert server.requests[0].headers["host"].startswith(host)


# --- the end
def list_threads():
    return {thread for thread in threading.enumerate() if thread.name != "embedding server"}


@BOTH_CLIENTS
def test_no_thread_stays_and_after_closing_the_next_request_begins_again(provider, load):
    before, embedder = list_threads(), load(provider)
    expected = embedder.embed_query("lock")
    embedder.close()
    embedder.close()
    assert list_threads() <= before
    assert np.array_equal(embedder.embed_query("lock"), expected)


@BOTH_CLIENTS
@pytest.mark.parametrize("lie", [lies.hang, lies.drip()], ids=["hang", "drip"])
def test_closing_ends_the_requests_that_are_waited_for(lie, provider, load, server):
    embedder = load(provider)
    server.always(lie)
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(embedder.embed_query, "lock"), pool.submit(embedder.embed_documents, TEXTS)]
        while len(server.seen()) < 2:
            time.sleep(0.01)
        embedder.close()
        for ended in under_way:
            assert "close()" in str(ended.exception(60))


FORK = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads, which is the point
from openclaw_memory import load_embedder
embedder = load_embedder("voyage", base_url=sys.argv[1], api_key="any")
embedder.embed_query("lock")
if os.fork() == 0:
    print("child", embedder.embed_query("lock").shape, flush=True)
    embedder.close()
    os._exit(0)
os.wait()
print("parent", embedder.embed_query("lock").shape)
threading.Thread(target=embedder.embed_documents, args=(["lock"],), daemon=True).start()
time.sleep(0.5)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_asks_by_itself_and_an_end_amid_a_request_prints_nothing(server):
    server.script(lies.honest, lies.honest, lies.honest)
    server.always(lies.hang)
    run = [sys.executable, "-c", FORK, server.base_url("voyage")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["child (64,)", "parent (64,)"], "")
