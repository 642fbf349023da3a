"""What OpenAI, Gemini and Voyage say on the wire when texts are embedded: requests read, answers and errors written."""

import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from openclaw_memory.embeddings.hashing import WORD, HashingEmbedder

Row = list[float | None] | None


@dataclass(frozen=True)
class Asked:
    """One request. `at` is its kind: embed, upload, submit, poll, download, cancel, delete or elsewhere.

    `task` is Gemini's task type or Voyage's input type; `dims` what was asked for, 0 where nothing was.
    """

    service: str
    at: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    model: str = ""
    texts: tuple[str, ...] = ()
    task: str | None = None
    dims: int = 0
    base64: bool = False
    single: bool = False


@dataclass(frozen=True)
class Answer:
    """What goes back. `send` takes reader, writer and the whole answer, and says whether the connection may go on."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    send: Callable[[Any, Any, bytes], Awaitable[bool]] | None = None


def ok(body: object) -> Answer:
    return Answer(200, body if isinstance(body, bytes) else json.dumps(body).encode())


# --- requests
def read(service: str, body: Mapping[str, Any], model: str = "") -> dict[str, Any]:
    """The fields of `Asked` that the body of an embedding request holds; KeyError or TypeError where it is malformed."""
    if service == "gemini":
        requests = body.get("requests", [body])
        first = requests[0] if requests else {}
        return {
            "model": model,
            "texts": tuple(part_text(request["content"]) for request in requests),
            "task": first.get("taskType"),
            "dims": first.get("outputDimensionality") or 0,
            "single": "requests" not in body,
        }
    texts = body["input"]
    if isinstance(texts, str):
        texts = [texts]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("input must be texts")
    return {
        "model": body["model"],
        "texts": tuple(texts),
        "task": body.get("input_type"),
        "dims": body.get("dimensions" if service == "openai" else "output_dimension") or 0,
        "base64": body.get("encoding_format") == "base64",
    }


def part_text(content: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content["parts"])


# --- answers
@lru_cache(maxsize=8)
def embedder(dims: int) -> HashingEmbedder:
    return HashingEmbedder(dims)


@lru_cache(maxsize=100_000)
def embedded(text: str, dims: int, base64: bool) -> bytes:
    """The vector of a text as a JSON value. A text without words is one word, for no service answers with zeros."""
    words = text if WORD.search(text) else text.encode("utf-8", "surrogatepass").hex()
    vector = embedder(dims).embed_query(words)
    if not vector.any():  # the signs of its words cancel out
        vector[0] = 1.0
    return b'"%b"' % b64encode(vector.tobytes()) if base64 else json.dumps(vector.tolist()).encode()


def write(asked: Asked, values: Sequence[bytes], places: Sequence[int] | None = None) -> bytes:
    """An embedding answer out of vectors that are JSON values already; `places` are the indexes that it claims."""
    if asked.service == "gemini":
        if asked.single:
            return b'{"embedding":{"values":%b}}' % values[0]
        return b'{"embeddings":[%b]}' % b",".join(b'{"values":%b}' % value for value in values)
    tokens = sum(map(len, asked.texts)) // 4 + 1
    usage = {"total_tokens": tokens} | ({"prompt_tokens": tokens} if asked.service == "openai" else {})
    rows = zip(places or range(len(values)), values, strict=True)
    return b'{"object":"list","data":[%b],"model":%b,"usage":%b}' % (
        b",".join(b'{"object":"embedding","index":%d,"embedding":%b}' % row for row in rows),
        json.dumps(asked.model).encode(),
        json.dumps(usage).encode(),
    )


def rows(asked: Asked, body: bytes) -> list[list[float]]:
    """The vectors of an honest answer, in its order."""
    said = json.loads(body)
    if asked.service == "gemini":
        return [said["embedding"]["values"]] if asked.single else [each["values"] for each in said["embeddings"]]
    found = [each["embedding"] for each in said["data"]]
    return [np.frombuffer(b64decode(row), "<f4").tolist() if isinstance(row, str) else row for row in found]


def value(asked: Asked, row: Row) -> bytes:
    """A vector as the JSON value that was asked for: base64 cannot hold null, and says it as a JSON list."""
    if asked.base64 and row is not None and None not in row:
        return b'"%b"' % b64encode(np.asarray(row, "<f4").tobytes())
    return json.dumps(row).encode()


# --- errors ---

GOOGLE_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
BILLING = "You exceeded your current quota, please check your plan and billing details."
# Words of the services' own, by status; a status that stands here for none comes from a proxy before them, as HTML.
WORDS = {
    ("openai", 401): "Incorrect API key provided: {key}. You can find your API key at https://platform.openai.com/.",
    ("openai", 404): "The requested resource was not found.",
    ("openai", 429): "Rate limit reached for {model} in organization org-1 on tokens per min (TPM): Limit 1000000, "
    "Used 999000, Requested 8000. Visit https://platform.openai.com/account/rate-limits to learn more.",
    ("openai", 500): "The server had an error while processing your request. Sorry about that!",
    ("openai", 503): "The engine is currently overloaded, please try again later.",
    ("gemini", 400): "API key not valid. Please pass a valid API key.",
    ("gemini", 403): "Method doesn't allow unregistered callers (callers without established identity).",
    ("gemini", 404): "Requested entity was not found.",
    ("gemini", 429): "Resource has been exhausted (e.g. check quota).",
    ("gemini", 500): "An internal error has occurred. Please retry.",
    ("gemini", 503): "The model is overloaded. Please try again later.",
    ("voyage", 401): "Provided API key is invalid.",
    ("voyage", 404): "Not found.",
    ("voyage", 429): "You have exceeded the rate limit of your organization for model {model}: 2000 RPM and 3M TPM.",
    ("voyage", 500): "An unexpected error occurred.",
    ("voyage", 503): "The server is overloaded, please retry your request.",
}
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
TOO_MANY = {
    "openai": "Invalid 'input': array too long. Expected an array with maximum length {limit}, but got an array with "
    "length {found} instead.",
    "gemini": "* BatchEmbedContentsRequest.requests: at most {limit} requests can be in one batch\n",
    "voyage": "The batch size limit is {limit}. Your batch size is {found}.",
}
TOO_LONG = {
    "openai": "This model's maximum context length is {limit} tokens, however you requested {found} tokens ({found} "
    "in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
    "gemini": "Request payload size exceeds the limit: {limit} bytes.",
    "voyage": "Request to model 'm' failed. The max allowed tokens per submitted batch is {limit}. Your batch has "
    "{found} tokens after truncation. Please lower the number of tokens in the batch.",
}
EMPTY = {
    "openai": "Invalid 'input[{place}]': input cannot be an empty string.",
    "gemini": "* BatchEmbedContentsRequest.requests[{place}].content: contains an empty Part.\n",
    "voyage": "Input cannot contain empty strings or empty lists.",
}


def error(
    asked: Asked, status: int, words: str = "", *, code: str | None = None, details: Sequence[Any] = ()
) -> Answer:
    """An error in the service's own shape; without `words` of yours, in its own words for that status."""
    key = asked.headers.get("authorization", "").removeprefix("Bearer ")
    words = words or WORDS.get((asked.service, status), "").format(key=f"{key[:3]}***{key[-2:]}", model=asked.model)
    if not words:
        page = f"<html><head><title>{status}</title></head><body><h1>Error {status}</h1></body></html>"
        return Answer(status, page.encode(), {"content-type": "text/html"})
    if asked.service == "voyage":
        return Answer(status, json.dumps({"detail": words}).encode())
    if asked.service == "gemini":
        body = {"code": status, "message": words, "status": GOOGLE_STATUS.get(status, "UNKNOWN")}
        return Answer(status, json.dumps({"error": body | ({"details": list(details)} if details else {})}).encode())
    kind = "server_error" if status >= 500 else "tokens" if status == 429 else "invalid_request_error"
    code = code or OPENAI_CODES.get(status)
    kind = code if code == "insufficient_quota" else kind
    return Answer(status, json.dumps({"error": {"message": words, "type": kind, "param": None, "code": code}}).encode())


def bad_key(asked: Asked) -> Answer:
    """A missing or wrong key: Gemini answers 403 and 400 where the others answer 401."""
    if asked.service != "gemini":
        return error(asked, 401)
    if "x-goog-api-key" not in asked.headers:
        return error(asked, 403)
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return error(asked, 400, details=[info])
