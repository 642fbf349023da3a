"""How many tokens a call took by the provider's count, wherever an integration puts that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# In a response's `raw`, `additional_kwargs` or message, as the services of the integrations call it.
_PLACES = ("usage", "usage_metadata", "token_usage", "usageMetadata")
_TOTAL = ("total_tokens", "total_token_count", "totalTokens", "totalTokenCount")
# How many were read and said: OpenAI, Gemini, Ollama, Bedrock (Converse); of Anthropic and Bedrock, what was read out
# of a cache, and into it, is counted apart.
_PARTS = (
    ("prompt_tokens", "completion_tokens"),
    ("prompt_token_count", "candidates_token_count"),
    ("prompt_eval_count", "eval_count"),
    ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
)


def reported_tokens(response: Any) -> int:
    """Return the tokens that a call took, read and written; 0 if there is no response, or it does not say."""
    if response is None:
        return 0
    more = response.additional_kwargs
    said = getattr(getattr(response, "message", None), "additional_kwargs", {})
    holders = (response.raw, more, said)
    places = [response.raw, more, *(_of(holder, name) for holder in holders for name in _PLACES)]
    return max((_tokens(place) for place in places if place), default=0)


def _tokens(usage: Any) -> int:
    totals = (_number(usage, name) for name in _TOTAL)
    sums = (sum(_number(usage, name) for name in names) for names in _PARTS)
    return max(*totals, *sums)


def _number(usage: Any, name: str) -> int:
    value = _of(usage, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
