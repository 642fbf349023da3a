"""Texts that are embedded as they come: what is asked, when, and what a failure costs the rest."""

from __future__ import annotations

from collections.abc import Sequence
from operator import length_hint
from typing import Any

import numpy as np
import pytest

from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.embeddings.remote.client import RemoteEmbedder
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.http import sleep
from openclaw_memory.embeddings.remote.service import Limits, RetryPolicy, Service
from openclaw_memory.embeddings.stream import REQUESTS_AHEAD, TEXTS_PER_CALL, Embedded, stream
from openclaw_memory.errors import EmbedderError

QUICK = RetryPolicy(tries=2, first_wait=0.001, longest_wait=0.001, busy_tries=2, busy_first_wait=0.001)


class Recorder:
    """A service in memory: hashed words, and a list of the packs it was asked for; it refuses what `refuse` names."""

    def __init__(
        self, refuse: str = "", down_after: int = 10**9, hang_after: int = 10**9, slow: str = "", **limits: int
    ) -> None:
        self.packs: list[list[str]] = []
        self.refuse, self.down_after, self.hang_after, self.slow = refuse, down_after, hang_after, slow
        service = Service(
            "fake", "words", "http://127.0.0.1:1", Limits(**{"items": 4, "input_tokens": 100} | limits), self.send
        )
        self.embedder = RemoteEmbedder(service, QUICK)

    def send(self, texts: list[str], _: bool) -> Sequence[Any]:
        self.packs.append(texts)
        if len(self.packs) > self.down_after:
            raise ConnectionResetError("down")
        if len(self.packs) > self.hang_after:
            sleep(60)  # until it is cancelled
        if self.slow and self.slow in texts:
            sleep(0.5)
        if self.refuse and self.refuse in texts:
            raise ServiceError("this text is refused", FailureKind.REFUSED)
        return list(HashingEmbedder().embed_documents(texts))


@pytest.fixture
def close():
    opened: list[RemoteEmbedder] = []
    yield opened
    for embedder in opened:
        embedder.close()


def texts(count: int) -> list[tuple[str, str]]:
    return [(f"key{number}", f"word{number}") for number in range(count)]


def by_key(found: Sequence[Embedded]) -> dict[str, Any]:
    return {
        key: None if one.vectors is None else one.vectors[place] for one in found for place, key in enumerate(one.keys)
    }


def test_every_text_gets_its_own_vector_from_a_service(close):
    recorder = Recorder()
    close.append(recorder.embedder)
    found = by_key(list(stream(recorder.embedder, texts(50))))
    assert found.keys() == dict(texts(50)).keys()
    for key, text in texts(50):
        np.testing.assert_allclose(found[key], HashingEmbedder().embed_query(text), atol=1e-6)
    assert max(map(len, recorder.packs)) == 4
    assert sum(one.tokens for one in stream(recorder.embedder, texts(50))) == sum(len(text) for _, text in texts(50))


def test_after_a_failure_of_the_service_the_rest_is_not_asked_for(close):
    recorder = Recorder(down_after=3)
    close.append(recorder.embedder)
    found = list(stream(recorder.embedder, texts(1000)))
    vectors = by_key(found)
    assert len(vectors) == 1000
    assert sum(vector is not None for vector in vectors.values()) == 12
    assert len(recorder.packs) < 100
    assert {one.isolated for one in found if one.error} == {False}
    assert {"down" in str(one.error) for one in found if one.error} == {True}


def test_a_text_that_is_refused_costs_only_itself(close):
    recorder = Recorder(refuse="word17")
    close.append(recorder.embedder)
    found = list(stream(recorder.embedder, texts(100)))
    assert [key for key, vector in by_key(found).items() if vector is None] == ["key17"]
    (failed,) = [one for one in found if one.error]
    assert (failed.isolated, str(failed.error)) == (True, "this text is refused")


def test_a_plain_embedder_that_fails_is_not_asked_again():
    calls = 0

    class Broken(HashingEmbedder):
        def embed_documents(self, _: Sequence[str]) -> Any:
            nonlocal calls
            calls += 1
            raise EmbedderError("out of order")

    found = list(stream(Broken(), texts(3 * TEXTS_PER_CALL)))
    assert (calls, len(by_key(found)), {str(one.error) for one in found}) == (1, 3 * TEXTS_PER_CALL, {"out of order"})


def test_an_embedder_that_is_closed_amid_its_work_says_so(close):
    recorder = Recorder(hang_after=1)
    close.append(recorder.embedder)
    found = stream(recorder.embedder, texts(1000))
    one = next(found)
    recorder.embedder.close()
    rest = [one, *found]
    assert len(by_key(rest)) == 1000
    assert {str(one.error) for one in rest if one.error} == {"the embedder was closed; sync again"}


def test_a_service_that_is_down_is_given_up_after_the_tries_of_one_request(close):
    recorder = Recorder(down_after=0)
    close.append(recorder.embedder)
    left = iter(texts(1000))
    found = stream(recorder.embedder, left)
    next(found)
    assert 1000 - length_hint(left) <= 4 * 4 * 4 + 4
    assert len(by_key(list(found))) >= 990
    # Four at once, two tries each; on a busy machine all that are ahead may have begun before they are cancelled.
    assert len(recorder.packs) <= 2 * 4 * REQUESTS_AHEAD
