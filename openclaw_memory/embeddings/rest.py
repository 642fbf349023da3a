"""Requests of REST interfaces, and rows in order."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from openclaw_memory.errors import EmbedderError

# Twice the largest honest answer: 2,048 vectors of 3,072 dimensions in base64.
MAX_BYTES = 64 * 2**20


async def send_json(client: Any, path: str, body: Mapping[str, Any]) -> Any:
    """Send a request and return its answer, decoded from JSON.

    Raises:
        httpx.HTTPStatusError: Its status is not one of success; redirects are not followed.
        EmbedderError: It is longer than any honest answer.
    """
    whole = await read_whole(await client.send(client.build_request("POST", path, json=body), stream=True))
    return json.loads(whole.raise_for_status().content)  # with NaN, as some servers send


async def read_whole(response: Any) -> Any:
    """Read a streamed response of httpx, or of its fork in OpenAI's SDK, and return it with its content.

    Raises:
        EmbedderError: It is longer than any honest answer.
    """
    content = bytearray()
    async with aclosing(response):
        async for part in response.aiter_raw():  # never unpacked: a small answer may hide gigabytes
            content += part
            if len(content) > MAX_BYTES:
                raise EmbedderError(f"{response.url.host} sent more than {MAX_BYTES:,} bytes; check base_url")
    response.headers.pop("content-encoding", None)
    return type(response)(
        response.status_code, headers=response.headers, content=bytes(content), request=response.request
    )


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
