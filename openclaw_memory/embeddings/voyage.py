"""Voyage AI as a provider of embeddings, through the voyageai SDK."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings._address import checked_url, public
from openclaw_memory.embeddings._aiohttp import guarded_session
from openclaw_memory.embeddings._http import MAX_BODY_BYTES, RedirectError
from openclaw_memory.embeddings._jobs import FILE_BYTES, Jobs, JobState, items_within
from openclaw_memory.embeddings._limits import Limits
from openclaw_memory.embeddings._needs import check_numbers, package, required_key, secrets_of, shared_settings
from openclaw_memory.embeddings._rows import in_order
from openclaw_memory.embeddings._service import Service

DEFAULT_MODEL = "voyage-4-large"
ENDPOINT = "https://api.voyageai.com/v1"
# Voyage's documentation: of one text by the present models, and of one request.
INPUT_TOKENS = 32_000
MAX_ITEMS = 1000
MOST_DIMENSIONS = 2048
STATES = {
    "completed": JobState.DONE,
    "failed": JobState.FAILED,
    "cancelled": JobState.FAILED,
    "expired": JobState.EXPIRED,
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
    """Voyage's embeddings: 1,024 dimensions, or as many as `dimensions` says (256, 512, 1,024 or 2,048).

    The key is `api_key`, or `VOYAGE_API_KEY`; `base_url` None is the address that the SDK knows for keys of its kind
    (Voyage's own, or MongoDB Atlas's). Of `headers`, sent with each request, the names become part of the identity.
    `max_input_tokens` (32,000 of one text) and `max_items` (1,000 texts a request) are for models that take less.

    Raises:
        EmbedderError: there is no key, or an option cannot be used.
        MissingExtraError: voyageai is not installed.
    """
    check_numbers("voyage", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    name = model or DEFAULT_MODEL
    key = required_key("voyage", api_key, "VOYAGE_API_KEY")
    sdk = package("voyageai", "voyage")
    endpoint = checked_url(base_url or sdk.util.get_default_base_url(key), ENDPOINT)
    voyage = _Voyage(sdk, name, key, endpoint, dict(headers or {}), dimensions)
    items = items_within(MAX_BODY_BYTES, dimensions or MOST_DIMENSIONS)
    return Service(
        provider="voyage",
        model=name,
        endpoint=endpoint,
        limits=Limits(items=max_items or MAX_ITEMS, input_tokens=max_input_tokens or INPUT_TOKENS),
        send=voyage.embed,
        settings=shared_settings(headers, dimensions, max_input_tokens),
        close=voyage.close,
        jobs=Jobs(voyage.submit, voyage.state, voyage.results, items, FILE_BYTES, voyage.cancel),
        secrets=secrets_of(key, headers),
    )


class _Voyage:
    """A session that is opened with its first request, in the event loop of that request."""

    def __init__(
        self, sdk: Any, model: str, key: str, endpoint: str, headers: dict[str, str], dimensions: int | None
    ) -> None:
        self._sdk, self._key, self._endpoint, self._headers = sdk, key, endpoint, headers
        self._params = {"model": model, "truncation": False}
        if dimensions is not None:
            self._params["output_dimension"] = dimensions
        self._opened: Any = None

    async def embed(self, texts: list[str], as_query: bool) -> Sequence[Any]:
        """A vector for each text, in their order."""
        self._sdk.aiosession.set(self._session())
        # One step below the SDK's AsyncClient, which forgets the indexes of the answer.
        answer = await self._sdk.Embedding.acreate(
            api_key=self._key,
            base_url=self._endpoint,
            input=texts,
            input_type="query" if as_query else "document",
            encoding_format="base64",
            **self._params,
        )
        return in_order(answer, len(texts), public(self._endpoint))

    async def submit(self, items: Sequence[tuple[str, str]]) -> str:
        """Begin a batch job, which the SDK does not know of."""
        lines = io.BytesIO()
        for key, text in items:
            lines.write(json.dumps({"custom_id": key, "body": {"input": [text]}}).encode() + b"\n")
        lines.seek(0)
        form = import_module("aiohttp").FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", lines, filename="texts.jsonl", content_type="application/jsonl")
        file = json.loads(await self._ask("POST", "/files", data=form))
        job = {
            "endpoint": "/v1/embeddings",
            "completion_window": "12h",
            "request_params": {**self._params, "input_type": "document"},
            "input_file_id": file["id"],
        }
        return str(json.loads(await self._ask("POST", "/batches", json=job))["id"])

    async def state(self, job: str) -> JobState:
        """Where the job stands."""
        try:
            found = json.loads(await self._ask("GET", f"/batches/{job}"))
        except self._sdk.error.APIError as error:
            if error.http_status == 404:
                return JobState.UNKNOWN
            raise
        return STATES.get(found["status"], JobState.RUNNING)

    async def cancel(self, job: str) -> None:
        """End a job."""
        await self._ask("POST", f"/batches/{job}/cancel")

    async def results(self, job: str) -> Mapping[str, Any]:
        """The vectors of the texts that were answered, by their keys."""
        file = json.loads(await self._ask("GET", f"/batches/{job}")).get("output_file_id")
        vectors: dict[str, Any] = {}
        for line in io.BytesIO(await self._content(file) if file else b""):
            said = json.loads(line) if line.strip() else {}
            response = said.get("response") or {}
            if response.get("status_code") == 200:
                (vectors[said["custom_id"]],) = in_order(response["body"], 1, public(self._endpoint))
        return vectors

    async def close(self) -> None:
        """End all connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _session(self) -> Any:
        if self._opened is None:
            self._opened = guarded_session(self._endpoint, self._headers)
        return self._opened

    async def _content(self, file: str) -> bytes:
        """What a file of the service holds; where it keeps files elsewhere, they are fetched there without the key."""
        try:
            return await self._ask("GET", f"/files/{file}/content")
        except RedirectError as moved:
            if not (moved.location.startswith("https://") or _origin(moved.location) == _origin(self._endpoint)):
                raise
            async with guarded_session(moved.location, {}) as bare, bare.get(moved.location) as answer:
                return await self._body(answer)

    async def _ask(self, method: str, path: str, **content: Any) -> bytes:
        authorization = {"Authorization": f"Bearer {self._key}"}
        url = self._endpoint + path
        async with self._session().request(method, url, headers=authorization, **content) as answer:
            return await self._body(answer)

    async def _body(self, answer: Any) -> bytes:
        body: bytes = await answer.read()
        if answer.status != 200:
            raise self._sdk.error.APIError(
                f"{answer.method} {answer.url.path}", body, answer.status, headers=answer.headers
            )
        return body


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
