"""Google's Gemini API as a provider of embeddings: one POST a request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings.remote.http import MAX_BODY_BYTES, RestApi, as_json_lines, json_lines
from openclaw_memory.embeddings.remote.service import (
    FILE_BYTES,
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
from openclaw_memory.errors import EmbedderError

DEFAULT_MODEL = "gemini-embedding-001"
ENDPOINT = "https://generativelanguage.googleapis.com"
VERSION = "/v1beta"
# Google's documentation: of one text, and of batchEmbedContents.
INPUT_TOKENS = 2048
INPUT_TOKENS_2 = 8192
MAX_ITEMS = 100
TASKS = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
# The second generation takes no task type; Google's documentation has these words for it instead.
PREFIXES_2 = ("title: none | text: ", "task: search result | query: ")
DEFAULT_DIMENSIONS = 3072
STATES = {
    "SUCCEEDED": JobState.DONE,
    "PARTIALLY_SUCCEEDED": JobState.DONE,
    "FAILED": JobState.FAILED,
    "CANCELLED": JobState.FAILED,
    "EXPIRED": JobState.EXPIRED,
}


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
        EmbedderError: there is no key, or an option cannot be used.
        MissingExtraError: httpx is not installed.
    """
    check_numbers("gemini", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    name = model or DEFAULT_MODEL
    endpoint = checked_url(base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or ENDPOINT, ENDPOINT)
    key = required_key("gemini", "httpx", api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
    package("httpx", "gemini")
    gemini = _Gemini(name, key, endpoint, dict(headers or {}), dimensions)
    longest = INPUT_TOKENS_2 - max(map(len, PREFIXES_2)) if gemini.second_generation else INPUT_TOKENS
    items = items_within(MAX_BODY_BYTES, dimensions or DEFAULT_DIMENSIONS)
    return Service(
        provider="gemini",
        model=name,
        endpoint=endpoint,
        limits=Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or longest),
        send=gemini.embed,
        settings=shared_settings(headers, dimensions, max_input_tokens),
        close=gemini.close,
        batch=BatchApi(gemini.submit, gemini.state, gemini.results, gemini.cancel, items, FILE_BYTES),
        secrets=secrets_of(key, headers),
    )


class _Gemini(RestApi):
    """The requests of Gemini's REST interface."""

    def __init__(self, model: str, key: str, endpoint: str, headers: Mapping[str, str], dimensions: int | None) -> None:
        super().__init__(endpoint, {**headers, "x-goog-api-key": key})
        self._model = f"models/{model.removeprefix('models/')}"
        self.second_generation = self._model.startswith("models/gemini-embedding-2")
        self._dimensions = dimensions

    def embed(self, texts: list[str], as_query: bool) -> Sequence[Any]:
        body = {"requests": [self._request(text, as_query) for text in texts]}
        answer = self.ask("POST", f"{VERSION}/{self._model}:batchEmbedContents", json=body).json()
        rows = answer.get("embeddings") if isinstance(answer, Mapping) else None
        if not isinstance(rows, list):
            raise EmbedderError(
                f"{public(self.endpoint)} sent an answer without a list of embeddings; check base_url and model"
            )
        return [row.get("values") for row in rows]

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        # In a file, since only there each request has a key of its own.
        lines = ({"key": key, "request": self._request(text, as_query=False)} for key, text in items)
        file = self._uploaded(as_json_lines(lines))
        job = {"batch": {"displayName": "openclaw-memory", "inputConfig": {"fileName": file}}}
        return str(self.ask("POST", f"{VERSION}/{self._model}:asyncBatchEmbedContent", json=job).json()["name"])

    def state(self, job: str) -> JobState:
        return STATES.get(str(self._about(job).get("state")).partition("_STATE_")[2], JobState.RUNNING)

    def cancel(self, job: str) -> None:
        self.ask("POST", f"{VERSION}/{job}:cancel")

    def results(self, job: str) -> Mapping[str, Any]:
        import numpy as np

        file = (self._about(job).get("output") or {}).get("responsesFile")
        if not file:
            return {}
        content = self.ask("GET", f"{VERSION}/{file}:download", params={"alt": "media"}).content
        return {
            line["key"]: np.asarray(values, dtype=np.float32)
            for line in json_lines(content)
            if (values := ((line.get("response") or {}).get("embedding") or {}).get("values"))
        }

    def _request(self, text: str, as_query: bool) -> dict[str, Any]:
        if self.second_generation:
            text = PREFIXES_2[as_query] + text
        request: dict[str, Any] = {"model": self._model, "content": {"parts": [{"text": text}]}}
        if not self.second_generation:
            request["taskType"] = TASKS[as_query]
        if self._dimensions is not None:
            request["outputDimensionality"] = self._dimensions
        return request

    def _uploaded(self, content: bytes) -> str:
        """Return the name of a file that holds `content`; Google's resumable upload in one part."""
        kind = {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}
        about = {
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        begun = self.ask("POST", f"/upload{VERSION}/files", headers={**kind, **about}, json={"file": {}})
        # Of the address that comes back only the path: texts go to no other server than the one that was configured.
        to = urlsplit(begun.headers["x-goog-upload-url"])
        path = to.path.removeprefix(urlsplit(self.endpoint).path)
        last = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        answer = self.ask("POST", f"{path}?{to.query}", headers=last, content=content)
        return str(answer.json()["file"]["name"])

    def _about(self, job: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.ask("GET", f"{VERSION}/{job}").json()
        return found.get("metadata") or {}
