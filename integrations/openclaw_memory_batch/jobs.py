"""Hand texts over to a service's batch API: submit them when they are many, poll, and collect them at a later sync.

A job takes minutes or hours and costs less. Each is paid for, so that the jobs of an index are remembered in a file
next to it.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openclaw_memory.embeddings import JobState, ServiceError, check_vectors
from openclaw_memory.errors import EmbedderError, NotFoundError, OpenClawMemoryError, StoreError
from openclaw_memory.types import Progress
from openclaw_memory.workspace import SafeFolder

if TYPE_CHECKING:
    from openclaw_memory.embeddings import BatchApi, RemoteEmbedder
    from openclaw_memory.types import Store, Vector

log = logging.getLogger(__name__)

SUFFIX = ".batches.json"
# OpenClaw's numbers: so many failures switch the batch API off, and a job that is late is waited for twice.
FAILURE_LIMIT = 2
TRIES = 2
# The services end a job after 12 to 48 hours. One that is said to run even longer will never end.
LONGEST_SECONDS = 72 * 3600
# Of one request about a job: 200 MB go up within it at 3 Mbit/s.
REQUEST_SECONDS = 600.0
# What a line of a job's file holds besides its text: the key, the model's name, options.
LINE_BYTES = 512
VECTORS_PER_WRITE = 256


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of jobs: the fewest texts, and the waiting times in seconds.

    At most `concurrency` jobs run at a time. The interval and the longest wait are OpenClaw's.
    """

    min_texts: int = 1000
    poll_seconds: float = 2.0
    wait_seconds: float = 3600.0
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    concurrency: int = 2


@dataclass(frozen=True, slots=True)
class Job:
    """One job: its name at the service, the keys of its texts, and how many tokens these are at most.

    `submitted` is a time in seconds since 1970; `failures` counts the failed attempts to get its vectors.
    """

    name: str
    keys: Sequence[str]
    tokens: int
    submitted: float
    failures: int = 0


@dataclass(frozen=True, slots=True)
class JobsState:
    """The jobs of one embedder's identity, and how many failed since the last one that did not."""

    jobs: tuple[Job, ...] = ()
    failures: int = 0


