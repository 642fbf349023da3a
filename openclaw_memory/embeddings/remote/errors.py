"""What a failure of an embedding service means: whether to ask again, when, and with how much."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

from openclaw_memory.errors import EmbedderError
from openclaw_memory.text.redaction import redact


class FailureKind(Enum):
    """What to do about a failure."""

    PASSING = "ask again soon"
    BUSY = "ask again later: too many requests"
    EXHAUSTED = "the quota is used up: asking again is in vain"
    TOO_LARGE = "ask for less text at once"
    TOO_MANY = "ask for fewer texts at once"
    REFUSED = "one of the texts is refused"
    DENIED = "no request of this kind will ever be answered"


class ServiceError(EmbedderError):
    """A request to an embedding service that failed.

    `kind` says what to do about it; `retry_after` is the wait in seconds that the service asked for, or None.
    """

    def __init__(self, message: str, kind: FailureKind, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """Tell whether the same request may succeed later."""
        return self.kind in {FailureKind.PASSING, FailureKind.BUSY}

    @property
    def isolated(self) -> bool:
        """Whether the failure lies in the texts that were asked for, so that others may be answered."""
        return self.kind in {FailureKind.TOO_LARGE, FailureKind.TOO_MANY, FailureKind.REFUSED}


class RedirectError(ServiceError):
    """The service points elsewhere, to `location`."""

    def __init__(self, origin: str, status: int, location: str) -> None:
        super().__init__(
            f"{origin} answered {status}, a redirect, which is not followed so that texts go nowhere else; set "
            "base_url to the service's own address",
            FailureKind.DENIED,
        )
        self.location = location


class StatusError(Exception):
    """An answer with an error status; `response` is that of httpx."""

    def __init__(self, response: Any) -> None:
        super().__init__(f"{response.request.method} {response.request.url.path}")
        self.response = response


# OpenAI's codes and Gemini's words for a quota that waiting does not refill.
QUOTA = re.compile(r"insufficient_quota|quota_exceeded|exceeded your current quota", re.IGNORECASE)
# OpenClaw's signs, besides status 429, of a service that is asked too often.
BUSY = re.compile(r"rate.?limit|too many requests|resource has been exhausted|resource_exhausted", re.IGNORECASE)
SIZE = re.compile(
    r"too (large|long|many)|maximum context|context length|max\w*\b.{0,40}\b(tokens|length|items|inputs|batch)"
    r"|batch size|at most \d+|no more than \d+|exceeds? the (limit|maximum)|payload size|list too long",
    re.IGNORECASE,
)
# Of those, the ones that speak of tokens or bytes; the others count texts.
TEXT_SIZE = re.compile(r"tokens?\b|context|bytes|payload|too large", re.IGNORECASE)
# Gemini puts the wait into the body: "retryDelay": "34s"; OpenAI into the message: "Please try again in 1.5s".
DELAY_IN_WORDS = re.compile(r"(?:retryDelay\W+|(?:try again|retry) in )(\d+(?:\.\d+)?)s", re.IGNORECASE)
KEY = re.compile(r"\b(sk-|AIza|pa-|al-|Bearer )[\w*.-]{6,}")
# Gemini answers 400 to a bad key: no text of the request is to blame.
BAD_KEY = re.compile(r"api.?key (is )?(not valid|invalid|expired)", re.IGNORECASE)
# Anything shorter is part of ordinary words.
SHORTEST_SECRET = 4
LONGEST_MESSAGE = 300
LONGEST_OWN_MESSAGE = 600
REMEDIES = {
    FailureKind.PASSING: "the next sync asks again",
    FailureKind.BUSY: "the next sync asks again; a lower embedding.concurrency asks less often",
    FailureKind.EXHAUSTED: "refill the account, or choose another provider",
    FailureKind.TOO_LARGE: "set a lower limit in the provider's options",
    FailureKind.TOO_MANY: "set a lower max_items in the provider's options",
    FailureKind.REFUSED: "check the model's name and options, or the text",
    FailureKind.DENIED: "check key, model and base_url",
}


def failure(error: Exception, origin: str, secrets: Sequence[str] = ()) -> ServiceError:
    """Return the failure behind an exception of an SDK or an HTTP library.

    An exception without a status is one of the transport, or an answer that could not be understood: both may pass.

    Args:
        error: The exception; status, headers and body are read where OpenAI's SDK and httpx keep them.
        origin: Who was asked, for the message.
        secrets: What the message must not show; nor does it show anything that looks like a key.
    """
    for reason in reasons(error):
        if isinstance(reason, EmbedderError):  # ours; SDKs wrap what is raised inside their HTTP client
            message = _without(secrets, str(reason))[:LONGEST_OWN_MESSAGE]
            if isinstance(reason, ServiceError):
                return ServiceError(message, reason.kind, reason.retry_after)
            return ServiceError(message, FailureKind.PASSING)
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    text = _text_of(error, response)
    retry_after = _retry_after(getattr(response, "headers", {}), text)
    kind = FailureKind.PASSING if status is None else _kind_of(status, text, hinted=retry_after is not None)
    what = f"answered {status}" if status else "cannot be reached or answered nonsense"
    shown = KEY.sub(r"\1***", redact(_without(secrets, text)))[:LONGEST_MESSAGE]
    return ServiceError(f"{origin} {what}: {shown}; {REMEDIES[kind]}", kind, retry_after)


def reasons(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and what it was raised from, down to the first."""
    reason: BaseException | None = error
    while reason is not None:
        yield reason
        reason = reason.__cause__


