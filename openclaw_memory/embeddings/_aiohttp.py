"""The aiohttp session that SDKs ask services with: no redirect is followed, nothing unpacked, every answer bounded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from openclaw_memory.embeddings._address import on_this_machine
from openclaw_memory.embeddings._failures import Meaning, ServiceError
from openclaw_memory.embeddings._http import MAX_BODY_BYTES, RedirectError, compressed, too_long

READ_BYTES = 2**16


def guarded_session(url: str, headers: Mapping[str, str], max_body_bytes: int = MAX_BODY_BYTES) -> Any:
    """A `ClientSession` for the server of `url`, which sends `headers` and refuses what `_http.guarded_client` does.

    To be made inside the event loop that it is used in. It honours the environment's proxies, save for servers on this
    machine, and has no time limits: whoever asks ends the call.
    """
    aiohttp: Any = import_module("aiohttp")
    return aiohttp.ClientSession(
        headers={**headers, "Accept-Encoding": "identity"},
        auto_decompress=False,
        trust_env=not on_this_machine(url),
        timeout=aiohttp.ClientTimeout(total=None),
        response_class=_guarded(aiohttp, max_body_bytes),
    )


def _guarded(aiohttp: Any, max_body_bytes: int) -> Any:
    """The class of an answer that is refused as soon as its head is known, or its body grows too long."""

    class Guarded(aiohttp.ClientResponse):  # type: ignore[misc]
        _whole: bytes | None = None

        async def start(self, connection: Any) -> Any:
            await super().start(connection)
            if _unreadable(self):
                self._whole = b""
                self.close()
            return self

        async def read(self) -> bytes:
            if self._whole is None:
                try:
                    self._whole = await self._bounded()
                except aiohttp.ClientError as error:  # voyageai would print it to the screen
                    self.close()
                    raise ServiceError(f"{_origin(self)} broke off its answer: {error}", Meaning.PASSING) from error
            return self._whole

        async def _bounded(self) -> bytes:
            whole = bytearray()
            async for part in self.content.iter_chunked(READ_BYTES):
                whole += part
                if len(whole) > max_body_bytes:
                    whole.clear()  # the error keeps what this frame holds
                    self.close()
                    raise too_long(_origin(self), max_body_bytes)
            return bytes(whole)

    return Guarded


def _unreadable(answer: Any) -> bool:
    """Whether the body stays unread. Of an error that came compressed, status and headers say what to do.

    Raises:
        ServiceError: the answer is of no use.
    """
    if 300 <= answer.status < 400:
        raise RedirectError(_origin(answer), answer.status, answer.headers.get("Location", ""))
    packing = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if packing in {"", "identity"}:
        return False
    if answer.status < 400:
        raise compressed(_origin(answer), packing)
    return True


def _origin(answer: Any) -> str:
    """Who answered; the query, which may hold a key, is left out."""
    return str(answer.url.with_query(None))
