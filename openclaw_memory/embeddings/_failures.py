"""What an embedding service's failure means: whether to ask again, when, and with how much."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import mktime_tz, parsedate_tz
from enum import Enum
from typing import Any

from openclaw_memory.errors import EmbedderError


class Meaning(Enum):
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

    `meaning` says what to do about it; `retry_after` is the wait that the service asked for, in seconds, None where
    it named none.
    """

    def __init__(self, message: str, meaning: Meaning, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.meaning = meaning
        self.retry_after = retry_after

    @property
    def isolated(self) -> bool:
        """Whether the failure lies in the texts that were asked for, so that others may be answered."""
        return self.meaning in {Meaning.TOO_LARGE, Meaning.TOO_MANY, Meaning.REFUSED}


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
# Anything shorter stands in many a word.
SHORTEST_SECRET = 4
LONGEST_MESSAGE = 300
LONGEST_OWN_MESSAGE = 600
# Gemini answers 400 to a bad key: no text of the request is to blame.
BAD_KEY = re.compile(r"api.?key (is )?(not valid|invalid|expired)", re.IGNORECASE)


def failure(error: Exception, origin: str, secrets: Sequence[str] = ()) -> ServiceError:
    """The failure behind an exception of an SDK or of its HTTP library; `origin` says who was asked.

    Status, headers and body are read where the SDKs of OpenAI, Google and Voyage, and httpx, keep them. An exception
    without a status is one of the transport, or an answer that could not be understood: both may pass. The message
    shows none of the `secrets`, and nothing that looks like a key.
    """
    for reason in _reasons(error):
        if isinstance(reason, EmbedderError):  # ours; SDKs wrap what is raised inside their HTTP client
            meaning = reason.meaning if isinstance(reason, ServiceError) else Meaning.PASSING
            words = _without(secrets, str(reason))[:LONGEST_OWN_MESSAGE]
            return ServiceError(words, meaning, getattr(reason, "retry_after", None))
    status = _status(error)
    words = _words(error)
    retry_after = _retry_after(_headers(error), words)
    said = f"{origin} {f'answered {status}' if status else 'cannot be reached or answered nonsense'}"
    meaning = _meaning(status, words, hinted=retry_after is not None)
    shown = KEY.sub(r"\1***", _without(secrets, words))[:LONGEST_MESSAGE]
    return ServiceError(f"{said}: {shown}; {_REMEDIES[meaning]}", meaning, retry_after)


_REMEDIES = {
    Meaning.PASSING: "the next sync asks again",
    Meaning.BUSY: "the next sync asks again; a lower embedding.concurrency asks less often",
    Meaning.EXHAUSTED: "refill the account, or choose another provider",
    Meaning.TOO_LARGE: "set a lower limit in the provider's options",
    Meaning.TOO_MANY: "set a lower max_items in the provider's options",
    Meaning.REFUSED: "check the model's name and options, or the text",
    Meaning.DENIED: "check key, model and base_url",
}


def _meaning(status: int | None, words: str, *, hinted: bool) -> Meaning:
    if status is None:
        return Meaning.PASSING
    if QUOTA.search(words) and status in {402, 403, 429} and not hinted:
        return Meaning.EXHAUSTED
    if status == 429 or (status in {400, 403, 503} and BUSY.search(words)):
        return Meaning.BUSY
    # llama.cpp's server answers 500 to a text that it cannot take.
    if status == 413 or (status in {400, 422, 500} and SIZE.search(words)):
        counts_texts = SIZE.search(words) and not TEXT_SIZE.search(words)
        return Meaning.TOO_MANY if counts_texts else Meaning.TOO_LARGE
    if status in {400, 422} and not BAD_KEY.search(words):
        return Meaning.REFUSED
    return Meaning.PASSING if status in {408, 409, 425} or status >= 500 else Meaning.DENIED


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    places = ((error, "status_code"), (error, "http_status"), (error, "code"), (response, "status_code"))
    for holder, name in places:
        value = getattr(holder, name, None)
        if isinstance(value, int) and 300 <= value < 600:
            return value
    return None


def _headers(error: Exception) -> Mapping[str, Any]:
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if isinstance(headers, Mapping):
            return headers
    return {}


def _reasons(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from, down to the first."""
    reason: BaseException | None = error
    while reason is not None:
        yield reason
        reason = reason.__cause__


def _words(error: Exception) -> str:
    """The error's own words on one line, with what the service's body says besides."""
    text = f"{type(error).__name__}: {error}"
    body = getattr(error, "body", None) or getattr(error, "details", None) or getattr(error, "http_body", None)
    if body is None and (response := getattr(error, "response", None)) is not None:  # httpx and requests
        with suppress(Exception):  # a body that was not read, or is none in its encoding, says nothing
            body = response.text
    if isinstance(body, dict):
        inner = body.get("error", body)
        parts = inner.values() if isinstance(inner, dict) else [inner]
        text = " ".join([text, *(str(part) for part in parts if part and str(part) not in text)])
    elif isinstance(body, str) and body not in text:
        text = f"{text} {body}"
    *_, first = _reasons(error)
    if first is not error and _status(error) is None:  # SDKs say of a lost connection only that it is lost
        text = f"{text} ({type(first).__name__}: {first})"
    return " ".join(text.split())


def _without(secrets: Sequence[str], words: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            words = words.replace(secret, "***")
    return words


def _retry_after(headers: Mapping[str, Any], words: str) -> float | None:
    """The wait that a service asks for, in seconds: `Retry-After` is a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name) or headers.get(name.title()) or "")
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            if (seconds := _until(value)) is not None:
                return seconds
    named = DELAY_IN_WORDS.search(words)
    return float(named[1]) if named else None


def _until(date: str) -> float | None:
    """The seconds until a date, 0 if it has passed; None for one that no calendar has."""
    with suppress(ValueError, OverflowError, TypeError, IndexError):
        if parsed := parsedate_tz(date):
            return max(0.0, mktime_tz(parsed) - time.time())
    return None
