"""Texts handed over to a service's batch API: submitted when they are many, polled, and collected by a later sync.

A job takes minutes or hours and costs less. Each is paid for, so that the jobs of an index are remembered in a file
next to it.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openclaw_memory._links import NO_LINK
from openclaw_memory._log import warn
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.http import answers_within
from openclaw_memory.embeddings.remote.service import BatchApi, JobState, longest_answer
from openclaw_memory.embeddings.stream import remote
from openclaw_memory.embeddings.vectors import checked_vectors, encodable, own_errors, packs, weight
from openclaw_memory.errors import EmbedderError, StoreError

if TYPE_CHECKING:
    from openclaw_memory.embeddings.remote.client import RemoteEmbedder
    from openclaw_memory.types import Embedder, Progress, Store, Vector

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
PASSING = {FailureKind.PASSING, FailureKind.BUSY}


@dataclass(frozen=True, slots=True)
class Patience:
    """From how many missing texts on a job is worth it, and how it is waited for; times in seconds.

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
class Known:
    """The jobs of one embedder's identity, and how many failed since the last one that did not."""

    jobs: tuple[Job, ...] = ()
    failures: int = 0


def batch_api(embedder: Embedder | None) -> BatchApi | None:
    """Return the batch API of the embedder's service; None where it has none."""
    asked = remote(embedder)
    return asked.service.batch if asked else None


def batch_of(embedder: Embedder | None, index_path: Path | None, patience: Patience | None = None) -> Batch | None:
    """Return the jobs of the embedder's service for this index; raise StoreError if they cannot be read.

    None where the service has no batch API, or where there is no place to remember jobs.
    """
    asked = remote(embedder)
    if asked is None or asked.service.batch is None or index_path is None:
        return None
    batch = Batch(asked, asked.service.batch, path_of(index_path), patience or Patience())
    batch.read()
    return batch


