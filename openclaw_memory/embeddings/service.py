"""Describe an embedding service, send it requests of REST interfaces, and read its answers and failures."""

from __future__ import annotations

import json
import os
import re
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from openclaw_memory.embeddings.vectors import MAX_DIMENSIONS, UNLIMITED, describe_install, import_package
from openclaw_memory.errors import EmbedderError
from openclaw_memory.text.redaction import redact

Count: TypeAlias = Annotated[int, Meta(ge=1, le=UNLIMITED)]
Dimensions: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_DIMENSIONS)]


class Limits(Struct, frozen=True):
    """Bound one request: at most `items` texts of `request_tokens` together, each of at most `input_tokens`.

    Tokens are estimated from above, one for each UTF-8 byte. A longer text is embedded in pieces.
    """

    items: int
    input_tokens: int
    request_tokens: int = 8000


class RetryPolicy(Struct, frozen=True):
    """Set how many requests run at once, their deadlines in seconds, and the tries of one that fails in passing.

    A query has one deadline for all its tries.
    """

    concurrency: int = 4
    query_seconds: float = 60.0
    request_seconds: float = 120.0
    tries: int = 3


class Service(Struct, frozen=True):
    """An embedding service behind a URL.

    Attributes:
        provider: Name of the provider.
        model: Name of the model.
        endpoint: The URL that receives the texts, without a user, a password or a query.
        limits: The limits of a request.
        send: Asynchronous function of an `httpx.AsyncClient` (its base URL is `endpoint`) or what `open_client` opened,
            texts, and whether they are queries. Returns a vector for each text, in order. It may raise whatever the
            client raises.
        headers: Sent with each request. Their values are shown in no message.
        settings: Whatever else changes a vector (dimensions, prompts, names of headers); becomes part of the identity.
        open_client: Opens the asynchronous client of an SDK, which tries again by itself, by a `RetryPolicy`.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[Any, list[str], bool], Awaitable[Sequence[Any]]]
    headers: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    open_client: Callable[[RetryPolicy], Any] | None = None

    @property
    def origin(self) -> str:
        """Address, provider and model, for messages."""
        return f"{self.endpoint} ({self.provider} {self.model})"

    def __repr__(self) -> str:  # the headers hold the key
        return f"Service({self.origin})"


def is_on_this_machine(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    import ipaddress

    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_url(url: str, example: str) -> str:
    """Return a base URL without a slash at its end; raise EmbedderError if it cannot be used."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, a port of letters
        is_valid = False
    address = url.rpartition("@")[2].partition("?")[0].partition("#")[0].rstrip("/")
    if not is_valid or address != url.rstrip("/"):
        raise EmbedderError(
            f"base_url {address!r} is not an address alone; write it like {example}, without a user, a password, "
            "a query or a fragment, and pass a key as api_key or in headers"
        )
    return address


def require_key(provider: str, key: str | None, *variables: str, package: str = "httpx") -> str:
    """Return the key, or the first in these environment variables; check that the package is installed."""
    key = next((value.strip() for value in (key, *map(os.environ.get, variables)) if value and value.strip()), "")
    if not key:
        from importlib.util import find_spec

        missing = "" if find_spec(package) else f"; its package is missing too: {describe_install(provider)}"
        raise EmbedderError(
            f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
            f"{missing}"
        )
    import_package(package, provider)
    return key


def list_settings(
    headers: Mapping[str, str] | None, dimensions: int | None, max_input_tokens: int | None
) -> dict[str, Any]:
    """Return those of these options that change a vector; of headers only the names."""
    names = sorted(header.lower() for header in headers or {})
    return {"dimensions": dimensions, "headers": names or None, "max_input_tokens": max_input_tokens}


# --- requests ----------------------------------------------------------------------------------------------------

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
        raise EmbedderError(f"{len(rows)} vectors with {len(by_index)} indexes came for {count} texts; each needs one")
    vectors = [by_index[index] for index in range(count)]
    return [np.frombuffer(b64decode(v, validate=True), "<f4") if isinstance(v, str) else v for v in vectors]


# --- failures ----------------------------------------------------------------------------------------------------


class FailureKind(Enum):
    """Kinds of failures, each with the advice to the user."""

    PASSING = "it is asked again later"
    BUSY = "it is asked again later; a lower concurrency in the provider's options asks less often"
    EXHAUSTED = "refill the account, or choose another provider"
    TOO_LARGE = "set a lower max_items or max_input_tokens in the provider's options"
    REFUSED = "check the model's name and options, or the text"
    DENIED = "check key, model and base_url"


