"""Embeddings from OpenAI, or from any server that speaks its protocol (Ollama, LM Studio, vLLM, llama.cpp, ...)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_memory.embeddings import service
from openclaw_memory.embeddings.vectors import count_bytes, import_package
from openclaw_memory.errors import EmbedderError

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_URL = "https://api.openai.com/v1"
# OpenAI's limits: tokens of one input, and inputs of one request.
MAX_INPUT_TOKENS = 8191
MAX_ITEMS = 2048
# Models of other makers often read 2,048 tokens, as embeddinggemma-300m does, and many servers cut silently.
OTHER_MODELS_INPUT_TOKENS = 2048


def create(
    model: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    dimensions: service.Dimensions | None = None,
    query_prefix: str = "",
    document_prefix: str = "",
    max_input_tokens: service.Count | None = None,
    max_items: service.Count = MAX_ITEMS,
) -> service.Service:
    """Describe OpenAI's embeddings; with `base_url`, those of a server that speaks the same protocol.

    Args:
        model: The name of the model.
        base_url: The address before `/embeddings`; by default `OPENAI_BASE_URL`, or OpenAI's own.
        api_key: By default `OPENAI_API_KEY`; a server on this machine needs none.
        headers: Sent with each request; their names become part of the identity.
        dimensions: Shortens the vectors where the model can.
        query_prefix: Goes before queries: embeddinggemma wants "task: search result | query: ".
        document_prefix: Goes before documents: embeddinggemma wants "title: none | text: ".
        max_input_tokens: The longest text the model reads, 8,191 for OpenAI's own and 2,048 for others.
        max_items: How many texts a request may hold.

    Raises:
        MissingExtraError: The package `openai` is not installed.
        EmbedderError: There is no key, or an option cannot be used.
    """
    name = model or DEFAULT_MODEL
    url = service.check_url(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL, DEFAULT_URL)
    own_key = api_key or os.environ.get("OPENAI_API_KEY") or ("none" if service.is_on_this_machine(url) else None)
    key = service.require_key("openai", own_key, "OPENAI_API_KEY", package="openai")
    tokens = max_input_tokens or (MAX_INPUT_TOKENS if name.startswith("text-embedding-") else OTHER_MODELS_INPUT_TOKENS)
    room = tokens - max(count_bytes(query_prefix), count_bytes(document_prefix))
    if room < 1:
        raise EmbedderError(f"openai cannot be asked with max_input_tokens={tokens} and prefixes as long; raise it")
    # A third of the bytes as base64; not every other server knows it.
    params: dict[str, Any] = {"model": name, "encoding_format": "base64" if url == DEFAULT_URL else "float"}
    params |= {} if dimensions is None else {"dimensions": dimensions}

    async def send(client: Any, texts: list[str], as_query: bool) -> Sequence[Any]:
        prefix = query_prefix if as_query else document_prefix
        create = client.embeddings.with_raw_response.create  # else each vector is made an object, and nothing checked
        answer = await create(input=[prefix + text for text in texts], **params)
        return service.order_rows(json.loads(answer.content), len(texts))

    sent = {**(headers or {}), "Authorization": f"Bearer {key}"}
    prefixes = {"document_prefix": document_prefix or None, "query_prefix": query_prefix or None}
    return service.Service(
        provider="openai",
        model=name,
        endpoint=url,
        limits=service.Limits(max_items, room),
        send=send,
        headers=sent,
        settings=service.list_settings(headers, dimensions, max_input_tokens) | prefixes,
        open_client=lambda policy: _open_sdk(policy, url, key, sent),
    )


def _open_sdk(policy: service.RetryPolicy, url: str, key: str, headers: Mapping[str, str]) -> Any:
    openai = import_package("openai", "openai")

    class BoundedClient(openai.DefaultAsyncHttpxClient):  # type: ignore[misc, name-defined]
        async def send(self, request: Any, **options: Any) -> Any:
            return await service.read_whole(await super().send(request, **{**options, "stream": True}))

    return openai.AsyncOpenAI(
        api_key=key,
        base_url=url,
        default_headers={**headers, "Accept-Encoding": "identity"},
        max_retries=policy.tries - 1,
        timeout=policy.request_seconds,
        http_client=BoundedClient(trust_env=not service.is_on_this_machine(url), follow_redirects=False),
    )
