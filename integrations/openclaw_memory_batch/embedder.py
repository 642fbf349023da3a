"""`BatchEmbedder`: an embedder around that of a service, which leaves large amounts of text to the batch API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings import RemoteEmbedder, load_embedder
from openclaw_memory.errors import ConfigError, StoreError
from openclaw_memory_batch.jobs import FAILURE_LIMIT, Jobs, JobsState, Patience, get_path, load

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder, Matrix, Progress, Store, Vector


class BatchEmbedder:
    """Embed large amounts of text by the batch API of a service.

    Safe to use from several threads. Vectors are those of the inner embedder, which answers questions and embeds small
    amounts. Jobs are kept in a file next to the index; with a store that is no file, all texts are embedded by the
    inner embedder.

    Attributes:
        inner: The embedder of the service.
    """

    def __init__(
        self,
        inner: Embedder | None,
        *,
        wait: bool = False,
        concurrency: int = 2,
        min_texts: int = 1000,
        poll_seconds: float = 2.0,
        wait_seconds: float = 3600.0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wrap an embedder, and ask nothing yet.

        Args:
            inner: The embedder of OpenAI, Gemini, Voyage, or of another service with a batch API.
            wait: Whether a sync waits for the jobs; else a later one collects them.
            concurrency: How many jobs of an index run at a time.
            min_texts: How many missing texts are worth a job.
            poll_seconds: The pause between two looks at jobs that are waited for.
            wait_seconds: How long a job is waited for. After twice as long it is given up.
            clock: The time in seconds since 1970.
            sleep: Waits so many seconds.

        Raises:
            ConfigError: The embedder has no batch API, or `concurrency` is not a whole number above 0.
        """
        if not isinstance(inner, RemoteEmbedder) or inner.service.batch is None:
            name = "no embedder" if inner is None else f"the embedder {inner.provider} {inner.model}"
            raise ConfigError(f"{name} has no batch API: choose openai, gemini or voyage, or do without batches")
        if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
            raise ConfigError(f"concurrency={concurrency!r} is not a number of jobs: pass a whole number above 0")
        self.inner = inner
        self.provider, self.model, self.identity = inner.provider, inner.model, inner.identity
        self.endpoint, self.leaves_machine = inner.endpoint, inner.leaves_machine
        self._wait, self._api = wait, inner.service.batch
        self._patience = Patience(min_texts, poll_seconds, wait_seconds, clock, sleep, concurrency)
        self._jobs: dict[Path, Jobs] = {}  # of indexes that are being synced

    def embed_query(self, text: str) -> Vector:
        return self.inner.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self.inner.embed_documents(texts)

    def close(self) -> None:
        self.inner.close()

    def prepare(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[Mapping[str, str], int, int]:
        """Store the vectors of finished jobs, and submit missing texts where they are many."""
        path = _locate_file(store)
        if path is None:
            return {}, 0, 0
        if (jobs := self._jobs.get(path)) is None:
            jobs = self._jobs[path] = Jobs(self.inner, self._api, path, self._patience)
        embedded, tokens = jobs.advance(store, missing)
        return jobs.list_pending(), embedded, tokens

    def wait(self, store: Store, progress: Callable[[Progress], None] | None = None) -> bool:
        """Wait for the jobs of an index if that is wanted; return whether there may be vectors to collect."""
        path = _locate_file(store)
        jobs = None if path is None else self._jobs.get(path)
        if path is None or jobs is None:
            return False
        if not self._wait or not jobs.state.jobs or jobs.state.jobs == jobs.waited_for:
            del self._jobs[path]
            return False
        awaited = jobs.state.jobs
        jobs.wait(store, progress)
        jobs.waited_for = awaited
        return True

    def describe(self, store: Store) -> Mapping[str, Any]:
        """Return how many jobs and texts are with the service, and how many jobs failed in a row."""
        path, state, error = _locate_file(store), JobsState(), None
        if path is not None:
            try:
                state = load(path).get(self.identity, state)
            except (StoreError, ValueError) as damage:
                error = f"{path}: {damage}"
        return {
            "enabled": path is not None and state.failures < FAILURE_LIMIT,
            "mode": "wait" if self._wait else "later",
            "provider": self.provider,
            "jobs": len(state.jobs),
            "texts": sum(len(job.keys) for job in state.jobs),
            "failures": state.failures,
            "limit": FAILURE_LIMIT,
            "min_texts": self._patience.min_texts,
            "poll_seconds": self._patience.poll_seconds,
            "timeout_seconds": self._patience.wait_seconds,
            "concurrency": self._patience.concurrency,
            "error": error,
        }


def create(
    model: str | None = None, *, provider: str, wait: bool = False, concurrency: int = 2, **options: Any
) -> BatchEmbedder:
    """Make the embedder of the provider `batch`.

    Args:
        model: The model of the inner embedder.
        provider: The provider of the inner embedder.
        wait: As for `BatchEmbedder`.
        concurrency: As for `BatchEmbedder`.
        options: Of the inner embedder.

    Raises:
        ConfigError: As `BatchEmbedder`.
        EmbedderError: As `load_embedder`.
    """
    return BatchEmbedder(load_embedder(provider, model, **options), wait=wait, concurrency=concurrency)


def _locate_file(store: Store) -> Path | None:
    """Return the file of the jobs of an index; None for a store that is no file."""
    location = store.describe(counts=False).location
    return get_path(Path(location)) if location and "://" not in location else None
