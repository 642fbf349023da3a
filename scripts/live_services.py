"""Ask the real services that have a key in the environment, and print what differs from what the library expects.

    python scripts/live_services.py [--only openai] [--batch-seconds 3600]

Embeddings of OpenAI, Gemini and Voyage, and rerankers of Cohere, Jina and Voyage: some fifty short requests and a long
one for each, a fraction of a cent. With `--batch-seconds` a batch job of three texts is made too, and waited for so
long. The exit code is 1 if anything differs. Keys are in no output.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from openclaw_memory_batch.services import APIS

from openclaw_memory import load_embedder
from openclaw_memory.config.sections import RerankConfig
from openclaw_memory.embeddings.remote import RemoteEmbedder
from openclaw_memory.embeddings.reranking import SERVICES as RERANKERS
from openclaw_memory.embeddings.reranking import Reranker
from openclaw_memory.embeddings.service import ServiceError
from openclaw_memory.errors import EmbedderError

# Of each provider: the variables of its key, the dimensions of its default model, and fewer that it can give.
EMBEDDERS = {
    "openai": (("OPENAI_API_KEY",), 1536, 256),
    "gemini": (("GEMINI_API_KEY", "GOOGLE_API_KEY"), 3072, 768),
    "voyage": (("VOYAGE_API_KEY",), 1024, 512),
}
RERANKER_MODELS = {
    "cohere": "rerank-v3.5",
    "jina": "jina-reranker-v2-base-multilingual",
    "voyage": "rerank-2.5",
}
QUESTION = "When is the launch?"
TEXTS = ["The launch is on Friday.", "Größe 42, «bis Freitag»", "The boiler is serviced\nin spring.\u2028No leaks."]
ALIKE = 0.999  # the cosine of two vectors of one text; services do not repeat theirs to the last bit
WRONG_KEY = "wrong-key-0123456789"
POLL_SECONDS = 10.0
Loader = Callable[..., RemoteEmbedder]
Difference = Iterator[str]


def check_embedder(provider: str, *, batch_seconds: float = 0.0, **options: Any) -> Iterator[tuple[str, str]]:
    """Yield each thing that is expected of a provider, and what differs from it, or nothing.

    Args:
        provider: The name of the provider.
        batch_seconds: How long a batch job is waited for; 0 makes none.
        options: Of the provider, such as `base_url`.
    """
    embedders: list[RemoteEmbedder] = []

    def load(**more: Any) -> RemoteEmbedder:
        embedder = cast("RemoteEmbedder", load_embedder(provider, **{**options, **more}))
        embedders.append(embedder)
        return embedder

    _, dims, fewer = EMBEDDERS[provider]
    checks: dict[str, Callable[[], Difference]] = {
        f"{dims} dimensions": lambda: check_dimensions(load(), dims),
        f"{fewer} dimensions if asked": lambda: check_dimensions(load(dimensions=fewer), fewer),
        "vectors in the order of the texts": lambda: check_order(load()),
        "the answer is next to the question": lambda: check_meaning(load()),
        "a text that is too long is embedded in pieces": lambda: check_long_text(load),
        "a wrong key is refused, asked with once and not shown": lambda: check_refusal(load(api_key=WRONG_KEY)),
        "an unknown model is refused": lambda: check_refusal(load(model="no-such-model-0")),
    }
    if batch_seconds:
        checks["a batch job gives the vectors that requests give"] = lambda: check_batch(load(), batch_seconds)
    for name, check in checks.items():
        try:
            yield name, "; ".join(check())
        except Exception as error:  # noqa: BLE001 - whatever it is, it was not expected
            yield name, f"{type(error).__name__}: {error}"
    for embedder in embedders:
        embedder.close()


def check_dimensions(embedder: RemoteEmbedder, dims: int) -> Difference:
    """Yield the dimensions if they are others."""
    if (actual := embedder.embed_query(QUESTION).shape[0]) != dims:
        yield f"{actual} dimensions"


def check_order(embedder: RemoteEmbedder) -> Difference:
    """Yield the texts whose vectors differ from those that they have when they are sent alone."""
    together = embedder.embed_documents(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        if (cosine := float(vector @ embedder.embed_documents([text])[0])) < ALIKE:
            yield f"alone {text!r} has another vector: their cosine is {cosine:.4f}"


def check_meaning(embedder: RemoteEmbedder) -> Difference:
    """Yield the scores if another text than the answer has the best."""
    scores = embedder.embed_documents(TEXTS) @ embedder.embed_query(QUESTION)
    if np.argmax(scores) != 0:
        yield f"the scores are {np.round(scores, 3).tolist()}"


def check_long_text(load: Loader) -> Difference:
    """Yield nothing, or raise the error of a refusal that is not understood as one of size."""
    tokens = load().service.limits.input_tokens
    whole = load(max_input_tokens=10 * tokens)  # so that it is sent whole, and refused
    if not whole.embed_documents(["garden " * (tokens + tokens // 4)]).any():
        yield "its vector is zero"


def check_refusal(embedder: RemoteEmbedder) -> Difference:
    """Yield what is wrong with the refusal of a request."""
    try:
        embedder.embed_query(QUESTION)
    except ServiceError as error:
        if error.is_passing:
            yield f"it counts as passing: {error}"
        if WRONG_KEY in str(error):
            yield "the key is in the message"
    else:
        yield "it was taken"


def check_batch(embedder: RemoteEmbedder, seconds: float) -> Difference:
    """Yield the state of a batch job that is not done in time, or the texts whose vectors differ."""
    api: Any = APIS[embedder.provider](embedder)
    job, until = api.submit([(f"{at:064x}", text) for at, text in enumerate(TEXTS)]), time.monotonic() + seconds
    while (state := api.fetch_state(job)) == "running" and time.monotonic() < until:
        time.sleep(min(POLL_SECONDS, seconds / 10))
    if state != "done":
        api.cancel(job)
        yield f"after {seconds:.0f} s it is {state}"
        return
    vectors = api.fetch_results(job)
    for at, (text, expected) in enumerate(zip(TEXTS, embedder.embed_documents(TEXTS), strict=True)):
        row = RemoteEmbedder.check_vectors([vectors[f"{at:064x}"]], 1, job)[0]
        if (cosine := float(row @ expected)) < ALIKE:
            yield f"{text!r} has another vector: their cosine is {cosine:.4f}"


def check_reranker(provider: str, **options: Any) -> Iterator[tuple[str, str]]:
    """Yield what is expected of a reranker, and what differs from it, or nothing."""
    name = "the answer is put first"
    settings = RerankConfig(model=f"{provider}/{RERANKER_MODELS[provider]}", milliseconds=30_000, **options)
    try:
        scores = Reranker(settings, allow_remote=True).score(QUESTION, TEXTS)
    except EmbedderError as error:
        yield name, str(error)
        return
    yield name, "" if max(scores) == scores[0] else f"the scores are {scores}"


def main(arguments: list[str] | None = None) -> int:
    """Check each service that has a key, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({*EMBEDDERS, *RERANKERS}), help="one service")
    parser.add_argument("--batch-seconds", type=float, default=0.0, help="wait so long for a batch job")
    choice = parser.parse_args(arguments)
    rows = [(own, "embeddings", variables) for own, (variables, *_) in EMBEDDERS.items()]
    rows += [(own, "reranker", (variable,)) for own, (_, variable) in RERANKERS.items()]
    differences = 0
    for provider, kind, variables in rows:
        if choice.only not in {None, provider}:
            continue
        if not any(map(os.environ.get, variables)):
            print(f"{provider} {kind}: not asked, {' or '.join(variables)} is not set")
            continue
        is_embedder = kind == "embeddings"
        results = (
            check_embedder(provider, batch_seconds=choice.batch_seconds) if is_embedder else check_reranker(provider)
        )
        for name, difference in results:
            print(f"{provider} {kind}: {name}: {difference or 'yes'}", flush=True)
            differences += bool(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
