"""Voyage AI as a provider of embeddings: one POST a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings.remote.errors import RedirectError
from openclaw_memory.embeddings.remote.http import (
    MAX_BODY_BYTES,
    RestApi,
    as_json_lines,
    checked_answer,
    http_client,
    in_order,
    json_lines,
    results_of,
)
from openclaw_memory.embeddings.remote.service import (
    FILE_BYTES,
    STATES_OF_OPENAI,
    BatchApi,
    JobState,
    Limits,
    Service,
    check_numbers,
    checked_url,
    items_within,
    public,
    required_key,
    secrets_of,
    shared_settings,
)
from openclaw_memory.embeddings.vectors import package

DEFAULT_MODEL = "voyage-4-large"
ENDPOINT = "https://api.voyageai.com/v1"
# Keys of MongoDB Atlas begin so, and are for its own server.
ATLAS_KEY, ATLAS_ENDPOINT = "al-", "https://ai.mongodb.com/v1"
# Voyage's documentation: of one text by the present models, and of one request.
INPUT_TOKENS = 32_000
MAX_ITEMS = 1000
MOST_DIMENSIONS = 2048


def create(
    model: str | None = None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    dimensions: int | None = None,
    max_input_tokens: int | None = None,
    max_items: int | None = None,
) -> Service:
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
        EmbedderError: there is no key, or an option cannot be used.
        MissingExtraError: httpx is not installed.
    """
    check_numbers("voyage", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    name = model or DEFAULT_MODEL
    key = required_key("voyage", "httpx", api_key, "VOYAGE_API_KEY")
    package("httpx", "voyage")
    own = ATLAS_ENDPOINT if key.startswith(ATLAS_KEY) else ENDPOINT
    endpoint = checked_url(base_url or own, ENDPOINT)
    voyage = _Voyage(name, key, endpoint, dict(headers or {}), dimensions)
    items = items_within(MAX_BODY_BYTES, dimensions or MOST_DIMENSIONS)
    return Service(
        provider="voyage",
        model=name,
        endpoint=endpoint,
        limits=Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or INPUT_TOKENS),
        send=voyage.embed,
        settings=shared_settings(headers, dimensions, max_input_tokens),
        close=voyage.close,
        batch=BatchApi(voyage.submit, voyage.state, voyage.results, voyage.cancel, items, FILE_BYTES),
        secrets=secrets_of(key, headers),
    )


class _Voyage(RestApi):
    """The requests of Voyage's REST interface."""

    def __init__(self, model: str, key: str, endpoint: str, headers: Mapping[str, str], dimensions: int | None) -> None:
        super().__init__(endpoint, {**headers, "Authorization": f"Bearer {key}"})
        self._params: dict[str, Any] = {"model": model, "truncation": False}
        if dimensions is not None:
            self._params["output_dimension"] = dimensions

    def embed(self, texts: list[str], as_query: bool) -> Sequence[Any]:
        body = {"input": texts, "input_type": "query" if as_query else "document", "encoding_format": "base64"}
        answer = self.ask("POST", "/embeddings", json={**self._params, **body})
        return in_order(answer.json(), len(texts), public(self.endpoint))

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        lines = as_json_lines({"custom_id": key, "body": {"input": [text]}} for key, text in items)
        upload = {"file": ("texts.jsonl", lines, "application/jsonl")}
        file = self.ask("POST", "/files", data={"purpose": "batch"}, files=upload).json()
        job = {
            "endpoint": "/v1/embeddings",
            "completion_window": "12h",
            "request_params": {**self._params, "input_type": "document"},
            "input_file_id": file["id"],
        }
        return str(self.ask("POST", "/batches", json=job).json()["id"])

    def state(self, job: str) -> JobState:
        return STATES_OF_OPENAI.get(self.ask("GET", f"/batches/{job}").json()["status"], JobState.RUNNING)

    def cancel(self, job: str) -> None:
        self.ask("POST", f"/batches/{job}/cancel")

    def results(self, job: str) -> Mapping[str, Any]:
        file = self.ask("GET", f"/batches/{job}").json().get("output_file_id")
        return results_of(json_lines(self._content(file)), public(self.endpoint)) if file else {}

    def _content(self, file: str) -> bytes:
        """Return a file of the service; where it keeps files elsewhere, they are fetched there without the key."""
        try:
            content: bytes = self.ask("GET", f"/files/{file}/content").content
        except RedirectError as moved:
            if not (moved.location.startswith("https://") or _origin(moved.location) == _origin(self.endpoint)):
                raise
            with http_client(moved.location) as bare:
                content = checked_answer(bare.get(moved.location)).content
        return content


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
