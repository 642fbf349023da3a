"""Carry the protocol: over stdin and stdout for the one client that starts this, or over HTTP for several."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import io
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import Any, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from openclaw_memory.errors import ConfigError
from openclaw_memory_mcp.server import MemoryServer

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WAITING_LINES = 8  # that were read and not answered yet; the client waits with the next
MAX_BODY_BYTES, MAX_HEADER_BYTES = 4_000_000, 32_000  # of a request
REQUEST_SECONDS = 10.0  # in which a request has to arrive whole
MAX_CONNECTIONS = 100  # at once; a further one is answered with the status 503
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_END_SECONDS = 2  # what is under way at the end may take so long


def serve_stdio(server: MemoryServer) -> None:
    """Serve the client at the other end of stdin and stdout until it goes, or SIGTERM or SIGINT comes.

    On stdout there is the protocol alone: whatever else is printed goes to stderr.
    """

    async def serve() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_on_signal, tasks.cancel_scope.cancel)
            tasks.start_soon(server.changes.follow)
            with _take_stdout() as stdout:
                # It reads in a thread of ours, which ends with the process: a read from a pipe cannot be called off.
                requests = _read_requests(_read_stdin(), stdout)
                streams = stdio_server(cast("Any", requests), cast("Any", stdout))
                async with streams as (read, write):
                    await server.protocol.run(read, write, server.protocol.create_initialization_options())
            tasks.cancel_scope.cancel()

    try:
        anyio.run(serve)
    except BaseExceptionGroup as errors:
        # A client that has gone while it was being answered reads no answer; anything else is an error.
        if (unexpected := errors.split((BrokenPipeError, ConnectionResetError))[1]) is not None:
            raise unexpected from None


def serve_http(
    server: MemoryServer,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str,
    hosts: Collection[str] = (),
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve clients over streamable HTTP until SIGTERM or SIGINT comes.

    Args:
        server: The server.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        token: The token that clients send as `Authorization: Bearer TOKEN`.
        hosts: Further names by which clients reach it: a request that names any other one is refused, since a web page
            may have a browser send it.
        started: Called with the URL once it listens.

    Raises:
        ConfigError: The token guards nothing, or the address cannot be listened on.
    """
    if not (token.isascii() and token.isprintable() and token.strip()):
        raise ConfigError("the token is empty, or has characters that a header cannot carry: use letters and digits")
    listening = _listen(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}{PATH}"
    with listening:
        anyio.run(_serve_http, server, listening, token, (*LOOPBACK, host, *hosts), lambda: started(url))


async def _serve_http(
    server: MemoryServer,
    listening: socket.socket,
    token: str,
    hosts: Collection[str],
    started: Callable[[], None],
) -> None:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Timed(H11Protocol):
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

    class Listening(uvicorn.Server):
        """One that leaves signals to us: it would raise them again once it has ended."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

    names = [f"[{name}]" if ":" in name else name for name in hosts]
    security = TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[f"http://{name}{port}" for name in names for port in ("", ":*")],
    )
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=MAX_BODY_BYTES
    )
    # No log of its own: it would print requests on stdout.
    config = uvicorn.Config(
        _with_token(app, token),
        http=Timed,
        ws="none",
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=_END_SECONDS,
    )
    http = Listening(config)

    def end() -> None:
        server.changes.listen.close()
        http.handle_exit(signal.SIGTERM, None)  # streams of events look for it too

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_on_signal, end)
        tasks.start_soon(server.changes.follow)
        await http.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


def _with_token(app: Any, token: str) -> Any:
    """Return an ASGI app that answers only requests that carry the token."""

    async def check_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scheme, _, credentials = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(credentials.strip(), token.encode()):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"send the token as Authorization: Bearer TOKEN\n"})
                return
        await app(scope, receive, send)

    return check_token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"{host} port {port} cannot be listened on: {error}; choose another port") from error


async def _on_signal(end: Callable[[], None]) -> None:
    """Call `end` once SIGTERM or SIGINT comes."""
    # Windows knows no such receiver: there Ctrl-C raises KeyboardInterrupt, and the end is sudden.
    with contextlib.suppress(NotImplementedError), anyio.open_signal_receiver(*_SIGNALS) as received:
        async for _ in received:
            end()


class _Stdout:
    """Writes each message in one go, in a thread: a client that does not read holds up nothing but its answers."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._text = ""
        self._lock = threading.Lock()

    async def write(self, text: str) -> None:
        self._text += text

    async def flush(self) -> None:
        text, self._text = self._text, ""
        await anyio.to_thread.run_sync(self._write, text.encode(), abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        remaining = memoryview(data)
        with self._lock:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]


