"""Serve the page on this machine alone, until it is ended."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError
from openclaw_memory_web.app import create_app

HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_END_SECONDS = 2  # what is under way at the end may take so long


def serve(memory: Memory, *, port: int = 0, started: Callable[[str], None] = lambda _: None) -> None:
    """Serve the page of a memory on loopback until SIGTERM or SIGINT comes.

    Args:
        memory: The memory. It is shown whole, to the first browser that opens the address.
        port: The port; 0 takes a free one.
        started: Called with the address once it listens. It holds a token that works once.

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
        app = create_app(memory, token=token, hosts=[f"{HOST}:{port}", f"localhost:{port}"])
        # No log of its own: it would hold the addresses of pages, and with them what was searched for.
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="warning",
            ws="none",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        _Server(config, lambda: started(f"http://{HOST}:{port}/?token={token}")).run(sockets=[listening])


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
