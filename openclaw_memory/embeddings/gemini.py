"""Embeddings from Google's Gemini API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_memory.embeddings import service
from openclaw_memory.errors import EmbedderError

DEFAULT_MODEL = "gemini-embedding-001"
ENDPOINT = "https://generativelanguage.googleapis.com"
# Google's documentation: of one text, and of batchEmbedContents.
INPUT_TOKENS = 2048
INPUT_TOKENS_2 = 8192
MAX_ITEMS = 100
TASKS = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
# The second generation takes no task type; Google's documentation has these words for it instead.
PREFIXES_2 = ("title: none | text: ", "task: search result | query: ")


def create(
    model: str | None = None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    dimensions: service.Dimensions | None = None,
    max_input_tokens: service.Count | None = None,
    max_items: service.Count | None = None,
) -> service.Service:
    """Describe Gemini's embeddings.

    Args:
        model: The name of the model.
        api_key: By default `GEMINI_API_KEY`, or `GOOGLE_API_KEY`.
        base_url: The server alone; by default `GOOGLE_GEMINI_BASE_URL`, or Google's own.
        headers: Sent with each request; their names become part of the identity.
        dimensions: 128 to 3,072 (the default); 768 and 1,536 are advised.
        max_input_tokens: The longest text the model reads, by default 2,048 tokens, or 8,192 of a `gemini-embedding-2`.
        max_items: How many texts a request may hold, by default 100.

    Raises:
        EmbedderError: There is no key, or an option cannot be used.
        MissingExtraError: httpx is not installed.
    """
    key = service.require_key("gemini", api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
    name = model or DEFAULT_MODEL
    path = f"models/{name.removeprefix('models/')}"
    is_second_generation = path.startswith("models/gemini-embedding-2")
    longest = INPUT_TOKENS_2 - max(map(len, PREFIXES_2)) if is_second_generation else INPUT_TOKENS

    def make_request(text: str, as_query: bool) -> dict[str, Any]:
        words = PREFIXES_2[as_query] + text if is_second_generation else text
        request: dict[str, Any] = {"model": path, "content": {"parts": [{"text": words}]}}
        if not is_second_generation:
            request["taskType"] = TASKS[as_query]
        if dimensions is not None:
            request["outputDimensionality"] = dimensions
        return request

    async def send(client: Any, texts: list[str], as_query: bool) -> Sequence[Any]:
        body = {"requests": [make_request(text, as_query) for text in texts]}
        answer = await service.send_json(client, f"/v1beta/{path}:batchEmbedContents", body)
        rows = answer.get("embeddings") if isinstance(answer, Mapping) else None
        if not isinstance(rows, list):
            raise EmbedderError(f"an answer came without a list of embeddings; check base_url and model: {answer}")
        return [row.get("values") for row in rows]

    return service.Service(
        provider="gemini",
        model=name,
        endpoint=service.check_url(base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or ENDPOINT, ENDPOINT),
        limits=service.Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or longest),
        send=send,
        headers={**(headers or {}), "x-goog-api-key": key},
        settings=service.list_settings(headers, dimensions, max_input_tokens),
    )
