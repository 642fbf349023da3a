"""A full window is known by the error of a model."""

import pytest

from openclaw_memory.conversation import is_overflow

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


class ContextOverflowError(ValueError):
    """Named as LangChain's."""


class CodedError(Exception):
    code = "context_length_exceeded"


def caused(error):
    try:
        raise RuntimeError("the agent failed") from error
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    "error",
    [
        TOO_LONG,
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 200000 tokens",
        "prompt token count of 150000 exceeds the limit of 128000",
        "the request exceeds the available context size, try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 128000 (requested: 200000)",
        "prompt too long; exceeded max context length by 12 tokens",
        "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length",
        "Error code: 413 - {'error': {'type': 'request_too_large', 'message': 'Request Entity'}}",
        "Request exceeds the maximum size",
        "Request exceeds the maximum allowed number of bytes.",
        "tokens_limit_reached: Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "too many tokens: size limit exceeded by 12 tokens. Try using shorter or fewer inputs",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens",
        "Input validation error: `inputs` must have less than 1000 tokens. Given: 5000",
        "Prompt exceeds max length",
        "Range of input length should be [1, 30720]",
        "The input exceeds the model's context size of 4096",
        "Requested tokens (5000) exceed context window of 4096",
        "The prompt (8200 tokens) is longer than the model's context window",
        "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
        ContextOverflowError("whatever"),
        CodedError("Bad Request"),
        caused(ValueError(TOO_LONG)),
    ],
)
def test_a_full_window_is_known_by_what_the_services_say(error):
    assert is_overflow(error if isinstance(error, Exception) else RuntimeError(error))


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: please reduce the length of the messages, 12000 tokens per minute (TPM)",
        "429 Too Many Requests",
        "Too many tokens, please wait before trying again.",
        "Request too large for gpt-4o on tokens per min: Limit 30000, Requested 41000. tokens_limit_reached",
        "Too many tokens per day: the request exceeds the context window of your plan",
        "the file exceeds the limit of 100 MB",
        "connection refused",
        "",
    ],
)
def test_other_failures_are_none(text):
    assert not is_overflow(RuntimeError(text))
