"""A model on this machine that speaks OpenAI's protocol: it answers what a test scripts, and keeps what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeOpenAI:
    """Answers each request with what `reply(request)` returns: a text, or the name and arguments of a tool to call.

    `tokens(request)` is how many the answer says that the request had.
    """

    def __init__(self, reply):
        self.asked, self.tokens = [], lambda _: 100
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.asked.append(request)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for chunk in fake.chunks(reply(request), fake.tokens(request)):
                    self.wfile.write(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def chunks(self, said, tokens):
        delta = {"role": "assistant", "content": said}
        if not isinstance(said, str):
            name, arguments = said
            function = {"name": name, "arguments": json.dumps(arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
            }
        head = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
        yield {**head, "choices": [{"index": 0, "delta": delta}]}
        why = "stop" if isinstance(said, str) else "tool_calls"
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]}
        usage = {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10}
        yield {**head, "choices": [], "usage": usage}
        yield "[DONE]"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def words(request):
    """All that the messages of a request say, those of the system too."""
    return "\n".join(text for message in request["messages"] for text in texts(message))


def texts(message):
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]
