"""An embedding server on loopback that speaks for OpenAI, Gemini and Voyage, counts what it is asked, and lies on order.

As a process of its own: `python tests/embedding_server.py --port 0 --latency 0.02 --dims 256` prints one line of JSON
with its addresses, and `GET /stats` says what it counted.
"""

import argparse
import asyncio
import json
import re
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from embedding_faults import Fault, honest
from embedding_jobs import Job, Jobs, Knobs
from embedding_wire import EMPTY, TOO_LONG, TOO_MANY, Answer, Asked, bad_key, embedded, error, ok, read, write

PATHS = {"openai": "/openai/v1", "gemini": "/gemini", "voyage": "/voyage/v1"}
# (method, path, kind of request); what the first group finds is a model, a file or a job.
FILES_AND_BATCHES = [
    ("POST", r"/v1/embeddings", "embed"),
    ("POST", r"/v1/files", "upload"),
    ("GET", r"/v1/files/([^/]+)/content", "download"),
    ("DELETE", r"/v1/files/([^/]+)", "delete"),
    ("POST", r"/v1/batches", "submit"),
    ("GET", r"/v1/batches/([^/]+)", "poll"),
    ("POST", r"/v1/batches/([^/]+)/cancel", "cancel"),
]
ROUTES = {
    "openai": FILES_AND_BATCHES,
    "voyage": FILES_AND_BATCHES,
    "gemini": [
        ("POST", r"/v1(?:beta)?/models/([^/]+):(?:batchE|e)mbedContents?", "embed"),
        ("POST", r"/v1(?:beta)?/models/([^/]+):asyncBatchEmbedContent", "submit"),
        ("POST", r"/upload/v1(?:beta)?/files", "upload"),
        ("GET", r"/v1(?:beta)?/(batches/[^/]+)", "poll"),
        ("POST", r"/v1(?:beta)?/(batches/[^/]+):cancel", "cancel"),
        ("GET", r"/v1(?:beta)?/(files/[^/]+):download", "download"),
        ("DELETE", r"/v1(?:beta)?/(files/[^/]+)", "delete"),
    ],
}


