"""Embeddings from OpenAI, or from any server that speaks its protocol (Ollama, LM Studio, vLLM, llama.cpp, ...)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from openclaw_memory.embeddings.remote.http import LazyClient, as_json_lines, http_client, in_order, results_of
from openclaw_memory.embeddings.remote.service import (
    STATES_OF_OPENAI,
    BatchApi,
    JobState,
    Limits,
    Service,
    check_numbers,
    checked_url,
    on_this_machine,
    public,
    required_key,
    secrets_of,
    shared_settings,
    without_user,
)
from openclaw_memory.embeddings.vectors import package, weight
from openclaw_memory.errors import EmbedderError

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_URL = "https://api.openai.com/v1"
# OpenAI's limits: tokens of one input, and inputs of one request.
MAX_INPUT_TOKENS = 8191
MAX_ITEMS = 2048
# Models of other makers often read 2,048 tokens, as embeddinggemma-300m does, and many servers cut the rest silently.
OTHER_MODELS_INPUT_TOKENS = 2048
# What a server that wants no key is sent: the SDK insists on one.
NO_KEY = "none"
# OpenAI takes 50,000 inputs in a job; fewer keep the vectors of one within 120 MB.
JOB_ITEMS = 10_000
JOB_BYTES = 200_000_000
# 10,000 vectors of 3,072 dimensions, as decimal fractions.
MAX_RESULT_BYTES = 2**30
# OpenAI's SDK moved from httpx to its fork httpx2, which has the same interface, with this version.
FIRST_WITH_HTTPX2 = 3


def create(
    model: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    dimensions: int | None = None,
    query_prefix: str = "",
    document_prefix: str = "",
    max_input_tokens: int | None = None,
    max_items: int = MAX_ITEMS,
    organization: str | None = None,
    project: str | None = None,
) -> Service:
    """Describe OpenAI's embeddings; with `base_url`, those of a server that speaks the same protocol.

    Args:
        model: The name of the model.
        base_url: The address before `/embeddings`; by default `OPENAI_BASE_URL`, or OpenAI's own.
        api_key: By default `OPENAI_API_KEY`; a server on this machine needs none.
        headers: Sent besides the SDK's.
        dimensions: Shortens the vectors where the model can.
        query_prefix: Goes before questions: embeddinggemma wants "task: search result | query: ".
        document_prefix: Goes before documents: embeddinggemma wants "title: none | text: ".
        max_input_tokens: The longest text the model reads, 8,191 for OpenAI's own and 2,048 for others.
        max_items: How many texts a request may hold.
        organization: OpenAI's, for the bill.
        project: OpenAI's, for the bill.

    Raises:
        MissingExtraError: the package `openai` is not installed.
        EmbedderError: there is no key, or an option cannot be used.
    """
    name = model or DEFAULT_MODEL
    url = checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL, DEFAULT_URL)
    key = _key(api_key, url)
    tokens = max_input_tokens or (MAX_INPUT_TOKENS if name.startswith("text-embedding-") else OTHER_MODELS_INPUT_TOKENS)
    check_numbers("openai", dimensions=dimensions, max_input_tokens=max_input_tokens, max_items=max_items)
    room = tokens - max(weight(query_prefix), weight(document_prefix))
    if room < 1:
        raise EmbedderError(
            f"openai cannot be asked with max_input_tokens={tokens} and prefixes as long; it must be larger than they"
        )
    connection = {
        "base_url": without_user(url),
        "api_key": key,
        "default_headers": dict(headers or {}),
        "organization": organization,
        "project": project,
    }
    client = _Client(url, connection, name, dimensions, {True: query_prefix, False: document_prefix})
    prefixes = {"document_prefix": document_prefix or None, "query_prefix": query_prefix or None}
    return Service(
        provider="openai",
        model=name,
        endpoint=url,
        limits=Limits(max_items, room),
        send=client.send,
        settings=shared_settings(headers, dimensions, max_input_tokens) | prefixes,
        close=client.close,
        batch=BatchApi(client.submit, client.state, client.results, client.cancel, JOB_ITEMS, JOB_BYTES),
        secrets=secrets_of("" if key == NO_KEY else key, headers),
    )


class _Client:
    """OpenAI's SDK over an HTTP client of ours, and what was learnt of the server."""

    def __init__(
        self,
        url: str,
        connection: Mapping[str, Any],
        model: str,
        dimensions: int | None,
        prefixes: Mapping[bool, str],
    ) -> None:
        self._openai = package("openai", "openai")
        self._url, self._connection = url, connection
        self._origin = public(url)
        self._options: dict[str, Any] = {"model": model, "encoding_format": "base64"}
        if dimensions is not None:
            self._options["dimensions"] = dimensions
        self._prefixes = prefixes
        self._client = LazyClient(self._made)
        self._for_files = LazyClient(partial(self._made, max_body_bytes=MAX_RESULT_BYTES))

    def send(self, texts: list[str], as_query: bool) -> list[Any]:
        inputs = [self._prefixes[as_query] + text for text in texts]
        try:
            answer = self._ask(inputs)
        except self._openai.APIStatusError as error:
            if self._options["encoding_format"] == "float" or not _refuses_base64(error):
                raise
            self._options["encoding_format"] = "float"
            answer = self._ask(inputs)
        return in_order(json.loads(answer.content), len(texts), self._origin)

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        about = {"method": "POST", "url": "/v1/embeddings"}
        bodies = ((key, {**self._options, "input": self._prefixes[False] + text}) for key, text in items)
        content = as_json_lines({"custom_id": key, **about, "body": body} for key, body in bodies)
        file = self._client().files.create(file=("texts.jsonl", content), purpose="batch")
        job = self._client().batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
        return str(job.id)

    def state(self, job: str) -> JobState:
        return STATES_OF_OPENAI.get(self._client().batches.retrieve(job).status, JobState.RUNNING)

    def cancel(self, job: str) -> None:
        self._client().batches.cancel(job)

    def results(self, job: str) -> dict[str, Any]:
        found = self._client().batches.retrieve(job)
        if found.output_file_id is None:  # every text failed
            return {}
        with self._for_files().files.with_streaming_response.content(found.output_file_id) as answer:
            # Line by line, since they are many.
            return results_of((json.loads(line) for line in answer.iter_lines() if line.strip()), self._origin)

    def close(self) -> None:
        self._client.close()
        self._for_files.close()

    def _ask(self, inputs: list[str]) -> Any:
        # The raw answer: the SDK would check nothing, and make an object of each vector.
        return self._client().embeddings.with_raw_response.create(input=inputs, **self._options)

    def _made(self, **options: Any) -> Any:
        newer = int(self._openai.__version__.partition(".")[0]) >= FIRST_WITH_HTTPX2
        http = http_client(self._url, library="httpx2" if newer else "httpx", **options)
        return self._openai.OpenAI(**self._connection, http_client=http, max_retries=0, timeout=None)


def _key(given: str | None, url: str) -> str:
    if on_this_machine(url):
        return given or os.environ.get("OPENAI_API_KEY") or NO_KEY
    return required_key("openai", "openai", given, "OPENAI_API_KEY")


def _refuses_base64(error: Any) -> bool:
    words = str(error).lower()
    return error.status_code in {400, 422} and ("encoding_format" in words or "base64" in words)
