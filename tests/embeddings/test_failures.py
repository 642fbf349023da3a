"""What an embedding service's failure means, by status and words."""

from types import SimpleNamespace

import httpx
import pytest

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError, failure


class SdkError(Exception):
    """As SDKs raise it: with a response, or none."""

    def __init__(self, words="", status=None, headers=None, body=None):
        super().__init__(words)
        self.response = None if status is None else SimpleNamespace(status_code=status, headers=headers or {})
        self.body = body


TABLE = [
    (None, "Connection error.", FailureKind.PASSING),
    (500, "", FailureKind.PASSING),
    (503, "The model is overloaded.", FailureKind.PASSING),
    (429, "Rate limit reached for m on tokens per min (TPM): Limit 1000000", FailureKind.BUSY),
    (429, "Resource has been exhausted (e.g. check quota).", FailureKind.BUSY),
    (429, "You exceeded your current quota, please check your plan and billing details.", FailureKind.EXHAUSTED),
    (400, "This model's maximum context length is 8192 tokens, however you requested 9000", FailureKind.TOO_LARGE),
    (400, "The max allowed tokens per submitted batch is 120000.", FailureKind.TOO_LARGE),
    (413, "", FailureKind.TOO_LARGE),
    (500, "input is too large to process. increase the physical batch size", FailureKind.TOO_LARGE),
    (400, "array too long. Expected an array with maximum length 2048, but got 4000", FailureKind.TOO_MANY),
    (400, "The batch size limit is 128. Your batch size is 130.", FailureKind.TOO_MANY),
    (413, "batch size 50 > maximum allowed batch size 32", FailureKind.TOO_MANY),
    (400, "The request was rejected by our safety system.", FailureKind.REFUSED),
    (400, "API key not valid. Please pass a valid API key.", FailureKind.DENIED),
    (401, "", FailureKind.DENIED),
    (404, "The model `m` does not exist", FailureKind.DENIED),
]


@pytest.mark.parametrize(("status", "words", "meaning"), TABLE)
def test_status_and_words_say_what_to_do(status, words, meaning):
    found = failure(SdkError(words, status), "the service")
    assert found.kind is meaning
    assert str(found).startswith("the service ")


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, "", None),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, "Please try again in 2s", 2.0),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, "'retryDelay': '34s'", 34.0),
    ],
)
def test_the_wait_that_is_asked_for_is_found(headers, words, seconds):
    assert failure(SdkError(words, 429, headers), "the service").retry_after == seconds


def test_the_body_of_an_answer_that_httpx_refuses_is_read():
    request = httpx.Request("POST", "https://api.example.com/embed")
    response = httpx.Response(429, text='{"error": "insufficient_quota"}', request=request)
    with pytest.raises(httpx.HTTPStatusError) as raised:
        response.raise_for_status()
    assert failure(raised.value, "the service").kind is FailureKind.EXHAUSTED


def _raised_from(reason):
    error = SdkError("Connection error.")
    error.__cause__ = reason
    return error


def test_an_error_of_ours_is_found_inside_what_an_sdk_made_of_it():
    found = failure(_raised_from(ServiceError("ours", FailureKind.DENIED, 7.0)), "the service")
    assert (str(found), found.kind, found.retry_after) == ("ours", FailureKind.DENIED, 7.0)


@pytest.mark.parametrize("key", ["sk-proj-abcdefghijkl", "AIzaSyabcdefghijk", "pa-abcdefghijkl", "Bearer abcdefghijkl"])
def test_a_key_is_not_repeated(key):
    assert "abcdefghijk" not in str(failure(SdkError(f"Incorrect API key provided: {key}.", 401), "the service"))


@pytest.mark.parametrize("space", [0, 270, 290])
def test_a_secret_is_not_repeated_nor_its_beginning(space):
    error = SdkError("x" * space + " Incorrect API key provided: my-own-key-42", 401)
    assert "my-own" not in str(failure(error, "the service", ["my-own-key-42"]))


def test_a_long_message_is_cut_after_it_was_understood():
    found = failure(SdkError("x" * 1000 + " maximum context length", 400), "the service")
    assert found.kind is FailureKind.TOO_LARGE
    assert len(str(found)) < 500
