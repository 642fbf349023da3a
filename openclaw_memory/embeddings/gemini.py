"""Google's Gemini API as a provider of embeddings, through the google-genai SDK."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_memory.embeddings._address import checked_url
from openclaw_memory.embeddings._http import MAX_BODY_BYTES, guarded_client
from openclaw_memory.embeddings._jobs import FILE_BYTES, Jobs, JobState, items_within
from openclaw_memory.embeddings._limits import Limits
from openclaw_memory.embeddings._needs import check_numbers, package, required_key, secrets_of, shared_settings
from openclaw_memory.embeddings._service import Service

DEFAULT_MODEL = "gemini-embedding-001"
ENDPOINT = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
# Google's documentation: of one text, and of batchEmbedContents.
INPUT_TOKENS = 2048
INPUT_TOKENS_2 = 8192
MAX_ITEMS = 100
TASKS = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
# The second generation takes no task type; Google's documentation has these words for it instead.
PREFIXES_2 = ("title: none | text: ", "task: search result | query: ")
DEFAULT_DIMENSIONS = 3072
STATES = {
    "JOB_STATE_SUCCEEDED": JobState.DONE,
    "JOB_STATE_PARTIALLY_SUCCEEDED": JobState.DONE,
    "JOB_STATE_FAILED": JobState.FAILED,
    "JOB_STATE_CANCELLED": JobState.FAILED,
    "JOB_STATE_EXPIRED": JobState.EXPIRED,
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
    """Gemini's embeddings: 3,072 dimensions, or as many as `dimensions` says (128 to 3,072; 768 and 1,536 are advised).

    The key is `api_key`, or `GEMINI_API_KEY`, or `GOOGLE_API_KEY`; `base_url` None is `GOOGLE_GEMINI_BASE_URL`, or
    Google's own address. Of `headers`, sent with each request, the names become part of the identity.
    `max_input_tokens` (by default 2,048 of one text, or 8,192 of a `gemini-embedding-2`) and `max_items` (100 texts a
    request) are for services that take less.

    Raises:
        EmbedderError: there is no key, or an option cannot be used.
        MissingExtraError: google-genai is not installed.
    """
    check_numbers("gemini", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    name = model or DEFAULT_MODEL
    endpoint = checked_url(base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or ENDPOINT, ENDPOINT)
    key = required_key("gemini", api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
    gemini = _Gemini(package("google.genai", "gemini"), name, key, endpoint, dict(headers or {}), dimensions)
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
        jobs=Jobs(gemini.submit, gemini.state, gemini.results, items, FILE_BYTES, gemini.cancel),
        secrets=secrets_of(key, headers),
    )


class _Gemini:
    """A client that is made with its first request, in the event loop of that request."""

    def __init__(
        self, sdk: Any, model: str, key: str, endpoint: str, headers: dict[str, str], dimensions: int | None
    ) -> None:
        self.second_generation = model.removeprefix("models/").startswith("gemini-embedding-2")
        self._sdk, self._model, self._key = sdk, model, key
        self._endpoint, self._headers, self._dimensions = endpoint, headers, dimensions
        self._http: Any = None
        self._made: Any = None

    async def embed(self, texts: list[str], as_query: bool) -> Sequence[Any]:
        """A vector for each text, in their order."""
        config: dict[str, Any] = {"output_dimensionality": self._dimensions}
        if not self.second_generation:
            config["task_type"] = TASKS[as_query]
        # Contents, not strings: of several strings the SDK makes one multimodal content of the second generation.
        contents = [_content(text) for text in self._worded(texts, as_query)]
        answer = await self._client().models.embed_content(model=self._model, contents=contents, config=config)
        return [found.values for found in answer.embeddings or ()]

    async def submit(self, items: Sequence[tuple[str, str]]) -> str:
        """Begin a batch job; requests go in a file, since only there each has a key of its own."""
        lines = io.BytesIO()
        texts = self._worded([text for _, text in items], as_query=False)
        for (key, _), text in zip(items, texts, strict=True):
            lines.write(json.dumps({"key": key, "request": self._request(text)}).encode() + b"\n")
        lines.seek(0)
        client = self._client()
        file = await client.files.upload(file=lines, config={"mime_type": "application/jsonl"})
        # The SDK calls this experimental at each use; whoever switched batch jobs on cannot do anything about it.
        warnings.filterwarnings("ignore", "batches.create_embeddings", module=__name__.replace(".", r"\."))
        job = await client.batches.create_embeddings(model=self._model, src={"file_name": file.name})
        return str(job.name)

    async def state(self, job: str) -> JobState:
        """Where the job stands."""
        try:
            found = await self._client().batches.get(name=job)
        except self._sdk.errors.ClientError as error:
            if error.code == 404:
                return JobState.UNKNOWN
            raise
        return STATES.get(getattr(found.state, "name", ""), JobState.RUNNING)

    async def cancel(self, job: str) -> None:
        """End a job."""
        await self._client().batches.cancel(name=job)

    async def results(self, job: str) -> Mapping[str, Any]:
        """The vectors of the texts that were answered, by their keys."""
        import numpy as np

        client = self._client()
        found = await client.batches.get(name=job)
        if found.dest is None or not found.dest.file_name:
            return {}
        vectors: dict[str, Any] = {}
        for line in io.BytesIO(await client.files.download(file=found.dest.file_name)):
            said = json.loads(line) if line.strip() else {}
            if values := ((said.get("response") or {}).get("embedding") or {}).get("values"):
                vectors[said["key"]] = np.asarray(values, dtype=np.float32)
        return vectors

    async def close(self) -> None:
        """End all connections."""
        http, self._http, self._made = self._http, None, None
        if http is not None:
            await http.aclose()

    def _client(self) -> Any:
        if self._made is None:
            self._http = guarded_client(self._endpoint, self._sdk.__version__)
            # vertexai and api_version are said, because the SDK would otherwise take them from the environment.
            client = self._sdk.Client(
                vertexai=False,
                api_key=self._key,
                http_options=self._sdk.types.HttpOptions(
                    base_url=self._endpoint,
                    api_version=API_VERSION,
                    headers=self._headers,
                    httpx_async_client=self._http,
                ),
            )
            self._made = client.aio
        return self._made

    def _worded(self, texts: list[str], as_query: bool) -> list[str]:
        return [PREFIXES_2[as_query] + text for text in texts] if self.second_generation else texts

    def _request(self, text: str) -> dict[str, Any]:
        """A document's request as the REST interface takes it."""
        request: dict[str, Any] = {"model": f"models/{self._model.removeprefix('models/')}", "content": _content(text)}
        if not self.second_generation:
            request["taskType"] = TASKS[False]
        if self._dimensions is not None:
            request["outputDimensionality"] = self._dimensions
        return request


def _content(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}
