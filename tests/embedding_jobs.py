"""The batch APIs of OpenAI, Gemini and Voyage on the embedding server: uploaded files, and jobs that are polled."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from embedding_wire import EMPTY, Answer, Asked, embedded, error, ok, read, write

WHEN = 1_700_000_000  # any moment serves: no client reckons with it
WHEN_ISO = "2023-11-14T22:13:20.000000+00:00"
OPENAI_LINE = {"custom_id", "method", "url", "body"}


@dataclass
class Knobs:
    """What becomes of jobs submitted from now on.

    A job is seen running `polls` times, and then has `outcome`: completed, failed or expired. Of its items those with
    a text in `refused` fail, and so do the first `failing`; an expired job has answered the first half of the others.
    """

    polls: int = 1
    outcome: str = "completed"
    failing: int = 0
    refused: set[str] = field(default_factory=set)


@dataclass
class Job:
    """One batch job. `items` are pairs of a key and the request inside; `output` and `errors` are names of files."""

    name: str
    asked: Asked
    params: Mapping[str, Any]
    items: list[tuple[str, Asked]]
    knobs: Knobs
    polls_left: int
    state: str = "in_progress"
    output: str | None = None
    errors: str | None = None
    done: int = 0


class Jobs:
    """All files and jobs of one server; `answer` is given every request that is not for vectors at once."""

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self.knobs = Knobs()
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, Job] = {}
        self._made = 0

    def answer(self, asked: Asked, name: str, base_url: str) -> tuple[Answer, Job | None]:
        """The honest answer, and the job that this request has brought to its end."""
        try:
            if asked.at == "upload":
                return self._upload(asked, base_url), None
            if asked.at == "submit":
                return self._submit(asked), None
            if asked.at == "download":
                return Answer(200, self.files[name], {"content-type": "application/octet-stream"}), None
            if asked.at == "delete":
                del self.files[name]
                return ok({"id": name, "object": "file", "deleted": True}), None
            return self._look(self.jobs[name], cancel=asked.at == "cancel")
        except KeyError as missing:
            return error(asked, 404, f"No such object: {missing.args[0]}"), None
        except (ValueError, TypeError) as wrong:
            return error(asked, 400, f"Invalid request: {wrong}"), None

    def _upload(self, asked: Asked, base_url: str) -> Answer:
        command = asked.headers.get("x-goog-upload-command", "")
        if command == "start":
            return replace(ok({}), headers={"x-goog-upload-url": f"{base_url}{asked.path}?upload_id=1"})
        if asked.service == "gemini":
            name = self._keep("files/in", asked.body)
            file = {"name": name, "sizeBytes": str(len(asked.body)), "uri": f"{base_url}/v1beta/{name}"}
            return replace(ok({"file": file}), headers={"x-goog-upload-status": "final"})
        fields = form_fields(asked)
        if fields.get("purpose") != b"batch":
            return error(asked, 400, f"Invalid purpose {fields.get('purpose')!r}: it must be batch")
        name = self._keep("file-in", fields["file"])
        when = WHEN if asked.service == "openai" else WHEN_ISO
        about = {"id": name, "object": "file", "bytes": len(fields["file"]), "created_at": when, "purpose": "batch"}
        return ok({**about, "filename": "batch.jsonl", "status": "processed"})

    def _keep(self, prefix: str, content: bytes) -> str:
        self._made += 1
        self.files[name := f"{prefix}{self._made}"] = content
        return name

    def _submit(self, asked: Asked) -> Answer:
        body = json.loads(asked.body)
        self._made += 1
        if asked.service == "gemini":
            source = body["batch"]["inputConfig"]
            items = self._gemini_items(asked, source)
            name = f"batches/b{self._made}"
        else:
            name = f"batch_{self._made}"
            if body["endpoint"] != "/v1/embeddings":
                raise ValueError(f"endpoint {body['endpoint']!r}")
            window = "24h" if asked.service == "openai" else "12h"
            if body["completion_window"] != window:
                raise ValueError(f"completion_window {body['completion_window']!r}: it must be {window!r}")
            lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines() if line.strip()]
            items = [(line["custom_id"], self._item(asked, line, body)) for line in lines]
        if len({key for key, _ in items}) < len(items):
            raise ValueError("custom_id must be unique")
        job = Job(name, asked, body, items, replace(self.knobs), self.knobs.polls)
        self.jobs[name] = job
        return ok(self._describe(job))

    def _item(self, asked: Asked, line: Mapping[str, Any], batch: Mapping[str, Any]) -> Asked:
        """The request that one line holds: OpenAI's says everything, Voyage's only the texts."""
        body = line["body"]
        if asked.service == "openai":
            if not line.keys() >= OPENAI_LINE:
                raise ValueError(f"a line needs {sorted(OPENAI_LINE)}")
        else:
            body = {**batch["request_params"], **body}
        return replace(asked, at="embed", **read(asked.service, body))

    def _gemini_items(self, asked: Asked, source: Mapping[str, Any]) -> list[tuple[str, Asked]]:
        lines = [json.loads(line) for line in self.files[source["fileName"]].splitlines() if line.strip()]
        return [
            (line["key"], replace(asked, at="embed", **read("gemini", line["request"], asked.model))) for line in lines
        ]

    # --- polling -------------------------------------------------------------------------------------------------

    def _look(self, job: Job, *, cancel: bool) -> tuple[Answer, Job | None]:
        """How the job stands; each look brings it nearer to its end."""
        ended = None
        if job.state == "in_progress":
            if cancel:
                job.state = "cancelled"
            elif job.polls_left > 0:
                job.polls_left -= 1
            else:
                job.state = job.knobs.outcome
                if job.state != "failed":
                    self._finish(job)
                    ended = job
        gemini_cancel = cancel and job.asked.service == "gemini"
        return ok({} if gemini_cancel else self._describe(job)), ended

    def _finish(self, job: Job) -> None:
        answered, failed = job_items(job)
        if job.asked.service == "gemini":
            fine = {key: {"response": json.loads(self.vectors(item))} for key, item in answered}
            sorry = {key: {"error": {"code": 3, "message": "invalid content"}} for key, _ in failed}
            results = fine | sorry
            lines = [{"key": key, **results[key]} for key, _ in job.items if key in results]
            job.output = self._keep("files/out", jsonl(lines))
        else:
            lines = [response(key, 200, json.loads(self.vectors(item))) for key, item in answered]
            # Neither service promises an order, and clients that rely on one should fail here.
            job.output = self._keep("file-out", jsonl(lines[::-1]))
            if failed:
                lines = [response(key, 400, json.loads(refusal(item).body)) for key, item in failed]
                job.errors = self._keep("file-err", jsonl(lines))
        job.done = len(answered)

    def vectors(self, item: Asked) -> bytes:
        return write(item, [embedded(text, item.dims or self.dims, item.base64) for text in item.texts])

    def _describe(self, job: Job) -> dict[str, Any]:
        return gemini_job(job) if job.asked.service == "gemini" else batch_job(job)


def job_items(job: Job) -> tuple[list[tuple[str, Asked]], list[tuple[str, Asked]]]:
    """Those of a job's items that are answered, and those that fail."""
    bad = [
        place
        for place, (_, item) in enumerate(job.items)
        if place < job.knobs.failing or not job.knobs.refused.isdisjoint(item.texts) or "" in item.texts
    ]
    good = [place for place in range(len(job.items)) if place not in set(bad)]
    if job.state == "expired":
        late = good[len(good) // 2 :]
        good, bad = good[: len(good) // 2], sorted([*bad, *late])
    return [job.items[place] for place in good], [job.items[place] for place in bad]


def refusal(item: Asked) -> Answer:
    return error(item, 400, EMPTY[item.service].format(place=0))


def response(key: str, status: int, body: Any) -> dict[str, Any]:
    return {
        "id": f"batch_req_{key}",
        "custom_id": key,
        "response": {"status_code": status, "request_id": f"req_{key}", "body": body},
        "error": None,
    }


def jsonl(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def batch_job(job: Job) -> dict[str, Any]:
    """A job as OpenAI and Voyage describe it; moments are seconds there, and ISO 8601 here."""
    when = WHEN if job.asked.service == "openai" else WHEN_ISO
    ended = job.state in {"completed", "expired"}
    problems = [
        {"code": "invalid_json_line", "line": 1, "message": "This line is not parseable as JSON.", "param": None}
    ]
    return {
        "id": job.name,
        "object": "batch",
        "endpoint": job.params["endpoint"],
        "input_file_id": job.params["input_file_id"],
        "completion_window": job.params["completion_window"],
        "status": job.state,
        "created_at": when,
        "output_file_id": job.output,
        "error_file_id": job.errors,
        "errors": {"object": "list", "data": problems} if job.state == "failed" else None,
        "metadata": job.params.get("metadata") or {},
        "request_counts": {
            "total": len(job.items),
            "completed": job.done,
            "failed": len(job.items) - job.done if ended else 0,
        },
    }


GEMINI_STATES = {"completed": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED", "cancelled": "CANCELLED"}


def gemini_job(job: Job) -> dict[str, Any]:
    """A job as Gemini describes it: a long-running operation."""
    state = GEMINI_STATES.get(job.state, "RUNNING" if job.polls_left < job.knobs.polls else "PENDING")
    output = {"responsesFile": job.output}
    metadata = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.EmbedContentBatch",
        "model": f"models/{job.asked.model}",
        "displayName": job.params["batch"].get("displayName", ""),
        "state": f"BATCH_STATE_{state}",
        "createTime": WHEN_ISO,
        "name": job.name,
    }
    done = job.state in GEMINI_STATES
    if job.state in {"completed", "expired"}:
        metadata["output"] = output
    return {"name": job.name, "metadata": metadata, **({"done": True} if done else {})}


def form_fields(asked: Asked) -> dict[str, bytes]:
    """The fields of a multipart form by their names."""
    _, _, boundary = asked.headers["content-type"].partition("boundary=")
    fields = {}
    for part in asked.body.split(b"--" + boundary.strip('"').encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = head.partition(b' name="')[2].partition(b'"')[0].decode()
        fields[name] = content.removesuffix(b"\r\n")
    return fields
