"""The HTTP client for services (no redirects, nothing compressed, bounded answers), and the deadlines of requests."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from importlib import import_module
from threading import local
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openclaw_memory import _forks
from openclaw_memory.embeddings.remote.errors import FailureKind, RedirectError, ServiceError, StatusError
from openclaw_memory.embeddings.remote.service import on_this_machine, public, user_of, without_user
from openclaw_memory.errors import EmbedderError

# Twice what the largest honest answer takes: 2,048 vectors of 3,072 dimensions in base64.
MAX_BODY_BYTES = 64 * 2**20
# How long a wait lasts before it checks the deadline and whether the request was cancelled.
STEP_SECONDS = 0.1
IDLE_SECONDS = 30.0
# What no request takes: sockets know no infinite timeout.
LONGEST_SECONDS = 3600.0
_current = local()


class _Ends(NamedTuple):
    """When requests of a thread end, on the monotonic clock."""

    at: float
    request: Future[Any] | None  # done before its work is: nothing waits for it any more


# --- deadlines ---------------------------------------------------------------------------------------------------


@contextmanager
def deadline(seconds: float, request: Future[Any] | None = None) -> Iterator[None]:
    """End requests of this thread after `seconds`, or once `request` is done; an outer deadline holds too."""
    before: _Ends | None = getattr(_current, "ends", None)
    ends = time.monotonic() + seconds
    _current.ends = _Ends(ends, request) if before is None else _Ends(min(ends, before.at), request or before.request)
    try:
        yield
    finally:
        _current.ends = before


def seconds_left() -> float:
    """Return how long the request of this thread may take; raise CancelledError or TimeoutError if it is over."""
    ends: _Ends | None = getattr(_current, "ends", None)
    if ends is None:
        return LONGEST_SECONDS
    if ends.request is not None and ends.request.done():
        raise CancelledError
    left = ends.at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, LONGEST_SECONDS)


def sleep(seconds: float) -> None:
    """Wait, but no longer than the request of this thread may take: see `seconds_left`."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, seconds_left(), STEP_SECONDS))


@contextmanager
def limit_answers(most_bytes: int) -> Iterator[None]:
    """Limit the size of answers in this thread by the request."""
    before: int | None = getattr(_current, "most_bytes", None)
    _current.most_bytes = most_bytes
    try:
        yield
    finally:
        _current.most_bytes = before


# --- the client --------------------------------------------------------------------------------------------------


def http_client(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    library: str = "httpx",
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Any:
    """Return an `httpx.Client` for the server of `url`, to be used from several threads.

    It uses the environment's proxies, except for servers on this machine. Requests end at the deadlines of the
    pipeline that calls `Service.send`. A user and a password in `url` are sent with each request: leave them out of
    the addresses that are asked, since those are logged.

    Args:
        url: The address of the server.
        headers: Sent with each request.
        library: `httpx`, or its fork `httpx2` for an SDK that takes that one.
        max_body_bytes: The longest answer; less, where the pipeline knows what was asked for.

    Returns:
        The client. A redirect, a compressed answer and one longer than `max_body_bytes` raise a `ServiceError`.

    Raises:
        ImportError: The library is not installed.
    """
    httpx: Any = import_module(library)

    class Body(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, origin: str) -> None:
            self._stream, self._origin, self.close = stream, origin, stream.close
            self._most = min(max_body_bytes, getattr(_current, "most_bytes", None) or max_body_bytes)

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for part in self._stream:
                seconds_left()
                size += len(part)
                if size > self._most:
                    raise ServiceError(
                        f"{self._origin} sent more than {self._most:,} bytes, which no answer to what was asked takes; "
                        "check base_url, or set a lower max_items",
                        FailureKind.PASSING,
                    )
                yield part

    class Transport(httpx.HTTPTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            left = seconds_left()
            request.extensions["timeout"] = {"connect": left, "read": left, "write": left, "pool": left}
            answer = super().handle_request(request)
            origin, status, sent = public(str(request.url)), answer.status_code, answer.headers
            packing = sent.pop("content-encoding", "identity").strip().lower()
            packed = packing not in {"", "identity"}
            if status < 400 and (packed or status >= 300):
                answer.close()
                if status >= 300:
                    raise RedirectError(origin, status, sent.get("location", ""))
                raise ServiceError(
                    f"{origin} sent a compressed answer ({packing[:20]}) whose size is unknown, although asked not to; "
                    "check base_url and proxies",
                    FailureKind.DENIED,
                )
            if packed:  # an error: its status and headers say what to do
                answer.close()
                return httpx.Response(status, headers=sent, content=b"")
            return httpx.Response(status, headers=sent, stream=Body(answer.stream, origin))

    limits = httpx.Limits(keepalive_expiry=IDLE_SECONDS)
    transport = Transport(proxy=_proxy_for(url), limits=limits)
    sent = {**(headers or {}), "Accept-Encoding": "identity"}
    return httpx.Client(transport=transport, headers=sent, follow_redirects=False, timeout=None, auth=user_of(url))


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a server; None for servers on this machine."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or on_this_machine(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class LazyClient:
    """A client that is made at its first use, and again after it was closed; safe to use from several threads."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, _forks.lock()
        self._made: Any = None

    def __call__(self) -> Any:
        """Return the client."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def close(self) -> None:
        """End all connections; the next use opens new ones."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()


class RestApi:
    """Requests to the REST interface of a service."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self.endpoint = without_user(endpoint)
        self._client = LazyClient(lambda: http_client(endpoint, headers))
        self.close = self._client.close

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """Return the answer as httpx has it; raise StatusError if its status is that of an error."""
        return checked_answer(self._client().request(method, self.endpoint + path, **content))


def checked_answer(response: Any) -> Any:
    """Return the response; raise StatusError if its status is that of an error."""
    if response.status_code >= 400:
        raise StatusError(response)
    return response


def json_lines(content: bytes) -> Iterator[Any]:
    """Yield what the lines of a file hold."""
    return (json.loads(line) for line in content.splitlines() if line.strip())


def as_json_lines(values: Iterable[Any]) -> bytes:
    """Return a file with a line for each value."""
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def in_order(answer: Any, count: int, origin: str) -> list[Any]:
    """Return the vectors of an answer of OpenAI or Voyage in the order of its indexes, as arrays or lists.

    Raises EmbedderError, which says that `origin` sent it, unless it has one row for each index below `count`.
    """
    import numpy as np

    rows = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        # Not cut here: half of a key looks like ordinary words.
        sent = " ".join(str(answer).split())
        raise EmbedderError(f"{origin} sent an answer without a list of embeddings; check base_url and model: {sent}")
    by_index = {row.get("index"): row.get("embedding") for row in rows}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise EmbedderError(
            f"{origin} sent {len(rows)} embeddings with {len(by_index)} different indexes for {count} texts; "
            "each text must have one"
        )
    vectors = [by_index[index] for index in range(count)]
    return [np.frombuffer(b64decode(v, validate=True), "<f4") if isinstance(v, str) else v for v in vectors]


def results_of(lines: Iterable[Any], origin: str) -> dict[str, Any]:
    """Return a job's vectors by key, of OpenAI or Voyage: a line of its file for each text, failed ones left out."""
    answers = ((line["custom_id"], line.get("response") or {}) for line in lines)
    return {key: in_order(answer["body"], 1, origin)[0] for key, answer in answers if answer.get("status_code") == 200}
