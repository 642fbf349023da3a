"""Serve the page on this machine alone, until it is ended."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError
from openclaw_memory_web.app import create_app

HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
REQUEST_SECONDS = 10.0  # in which a request has to arrive whole
MAX_CONNECTIONS = 100  # at once; a further one is answered with the status 503
_END_SECONDS = 2  # what is under way at the end may take so long


def serve(
    memory: Memory,
    *,
    port: int = 0,
    started: Callable[[str], None] = lambda _: None,
    entered: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page of a memory on loopback until SIGTERM or SIGINT comes.

    Args:
        memory: The memory. It is shown whole, to the first browser that opens the address.
        port: The port; 0 takes a free one.
        started: Called with the address once it listens. It holds a token that works once.
        entered: Called once that token is used.

    Raises:
        ConfigError: The port cannot be listened on.
    """
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise ConfigError(f"port {port} cannot be listened on: {error}; choose another port, or 0") from error
    token = secrets.token_urlsafe(32)
    with listening:
        port = listening.getsockname()[1]
        app = create_app(memory, token=token, hosts=[f"{HOST}:{port}", f"localhost:{port}"], entered=entered)
        # No log of its own: it would hold the addresses of pages, and with them what was searched for.
        config = uvicorn.Config(
            app,
            http=_Timed,
            limit_concurrency=MAX_CONNECTIONS,
            log_config=None,
            access_log=False,
            log_level="warning",
            ws="none",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        _Server(config, lambda: started(f"http://{HOST}:{port}/?token={token}")).run(sockets=[listening])


class _Timed(H11Protocol):
    """A connection that is closed where a request does not arrive whole in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._await_request()

    def on_response_complete(self) -> None:
        self._deadline.cancel()
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._check_request)

    def _check_request(self) -> None:
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self.transport.abort()


class _Server(uvicorn.Server):
    """A server that reports when it listens; a signal ends it without an error."""

    def __init__(self, config: uvicorn.Config, listens: Callable[[], None]) -> None:
        super().__init__(config)
        self._listens = listens

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals, and give them back at the end without raising them again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._listens()
