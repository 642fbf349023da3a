"""The embedding server itself: it answers as the services do, counts what it is asked, and lies on order."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import embedding_faults as faults
import pytest
from embedding_server import EmbeddingServer

WAIT = 60.0  # seconds; only a broken test waits so long


def post(server, *texts, service="openai", key="any"):
    body = {"model": "m", "input": texts}
    path, header = "/embeddings", {"authorization": f"Bearer {key}"}
    if service == "gemini":
        body = {"requests": [{"content": {"parts": [{"text": text}]}} for text in texts]}
        path, header = "/v1beta/models/m:batchEmbedContents", {"x-goog-api-key": key}
    request = Request(server.base_url(service) + path, json.dumps(body).encode(), header)
    with urlopen(request, timeout=WAIT) as answer:
        return json.load(answer)


def refusal(server, *texts, **options):
    with pytest.raises(HTTPError) as caught:
        post(server, *texts, **options)
    with caught.value as error:
        return error.code


def test_every_service_answers_each_text_with_the_same_unit_vector(server):
    expected = [row["embedding"] for row in post(server, "red boat", "green hill")["data"]]
    assert sum(number**2 for number in expected[0]) == pytest.approx(1.0)
    assert [row["embedding"] for row in post(server, "red boat", "green hill", service="voyage")["data"]] == expected
    assert [row["values"] for row in post(server, "red boat", "green hill", service="gemini")["embeddings"]] == expected


def test_texts_are_counted_when_asked_and_when_answered(server):
    server.script(faults.honest, faults.status(500))
    post(server, "red", "green")
    assert refusal(server, "red", "blue") == 500
    assert server.asked == {"red": 2, "green": 1, "blue": 1}
    assert server.answered == {"red": 1, "green": 1}
    assert [asked.texts for asked in server.seen()] == [("red", "green"), ("red", "blue")]


def test_the_largest_number_of_requests_at_once_is_known(server):
    arrived = threading.Barrier(3)

    def ask(text):
        arrived.wait(WAIT)
        return post(server, text)

    server.latency = 0.5
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, "abc"))
    assert 1 < server.most_at_once <= 3
    assert server.at_once == 0


@pytest.mark.parametrize(("service", "status"), [("openai", 401), ("gemini", 400), ("voyage", 401)])
def test_what_is_wrong_or_too_large_is_refused(server, service, status):
    server.key = "the-key"
    assert refusal(server, "red", service=service) == status
    server.max_items, server.refused = 2, {"bad"}
    texts = [("a", "b", "c"), ("",), ("bad",)]
    assert [refusal(server, *each, service=service, key="the-key") for each in texts] == [400, 400, 400]
    assert post(server, "red", "green", service=service, key="the-key")


def test_stopping_ends_its_thread_and_its_connections():
    before = threading.active_count()
    server = EmbeddingServer().start()
    server.script(faults.hang)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(post, server, "one")
        while not server.at_once:
            time.sleep(0.001)
        server.stop()
        assert isinstance(waiting.exception(WAIT), OSError)
    server.stop()
    assert threading.active_count() == before
    with pytest.raises(OSError, match="refused"):
        urlopen(server.root)


def test_a_port_that_is_taken_is_an_error(server):
    with pytest.raises(OSError, match="in use"):
        EmbeddingServer(port=server.port).start()


def test_it_runs_as_a_process_of_its_own():
    script = Path(sys.modules[EmbeddingServer.__module__].__file__)
    command = [sys.executable, str(script), "--dims", "32"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            addresses = json.loads(process.stdout.readline())
            body = b'{"model": "m", "input": ["one", "two"]}'
            with urlopen(Request(addresses["openai"] + "/embeddings", body)) as answer:
                assert [len(each["embedding"]) for each in json.load(answer)["data"]] == [32, 32]
            with urlopen(addresses["root"] + "/stats") as answer:
                stats = json.load(answer)
            assert (stats["embed_requests"], stats["texts_answered"], stats["texts_answered_again"]) == (1, 2, 0)
        finally:
            process.kill()
