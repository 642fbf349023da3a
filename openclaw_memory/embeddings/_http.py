"""The HTTP client that SDKs ask services with: it follows no redirect, unpacks nothing, and bounds every answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

from openclaw_memory.embeddings._address import on_this_machine
from openclaw_memory.embeddings._failures import Meaning, ServiceError

# Twice what the largest honest answer takes: 2,048 vectors of 3,072 dimensions in base64.
MAX_BODY_BYTES = 64 * 2**20
# OpenAI's and Google's SDKs moved from httpx to its fork httpx2 with this version; the two have the same interface.
FIRST_WITH_HTTPX2 = 3
# A proxy from the environment would carry texts off that are meant to stay on this machine.
PAST_PROXIES = {"http://": None, "https://": None, "all://": None}


class RedirectError(ServiceError):
    """The service points elsewhere, to `location`."""

    def __init__(self, origin: str, status: int, location: str) -> None:
        super().__init__(
            f"{origin} answered {status}, a redirect, which is not followed so that texts go nowhere else; set "
            "base_url to the service's own address",
            Meaning.DENIED,
        )
        self.location = location


def compressed(origin: str, packing: str) -> ServiceError:
    """The error for an answer that is packed."""
    return ServiceError(
        f"{origin} sent a compressed answer ({packing[:20]}), although asked not to: it was not read, since nobody "
        "knows how large it is; check base_url and proxies",
        Meaning.DENIED,
    )


def too_long(origin: str, limit: int) -> ServiceError:
    """The error for an answer of more than `limit` bytes."""
    return ServiceError(
        f"{origin} sent more than {limit:,} bytes, which no embeddings take; check base_url, or set a lower max_items",
        Meaning.PASSING,
    )


def guarded_client(url: str, sdk_version: str, max_body_bytes: int = MAX_BODY_BYTES) -> Any:
    """An `AsyncClient` for the server of `url`, of the HTTP library that an SDK of this version takes.

    It honours the environment's proxies, save for servers on this machine, and has no time limits: whoever asks ends
    the call. An answer that redirects, that is compressed, or that is longer than `max_body_bytes` raises
    `ServiceError` before it is read, or as soon as it is too long.
    """
    newer = int(sdk_version.partition(".")[0]) >= FIRST_WITH_HTTPX2
    httpx: Any = import_module("httpx2" if newer else "httpx")
    bounded = _bounded(httpx)

    async def check(response: Any) -> None:
        url = response.request.url
        origin = f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}{url.path}"
        if 300 <= response.status_code < 400:
            raise RedirectError(origin, response.status_code, response.headers.get("location", ""))
        packing = response.headers.pop("content-encoding", "identity").strip().lower()
        if packing in {"", "identity"}:
            response.stream = bounded(response.stream, origin, max_body_bytes)
        elif response.is_error:  # its status and headers say what to do: the words are left unread
            await response.stream.aclose()
            response.stream = httpx.ByteStream(b"")
        else:
            raise compressed(origin, packing)

    return httpx.AsyncClient(
        event_hooks={"response": [check]},
        headers={"Accept-Encoding": "identity"},
        follow_redirects=False,
        mounts=PAST_PROXIES if on_this_machine(url) else None,
        timeout=None,
    )


def _bounded(httpx: Any) -> Callable[[Any, str, int], Any]:
    """The class of a body from a server, named by `origin`, that is given up when it grows longer than `limit`."""

    class Bounded(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, origin: str, limit: int) -> None:
            self._inner, self._origin, self._limit = inner, origin, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = self._limit
            async for part in self._inner:
                left -= len(part)
                if left < 0:
                    raise too_long(self._origin, self._limit)
                yield part

        async def aclose(self) -> None:
            await self._inner.aclose()

    return Bounded