class EmbeddingServer:
    """Serves from a thread of its own between `start` and `stop`; also a context manager. Knobs may be turned anytime.

    `key` None takes any key and none. `max_items` and `max_bytes` (UTF-8, of all texts) bound one request,
    `max_text_bytes` one text; beyond them the answer is the service's own 400, or what `when_too_large` makes of it.
    A request with a text in `refused` gets 400. `latency` is in seconds, from the request to its answer.
    """

    def __init__(self, *, dims: int = 64, latency: float = 0.0, key: str | None = None, port: int = 0) -> None:
        self.dims, self.latency, self.key, self.port = dims, latency, key, port
        self.max_items = self.max_bytes = self.max_text_bytes = 10**9
        self.when_too_large: Fault = honest
        self.refuse_empty = True
        self.refused: set[str] = set()
        self.requests: list[Asked] = []
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.connections = self.at_once = self.most_at_once = 0
        self.jobs = Jobs(dims)
        self._scripts: dict[str, deque[Fault]] = defaultdict(deque)
        self._always: dict[str, Fault] = {}
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="embedding server", daemon=True)
        self._ready = threading.Event()
        self._failed: BaseException | None = None

    # --- what a test does with it --------------------------------------------------------------------------------

    def start(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def stop(self) -> None:
        """End all connections and the thread. Calling it twice is allowed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, service: str) -> str:
        """The `base_url` for the SDK of openai, gemini or voyage."""
        return self.root + PATHS[service]

    def script(self, *faults: Fault, at: str = "embed") -> None:
        """Answer the next requests of this kind with these lies, one each, `honest` among them for none."""
        self._scripts[at].extend(faults)

    def always(self, fault: Fault, at: str = "embed") -> None:
        """Answer requests of this kind with this lie whenever the script is at its end; `honest` ends it."""
        self._always[at] = fault

    @property
    def batch(self) -> Knobs:
        """What becomes of batch jobs submitted from now on."""
        return self.jobs.knobs

    def seen(self, at: str = "embed") -> list[Asked]:
        """The requests of this kind so far, in the order in which they came, those without a good key among them."""
        return [asked for asked in self.requests if asked.at == at]

    def stats(self) -> dict[str, int]:
        return {
            "requests": len(self.requests),
            "embed_requests": len(self.seen()),
            "texts_asked": self.asked.total(),
            "texts_answered": self.answered.total(),
            "texts_answered_again": self.answered.total() - len(self.answered),
            "most_at_once": self.most_at_once,
            "connections": self.connections,
        }

    # --- what it answers -----------------------------------------------------------------------------------------

    def _respond(self, asked: Asked, name: str) -> tuple[Answer, Job | None]:
        """The honest answer to a request; for a poll, also the job that has just ended."""
        if asked.at == "elsewhere":
            return error(asked, 404, f"Unknown path {asked.path}"), None
        if not self._knows(asked):
            return bad_key(asked), None
        if asked.at != "embed":
            return self.jobs.answer(asked, name, self.base_url(asked.service))
        return self._refusal(asked) or ok(self._vectors(asked)), None

    def _vectors(self, asked: Asked) -> bytes:
        return write(asked, [embedded(text, asked.dims or self.dims, asked.base64) for text in asked.texts])

    def _knows(self, asked: Asked) -> bool:
        if self.key is None or "upload_id=" in asked.path:
            return True
        if asked.service == "gemini":
            return asked.headers.get("x-goog-api-key") == self.key
        return asked.headers.get("authorization") == f"Bearer {self.key}"

    def _refusal(self, asked: Asked) -> Answer | None:
        sizes = [len(text.encode("utf-8", "surrogatepass")) for text in asked.texts]
        if len(sizes) > self.max_items:
            words = TOO_MANY[asked.service].format(limit=self.max_items, found=len(sizes))
            return self.when_too_large(asked, error(asked, 400, words))
        bounds = ((sum(sizes), self.max_bytes), (max(sizes, default=0), self.max_text_bytes))
        for size, limit in bounds:
            if size > limit:
                words = TOO_LONG[asked.service].format(limit=limit, found=size)
                return self.when_too_large(asked, error(asked, 400, words))
        if not sizes:
            return error(asked, 400, "Invalid input: at least one text is needed.")
        if self.refuse_empty and "" in asked.texts:
            return error(asked, 400, EMPTY[asked.service].format(place=asked.texts.index("")))
        if not self.refused.isdisjoint(asked.texts):
            return error(asked, 400, "The request was rejected by our safety system.", code="content_policy_violation")
        return None

    def _fault(self, asked: Asked, answer: Answer) -> Answer:
        """The lie that is next for an honest answer; a refusal stays what it is, and uses none up."""
        if answer.status != 200:
            return answer
        script = self._scripts[asked.at]
        return (script.popleft() if script else self._always.get(asked.at, honest))(asked, answer)

    # --- HTTP ----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        open_connections: set[asyncio.Task[None]] = set()
        writers: list[asyncio.StreamWriter] = []

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            open_connections.add(task)
            writers.append(writer)
            self.connections += 1
            try:
                await self._talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                writer.transport.abort()  # the client has gone, or the server stops
            finally:
                writer.close()
                open_connections.discard(task)

        try:
            server = await asyncio.start_server(connected, "127.0.0.1", self.port, backlog=256)
        except OSError as failed:
            self._failed = failed
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for _ in range(5):  # turns of the loop until a connection that was just accepted is among the open ones
            await asyncio.sleep(0)
        for task in open_connections:
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()  # one that was closed may still have an answer that its client does not read
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        await server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        goes_on = True
        while goes_on:
            method, target, headers = head(await reader.readuntil(b"\r\n\r\n"))
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            due = self._loop.time() + self.latency
            if target == "/stats":
                await send_whole(reader, writer, wire(ok(self.stats())))
                continue
            asked, name = parsed(method, target, headers, body)
            self.requests.append(asked)
            self.asked.update(asked.texts)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                goes_on = await self._reply(reader, writer, asked, name, due)
            finally:
                self.at_once -= 1

    async def _reply(self, reader: Any, writer: Any, asked: Asked, name: str, due: float) -> bool:
        truth, ended = self._respond(asked, name)
        answer = self._fault(asked, truth)
        payload = wire(answer)
        if (rest := due - self._loop.time()) > 0:
            await asyncio.sleep(rest)
        if answer is truth and answer.status == 200:
            self.answered.update(asked.texts)
            if ended is not None:
                self.answered.update(text for _, item in ended.items for text in item.texts)
        return await (answer.send or send_whole)(reader, writer, payload)


async def send_whole(_: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: bytes) -> bool:
    writer.write(whole)
    await writer.drain()
    return True


def head(raw: bytes) -> tuple[str, str, Mapping[str, str]]:
    """Method, target and headers (names in lower case) of a request."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    return method, target, {name.lower(): words.strip() for name, _, words in pairs}


def parsed(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[Asked, str]:
    """The request, and the name of the file or job that it is about; one that is not understood is for "elsewhere"."""
    path = unquote(urlsplit(target).path)
    service = next((name for name in PATHS if path.startswith(f"/{name}/")), "")
    rest = path.removeprefix(f"/{service}") if service else path
    service = service or "openai"
    if "key" in (query := parse_qs(urlsplit(target).query)):
        headers = {"x-goog-api-key": query["key"][0], **headers}
    asked = Asked(service, "elsewhere", method, target.removeprefix(f"/{service}"), headers, body)
    for known, pattern, at in ROUTES[service]:
        found = re.fullmatch(pattern, rest)
        if known == method and found:
            name = found[1] if found.groups() else ""
            return understood(replace(asked, at=at), name), name
    return asked, ""


def understood(asked: Asked, name: str) -> Asked:
    if asked.service == "gemini":
        asked = replace(asked, model=name)
    if asked.at != "embed":
        return asked
    try:
        return replace(asked, **read(asked.service, json.loads(asked.body), name))
    except (ValueError, KeyError, TypeError):
        return asked  # without texts, and so refused


def wire(answer: Answer) -> bytes:
    """The answer as bytes, its head counting the bytes of its body."""
    reason = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Unknown Error"
    headers = {"content-type": "application/json", "content-length": str(len(answer.body)), **answer.headers}
    lines = "".join(f"{name}: {words}\r\n" for name, words in headers.items())
    return f"HTTP/1.1 {answer.status} {reason}\r\n{lines}\r\n".encode("latin-1") + answer.body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--key", default=None, help="the only key that is taken; default: any")
    options = parser.parse_args()
    with EmbeddingServer(dims=options.dims, latency=options.latency, key=options.key, port=options.port) as server:
        print(json.dumps({"root": server.root} | {name: server.base_url(name) for name in PATHS}), flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
