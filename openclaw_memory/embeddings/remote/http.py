"""The HTTP client for services: no redirects, nothing unpacked, bounded answers, and an end at any moment.

Each read from a socket waits in short steps, so that a deadline holds for the whole exchange, however slowly bytes
arrive, and a request that is cancelled in another thread ends at once.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, local
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from openclaw_memory.embeddings.remote.errors import FailureKind, RedirectError, ServiceError, StatusError
from openclaw_memory.errors import EmbedderError

# Twice what the largest honest answer takes: 2,048 vectors of 3,072 dimensions in base64.
MAX_BODY_BYTES = 64 * 2**20
# How long a read from a socket waits before it checks the deadline and whether the request was cancelled.
STEP_SECONDS = 0.1
WRITE_BYTES = 2**18
IDLE_SECONDS = 30.0
# What no request takes: sockets know no infinite timeout.
LONGEST_SECONDS = 3600.0
_current = local()


class _Ends(NamedTuple):
    """When requests of a thread end, on the monotonic clock, and what cancels them."""

    at: float
    request: Future[Any] | None


# --- addresses ---------------------------------------------------------------------------------------------------


def on_this_machine(url: str) -> bool:
    """Return whether what is sent to `url` stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public(url: str) -> str:
    """Return the URL without what may be secret: a user's name and password, the query, and the fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the password and the values of the query, as written and as sent."""
    parts = urlsplit(url)
    password = parts.password or ""
    return tuple(filter(None, (password, unquote(password), *(value for _, value in parse_qsl(parts.query)))))


def checked_url(url: str, example: str) -> str:
    """Return the URL without a slash at its end.

    Raises:
        EmbedderError: it cannot be the address of a server; the message shows `example`.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, a port that is no number
        usable = False
    if not usable:
        raise EmbedderError(f"base_url {url.rpartition('@')[2]!r} is no address of a server; write it like {example}")
    return url.rstrip("/")


# --- deadlines ---------------------------------------------------------------------------------------------------


@contextmanager
def deadline(seconds: float, request: Future[Any] | None = None) -> Iterator[None]:
    """End requests of this thread after `seconds`, or once `request` is cancelled; an outer deadline holds too."""
    before: _Ends | None = getattr(_current, "ends", None)
    ends = time.monotonic() + seconds
    _current.ends = _Ends(ends, request) if before is None else _Ends(min(ends, before.at), request or before.request)
    try:
        yield
    finally:
        _current.ends = before


def seconds_left() -> float:
    """Return how long the request of this thread may still take.

    Raises:
        CancelledError: it was cancelled.
        TimeoutError: its deadline has passed.
    """
    ends: _Ends | None = getattr(_current, "ends", None)
    if ends is None:
        return LONGEST_SECONDS
    if ends.request is not None and ends.request.cancelled():
        raise CancelledError
    left = ends.at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, LONGEST_SECONDS)


def sleep(seconds: float) -> None:
    """Wait, but no longer than `deadline` allows.

    Raises:
        CancelledError: the request of this thread was cancelled.
        TimeoutError: its deadline has passed.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, seconds_left(), STEP_SECONDS))


class _Stream:
    """A connection of httpcore whose every read and write heeds `deadline`; a `httpcore.NetworkStream`."""

    def __init__(self, inner: Any, timed_out: type[Exception]) -> None:
        self._inner, self._timed_out = inner, timed_out
        self.close, self.get_extra_info = inner.close, inner.get_extra_info

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline holds instead
        while True:
            try:
                data: bytes = self._inner.read(max_bytes, min(seconds_left(), STEP_SECONDS))
            except self._timed_out:
                continue
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the same
        for start in range(0, len(buffer), WRITE_BYTES):
            self._inner.write(buffer[start : start + WRITE_BYTES], seconds_left())

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:  # noqa: ARG002
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, seconds_left()), self._timed_out)


class _Network:
    """Opens connections that heed `deadline`; a `httpcore.NetworkBackend`."""

    def __init__(self, httpcore: Any) -> None:
        self._inner, self._timed_out = httpcore.SyncBackend(), httpcore.ReadTimeout

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline holds instead
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> _Stream:
        opened = self._inner.connect_tcp(host, port, seconds_left(), local_address, socket_options)
        return _Stream(opened, self._timed_out)