@dataclass(slots=True)
class Jobs:
    """The jobs of one index at the service of its embedder, for the one sync that may run at a time.

    Whatever is learnt is put into the file at `path` before the next step. `returned` holds the keys of jobs that have
    ended here: ordinary calls ask for their missing vectors. `queued` holds the keys that wait for a job to end.
    """

    embedder: RemoteEmbedder
    api: BatchApi
    path: Path
    patience: Patience
    returned: set[str] = field(default_factory=set)
    queued: set[str] = field(default_factory=set)
    waited_for: tuple[Job, ...] | None = None  # jobs that stay as they are belong to a service that does not answer
    state: JobsState = field(default_factory=JobsState)
    _other_states: dict[str, JobsState] = field(default_factory=dict)  # a model in use again finds its own jobs

    def read(self) -> None:
        """Read the file, or raise StoreError; jobs of other models that no service keeps so long are removed."""
        states = load_or_set_aside(self.path)
        self.state = states.pop(self.embedder.identity, JobsState())
        oldest = self.patience.clock() - LONGEST_SECONDS
        self._other_states = {
            identity: replace(state, jobs=tuple(job for job in state.jobs if job.submitted >= oldest))
            for identity, state in states.items()
        }
        if self._other_states != states:
            self._save(self.state)

    def list_pending(self) -> dict[str, str]:
        """Return the keys that are with the service, each with the reason why its vector is not there."""
        jobs = self.state.jobs
        keys = {key for job in jobs for key in job.keys}
        if not keys:
            return {}
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(job.submitted for job in jobs)))
        pending = f"{len(keys):,} texts are with {self._host}'s batch API since {since}; the next sync collects them"
        queued = f"it waits for one of {len(jobs)} jobs of {self._host}'s batch API to end; sync again"
        return dict.fromkeys(self.queued, queued) | dict.fromkeys(keys, pending)

    def advance(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[int, int]:
        """Store the vectors of finished jobs; then hand over the missing texts, if they are many.

        `missing` is looked at only after the vectors are stored. Returns their number, and the tokens of their
        texts, at most. Raises StoreError where the index, or the file of the jobs, cannot be written.
        """
        collected = tokens = 0
        self.read()
        for job in self.state.jobs:
            if count := self._collect(job, store):
                collected, tokens = collected + count, tokens + job.tokens
        if self.state.failures < FAILURE_LIMIT:
            self._submit_missing(missing)
        return collected, tokens

    def wait(self, store: Store, progress: Callable[[Progress], None] | None) -> None:
        """Poll until no job is running, or for `patience.wait_seconds`; a job that is late twice is given up.

        Raises StoreError where the index was closed meanwhile, or the file of the jobs cannot be written.
        """
        began = self.patience.clock()
        total = sum(len(job.keys) for job in self.state.jobs)
        while running := [job for job in self.state.jobs if self._check_state(job) is JobState.RUNNING]:
            store.read_meta()  # so that closing the index ends the waiting
            waited = self.patience.clock() - began
            if waited >= self.patience.wait_seconds:
                for job in running:
                    self._record_failure(job, f"it is not done after {waited:.0f} s")
                return
            if progress:
                completed = total - sum(len(job.keys) for job in running)
                progress(Progress(completed, total, "texts with the batch service", seconds=waited))
            self.patience.sleep(self.patience.poll_seconds)

    def _submit_missing(self, missing: Iterable[tuple[str, str]]) -> None:
        self.queued.clear()
        not_for_jobs, limit = self.list_pending().keys() | self.returned, self.embedder.service.limits.input_tokens
        texts = ((key, text) for key, text in missing if key not in not_for_jobs and _is_submittable(text, limit))
        first = list(islice(texts, self.patience.min_texts))
        if len(first) < self.patience.min_texts:
            return
        for pack in _pack(chain(first, texts), self.api.max_items, self.api.max_bytes):
            if len(self.state.jobs) >= self.patience.concurrency:
                self.queued.update(key for key, _ in pack)
            elif not self._is_submitted(pack):
                return

    def _is_submitted(self, pack: list[tuple[str, str]]) -> bool:
        try:
            # Not tried again: a job may have been made though its name was lost on the way, and each job is paid for.
            name = self.embedder.ask(self.api.submit, pack, seconds=REQUEST_SECONDS, tries=1)
        except ServiceError as error:
            if not error.is_passing:
                self._count_failure(f"it takes no job: {error}")
            return False
        # A process that is killed here has lost this one job; those before it are in the file.
        tokens = sum(_count_bytes(text) for _, text in pack)
        job = Job(name, [key for key, _ in pack], tokens, self.patience.clock())
        self._save(replace(self.state, jobs=(*self.state.jobs, job)))
        return True

    def _collect(self, job: Job, store: Store) -> int:
        """Store the vectors of the job, if it has ended; returns how many there were."""
        state, stored = self._check_state(job), 0
        if state is JobState.RUNNING:
            return 0
        if state is not JobState.FAILED:
            try:
                stored = self._store(job, store)
            except EmbedderError as error:
                self._record_failure(job, str(error))
                return 0
        if state is JobState.DONE and stored:
            self.returned.update(job.keys)
            failures = self.state.failures
            self._save(JobsState(self._remove_job(job), failures if failures >= FAILURE_LIMIT else 0))
        else:
            self._count_failure("it gave no vector" if state is JobState.DONE else f"it is {state.value}", job)
        return stored

    def _store(self, job: Job, store: Store) -> int:
        import numpy as np

        answers = self.embedder.ask(self.api.fetch_results, job.name, seconds=REQUEST_SECONDS)
        vectors = _check_answers(job, answers, self.embedder.service.settings.get("dimensions"))
        keys = list(vectors)
        for start in range(0, len(keys), VECTORS_PER_WRITE):
            pack = keys[start : start + VECTORS_PER_WRITE]
            store.add_vectors(pack, np.stack([vectors[key] for key in pack]), self.embedder.identity)
        return len(vectors)

    def _check_state(self, job: Job) -> JobState:
        """Return the state of a job; running while an unreachable service may still have it."""
        if self.patience.clock() - job.submitted > LONGEST_SECONDS:
            return JobState.EXPIRED
        try:
            return self.embedder.ask(self.api.fetch_state, job.name, seconds=self.embedder.policy.request_seconds)
        except ServiceError as error:
            return JobState.RUNNING if error.is_passing else JobState.FAILED

    def _record_failure(self, job: Job, why: str) -> None:
        """Count a failed attempt to get the job's vectors; cancel it after `TRIES` failures."""
        if job.failures + 1 < TRIES:
            again = replace(job, failures=job.failures + 1)
            jobs = tuple(again if old.name == job.name else old for old in self.state.jobs)
            self._save(replace(self.state, jobs=jobs))
            return
        try:
            self.embedder.ask(self.api.cancel, job.name, seconds=self.embedder.policy.request_seconds)
        except ServiceError as error:
            why = f"{why}; nor can it be cancelled: {error}"
        self._count_failure(why, job)

    def _count_failure(self, why: str, job: Job | None = None) -> None:
        jobs = self.state.jobs
        if job is not None:
            jobs, why = self._remove_job(job), f"of job {job.name}, {why}"
        self._save(JobsState(jobs, self.state.failures + 1))
        off = f"ordinary requests take its place until {self.path} is deleted"
        so = "after one more failure" if self.state.failures < FAILURE_LIMIT else "from now on"
        log.warning("the batch API of %s failed: %s; %s, %s", self._host, why, so, off)

    def _remove_job(self, job: Job) -> tuple[Job, ...]:
        return tuple(old for old in self.state.jobs if old.name != job.name)

    def _save(self, state: JobsState) -> None:
        save(self.path, self._other_states | {self.embedder.identity: state})
        self.state = state

    @property
    def _host(self) -> str:
        return urlsplit(self.embedder.endpoint).hostname or self.embedder.endpoint


def _check_answers(job: Job, answers: Mapping[str, Any], dims: int | None) -> dict[str, Vector]:
    """Return the vectors of a job's texts that are not zero, of `dims` dimensions, or of as many as most have."""
    rows: dict[str, Vector] = {}
    for key in job.keys:
        # A text whose vector is left out is asked for again by an ordinary call, whose failure is reported.
        with suppress(Exception):  # an answer may fail in its own way as it is read
            if (row := check_vectors([answers[key]], 1, job.name)[0]).any():
                rows[key] = row
    usual = Counter(map(len, rows.values())).most_common(1)
    dims = dims or (usual[0][0] if usual else 0)
    return {key: row for key, row in rows.items() if len(row) == dims}


def _is_submittable(text: str, limit: int) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.strip()) and len(text.encode()) <= limit
    return False


