"""How many tokens a call took by the provider's count."""

from types import SimpleNamespace

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index_openclaw_memory.event_handler import reported_tokens

USAGE = {
    "OpenAI": ({"usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}}, {}),
    "OpenAI, an object": (SimpleNamespace(usage=SimpleNamespace(prompt_tokens=90, completion_tokens=10)), {}),
    "OpenAI, apart": (None, {"prompt_tokens": 90, "completion_tokens": 10}),
    "Anthropic": ({"usage": SimpleNamespace(input_tokens=20, output_tokens=10, cache_read_input_tokens=70)}, {}),
    "Gemini": ({"usage_metadata": {"prompt_token_count": 60, "total_token_count": 100}}, {}),
    "Ollama": ({"prompt_eval_count": 90, "eval_count": 10}, {}),
    "Bedrock": ({"usage": {"inputTokens": 90, "outputTokens": 10, "totalTokens": 100}}, {}),
}


@pytest.mark.parametrize(("raw", "more"), USAGE.values(), ids=USAGE)
def test_tokens_are_found_where_services_report_them(raw, more):
    assert reported_tokens(ChatResponse(message=ChatMessage("ok"), raw=raw, additional_kwargs=more)) == 100
    assert reported_tokens(CompletionResponse(text="ok", raw=raw, additional_kwargs=more)) == 100


@pytest.mark.parametrize("raw", [None, {}, {"usage": None}, {"usage": {"total_tokens": None}}, "text", 7])
def test_where_no_tokens_are_reported_there_are_none(raw):
    assert reported_tokens(ChatResponse(message=ChatMessage("ok"), raw=raw)) == 0


def test_a_call_without_a_response_took_no_tokens():
    assert reported_tokens(None) == 0