# --- the client --------------------------------------------------------------------------------------------------


def http_client(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    library: str = "httpx",
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Any:
    """Return an `httpx.Client` for the server of `url`, to be used from several threads.

    It honours the environment's proxies, except for servers on this machine. An answer that redirects, that is
    compressed, or that is longer than `max_body_bytes` raises a `ServiceError` before it is read, or as soon as it is
    too long. Requests end at the deadlines of the pipeline that `Service.send` is called by.

    Args:
        url: The address of the server.
        headers: Sent with each request.
        library: `httpx`, or its fork `httpx2` for an SDK that takes that one.
        max_body_bytes: The longest answer.
    """
    httpx: Any = import_module(library)
    httpcore: Any = import_module(library.replace("httpx", "httpcore"))
    transport = _transport(httpx, httpcore, _pool(httpx, httpcore, url), max_body_bytes)
    sent = {**(headers or {}), "Accept-Encoding": "identity"}
    return httpx.Client(transport=transport, headers=sent, follow_redirects=False, timeout=None)


def _pool(httpx: Any, httpcore: Any, url: str) -> Any:
    """Return the connections to a server, through the proxy that the environment names for it."""
    options: dict[str, Any] = {
        # Reading all certificates takes a while, and a server on this machine mostly has none.
        "ssl_context": None if urlsplit(url).scheme == "http" else httpx.create_ssl_context(),
        "network_backend": _Network(httpcore),
        "max_connections": None,
        "keepalive_expiry": IDLE_SECONDS,
    }
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or on_this_machine(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return httpcore.ConnectionPool(**options)
    at = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if at.username is not None:
        options["proxy_auth"] = (unquote(at.username), unquote(at.password or ""))
    kind = httpcore.SOCKSProxy if at.scheme.startswith("socks") else httpcore.HTTPProxy
    return kind(proxy_url=at._replace(netloc=at.netloc.rpartition("@")[2]).geturl(), **options)


def _transport(httpx: Any, httpcore: Any, pool: Any, max_body_bytes: int) -> Any:
    class Body(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, origin: str) -> None:
            self._stream, self._origin = stream, origin
            self.close = stream.close

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for part in self._stream:
                size += len(part)
                if size > max_body_bytes:
                    raise ServiceError(
                        f"{self._origin} sent more than {max_body_bytes:,} bytes, which no embeddings take; check "
                        "base_url, or set a lower max_items",
                        FailureKind.PASSING,
                    )
                yield part

    class Transport(httpx.BaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            answer = pool.handle_request(_core_request(httpcore, request))
            headers, stream = httpx.Headers(answer.headers), answer.stream
            origin = public(str(request.url))
            packing = headers.pop("content-encoding", "identity").strip().lower()
            try:
                _check(origin, answer.status, headers, packing)
            except ServiceError:
                stream.close()
                raise
            if packing not in {"", "identity"}:  # an error: its status and headers say what to do
                stream.close()
                return httpx.Response(answer.status, headers=headers, content=b"")
            return httpx.Response(answer.status, headers=headers, stream=Body(stream, origin))

        def close(self) -> None:
            pool.close()

    return Transport()


def _core_request(httpcore: Any, request: Any) -> Any:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
    )


def _check(origin: str, status: int, headers: Any, packing: str) -> None:
    if 300 <= status < 400:
        raise RedirectError(origin, status, headers.get("location", ""))
    if packing not in {"", "identity"} and status < 400:
        raise ServiceError(
            f"{origin} sent a compressed answer ({packing[:20]}), although asked not to: it was not read, since its "
            "size is unknown; check base_url and proxies",
            FailureKind.DENIED,
        )


class LazyClient:
    """A client that is made at its first use, and again after it was closed; safe to use from several threads."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, Lock()
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


def checked_answer(response: Any) -> Any:
    """Return the response.

    Raises:
        StatusError: its status is that of an error.
    """
    if response.status_code >= 400:
        raise StatusError(response)
    return response
