"""Rank results again by a model that reads the question and each line together, if the user names one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from openclaw_memory._limited import Limited
from openclaw_memory.config.sections import RerankConfig
from openclaw_memory.embeddings.vectors import translate_errors
from openclaw_memory.errors import EmbedderError
from openclaw_memory.types import SearchResult

RERANKED = 40  # of the results at most, whatever comes behind them
# After a failure searches do not wait for it for so long.
PAUSE_SECONDS = 30.0
RERANK = "rerank"  # the name in `SearchResult.parts` of what the model says
# Each service with its address and the variable of its key.
SERVICES = {
    "cohere": ("https://api.cohere.com/v2", "COHERE_API_KEY"),
    "jina": ("https://api.jina.ai/v1", "JINA_API_KEY"),
    "voyage": ("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
}


def rerank_results(
    results: Sequence[SearchResult], query: str, words: Sequence[str], choice: Any, allow_remote: bool
) -> tuple[Sequence[SearchResult], str | None]:
    """Return results in the order of a reranker, with the scores of the places they come to, and why it fails if so.

    It reads the line of each result with the most words of the query, and a line next to it.

    Args:
        results: The results, best first.
        query: The question.
        words: Its words, in lower case.
        choice: The setting `search.rerank`.
        allow_remote: Whether texts may leave this machine.
    """
    if choice is None or not results:
        return results, None
    best = results[:RERANKED]
    settings = RerankConfig(**choice) if isinstance(choice, Mapping) else RerankConfig(choice)
    try:
        scores = _get_reranker(settings, allow_remote).score(query, [_select_lines(own.snippet, words) for own in best])
    except EmbedderError as error:
        return results, f"the results are in their own order: {error}"
    scored = [replace(own, parts={**own.parts, RERANK: score}) for own, score in zip(best, scores, strict=True)]
    ranked = zip(sorted(scored, key=lambda own: -own.parts[RERANK]), best, strict=True)
    placed = [replace(own, score=place.score, confidence=place.confidence) for own, place in ranked]
    return [*placed, *results[RERANKED:]], None


def _select_lines(snippet: str, words: Sequence[str]) -> str:
    lines = [line for line in snippet.split("\n") if line.strip()]
    best = max(range(len(lines)), key=lambda at: sum(word in lines[at].lower() for word in words), default=0)
    return "\n".join(lines[best - 1 : best + 1] if best else lines[:2])


class Reranker:
    """A function, a model or a service: loaded at its first use, and left alone for a while where it fails."""

    def __init__(self, settings: RerankConfig, allow_remote: bool) -> None:
        own = settings.model
        self._name = f"the reranker {own if isinstance(own, str) else getattr(own, '__name__', type(own).__name__)}"
        self._settings, self._allow_remote = settings, allow_remote
        self._function: Callable[[str, Sequence[str]], Any] | None = own if callable(own) else None
        self._limited = Limited("openclaw-memory-rerank")
        self._pause = 0.0, ""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, the higher the better.

        Raises:
            EmbedderError: It is not installed, is being loaded, fails, or takes too long.
        """
        if time.monotonic() < self._pause[0]:
            raise EmbedderError(self._pause[1])
        try:
            return self._limited.run(lambda: self._rank(query, texts), self._settings.milliseconds / 1000)
        except TimeoutError as error:
            if self._function is None:
                raise EmbedderError(f"{self._name} is being loaded, for later searches") from error
            reason = f"{self._name} gives no answer: {error}; set more milliseconds in search.rerank"
            self._pause = time.monotonic() + PAUSE_SECONDS, reason
            raise EmbedderError(reason) from error

    def _rank(self, query: str, texts: Sequence[str]) -> list[float]:
        import numpy as np

        try:
            with translate_errors(f"{self._name} failed"):
                self._function = self._function or _load(self._settings, self._allow_remote)
                values = np.asarray(self._function(query, texts), np.float64)
                if values.size != len(texts) or not np.isfinite(values).all():
                    raise ValueError(f"it returned no number for each of {len(texts)} texts")
                return [float(value) for value in values.reshape(-1)]
        except EmbedderError as error:  # of which no search may hear any more
            self._pause = time.monotonic() + PAUSE_SECONDS, str(error)
            raise


_get_reranker = lru_cache(maxsize=8)(Reranker)


def _load(settings: RerankConfig, allow_remote: bool) -> Callable[[str, Sequence[str]], Any]:
    """Return a function that runs the model or asks the service of these settings."""
    from openclaw_memory.embeddings.local import load_model

    model = settings.model
    if model.partition("/")[0] in SERVICES:
        return _make_request(model, settings, allow_remote)
    options = dict.fromkeys(("device", "revision", "cache_folder")) | {"file_name": settings.file_name}
    return load_model(model, None, options, "load_cross_encoder")  # type: ignore[no-any-return]


def _make_request(model: str, settings: RerankConfig, allow_remote: bool) -> Callable[[str, Sequence[str]], Any]:
    import asyncio

    from openclaw_memory.embeddings.service import check_url, is_on_this_machine, read_failure, send_json
    from openclaw_memory.embeddings.vectors import import_package

    provider, _, name = model.partition("/")
    address, variable = SERVICES[provider]
    url = check_url(settings.base_url or address, address)
    is_local = is_on_this_machine(url)
    if not (allow_remote or is_local):
        raise EmbedderError(f"{model} sends text to {url}, and embedding.allow_remote is off; name a local reranker")
    key = settings.api_key or os.environ.get(variable)
    if not key:
        raise EmbedderError(f"{model} has no key: set {variable} in the environment, or api_key in search.rerank")
    httpx, headers = import_package("httpx", "voyage"), {"Authorization": f"Bearer {key}"}

    async def ask(query: str, texts: Sequence[str]) -> list[float]:
        try:
            async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=not is_local) as client:
                answer = await send_json(client, "/rerank", {"model": name, "query": query, "documents": [*texts]})
            scores = {row["index"]: row["relevance_score"] for row in answer.get("results") or answer["data"]}
            return [scores[place] for place in range(len(texts))]
        except Exception as error:  # of httpx, or of an answer of another shape
            raise read_failure(error, url, headers) from error

    return lambda query, texts: asyncio.run(ask(query, texts))
