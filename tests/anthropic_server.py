"""A service on this machine that answers as Anthropic's does, in words of its own, and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPLY = "Noted: the ferry to Texel leaves at seven."
SUMMARY = "<summary>They spoke of travel.</summary>"


class Asked:
    """What the service was asked: the messages of each request, oldest first."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []

    def since(self, number: int) -> str:
        return "\n".join(self.requests[number:])


def _events(reply: str, model: str) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": 1}
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": {**begun, "stop_reason": None, "stop_sequence": None}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": reply}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 9}}),
        ("message_stop", {}),
    ]
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name, **said})}\n\n" for name, said in events).encode()


@contextmanager
def serving() -> Iterator[Asked]:
    """Serve on a free port of this machine until the block ends."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                self._send(b'{"input_tokens": 100}', "application/json")
                return
            messages = json.dumps(body.get("messages"), ensure_ascii=False)
            asked.requests.append(messages)
            is_summary = "provide your summary" in json.dumps(body["messages"][-1])
            self._send(_events(SUMMARY if is_summary else REPLY, body["model"]), "text/event-stream")

        def do_GET(self) -> None:
            self._send(b"{}", "application/json")

        def do_HEAD(self) -> None:
            self._send(b"", "application/json")

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    asked.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
