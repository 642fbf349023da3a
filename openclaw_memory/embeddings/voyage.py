"""Embeddings from Voyage AI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_memory.embeddings import service

DEFAULT_MODEL = "voyage-4-large"
ENDPOINT = "https://api.voyageai.com/v1"
# Keys of MongoDB Atlas begin so, and are for its own server.
ATLAS_KEY, ATLAS_ENDPOINT = "al-", "https://ai.mongodb.com/v1"
# Voyage's documentation: of one text by the present models, and of one request.
INPUT_TOKENS = 32_000
MAX_ITEMS = 1000


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
    """Describe Voyage's embeddings.

    Args:
        model: The name of the model.
        api_key: By default `VOYAGE_API_KEY`.
        base_url: By default the address for keys of its kind: Voyage's own, or MongoDB Atlas's.
        headers: Sent with each request; their names become part of the identity.
        dimensions: 256, 512, 1,024 (the default) or 2,048.
        max_input_tokens: The longest text the model reads, by default 32,000 tokens.
        max_items: How many texts a request may hold, by default 1,000.

    Raises:
        EmbedderError: There is no key, or an option cannot be used.
        MissingExtraError: httpx is not installed.
    """
    key = service.require_key("voyage", api_key, "VOYAGE_API_KEY")
    name = model or DEFAULT_MODEL
    params: dict[str, Any] = {"model": name, "truncation": False}
    params |= {} if dimensions is None else {"output_dimension": dimensions}

    async def send(client: Any, texts: list[str], as_query: bool) -> Sequence[Any]:
        kind = "query" if as_query else "document"
        body = {**params, "input": texts, "input_type": kind, "encoding_format": "base64"}
        return service.order_rows(await service.send_json(client, "/embeddings", body), len(texts))

    return service.Service(
        provider="voyage",
        model=name,
        endpoint=service.check_url(base_url or (ATLAS_ENDPOINT if key.startswith(ATLAS_KEY) else ENDPOINT), ENDPOINT),
        limits=service.Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or INPUT_TOKENS),
        send=send,
        headers={**(headers or {}), "Authorization": f"Bearer {key}"},
        settings=service.list_settings(headers, dimensions, max_input_tokens),
    )