@dataclass(slots=True)
class Batch:
    """The jobs of one index at the service of its embedder, for the one sync that may run at a time.

    Whatever is learnt is put into the file at `path` before the next step. `returned` holds the keys of jobs that have
    ended here: what they lack is asked for by ordinary calls. `queued` holds the keys that wait for a job to end.
    """

    embedder: RemoteEmbedder
    api: BatchApi
    path: Path
    patience: Patience
    returned: set[str] = field(default_factory=set)
    queued: set[str] = field(default_factory=set)
    known: Known = field(default_factory=Known)
    _others: dict[str, Known] = field(default_factory=dict)  # a model that is wanted again finds its own jobs

    def read(self) -> None:
        """Read the file, or raise StoreError; jobs of other models that no service keeps so long are removed."""
        found = load_or_set_aside(self.path)
        self.known = found.pop(self.embedder.identity, Known())
        oldest = self.patience.clock() - LONGEST_SECONDS
        self._others = {
            identity: replace(known, jobs=tuple(job for job in known.jobs if job.submitted >= oldest))
            for identity, known in found.items()
        }
        if self._others != found:
            self._save(self.known)

    def held(self) -> dict[str, str]:
        """Return the keys that are with the service, each with the reason why its vector is not there."""
        jobs = self.known.jobs
        keys = {key for job in jobs for key in job.keys}
        if not keys:
            return {}
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(job.submitted for job in jobs)))
        held = f"{len(keys):,} texts are with {self._host}'s batch API since {since}; the next sync collects them"
        queued = f"it waits for one of {len(jobs)} jobs of {self._host}'s batch API to end; sync again"
        return dict.fromkeys(self.queued, queued) | dict.fromkeys(keys, held)

    def advance(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[int, int]:
        """Store what finished jobs gave; then hand over the texts that are still missing, if they are many.

        `missing` is looked at only after the vectors are stored. Returns how many there were, and what their texts
        came to in tokens, at most. Raises StoreError where the index, or the file of the jobs, cannot be written.
        """
        collected = tokens = 0
        self.read()
        for job in self.known.jobs:
            if count := self._collect(job, store):
                collected, tokens = collected + count, tokens + job.tokens
        if self.known.failures < FAILURE_LIMIT:
            self._hand_over(missing)
        return collected, tokens

    def wait(self, store: Store, progress: Callable[[Progress], None] | None) -> None:
        """Poll until no job is running, or for `patience.wait_seconds`; a job that is late twice is given up.

        Raises StoreError where the index was closed meanwhile, or the file of the jobs cannot be written.
        """
        from openclaw_memory.types import Progress

        began = self.patience.clock()
        total = sum(len(job.keys) for job in self.known.jobs)
        while running := [job for job in self.known.jobs if self._state(job) is JobState.RUNNING]:
            store.meta()  # so that closing the index ends the waiting
            waited = self.patience.clock() - began
            if waited >= self.patience.wait_seconds:
                for job in running:
                    self._give_up(job, f"it is not done after {waited:.0f} s")
                return
            if progress:
                done = total - sum(len(job.keys) for job in running)
                progress(Progress(done, total, "texts with the batch service", seconds=waited))
            self.patience.sleep(self.patience.poll_seconds)

    def _hand_over(self, missing: Iterable[tuple[str, str]]) -> None:
        self.queued.clear()
        not_for_jobs, limit = self.held().keys() | self.returned, self.embedder.service.limits.input_tokens
        texts = ((key, text) for key, text in missing if key not in not_for_jobs and _fits_a_job(text, limit))
        first = list(islice(texts, self.patience.min_texts))
        if len(first) < self.patience.min_texts:
            return
        for pack in packs(chain(first, texts), self.api.max_items, self.api.max_bytes, _line_bytes):
            if len(self.known.jobs) >= self.patience.concurrency:
                self.queued.update(key for key, _ in pack)
            elif not self._is_submitted(pack):
                return

    def _is_submitted(self, pack: list[tuple[str, str]]) -> bool:
        try:
            # Not tried again: a job may have been made though its name was lost on the way, and each job is paid for.
            name = self.embedder.ask(self.api.submit, pack, seconds=REQUEST_SECONDS, tries=1)
        except ServiceError as error:
            if error.kind not in PASSING:
                self._count_failure(f"it takes no job: {error}")
            return False
        # A process that is killed here has lost this one job; those before it are in the file.
        tokens = sum(weight(text) for _, text in pack)
        job = Job(name, [key for key, _ in pack], tokens, self.patience.clock())
        self._save(replace(self.known, jobs=(*self.known.jobs, job)))
        return True

    def _collect(self, job: Job, store: Store) -> int:
        """Store the vectors of the job, if it has ended; returns how many there were."""
        state, stored = self._state(job), 0
        if state is JobState.RUNNING:
            return 0
        if state is not JobState.FAILED:
            try:
                stored = self._store(job, store)
            except EmbedderError as error:
                self._give_up(job, str(error))
                return 0
        if state is JobState.DONE and stored:
            self.returned.update(job.keys)
            failures = self.known.failures
            self._save(Known(self._jobs_without(job), failures if failures >= FAILURE_LIMIT else 0))
        else:
            self._count_failure("it gave no vector" if state is JobState.DONE else f"it is {state.value}", job)
        return stored

    def _store(self, job: Job, store: Store) -> int:
        import numpy as np

        dims = self.embedder.service.settings.get("dimensions")

        def results(name: str) -> Mapping[str, Any]:
            with answers_within(longest_answer(len(job.keys), dims)):
                return self.api.results(name)

        found = self.embedder.ask(results, job.name, seconds=REQUEST_SECONDS)
        good = _good_vectors(job, found, dims)
        for pack in packs(good.items(), VECTORS_PER_WRITE, VECTORS_PER_WRITE, lambda _: 1):
            store.add_vectors([key for key, _ in pack], np.stack([row for _, row in pack]), self.embedder.identity)
        return len(good)

    def _state(self, job: Job) -> JobState:
        """Return how far the job is; running, as long as a service that cannot be reached just now may have it."""
        if self.patience.clock() - job.submitted > LONGEST_SECONDS:
            return JobState.EXPIRED
        try:
            return self.embedder.ask(self.api.state, job.name, seconds=self.embedder.policy.request_seconds)
        except ServiceError as error:
            return JobState.RUNNING if error.kind in PASSING else JobState.FAILED

    def _give_up(self, job: Job, why: str) -> None:
        """Count a failed attempt to get its vectors; after `TRIES` of them the job is cancelled."""
        if job.failures + 1 < TRIES:
            again = replace(job, failures=job.failures + 1)
            jobs = tuple(again if old.name == job.name else old for old in self.known.jobs)
            self._save(replace(self.known, jobs=jobs))
            return
        try:
            self.embedder.ask(self.api.cancel, job.name, seconds=self.embedder.policy.request_seconds)
        except ServiceError as error:
            why = f"{why}; nor can it be cancelled: {error}"
        self._count_failure(why, job)

    def _count_failure(self, why: str, job: Job | None = None) -> None:
        jobs = self.known.jobs
        if job is not None:
            jobs, why = self._jobs_without(job), f"of job {job.name}, {why}"
        self._save(Known(jobs, self.known.failures + 1))
        off = f"ordinary requests take its place until {self.path} is deleted"
        so = "after one more failure" if self.known.failures < FAILURE_LIMIT else "from now on"
        warn(f"the batch API of {self._host} failed: {why}; {so}, {off}")

    def _jobs_without(self, job: Job) -> tuple[Job, ...]:
        return tuple(other for other in self.known.jobs if other.name != job.name)

    def _save(self, known: Known) -> None:
        save(self.path, self._others | {self.embedder.identity: known})
        self.known = known

    @property
    def _host(self) -> str:
        return urlsplit(self.embedder.endpoint).hostname or self.embedder.endpoint


def _good_vectors(job: Job, found: Mapping[str, Any], dims: int | None) -> dict[str, Vector]:
    """Return the vectors that were asked for and are not zero, of `dims` dimensions, or of as many as most have."""
    rows: dict[str, Vector] = {}
    for key in job.keys:
        # A text whose vector is left out is asked for again by an ordinary call, whose failure is reported.
        with suppress(EmbedderError), own_errors(job.name):
            if key in found and (row := checked_vectors([found[key]], 1, job.name)[0]).any():
                rows[key] = row
    usual = Counter(map(len, rows.values())).most_common(1)
    dims = dims or (usual[0][0] if usual else 0)
    return {key: row for key, row in rows.items() if len(row) == dims}


def _fits_a_job(text: str, limit: int) -> bool:
    return bool(text.strip()) and weight(text) <= limit and encodable(text) == text


def _line_bytes(item: tuple[str, str]) -> int:
    return LINE_BYTES + len(json.dumps(item[1]))


# --- the file of the jobs ----------------------------------------------------------------------------------------


def path_of(index_path: Path) -> Path:
    """Return the file that goes with an index."""
    return Path(f"{index_path}{SUFFIX}")


def load(path: Path) -> dict[str, Known]:
    """Return what the file holds, by identity; raise StoreError if it cannot be read, ValueError if it is damaged."""
    try:
        known = json.loads(_read(path))
        return {name: Known(tuple(Job(**job) for job in one["jobs"]), one["failures"]) for name, one in known.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); check its permissions, or delete it") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read(path: Path) -> bytes:
    with open(os.open(path, os.O_RDONLY | NO_LINK), "rb") as file:
        return file.read()


def load_or_set_aside(path: Path) -> dict[str, Known]:
    """Return what the file holds, or raise StoreError; a damaged file is renamed and counts as none."""
    try:
        return load(path)
    except ValueError as damage:
        aside = path.with_name(f"{path.name}.damaged")
        try:
            os.replace(path, aside)
        except OSError as error:
            message = f"{path} is damaged ({damage}) and cannot be kept as {aside} ({error.strerror}); delete it"
            raise StoreError(message) from error
        warn(f"{path} is damaged ({damage}) and is kept as {aside}; texts of its jobs are sent again")
        return {}


def save(path: Path, everything: Mapping[str, Known]) -> None:
    """Put `everything` into the file at once and whole, or raise StoreError; nothing to keep is no file."""
    kept = {identity: asdict(known) for identity, known in everything.items() if known.jobs or known.failures}
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if not kept:
            path.unlink(missing_ok=True)
            return
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        message = f"{path} cannot be written ({error.strerror}); free some space, or check its permissions"
        raise StoreError(message) from error
