"""`BatchEmbedder`: an embedder around that of a service, which leaves large amounts of text to the batch API.

A job takes minutes or hours and costs less. Each is paid for, so that the jobs of an index are remembered in a file
next to it: a later sync collects them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import RemoteEmbedder
from openclaw_memory.errors import ConfigError, NotFoundError, OpenClawMemoryError
from openclaw_memory.types import Progress
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_batch.services import APIS

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder, Store, Vector
    from openclaw_memory_batch.services import JobState

log = logging.getLogger(__name__)

# OpenClaw's numbers: so many failures switch the batch API off, and a job that is late is waited for twice.
FAILURE_LIMIT = 2
TRIES = 2
# The services end a job after 12 to 48 hours. One that is said to run even longer will never end.
LONGEST_SECONDS = 72 * 3600


class Job(msgspec.Struct, frozen=True):
    """One job: its name at the service, the keys of its texts, and how many tokens these are at most.

    `submitted` is a time in seconds since 1970; `failures` counts the failed attempts to get its vectors.
    """

    name: str
    keys: Sequence[str]
    tokens: int
    submitted: float
    failures: int = 0


class JobsState(msgspec.Struct, frozen=True):
    """The jobs of one embedder's identity, how many failed in a row, and why the latest did, until one does not."""

    jobs: tuple[Job, ...] = ()
    failures: int = 0
    reason: str | None = None