@contextlib.contextmanager
def _take_stdout() -> Iterator[_Stdout]:
    """Keep stdout for the protocol: other prints go to stderr meanwhile."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        with io.FileIO(own, "w", closefd=False) as file:
            yield _Stdout(file)
    finally:
        sys.stdout.flush()
        os.dup2(own, 1)
        os.close(own)


async def _read_requests(lines: AsyncIterator[str], stdout: _Stdout) -> AsyncIterator[str]:
    """Yield the lines that are messages, and answer the others: the SDK drops them, and their sender would wait."""
    async for line in lines:
        message = _read_message(line) if line.strip() else None
        if isinstance(message, types.JSONRPCError):
            await stdout.write(message.model_dump_json() + "\n")
            await stdout.flush()
        elif message is not None:
            yield message


def _read_message(line: str) -> str | types.JSONRPCError | None:
    """Return a line as a message that parses, or the error to answer with; None for a broken answer.

    Half an emoji, which JavaScript sends where it cuts a text, becomes U+FFFD.
    """
    if _is_message(line):
        return line
    try:
        text = _LONE_SURROGATE.sub("\ufffd", json.dumps(json.loads(line), ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        return types.JSONRPCError(
            jsonrpc="2.0",
            id=None,
            error=types.ErrorData(code=types.PARSE_ERROR, message=f"this line is no JSON: {error}"),
        )
    if _is_message(text):
        return text
    fields = value if isinstance(value := json.loads(text), dict) else {}
    if "method" not in fields and fields.keys() & {"result", "error"}:
        return None  # an answer to an answer would go back and forth
    request_id = fields.get("id")
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None,
        error=types.ErrorData(
            code=types.INVALID_REQUEST,
            message="this line is no request: send one JSON object a line, with jsonrpc, an id that is a string or a "
            "whole number, a method that is a string, and params that are an object",
        ),
    )


def _is_message(text: str) -> bool:
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    # A request with an id that is none parses as a notification, which nobody answers.
    return not (isinstance(message, types.JSONRPCNotification) and "id" in json.loads(text))


async def _read_stdin() -> AsyncIterator[str]:
    """Yield the lines of stdin, read by a thread that holds up neither the end of a task nor that of the process."""
    send, receive = anyio.create_memory_object_stream[str](WAITING_LINES)
    loop = asyncio.get_running_loop()
    free = threading.Semaphore(WAITING_LINES)
    # A buffer of its own: the end of the interpreter waits for the lock of the one in sys.stdin.
    stdin = io.BufferedReader(io.FileIO(os.dup(0)))

    def send_line(line: str | None) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            send.close() if line is None else send.send_nowait(line)

    def read() -> None:
        with stdin, contextlib.suppress(RuntimeError):  # the loop has ended
            for line in stdin:
                free.acquire()
                loop.call_soon_threadsafe(send_line, line.decode("utf-8", "replace"))
            loop.call_soon_threadsafe(send_line, None)

    threading.Thread(target=read, name="openclaw-memory stdin", daemon=True).start()
    with receive:
        async for line in receive:
            free.release()
            yield line
