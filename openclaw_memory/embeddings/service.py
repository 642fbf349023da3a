"""Describe an embedding service: its address, the limits of a request, and the function that sends one."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from openclaw_memory.embeddings.vectors import MAX_DIMENSIONS, describe_install, import_package
from openclaw_memory.errors import EmbedderError


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


class JobState(Enum):
    """State of a batch job."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


class BatchApi(Struct, frozen=True):
    """A service's batch API: asynchronous functions of an `httpx.AsyncClient` and further arguments.

    Attributes:
        submit: Takes pairs of a key (1 to 64 letters and digits) and a text; returns the name of the job.
        fetch_state: Takes the name; returns a `JobState`.
        fetch_results: Takes the name; returns the vectors by key, without those that failed.
        cancel: Takes the name; ends the job.
        max_items: The most texts of a job.
        max_bytes: The most bytes of its file.
    """

    submit: Callable[[Any, Sequence[tuple[str, str]]], Awaitable[str]]
    fetch_state: Callable[[Any, str], Awaitable[JobState]]
    fetch_results: Callable[[Any, str], Awaitable[Mapping[str, Any]]]
    cancel: Callable[[Any, str], Awaitable[Any]]
    max_items: int
    max_bytes: int


class Service(Struct, frozen=True):
    """An embedding service behind a URL.

    Attributes:
        provider: Name of the provider.
        model: Name of the model.
        endpoint: The URL that receives the texts, without a user, a password or a query.
        limits: What a request may hold.
        send: Asynchronous function of an `httpx.AsyncClient` (its base URL is `endpoint`), texts, and whether they are
            queries. Returns a vector for each text, in order. It may raise whatever httpx raises.
        headers: Sent with each request. Their values are shown in no message.
        settings: Whatever else changes a vector (dimensions, prompts, names of headers); becomes part of the identity.
        batch: The batch API, if there is one.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[Any, list[str], bool], Awaitable[Sequence[Any]]]
    headers: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    batch: BatchApi | None = None

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
    if not is_valid:
        raise EmbedderError(f"base_url {address!r} is not an address; write it like {example}")
    if address != url.rstrip("/"):
        raise EmbedderError(
            f"base_url {address!r} came with a user, a password, a query or a fragment; leave them out, and pass a key "
            "as api_key or in headers"
        )
    return address


def require_key(provider: str, key: str | None, *variables: str) -> str:
    """Return the key, or the first in these environment variables; check that httpx is installed."""
    key = next((value.strip() for value in (key, *map(os.environ.get, variables)) if value and value.strip()), "")
    if not key:
        from importlib.util import find_spec

        missing = "" if find_spec("httpx") else f"; its package is missing too: {describe_install(provider)}"
        raise EmbedderError(
            f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
            f"{missing}"
        )
    import_package("httpx", provider)
    return key


def check_numbers(provider: str, **options: int | None) -> None:
    """Raise EmbedderError for an option below 1, or too many dimensions; None is the provider's default."""
    for name, number in options.items():
        if number is not None and number < 1:
            raise EmbedderError(f"embedder {provider!r} cannot be asked with {name}={number}; it must be at least 1")
        if name == "dimensions" and number is not None and number > MAX_DIMENSIONS:
            raise EmbedderError(
                f"embedder {provider!r} cannot be asked with {name}={number}; an index takes up to {MAX_DIMENSIONS}"
            )


def list_settings(
    headers: Mapping[str, str] | None, dimensions: int | None, max_input_tokens: int | None
) -> dict[str, Any]:
    """Return those of these options that change a vector; of headers only the names."""
    names = sorted(header.lower() for header in headers or {})
    return {"dimensions": dimensions, "headers": names or None, "max_input_tokens": max_input_tokens}
