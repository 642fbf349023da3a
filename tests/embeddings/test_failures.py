"""The meaning of a service's failure, by status and words."""

from types import SimpleNamespace

import httpx
import pytest

from openclaw_memory.embeddings.service import FailureKind, read_failure

TABLE = [
    (None, "Connection error.", FailureKind.PASSING),
    (503, "The model is overloaded.", FailureKind.PASSING),
    (429, "Rate limit reached for m on tokens per min (TPM): Limit 1000000", FailureKind.BUSY),
    (429, "Resource has been exhausted (e.g. check quota).", FailureKind.BUSY),
    (429, "You exceeded your current quota, please check your plan and billing details.", FailureKind.EXHAUSTED),
    (400, "This model's maximum context length is 8192 tokens, however you requested 9000", FailureKind.TOO_LARGE),
    (400, "The max allowed tokens per submitted batch is 120000.", FailureKind.TOO_LARGE),
    (413, "", FailureKind.TOO_LARGE),
    (500, "input is too large to process. increase the physical batch size", FailureKind.TOO_LARGE),
    (400, "array too long. Expected an array with maximum length 2048, but got 4000", FailureKind.TOO_LARGE),
    (400, "The request was rejected by our safety system.", FailureKind.REFUSED),
    (400, "API key not valid. Please pass a valid API key.", FailureKind.DENIED),
    (401, "", FailureKind.DENIED),
]


def fail(words="", status=None, headers=None):
    """Return an error as HTTP libraries raise it, with a response or without."""
    error = RuntimeError(words)
    if status is not None:
        error.response = SimpleNamespace(status_code=status, headers=headers or {}, text=words)
    return error


@pytest.mark.parametrize(("status", "words", "kind"), TABLE)
def test_status_and_words_decide(status, words, kind):
    failure = read_failure(fail(words, status), "the service")
    assert failure.kind is kind
    assert str(failure).startswith("the service ")


def test_the_body_of_an_answer_that_httpx_refuses_is_read():
    request = httpx.Request("POST", "https://api.example.com/embed")
    response = httpx.Response(429, text='{"error": "insufficient_quota"}', request=request)
    with pytest.raises(httpx.HTTPStatusError) as raised:
        response.raise_for_status()
    assert read_failure(raised.value, "the service").kind is FailureKind.EXHAUSTED


@pytest.mark.parametrize("key", ["sk-proj-abcdefghijkl", "AIzaSyabcdefghijk", "pa-abcdefghijkl", "Bearer abcdefghijkl"])
def test_a_key_is_not_repeated(key):
    assert "abcdefghijk" not in str(read_failure(fail(f"Incorrect API key provided: {key}.", 401), "the service"))


@pytest.mark.parametrize("space", [0, 270, 290])
def test_a_secret_is_not_repeated_nor_its_beginning(space):
    error = fail("x" * space + " Incorrect API key provided: my-own-key-42", 401)
    assert "my-own" not in str(read_failure(error, "the service", {"Authorization": "Bearer my-own-key-42"}))


def test_a_long_message_is_cut_after_it_was_understood():
    failure = read_failure(fail("x" * 1000 + " maximum context length", 400), "the service")
    assert (failure.kind, len(str(failure)) < 500) == (FailureKind.TOO_LARGE, True)
