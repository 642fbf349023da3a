"""The batch APIs of embedding services: a file of texts is uploaded, run as a job, and its results are downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from openclaw_memory.embeddings import RemoteEmbedder

JobState: TypeAlias = Literal["running", "done", "failed", "expired"]

REQUEST_SECONDS = 600.0  # 200 MB go up within it at 3 Mbit/s


# The names of states, of OpenAI and Voyage, and of Gemini; any other job is running.
STATES: Mapping[str, JobState] = {
    **dict.fromkeys(("completed", "succeeded", "partially_succeeded"), "done"),
    **dict.fromkeys(("failed", "cancelled", "cancelling"), "failed"),
    "expired": "expired",
}


class Requests:
    """Requests to the service of an embedder; they may raise whatever httpx raises."""

    def __init__(self, inner: RemoteEmbedder) -> None:
        """Take the address, the headers and the settings of an embedder."""
        service = inner.service
        self.model, self.settings = service.model, service.settings
        far = inner.leaves_machine  # proxies are for services on other machines
        self._options: Any = {"base_url": service.endpoint, "headers": dict(service.headers), "trust_env": far}

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """Send a request, and return the response of httpx."""
        import httpx

        with httpx.Client(**self._options, timeout=REQUEST_SECONDS) as client:
            response = client.request(method, path, **content)
        if response.has_redirect_location and method == "GET":  # a store of files, which gets no key
            target = httpx.URL(response.headers["location"])
            if target.scheme == "https" or target.host == response.url.host:
                response = httpx.get(target, timeout=REQUEST_SECONDS)
        return response.raise_for_status()


class OpenAIBatch(Requests):
    """The batch API of OpenAI."""

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        """Make a job of keys and texts, and return its name."""
        lines = _encode_lines({"custom_id": key, **self._make_line(text)} for key, text in items)
        upload = {"file": ("texts.jsonl", lines, "application/jsonl")}
        file = self.ask("POST", "/files", data={"purpose": "batch"}, files=upload).json()["id"]
        job = {"endpoint": "/v1/embeddings", "input_file_id": file, **self._describe_job()}
        return str(self.ask("POST", "/batches", json=job).json()["id"])

    def fetch_state(self, name: str) -> JobState:
        """Return the state of a job."""
        return STATES.get(self.ask("GET", f"/batches/{name}").json()["status"], "running")

    def fetch_results(self, name: str) -> Mapping[str, Any]:
        """Return the vectors of a job by their keys, without those that failed."""
        file = self.ask("GET", f"/batches/{name}").json().get("output_file_id")
        lines = _decode_lines(self.ask("GET", f"/files/{file}/content").content) if file else ()
        good = (line for line in lines if (line.get("response") or {}).get("status_code") == 200)
        return {line["custom_id"]: line["response"]["body"]["data"][0]["embedding"] for line in good}

    def cancel(self, name: str) -> None:
        """End a job."""
        self.ask("POST", f"/batches/{name}/cancel")

    def _make_line(self, text: str) -> Mapping[str, Any]:
        body = {"model": self.model, "input": (self.settings.get("document_prefix") or "") + text}
        if dimensions := self.settings.get("dimensions"):
            body["dimensions"] = dimensions
        return {"method": "POST", "url": "/v1/embeddings", "body": body}

    def _describe_job(self) -> Mapping[str, Any]:
        return {"completion_window": "24h"}


class VoyageBatch(OpenAIBatch):
    """The batch API of Voyage."""

    def _make_line(self, text: str) -> Mapping[str, Any]:
        return {"body": {"input": [text]}}

    def _describe_job(self) -> Mapping[str, Any]:
        params = {"model": self.model, "input_type": "document", "truncation": False}
        if dimensions := self.settings.get("dimensions"):
            params["output_dimension"] = dimensions
        return {"completion_window": "12h", "request_params": params}


class GeminiBatch(Requests):
    """The batch API of Gemini."""

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        # In a file, since only there each request has a key of its own.
        lines = _encode_lines({"key": key, "request": self._make_request(text)} for key, text in items)
        job = {"batch": {"displayName": "openclaw-memory", "inputConfig": {"fileName": self._send_file(lines)}}}
        return str(self.ask("POST", f"/v1beta/{self._path}:asyncBatchEmbedContent", json=job).json()["name"])

    def fetch_state(self, name: str) -> JobState:
        state = str(self._fetch(name).get("state")).partition("_STATE_")[2]
        return STATES.get(state.lower(), "running")

    def fetch_results(self, name: str) -> Mapping[str, Any]:
        file = (self._fetch(name).get("output") or {}).get("responsesFile")
        url = f"/v1beta/{file}:download"
        lines = _decode_lines(self.ask("GET", url, params={"alt": "media"}).content) if file else ()
        rows = ((line["key"], ((line.get("response") or {}).get("embedding") or {}).get("values")) for line in lines)
        return {key: values for key, values in rows if values}

    def cancel(self, name: str) -> None:
        self.ask("POST", f"/v1beta/{name}:cancel")

    @property
    def _path(self) -> str:
        return f"models/{self.model.removeprefix('models/')}"

    def _fetch(self, name: str) -> Mapping[str, Any]:
        return self.ask("GET", f"/v1beta/{name}").json().get("metadata") or {}

    def _make_request(self, text: str) -> Mapping[str, Any]:
        request: dict[str, Any] = {"model": self._path, "content": {"parts": [{"text": text}]}}
        if self._path.startswith("models/gemini-embedding-2"):  # which takes no task type
            request["content"]["parts"][0]["text"] = f"title: none | text: {text}"
        else:
            request["taskType"] = "RETRIEVAL_DOCUMENT"
        if dimensions := self.settings.get("dimensions"):
            request["outputDimensionality"] = dimensions
        return request

    def _send_file(self, content: bytes) -> str:
        """Return the name of a new file, by Google's upload of several parts in one request."""
        import httpx

        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        session = self.ask("POST", "/upload/v1beta/files", headers=start, json={"file": {}})
        # Of the returned address only the path counts: texts go to no other server than the configured one.
        target = httpx.URL(session.headers["x-goog-upload-url"])
        finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        path = session.url.copy_with(raw_path=target.raw_path)
        return str(self.ask("POST", str(path), headers=finish, content=content).json()["file"]["name"])


APIS: Mapping[str, type[Any]] = {"openai": OpenAIBatch, "voyage": VoyageBatch, "gemini": GeminiBatch}


def _encode_lines(values: Iterable[Any]) -> bytes:
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def _decode_lines(content: bytes) -> Iterator[Any]:
    return (json.loads(line) for line in content.splitlines() if line.strip())