def _count_bytes(text: str) -> int:
    """Count the bytes of a text, an upper bound of its tokens."""
    return len(text.encode("utf-8", "surrogatepass"))


def _pack(texts: Iterable[tuple[str, str]], max_items: int, max_bytes: int) -> Iterator[list[tuple[str, str]]]:
    """Yield the texts in their order, in lists that a job takes."""
    pack: list[tuple[str, str]] = []
    total = 0
    for key, text in texts:
        size = LINE_BYTES + len(json.dumps(text))
        if pack and (total + size > max_bytes or len(pack) == max_items):
            yield pack
            pack, total = [], 0
        pack.append((key, text))
        total += size
    if pack:
        yield pack


# --- the file of the jobs ----------------------------------------------------------------------------------------


def get_path(index_path: Path) -> Path:
    """Return the file that goes with an index."""
    return Path(f"{index_path}{SUFFIX}")


def load(path: Path) -> dict[str, JobsState]:
    """Return the jobs in a file, by identity.

    Raises:
        StoreError: It cannot be read.
        ValueError: It is damaged.
    """
    try:
        entries = json.loads(SafeFolder(path.parent).read(path.name))
        return {
            identity: JobsState(tuple(Job(**job) for job in entry["jobs"]), entry["failures"])
            for identity, entry in entries.items()
        }
    except NotFoundError:
        return {}
    except OpenClawMemoryError as error:
        raise StoreError(f"the jobs of the batch API cannot be read: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def load_or_set_aside(path: Path) -> dict[str, JobsState]:
    """Return the jobs in a file; one that is damaged is renamed and counts as none.

    Raises:
        StoreError: It cannot be read, or renamed.
    """
    try:
        return load(path)
    except ValueError as damage:
        folder, aside = SafeFolder(path.parent), f"{path.name}.damaged"
        try:
            folder.replace(aside, folder.read(path.name))
            folder.remove(path.name)
        except OpenClawMemoryError as error:
            raise StoreError(f"{path} is damaged ({damage}) and cannot be set aside ({error}); delete it") from error
        log.warning("%s is damaged (%s) and is kept as %s; texts of its jobs are sent again", path, damage, aside)
        return {}


def save(path: Path, everything: Mapping[str, JobsState]) -> None:
    """Put jobs into a file at once and whole, in a sync; nothing to keep is no file.

    Raises:
        StoreError: It cannot be written.
    """
    entries = {identity: asdict(state) for identity, state in everything.items() if state.jobs or state.failures}
    folder = SafeFolder(path.parent)
    try:
        if entries:
            folder.replace(path.name, json.dumps(entries).encode())
        else:
            folder.remove(path.name)
    except OpenClawMemoryError as error:
        raise StoreError(f"the jobs of the batch API cannot be kept: {error}") from error