class ServiceError(EmbedderError):
    """A failed request to an embedding service.

    Attributes:
        kind: The way to go on.
        retry_after: The seconds that the service asks to wait, or None.
    """

    def __init__(self, message: str, kind: FailureKind, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in {FailureKind.PASSING, FailureKind.BUSY}

    @property
    def is_isolated(self) -> bool:
        """True if the failure lies in the texts of the request: others may succeed."""
        return self.kind in {FailureKind.TOO_LARGE, FailureKind.REFUSED}


# OpenAI's codes and Gemini's words for a quota that waiting does not refill.
QUOTA = re.compile(r"insufficient_quota|quota_exceeded|exceeded your current quota", re.IGNORECASE)
# OpenClaw's signs, besides status 429, of a rate limit.
BUSY = re.compile(r"rate.?limit|too many requests|resource has been exhausted|resource_exhausted", re.IGNORECASE)
SIZE = re.compile(
    r"too (large|long|many)|maximum context|context length|max\w*\b.{0,40}\b(tokens|length|items|inputs|batch)"
    r"|batch size|at most \d+|no more than \d+|exceeds? the (limit|maximum)|payload size|list too long",
    re.IGNORECASE,
)
# Gemini answers 400 to a bad key.
BAD_KEY = re.compile(r"api.?key (is )?(not valid|invalid|expired)", re.IGNORECASE)
# Gemini puts the wait into the body: "retryDelay": "34s"; OpenAI into the message: "Please try again in 1.5s".
DELAY = re.compile(r"(?:retryDelay\W+|(?:try again|retry) in )(\d+(?:\.\d+)?)s", re.IGNORECASE)
KEY = re.compile(r"\b(sk-|AIza|pa-|al-|Bearer )[\w*.-]{6,}")
MIN_SECRET = 4  # characters; anything shorter is part of ordinary words
MAX_MESSAGE = 300


def read_failure(error: Exception, origin: str, headers: Mapping[str, str] | None = None) -> ServiceError:
    """Return the failure behind an exception of httpx, of an SDK or of ours.

    Without a response it is one of the transport, or an answer that could not be understood: both may pass.

    Args:
        error: The exception; `error.response` is that of httpx.
        origin: Who was asked, for the message.
        headers: Headers of the request, whose values are left out of the message.
    """
    secrets = [part for value in (headers or {}).values() for part in (value, value.partition(" ")[2])]
    if isinstance(error, ServiceError):
        return ServiceError(_mask(str(error), secrets), error.kind, error.retry_after)
    if isinstance(error, EmbedderError):
        message = str(error) if origin in str(error) else f"{origin}: {error}"
        return ServiceError(_mask(message, secrets)[: 2 * MAX_MESSAGE], FailureKind.PASSING)
    response: Any = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    cause = error if error.__cause__ is None else error.__cause__  # the error of an SDK says less
    words = f"{type(cause).__name__}: {cause}"
    if status is None:
        message = f"{origin} cannot be reached or answered nonsense: {_mask(words, secrets)[:MAX_MESSAGE]}"
        return ServiceError(f"{message}; {FailureKind.PASSING.value}", FailureKind.PASSING)
    with suppress(Exception):  # a body that was not read, or cannot be decoded
        words = " ".join(response.text.split()) or words
    retry_after = _read_wait(response.headers, words)
    kind = _classify(status, words, has_wait=retry_after is not None)
    if 300 <= status < 400:
        words = "a redirect, which is not followed so that texts go nowhere else"
    message = f"{origin} answered {status}: {_mask(words, secrets)[:MAX_MESSAGE]}; {kind.value}"
    return ServiceError(message, kind, retry_after)


def _classify(status: int, words: str, *, has_wait: bool) -> FailureKind:
    if QUOTA.search(words) and status in {402, 403, 429} and not has_wait:
        return FailureKind.EXHAUSTED
    if status == 429 or (status in {400, 403, 503} and BUSY.search(words)):
        return FailureKind.BUSY
    # llama.cpp's server answers 500 to a text that it cannot take.
    if status == 413 or (status in {400, 422, 500} and SIZE.search(words)):
        return FailureKind.TOO_LARGE
    if status in {400, 422} and not BAD_KEY.search(words):
        return FailureKind.REFUSED
    return FailureKind.PASSING if status in {408, 409, 425} or status >= 500 else FailureKind.DENIED


def _mask(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_SECRET:
            text = text.replace(secret, "***")
    return KEY.sub(r"\1***", redact(text))


def _read_wait(headers: Mapping[str, Any], words: str) -> float | None:
    """Return the seconds that a service asks to wait; `Retry-After` is a number or a date."""
    value = str(headers.get("retry-after") or "")
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, OverflowError, TypeError):  # no date, or one that no calendar has
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    delay = DELAY.search(words)
    return float(delay[1]) if delay else None
