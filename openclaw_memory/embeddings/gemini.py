"""Embeddings from Google's Gemini API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings.rest import (
    MAX_FILE_BYTES,
    MAX_RESULT_BYTES,
    ask,
    ask_json,
    count_job_items,
    decode_lines,
    encode_lines,
)
from openclaw_memory.embeddings.service import (
    BatchApi,
    JobState,
    Limits,
    Service,
    check_numbers,
    check_url,
    list_settings,
    require_key,
)
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
        EmbedderError: There is no key, or an option cannot be used.
        MissingExtraError: httpx is not installed.
    """
    check_numbers("gemini", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    key = require_key("gemini", api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
    name = model or DEFAULT_MODEL
    gemini = _Gemini(name, dimensions)
    longest = INPUT_TOKENS_2 - max(map(len, PREFIXES_2)) if gemini.is_second_generation else INPUT_TOKENS
    return Service(
        provider="gemini",
        model=name,
        endpoint=check_url(base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or ENDPOINT, ENDPOINT),
        limits=Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or longest),
        send=gemini.send,
        headers={**(headers or {}), "x-goog-api-key": key},
        settings=list_settings(headers, dimensions, max_input_tokens),
        batch=BatchApi(
            gemini.submit,
            gemini.fetch_state,
            gemini.fetch_results,
            gemini.cancel,
            count_job_items(dimensions),
            MAX_FILE_BYTES,
        ),
    )


class _Gemini:
    """The requests of Gemini's REST interface for one model."""

    def __init__(self, model: str, dimensions: int | None) -> None:
        self._model = f"models/{model.removeprefix('models/')}"
        self.is_second_generation = self._model.startswith("models/gemini-embedding-2")
        self._dimensions = dimensions

    async def send(self, client: Any, texts: list[str], as_query: bool) -> Sequence[Any]:
        body = {"requests": [self._make_request(text, as_query) for text in texts]}
        answer = await ask_json(client, "POST", f"{VERSION}/{self._model}:batchEmbedContents", json=body)
        rows = answer.get("embeddings") if isinstance(answer, Mapping) else None
        if not isinstance(rows, list):
            raise EmbedderError(f"an answer came without a list of embeddings; check base_url and model: {answer}")
        return [row.get("values") for row in rows]

    async def submit(self, client: Any, items: Sequence[tuple[str, str]]) -> str:
        # In a file, since only there each request has a key of its own.
        lines = ({"key": key, "request": self._make_request(text, as_query=False)} for key, text in items)
        file = await _send_file(client, encode_lines(lines))
        job = {"batch": {"displayName": "openclaw-memory", "inputConfig": {"fileName": file}}}
        return str(
            (await ask_json(client, "POST", f"{VERSION}/{self._model}:asyncBatchEmbedContent", json=job))["name"]
        )

    async def fetch_state(self, client: Any, name: str) -> JobState:
        state = str((await _fetch_metadata(client, name)).get("state")).partition("_STATE_")[2]
        return STATES.get(state, JobState.RUNNING)

    async def cancel(self, client: Any, name: str) -> None:
        await ask(client, "POST", f"{VERSION}/{name}:cancel")

    async def fetch_results(self, client: Any, name: str) -> Mapping[str, Any]:
        import numpy as np

        file = ((await _fetch_metadata(client, name)).get("output") or {}).get("responsesFile")
        if not file:
            return {}
        url = f"{VERSION}/{file}:download"
        content = (await ask(client, "GET", url, max_bytes=MAX_RESULT_BYTES, params={"alt": "media"})).content
        return {
            line["key"]: np.asarray(values, np.float32)
            for line in decode_lines(content)
            if (values := ((line.get("response") or {}).get("embedding") or {}).get("values"))
        }

    def _make_request(self, text: str, as_query: bool) -> dict[str, Any]:
        if self.is_second_generation:
            text = PREFIXES_2[as_query] + text
        request: dict[str, Any] = {"model": self._model, "content": {"parts": [{"text": text}]}}
        if not self.is_second_generation:
            request["taskType"] = TASKS[as_query]
        if self._dimensions is not None:
            request["outputDimensionality"] = self._dimensions
        return request


async def _fetch_metadata(client: Any, name: str) -> Mapping[str, Any]:
    return (await ask_json(client, "GET", f"{VERSION}/{name}")).get("metadata") or {}


async def _send_file(client: Any, content: bytes) -> str:
    """Return the name of a new file, by Google's resumable upload in one part."""
    start = {
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Length": str(len(content)),
        "X-Goog-Upload-Header-Content-Type": "application/jsonl",
    }
    session = await ask(client, "POST", f"/upload{VERSION}/files", headers=start, json={"file": {}})
    # Of the returned address only the path counts: texts go to no other server than the configured one.
    target = urlsplit(session.headers["x-goog-upload-url"])
    path = target.path.removeprefix(client.base_url.path.rstrip("/"))
    finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
    answer = await ask_json(client, "POST", f"{path}?{target.query}", headers=finish, content=content)
    return str(answer["file"]["name"])
