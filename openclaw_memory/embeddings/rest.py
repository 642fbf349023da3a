"""Requests of REST interfaces: bounded answers, rows in order, and batch jobs made of files."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings.service import BatchApi, FailureKind, JobState, ServiceError
from openclaw_memory.errors import EmbedderError

# Twice the largest honest answer: 2,048 vectors of 3,072 dimensions in base64.
MAX_BYTES = 64 * 2**20
# Services take files of 1 GB and more; those of a job are held in memory.
MAX_FILE_BYTES = 32 * 2**20
MAX_RESULT_BYTES = 256 * 2**20
NUMBER_BYTES = 20  # of a number as a decimal fraction
DEFAULT_DIMENSIONS = 3072
OPENAI_STATES = {
    "completed": JobState.DONE,
    "failed": JobState.FAILED,
    "cancelled": JobState.FAILED,
    "cancelling": JobState.FAILED,
    "expired": JobState.EXPIRED,
}


async def ask(client: Any, method: str, path: str, *, max_bytes: int | None = None, **content: Any) -> Any:
    """Send a request and return the whole response, as httpx has it.

    Raises:
        httpx.HTTPStatusError: Its status is not one of success; redirects are not followed.
        ServiceError: It is longer than `max_bytes`, or compressed.
    """
    async with client.stream(method, path, **content) as response:
        whole = await read_whole(response, max_bytes or MAX_BYTES)
    return whole.raise_for_status()


async def read_whole(response: Any, max_bytes: int) -> Any:
    """Read a streamed response of httpx, or of its fork in OpenAI's SDK, and return it with its content.

    Raises:
        ServiceError: It is longer than `max_bytes`, or a compressed answer.
    """
    body, host = bytearray(), response.url.host
    async for part in response.aiter_raw():  # never unpacked: a small answer may hide gigabytes
        body += part
        if len(body) > max_bytes:
            raise ServiceError(f"{host} sent more than {max_bytes:,} bytes; check base_url", FailureKind.PASSING)
    is_packed = response.headers.pop("content-encoding", "identity").strip().lower() not in {"", "identity"}
    if is_packed and response.is_success:
        raise ServiceError(f"{host} sent a compressed answer; check base_url and proxies", FailureKind.DENIED)
    content = b"" if is_packed else bytes(body)
    return type(response)(response.status_code, headers=response.headers, content=content, request=response.request)


async def ask_json(client: Any, method: str, path: str, **content: Any) -> Any:
    """Send a request and return its answer, decoded from JSON."""
    return json.loads((await ask(client, method, path, **content)).content)  # with NaN, as some servers send


def order_rows(answer: Any, count: int) -> list[Any]:
    """Return the vectors of an answer in OpenAI's format, in the order of their indexes, as arrays or lists.

    Raises:
        EmbedderError: It does not have one row for each index below `count`.
    """
    import numpy as np

    rows = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        body = " ".join(str(answer).split())
        raise EmbedderError(f"an answer came without a list of embeddings; check base_url and model: {body}")
    by_index = {row.get("index"): row.get("embedding") for row in rows}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise EmbedderError(
            f"{len(rows)} embeddings with {len(by_index)} different indexes came for {count} texts; each must have one"
        )
    vectors = [by_index[index] for index in range(count)]
    return [np.frombuffer(b64decode(v, validate=True), "<f4") if isinstance(v, str) else v for v in vectors]


def encode_lines(values: Iterable[Any]) -> bytes:
    """Return a JSONL file."""
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def decode_lines(content: bytes) -> Iterator[Any]:
    """Yield the values in a JSONL file."""
    return (json.loads(line) for line in content.splitlines() if line.strip())


def count_job_items(dimensions: int | None) -> int:
    """Return the most texts of a job with readable results."""
    return MAX_RESULT_BYTES // (NUMBER_BYTES * (dimensions or DEFAULT_DIMENSIONS))


def make_batch_api(
    make_line: Callable[[str], Mapping[str, Any]], job: Mapping[str, Any], dimensions: int | None
) -> BatchApi:
    """Return the batch API of a service that has OpenAI's: a file is uploaded, run as a batch, and downloaded.

    Args:
        make_line: Returns the request for a text.
        job: Further fields of the batch.
        dimensions: The length of the vectors.
    """

    async def submit(client: Any, items: Sequence[tuple[str, str]]) -> str:
        lines = encode_lines({"custom_id": key, **make_line(text)} for key, text in items)
        upload = {"file": ("texts.jsonl", lines, "application/jsonl")}
        file = await ask_json(client, "POST", "/files", data={"purpose": "batch"}, files=upload)
        body = {"endpoint": "/v1/embeddings", **job, "input_file_id": file["id"]}
        return str((await ask_json(client, "POST", "/batches", json=body))["id"])

    async def fetch_state(client: Any, name: str) -> JobState:
        batch = await ask_json(client, "GET", f"/batches/{name}")
        return OPENAI_STATES.get(batch["status"], JobState.RUNNING)

    async def fetch_results(client: Any, name: str) -> Mapping[str, Any]:
        import numpy as np

        file = (await ask_json(client, "GET", f"/batches/{name}")).get("output_file_id")
        if not file:  # every text failed
            return {}
        vectors = {}
        for line in decode_lines(await _download(client, f"/files/{file}/content")):
            answer = line.get("response") or {}
            if answer.get("status_code") == 200:
                vectors[line["custom_id"]] = np.asarray(order_rows(answer["body"], 1)[0], np.float32)
        return vectors

    async def cancel(client: Any, name: str) -> None:
        await ask(client, "POST", f"/batches/{name}/cancel")

    return BatchApi(submit, fetch_state, fetch_results, cancel, count_job_items(dimensions), MAX_FILE_BYTES)


async def _download(client: Any, path: str) -> bytes:
    """Return a file of the service; where it redirects to another server, that one gets no key."""
    import httpx

    try:
        answer = await ask(client, "GET", path, max_bytes=MAX_RESULT_BYTES)
    except httpx.HTTPStatusError as error:
        location = error.response.headers.get("location", "")
        target, own = urlsplit(location), urlsplit(str(client.base_url))
        if not error.response.has_redirect_location or not (target.scheme == "https" or target[:2] == own[:2]):
            raise
        async with httpx.AsyncClient(headers={"Accept-Encoding": "identity"}) as bare:
            answer = await ask(bare, "GET", location, max_bytes=MAX_RESULT_BYTES)
    content: bytes = answer.content
    return content
