"""The embedding server itself, asked by the services' own SDKs: it says what they say, and counts what it is asked."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from base64 import b64decode
from pathlib import Path
from urllib.request import Request, urlopen

import embedding_faults as faults
import numpy as np
import pytest
from embedding_sdks import SERVICES, ask, ask_openai, failure, openai_client
from embedding_server import EmbeddingServer

from openclaw_memory.embeddings import from_callable
from openclaw_memory.testing import check_embedder


@pytest.fixture(params=SERVICES)
def service(request):
    return request.param


def test_every_service_answers_each_text_with_the_same_unit_vector(server, service):
    found = np.array(ask(server, service, ["the red boat", "a green hill", "the red boat"]))
    assert found.shape == (3, 64)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0)
    assert (found[0] == found[2]).all()
    assert found == pytest.approx(np.array(ask(server, "openai", ["the red boat", "a green hill", "the red boat"])))


def test_base64_and_floats_are_the_same_vectors(server):
    floats, base64 = (ask(server, "openai", ["red boat"], encoding_format=name) for name in ("float", "base64"))
    decoded = np.frombuffer(b64decode(base64[0]), "<f4")
    assert decoded == pytest.approx(np.array(floats[0]))


@pytest.mark.parametrize(
    ("service", "option"),
    [("openai", "dimensions"), ("gemini", "output_dimensionality"), ("voyage", "output_dimension")],
)
def test_as_many_dimensions_come_as_are_asked_for(server, service, option):
    assert len(ask(server, service, ["red boat"], **{option: 16})[0]) == 16
    assert server.seen()[-1].dims == 16


def test_its_vectors_keep_the_contract_of_an_embedder(server, service):
    server.refuse_empty = False
    encodable = lambda texts: [text.encode("utf-8", "replace").decode() for text in texts]  # noqa: E731
    check_embedder(from_callable(lambda texts: ask(server, service, encodable(texts)), service))


def test_a_request_is_recorded_with_everything_in_it(server, service):
    ask(server, service, ["red boat", "green hill"], key="a-key")
    (asked,) = server.requests
    assert (asked.service, asked.at, asked.texts) == (service, "embed", ("red boat", "green hill"))
    task, model, header = {
        "openai": (None, "text-embedding-3-small", "authorization"),
        "gemini": ("RETRIEVAL_DOCUMENT", "gemini-embedding-001", "x-goog-api-key"),
        "voyage": ("document", "voyage-4-large", "authorization"),
    }[service]
    assert (asked.task, asked.model) == (task, model)
    assert asked.headers[header].endswith("a-key")


def test_texts_are_counted_when_asked_and_when_answered(server):
    server.script(faults.honest, faults.status(500))
    ask(server, "openai", ["red", "green"])
    failure(server, "openai", ["red", "blue"])
    assert server.asked == {"red": 2, "green": 1, "blue": 1}
    assert server.answered == {"red": 1, "green": 1}


def test_the_largest_number_of_requests_at_once_is_known(server):
    server.latency = 0.15

    async def many():
        async with openai_client(server) as client:
            for count in (5, 2):
                await asyncio.gather(*[client.embeddings.create(model="m", input=["x"]) for _ in range(count)])

    asyncio.run(many())
    assert (len(server.requests), server.most_at_once, server.at_once) == (7, 5, 0)


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "status", "words"),
    [
        ("openai", 401, "Incorrect API key"),
        ("gemini", 400, "API key not valid"),
        ("voyage", 401, "API key is invalid"),
    ],
)
def test_a_wrong_key_is_refused_in_the_words_of_the_service(server, service, status, words):
    server.key = "the-key"
    assert ask(server, service, ["red"], key="the-key")
    found, said = failure(server, service)
    assert found == status
    assert words in said
    assert not server.answered["one"]


@pytest.mark.parametrize(
    ("knob", "words"),
    [
        ("max_items", {"openai": "array too long", "gemini": "at most 1 requests", "voyage": "batch size limit is 1"}),
        ("max_bytes", {"openai": "maximum context length", "gemini": "payload size", "voyage": "max allowed tokens"}),
        ("max_text_bytes", {"openai": "maximum context", "gemini": "payload size", "voyage": "max allowed tokens"}),
    ],
)
def test_a_request_that_is_too_large_is_refused_in_the_words_of_the_service(server, service, knob, words):
    setattr(server, knob, 1)
    status, said = failure(server, service)
    assert status == 400
    assert words[service] in said
    assert ask(server, service, ["1"])


def test_a_request_that_is_too_large_may_be_refused_with_413(server, service):
    server.max_items, server.when_too_large = 1, faults.status(413, words="Payload too large")
    assert failure(server, service)[0] == 413


def test_an_empty_text_is_refused_until_it_is_allowed(server, service):
    assert failure(server, service, ["red", ""])[0] == 400
    server.refuse_empty = False
    assert len(ask(server, service, ["red", ""])) == 2


def test_a_request_with_a_refused_text_is_refused(server, service):
    server.refused = {"two"}
    assert failure(server, service)[0] == 400
    assert len(ask(server, service, ["one"])) == 1


# --- its life ----------------------------------------------------------------------------------------------------


def test_stopping_ends_its_thread_and_its_connections():
    before = threading.active_count()
    server = EmbeddingServer().start()
    server.script(faults.hang)

    async def story():
        waiting = asyncio.create_task(ask_openai(server, ["one"]))
        while not server.at_once:  # noqa: ASYNC110 - it runs in another thread
            await asyncio.sleep(0.001)
        await asyncio.to_thread(server.stop)
        with pytest.raises(pytest.importorskip("openai").APIConnectionError):
            await waiting

    asyncio.run(story())
    server.stop()
    assert threading.active_count() == before
    with pytest.raises(OSError, match="refused"):
        urlopen(server.root)


def test_a_port_that_is_taken_is_an_error(server):
    with pytest.raises(OSError, match="in use"):
        EmbeddingServer(port=server.port).start()


def test_it_runs_as_a_process_of_its_own():
    script = Path(sys.modules[EmbeddingServer.__module__].__file__)
    command = [sys.executable, str(script), "--latency", "0.01", "--dims", "32"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            addresses = json.loads(process.stdout.readline())
            started = time.monotonic()
            with urlopen(
                Request(addresses["openai"] + "/embeddings", b'{"model": "m", "input": ["one", "two"]}')
            ) as answer:
                data = json.load(answer)["data"]
            assert [len(each["embedding"]) for each in data] == [32, 32]
            assert time.monotonic() - started >= 0.01
            with urlopen(addresses["root"] + "/stats") as answer:
                stats = json.load(answer)
            assert (stats["embed_requests"], stats["texts_answered"], stats["texts_answered_again"]) == (1, 2, 0)
        finally:
            process.kill()
