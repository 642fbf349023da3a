"""The lies of the embedding server, as the services' own SDKs take them."""

import asyncio
import gzip
import io
import json
import zlib
from urllib.request import Request, urlopen

import embedding_faults as faults
import numpy as np
import pytest
from embedding_sdks import ASK, SERVICES, WAIT, ask, failure, openai_client


@pytest.fixture(params=SERVICES)
def service(request):
    return request.param


@pytest.mark.parametrize("code", [429, 500, 502, 503, 520])
def test_a_status_reaches_the_caller_of_the_sdk(server, service, code):
    server.script(faults.status(code))
    assert failure(server, service)[0] == code
    assert len(ask(server, service, ["one"])) == 1, "a script is used up"


def test_a_lie_may_be_told_always_after_a_script(server):
    server.script(faults.honest)
    server.always(faults.status(503))
    ask(server, "openai", ["one"])
    assert [failure(server, "openai")[0] for _ in range(2)] == [503, 503]
    server.always(faults.honest)
    ask(server, "openai", ["one"])


def test_retry_after_is_sent(server):
    server.script(faults.status(429, retry_after=7))
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.RateLimitError) as caught:
        ask(server, "openai", ["one"])
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.code == "rate_limit_exceeded"


def test_a_used_up_quota_is_told_in_the_words_of_the_service(server, service):
    server.script(faults.quota(retry_delay=34))
    status, said = failure(server, service)
    assert status == 429
    assert "exceeded your current quota" in said
    assert ("'retryDelay': '34s'" in said) == (service == "gemini")


@pytest.mark.parametrize("lie", [faults.reset, faults.half_body])
def test_a_broken_connection_reaches_the_caller_of_the_sdk(server, service, lie):
    server.script(lie)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of three SDKs
        ask(server, service, ["one"])
    assert not isinstance(caught.value, AssertionError)
    assert not server.answered


@pytest.mark.parametrize("lie", [faults.hang, faults.drip(0.05)])
def test_a_slow_answer_is_not_there_in_time(server, service, lie):
    server.script(lie)

    async def story():
        async with asyncio.timeout(0.3):
            await ASK[service](server, ["one"])

    with pytest.raises(Exception, match=r"(?i)time|^$"):  # voyageai has a timeout of its own
        asyncio.run(story())
    server.stop()
    assert server.at_once == 0


ONE, TWO = "the red boat", "a green hill"


@pytest.mark.parametrize(
    ("lie", "shows"),
    [
        (faults.wrong_count(), lambda rows: len(rows) == 1),
        (faults.wrong_count(2), lambda rows: len(rows) == 4),
        (faults.wrong_dims(), lambda rows: [len(row) for row in rows] == [65, 65]),
        (faults.wrong_dims(-4), lambda rows: [len(row) for row in rows] == [60, 60]),
        (faults.mixed_dims, lambda rows: [len(row) for row in rows] == [64, 65]),
        (faults.nan, lambda rows: [np.isnan(row).sum() for row in rows] == [1, 1]),
        (faults.all_nan, lambda rows: np.isnan(rows).all()),
        (faults.infinity, lambda rows: [np.isinf(row).sum() for row in rows] == [1, 1]),
        (faults.null, lambda rows: rows == [None, None]),
        (faults.null_number, lambda rows: [row[0] for row in rows] == [None, None]),
        (faults.zeros, lambda rows: len(rows) == 2 and not np.any(rows)),
    ],
)
def test_a_lie_about_vectors_looks_so(server, lie, shows):
    server.script(lie)
    assert shows(ask(server, "openai", [ONE, TWO], encoding_format="float"))
    assert not server.answered


@pytest.mark.parametrize("lie", [faults.wrong_count(), faults.wrong_dims(), faults.zeros, faults.shuffled, faults.nan])
def test_every_service_can_lie_about_vectors(server, service, lie):
    honest = ask(server, service, [ONE, TWO])
    server.script(lie)
    assert str(ask(server, service, [ONE, TWO])) != str(honest)


def test_shuffled_answers_have_their_right_index(server):
    (one,), texts = ask(server, "openai", [ONE]), [ONE, TWO, "three"]
    server.script(faults.shuffled)

    async def story():
        async with openai_client(server) as client:
            return (await client.embeddings.create(model="m", input=texts)).data

    data = asyncio.run(story())
    assert sorted(each.index for each in data) == [0, 1, 2]
    assert [each.index for each in data] != [0, 1, 2]
    assert next(each.embedding for each in data if each.index == 0) == one


def test_an_index_may_be_said_twice(server):
    server.script(faults.same_index)

    async def story():
        async with openai_client(server) as client:
            return (await client.embeddings.create(model="m", input=[ONE, TWO])).data

    assert [each.index for each in asyncio.run(story())] == [0, 0]


def post(server, path="/openai/v1/embeddings"):
    body = json.dumps({"model": "m", "input": ["one"]}).encode()
    return urlopen(Request(server.root + path, body), timeout=WAIT)


def test_what_is_not_json_is_said_to_be(server):
    server.script(faults.not_json)
    with post(server) as answer:
        assert answer.headers["content-type"] == "application/json"
        assert answer.read().startswith(b"<!doctype html>")


def test_a_gzip_bomb_is_small_on_the_wire_and_large_behind_it(server):
    server.script(faults.gzip_bomb(5 << 20))
    with post(server) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        wire = answer.read()
    assert len(wire) < 6_000
    assert gzip.GzipFile(fileobj=io.BytesIO(wire)).read() == bytes(5 << 20)


def test_the_usual_gzip_bomb_holds_300_megabytes():
    wire, unpacker, size = faults.gzipped_zeros(300), zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    while not unpacker.eof:
        size += len(unpacker.decompress(wire, 1 << 20))
        wire = unpacker.unconsumed_tail
    assert size == 300 << 20
    assert len(faults.gzipped_zeros(300)) < 350_000


def test_a_huge_body_goes_on_until_the_client_leaves(server):
    server.script(faults.huge_body)
    with post(server) as answer:
        assert len(answer.read(20_000_000)) == 20_000_000
        assert server.at_once == 1
    server.stop()
    assert server.at_once == 0


def test_a_redirect_that_is_followed_is_seen(server):
    server.script(faults.redirect())
    failure(server, "openai", ["one"])
    assert [asked.at for asked in server.requests] == ["embed", "elsewhere"]