def shows(error: BaseException, secrets: Sequence[str]) -> bool:
    """Return whether a traceback of the error would show a secret, in its own words or in those it came from."""
    words = "".join(traceback.format_exception(error))
    return _without(secrets, words) != words


def _kind_of(status: int, text: str, *, hinted: bool) -> FailureKind:
    if QUOTA.search(text) and status in {402, 403, 429} and not hinted:
        return FailureKind.EXHAUSTED
    if status == 429 or (status in {400, 403, 503} and BUSY.search(text)):
        return FailureKind.BUSY
    # llama.cpp's server answers 500 to a text that it cannot take.
    if status == 413 or (status in {400, 422, 500} and SIZE.search(text)):
        counts_texts = SIZE.search(text) and not TEXT_SIZE.search(text)
        return FailureKind.TOO_MANY if counts_texts else FailureKind.TOO_LARGE
    if status in {400, 422} and not BAD_KEY.search(text):
        return FailureKind.REFUSED
    return FailureKind.PASSING if status in {408, 409, 425} or status >= 500 else FailureKind.DENIED


def _text_of(error: Exception, response: Any) -> str:
    """Return the error's own text on one line, with what the service's body adds."""
    text = f"{type(error).__name__}: {error}"
    body = getattr(error, "body", None)  # as OpenAI's SDK has read it
    if body is None and response is not None:
        with suppress(Exception):  # a body that was not read, or cannot be decoded, says nothing
            body = response.text
    inner = body.get("error", body) if isinstance(body, dict) else body
    parts = list(inner.values()) if isinstance(inner, dict) else [inner]
    *_, first = reasons(error)
    if first is not error and response is None:  # SDKs say of a lost connection only that it is lost
        parts.append(f"({type(first).__name__}: {first})")
    return " ".join(" ".join([text, *(str(part) for part in parts if part and str(part) not in text)]).split())


def _without(secrets: Sequence[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def _retry_after(headers: Mapping[str, Any], text: str) -> float | None:
    """Return the wait that a service asks for, in seconds: `Retry-After` is a number or a date."""
    from email.utils import mktime_tz, parsedate_tz

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name) or headers.get(name.title()) or "")
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            with suppress(ValueError, OverflowError, TypeError, IndexError):  # a date that no calendar has
                if parsed := parsedate_tz(value):
                    return max(0.0, mktime_tz(parsed) - time.time())
    named = DELAY_IN_WORDS.search(text)
    return float(named[1]) if named else None