class BatchEmbedder:
    """Embed large amounts of text by the batch API of a service.

    Safe to use from several threads. Vectors are those of the inner embedder, which answers questions and embeds small
    amounts. Jobs are kept in a file next to the index; with a store that is no file, all texts are embedded by the
    inner embedder.

    Attributes:
        inner: The embedder of the service.
        failure: Why ordinary requests take the place of jobs for as long as this object lives, or None.
    """

    def __init__(
        self,
        inner: Embedder | None,
        *,
        api: Any = None,
        wait: bool = False,
        concurrency: int = 2,
        min_texts: int = 1000,
        max_texts: int = 2000,
        poll_seconds: float = 2.0,
        wait_seconds: float = 3600.0,
    ) -> None:
        """Wrap an embedder, and ask nothing yet.

        Args:
            inner: The embedder of OpenAI, Gemini or Voyage, or with `api` of any service.
            api: The batch API, with the methods of `OpenAIBatch`. Default: that of the embedder's provider.
            wait: Whether a sync waits for the jobs; else a later one collects them.
            concurrency: How many jobs of an index run at a time.
            min_texts: How many missing texts are worth a job.
            max_texts: The most texts of a job, at least `min_texts`.
            poll_seconds: The pause between two looks at jobs that are waited for.
            wait_seconds: How long a job is waited for. After twice as long it is given up.

        Raises:
            ConfigError: The embedder has no batch API, or an interval cannot be used.
        """
        for option, seconds in (("poll_seconds", poll_seconds), ("wait_seconds", wait_seconds)):
            if not 0 < seconds <= LONGEST_SECONDS:
                raise ConfigError(f"{option} must be more than 0 and at most {LONGEST_SECONDS:,}, not {seconds}")
        if not isinstance(inner, RemoteEmbedder) or (api is None and inner.provider not in APIS):
            name = "no embedder" if inner is None else f"the embedder {inner.provider} {inner.model}"
            raise ConfigError(f"{name} has no batch API: choose openai, gemini or voyage, or do without batches")
        self.inner, self.api = inner, api or APIS[inner.provider](inner)
        self.provider, self.model, self.identity = inner.provider, inner.model, inner.identity
        self.endpoint, self.leaves_machine = inner.endpoint, inner.leaves_machine
        self.wait_for_jobs, self.concurrency = wait, concurrency
        self.min_texts, self.max_texts = min_texts, max_texts
        self.poll_seconds, self.wait_seconds = poll_seconds, wait_seconds
        self.failure: str | None = None
        self.embed_query, self.embed_documents, self.close = inner.embed_query, inner.embed_documents, inner.close

    def prepare(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[Mapping[str, str], int, int]:
        """Store the vectors of finished jobs, and submit missing texts where they are many."""
        if (path := locate_file(store)) is None:
            return {}, 0, 0
        jobs = Jobs(self, path)
        embedded, tokens = jobs.advance(store, missing)
        return jobs.list_pending(), embedded, tokens

    def wait(self, store: Store, progress: Callable[[Progress], None] | None = None) -> bool:
        """Wait for the jobs of an index if that is wanted; return whether there may be vectors to collect."""
        if (path := locate_file(store)) is None or not self.wait_for_jobs or not (jobs := Jobs(self, path)).state.jobs:
            return False
        jobs.wait(store, progress)
        return True

    def describe(self, store: Store) -> Mapping[str, Any]:
        """Return the jobs and texts with the service, how many jobs failed in a row, and why the latest did."""
        path, state = locate_file(store), JobsState()
        try:
            state = load(path).get(self.identity, state) if path else state
        except OpenClawMemoryError as error:
            state = JobsState(reason=str(error))
        return {
            "enabled": path is not None and self.failure is None,
            "mode": "wait" if self.wait_for_jobs else "later",
            "jobs": len(state.jobs),
            "texts": sum(len(job.keys) for job in state.jobs),
            "failures": state.failures,
            "limit": FAILURE_LIMIT,
            "poll_seconds": self.poll_seconds,
            "timeout_seconds": self.wait_seconds,
            "concurrency": self.concurrency,
            "error": self.failure or state.reason,
        }


def create(model: str | None = None, *, provider: str, concurrency: int = 2, **options: Any) -> BatchEmbedder:
    """Make the embedder of the provider `batch`.

    Args:
        model: The model of the inner embedder.
        provider: The provider of the inner embedder.
        concurrency: As for `BatchEmbedder`.
        options: `wait`, `poll_seconds` and `wait_seconds` as for `BatchEmbedder`, and those of the inner embedder.

    Raises:
        ConfigError: As `BatchEmbedder`.
        EmbedderError: As `load_embedder`.
    """
    own = {name: options.pop(name) for name in ("wait", "poll_seconds", "wait_seconds") if name in options}
    return BatchEmbedder(load_embedder(provider, model, **options), concurrency=concurrency, **own)


class Jobs:
    """The jobs of one index, for the one sync that may run at a time.

    Whatever is learnt is put into the file at `path` before the next step. `returned` holds the keys of jobs that have
    ended here: ordinary calls ask for their missing vectors. `queued` holds the keys that wait for a job to end.
    """

    def __init__(self, embedder: BatchEmbedder, path: Path) -> None:
        self.embedder, self.path, self.api, self.provider = embedder, path, embedder.api, embedder.provider
        self.state = load(path).get(embedder.identity, JobsState())
        self.returned, self.queued = set[str](), set[str]()

    def list_pending(self) -> dict[str, str]:
        """Return the keys that are with the service, each with the reason why its vector is not there."""
        if not (jobs := self.state.jobs):
            return {}
        keys = {key for job in jobs for key in job.keys}
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(job.submitted for job in jobs)))
        pending = f"{len(keys):,} texts are with {self.provider}'s batch API since {since}; the next sync collects them"
        queued = f"it waits for one of {len(jobs)} jobs of {self.provider}'s batch API to end; sync again"
        return dict.fromkeys(self.queued, queued) | dict.fromkeys(keys, pending)

    def advance(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[int, int]:
        """Store the vectors of finished jobs; then hand over the missing texts, if they are many.

        `missing` is looked at only after the vectors are stored. Returns their number, and the tokens of their
        texts, at most. Raises an error where the index, or the file of the jobs, cannot be written.
        """
        collected = [(self._collect(job, store), job.tokens) for job in self.state.jobs]
        if self.embedder.failure is None:
            self._submit_missing(missing)
        return sum(count for count, _ in collected), sum(tokens for count, tokens in collected if count)

    def wait(self, store: Store, progress: Callable[[Progress], None] | None) -> None:
        """Poll until no job is running, or for `wait_seconds`; a job that is late twice is given up.

        Raises StoreError where the index was closed meanwhile, or the file of the jobs cannot be written.
        """
        began, total = time.time(), sum(len(job.keys) for job in self.state.jobs)
        while running := [job for job in self.state.jobs if self._check_state(job) == "running"]:
            store.read_meta()  # so that closing the index ends the waiting
            waited = time.time() - began
            if waited >= self.embedder.wait_seconds:
                for job in running:
                    self._record_failure(job, f"it is not done after {waited:.0f} s")
                return
            if progress:
                completed = total - sum(len(job.keys) for job in running)
                progress(Progress(completed, total, "texts with the batch service", seconds=waited))
            time.sleep(self.embedder.poll_seconds)

    def _submit_missing(self, missing: Iterable[tuple[str, str]]) -> None:
        excluded, limit = self.list_pending().keys() | self.returned, self.embedder.inner.service.limits.input_tokens
        # As ordinary calls do: a lone surrogate, which no request can carry, is a question mark.
        encodable = ((key, text.encode("utf-8", "replace").decode()) for key, text in missing if key not in excluded)
        texts = ((key, text) for key, text in encodable if text.strip() and len(text.encode()) <= limit)
        pack = list(islice(texts, self.embedder.max_texts))
        if len(pack) < self.embedder.min_texts:
            return
        while pack:
            if len(self.state.jobs) >= self.embedder.concurrency:
                self.queued.update(key for key, _ in pack)
            elif not self._submit(pack):
                return
            pack = list(islice(texts, self.embedder.max_texts))

    def _submit(self, pack: list[tuple[str, str]]) -> bool:
        """Return whether the service took a job."""
        try:  # once: a job may have been made though its name was lost on the way, and each job is paid for
            name = self.api.submit(pack)
        except Exception as error:  # noqa: BLE001 - of httpx, or of an answer that is none
            if not _is_passing(error):
                self._count_failure(f"it takes no job: {error}")
            return False
        # A process that is killed here has lost this one job; those before it are in the file.
        tokens = sum(len(text.encode()) for _, text in pack)
        job = Job(name, [key for key, _ in pack], tokens, time.time())
        self._save((*self.state.jobs, job), self.state.failures, self.state.reason)
        return True

    def _collect(self, job: Job, store: Store) -> int:
        """Store the vectors of the job, if it has ended; return how many there were."""
        state = self._check_state(job)
        if state == "running":
            return 0
        try:
            vectors = {} if state == "failed" else self._fetch_vectors(job)
        except Exception as error:  # noqa: BLE001 - of httpx, or of an answer that is none
            self._record_failure(job, str(error))
            return 0
        if vectors:
            rows = RemoteEmbedder.check_vectors(list(vectors.values()), len(vectors), job.name)
            store.add_vectors(list(vectors), rows, self.embedder.identity)
        if state == "done" and vectors:
            self.returned.update(job.keys)
            self._save(self._remove(job))
        else:
            self._count_failure("it gave no vector" if state == "done" else f"it is {state}", job)
        return len(vectors)

    def _fetch_vectors(self, job: Job) -> dict[str, Vector]:
        """Return the vectors of a job's texts that are not zero, and not shorter than the others."""
        answers = self.api.fetch_results(job.name)
        rows: dict[str, Vector] = {}
        for key in job.keys:
            # A text whose vector is left out is asked for again by an ordinary call, whose failure is reported.
            with suppress(Exception):  # an answer may fail in its own way as it is read
                if (row := RemoteEmbedder.check_vectors([answers[key]], 1, job.name)[0]).any():
                    rows[key] = row
        dims = self.embedder.inner.service.settings.get("dimensions") or max(map(len, rows.values()), default=0)
        return {key: row for key, row in rows.items() if len(row) == dims}

    def _check_state(self, job: Job) -> JobState:
        """Return the state of a job; running while an unreachable service may still have it."""
        if time.time() - job.submitted > LONGEST_SECONDS:
            return "expired"
        try:
            state: JobState = self.api.fetch_state(job.name)
            return state
        except Exception as error:  # noqa: BLE001 - of httpx, or of an answer that is none
            return "running" if _is_passing(error) else "failed"

    def _record_failure(self, job: Job, why: str) -> None:
        """Count a failed attempt to get the job's vectors; cancel it after `TRIES` failures."""
        if job.failures + 1 < TRIES:
            again = msgspec.structs.replace(job, failures=job.failures + 1)
            jobs = tuple(again if old.name == job.name else old for old in self.state.jobs)
            self._save(jobs, self.state.failures, why)
            return
        try:
            self.api.cancel(job.name)
        except Exception as error:  # noqa: BLE001 - it is over either way
            why = f"{why}; nor can it be cancelled: {error}"
        self._count_failure(why, job)

    def _count_failure(self, why: str, job: Job | None = None) -> None:
        if job is not None:
            why = f"of job {job.name}, {why}"
        failures, until = self.state.failures + 1, "after one more failure"
        if failures >= FAILURE_LIMIT:  # the next process tries jobs again
            self.embedder.failure, failures, until = why, 0, "until this process ends"
        self._save(self._remove(job), failures, why)
        log.warning("the batch API of %s failed: %s; ordinary requests take its place %s", self.provider, why, until)

    def _remove(self, job: Job | None) -> tuple[Job, ...]:
        return tuple(old for old in self.state.jobs if job is None or old.name != job.name)

    def _save(self, jobs: tuple[Job, ...], failures: int = 0, reason: str | None = None) -> None:
        self.state = JobsState(jobs, failures, reason)
        save(self.path, load(self.path) | {self.embedder.identity: self.state})  # other models find their own jobs


def _is_passing(error: Exception) -> bool:
    # no answer came, or one that says so
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status is None or status >= 500 or status in {408, 409, 425, 429}


# --- the file of the jobs ----------------------------------------------------------------------------------------


def locate_file(store: Store) -> Path | None:
    """Return the file of the jobs of an index; None for a store that is no file."""
    location = store.describe(counts=False).location
    return Path(f"{location}.batches.json") if location and "://" not in location else None


def load(path: Path) -> dict[str, JobsState]:
    """Return the jobs in a file, by identity; one that is damaged has none."""
    try:
        return msgspec.json.decode(SafeFolder(path.parent).read(path.name), type=dict[str, JobsState])
    except NotFoundError:
        return {}
    except msgspec.DecodeError as error:
        log.warning("%s is damaged (%s); texts of its jobs are sent again", path, error)
        return {}


def save(path: Path, everything: Mapping[str, JobsState]) -> None:
    """Put jobs into a file at once and whole; nothing to keep is no file."""
    entries = {identity: state for identity, state in everything.items() if state != JobsState()}
    folder = SafeFolder(path.parent)
    if entries:
        folder.replace(path.name, msgspec.json.encode(entries))
    else:
        folder.remove(path.name)
