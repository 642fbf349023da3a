"""Serve an embedder on this machine by OpenAI's protocol, as Ollama, LM Studio, vLLM and llama.cpp do."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from openclaw_memory.types import Embedder


class EmbeddingServer:
    """A server at `url` that answers `POST /v1/embeddings` with the vectors of `embedder`, in threads of this process.

    >>> from openclaw_memory import load_embedder
    >>> with EmbeddingServer(load_embedder("hashing")) as server:
    ...     served = load_embedder("openai", "any-name", base_url=server.url, api_key="none")
    ...     len(served.embed_query("Who looks after the boiler?"))
    64
    """

    def __init__(self, embedder: Embedder, port: int = 0) -> None:
        """Start it.

        Args:
            embedder: The embedder to serve.
            port: Where it listens, on the loopback interface alone; 0 for any port that is free.

        Raises:
            OSError: The port is taken.
        """
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _make_handler(embedder))
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """The address that a client takes as its `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        """Stop it; to stop it twice does no harm."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_handler(embedder: Embedder) -> type[BaseHTTPRequestHandler]:
    class Embeddings(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            rows = [
                {"object": "embedding", "index": at, "embedding": [float(number) for number in row]}
                for at, row in enumerate(embedder.embed_documents(texts))
            ]
            body = json.dumps({"object": "list", "model": request["model"], "data": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Embeddings
