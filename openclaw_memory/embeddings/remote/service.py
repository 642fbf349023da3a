"""What a provider says of its service: its address, what a request may hold, and how it is asked."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import unquote, urlsplit

from openclaw_memory.embeddings.vectors import MAX_DIMENSIONS, installing
from openclaw_memory.errors import EmbedderError

# What a number takes in an answer that is JSON; at most, on a line of its own that is indented.
CHARACTERS_PER_NUMBER = 20
MOST_BYTES_PER_NUMBER = 48
# What an answer holds besides numbers: a text's place, names and keys; and an error, which may be a page of HTML.
MOST_BYTES_PER_TEXT = 1024
MOST_BYTES_OF_WORDS = 128 * 1024

# Services take files of 1 GB and more; one of ours is held in memory.
FILE_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: `items` texts of `request_tokens` together, each of `input_tokens` at most.

    Tokens are estimated from above, one for each UTF-8 byte; a longer text is embedded in pieces.
    """

    items: int
    input_tokens: int
    request_tokens: int = 8000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Deadlines, tries and waits; all times in seconds. The numbers are OpenClaw's.

    At most `concurrency` requests run at once. A request that fails in passing has `tries`, with waits from
    `first_wait` doubling up to `longest_wait`; while documents are embedded, a service that is asked too often is
    given `busy_tries` with longer waits, and the wait it asks for. A question has one deadline for all its tries.
    """

    concurrency: int = 4
    query_seconds: float = 60.0
    request_seconds: float = 120.0
    tries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0
    busy_tries: int = 5
    busy_first_wait: float = 5.0
    busy_longest_wait: float = 60.0


class JobState(Enum):
    """How far a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


# What OpenAI and Voyage call them; any other state is one of a job that runs.
STATES_OF_OPENAI = {"completed": JobState.DONE, "failed": JobState.FAILED, "cancelled": JobState.FAILED}
STATES_OF_OPENAI |= {"cancelling": JobState.FAILED, "expired": JobState.EXPIRED}


@dataclass(frozen=True, slots=True)
class BatchApi:
    """A service's batch API.

    `submit` takes pairs of a key (1 to 64 letters and digits) and a text, and returns the job's name; the others take
    that name. `results` maps the keys that were answered, also before a job expired, to their vectors: one that is
    missing failed. `cancel` ends a job that is not waited for any more. All raise what the service's client
    raises: `state` too, where the service does not know the job.
    """

    submit: Callable[[Sequence[tuple[str, str]]], str]
    state: Callable[[str], JobState]
    results: Callable[[str], Mapping[str, Any]]
    cancel: Callable[[str], Any]
    max_items: int
    max_bytes: int


def estimate_answer(texts: int, dimensions: int | None) -> int:
    """Return how many bytes the vectors of so many texts take at most, or the error in their place."""
    return texts * ((dimensions or MAX_DIMENSIONS) * MOST_BYTES_PER_NUMBER + MOST_BYTES_PER_TEXT) + MOST_BYTES_OF_WORDS


def items_within(answer_bytes: int, dimensions: int) -> int:
    """Return how many texts a job may have for its answer, vectors as decimal fractions, to fit so many bytes."""
    return answer_bytes // (CHARACTERS_PER_NUMBER * dimensions)


@dataclass(frozen=True, slots=True)
class Service:
    """How a service is asked, by whatever SDK or HTTP client.

    `send` takes texts and whether they are questions, and returns a vector for each, in their order, as numbers or
    arrays. It is called in several threads at once, and ends in time where it asks through `http_client`; what it
    raises is read by `remote.errors.failure`. `endpoint` is the URL that receives the texts: a password or a query in
    it is taken out. `settings` is whatever else changes a vector (dimensions, prompts, names of extra headers), and
    must hold no secret. `secrets` (a key, values of extra headers) are shown in no message, also where the service
    repeats them.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[list[str], bool], Sequence[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    close: Callable[[], None] | None = None
    batch: BatchApi | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", (*self.secrets, *secrets_in(self.endpoint)))
        object.__setattr__(self, "endpoint", public(self.endpoint))

    @property
    def origin(self) -> str:
        """Who is asked, for messages."""
        return f"{self.endpoint} ({self.provider} {self.model})"


# --- addresses ---------------------------------------------------------------------------------------------------


def on_this_machine(url: str) -> bool:
    """Return whether what is sent to `url` stays on this machine."""
    import ipaddress

    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public(url: str) -> str:
    """Return the URL without what may be secret: a user's name and password, the query, and the fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def without_user(url: str) -> str:
    """Return the URL without the user and the password, which HTTP libraries write into their logs."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def user_of(url: str) -> tuple[str, str] | None:
    """Return the user and the password that the URL names, as they are sent; None where it names none."""
    parts = urlsplit(url)
    return (unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the password, or the user who has none, as written, as sent, and as a service may repeat it."""
    user, parts = user_of(url), urlsplit(url)
    if user is None:
        return ()
    secret = user[1] or user[0]
    sent = b64encode(":".join(user).encode()).decode()
    escaped = (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return tuple(dict.fromkeys((parts.password or parts.username or "", secret, sent, *escaped)))


def checked_url(url: str, example: str) -> str:
    """Return the URL without a slash at its end; raise EmbedderError, which shows `example`, if it cannot be used."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, a port that is no number
        usable = False
    if not usable:
        shown = re.split("[?#]", url.rpartition("@")[2])[0]
        raise EmbedderError(f"base_url {shown!r} is not an address; write it like {example}")
    if parts.query or parts.fragment:
        raise EmbedderError(
            f"base_url {public(url)!r} goes on with a query or a fragment, which no request would hold; leave it out, "
            "and give a key as api_key or in headers"
        )
    return url.rstrip("/?#")


# --- options -----------------------------------------------------------------------------------------------------


def required_key(provider: str, package: str, given: str | None, *variables: str) -> str:
    """Return the key that was given, or the first that the environment holds; raise EmbedderError without one."""
    for key in (given, *map(os.environ.get, variables)):
        if key and key.strip():
            return key.strip()
    from importlib.util import find_spec

    missing = "" if find_spec(package) else f"; its package is missing too: {installing(provider)}"
    raise EmbedderError(
        f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
        f"{missing}"
    )


def check_numbers(provider: str, **options: int | None) -> None:
    """Raise EmbedderError for a number below 1, or too many dimensions; None is the default of the provider."""
    for name, number in options.items():
        if number is not None and number < 1:
            raise EmbedderError(f"embedder {provider!r} cannot be asked with {name}={number}; it must be at least 1")
        if name == "dimensions" and number is not None and number > MAX_DIMENSIONS:
            raise EmbedderError(
                f"embedder {provider!r} cannot be asked with {name}={number}; an index takes up to {MAX_DIMENSIONS}"
            )


def shared_settings(
    headers: Mapping[str, str] | None, dimensions: int | None, max_input_tokens: int | None
) -> dict[str, Any]:
    """Return what of these options changes a vector, or may: of `headers` the names."""
    return {
        "dimensions": dimensions,
        "headers": sorted(header.lower() for header in headers or {}) or None,
        "max_input_tokens": max_input_tokens,
    }


def secrets_of(key: str, headers: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return what no message may show: the key, and the values of the headers, also without a scheme (`Bearer`)."""
    values = [str(value) for value in (headers or {}).values()]
    return (key, *values, *(value.partition(" ")[2] for value in values))
