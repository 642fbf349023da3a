"""The address of a service: whether it is on this machine, and what of it may be shown."""

from __future__ import annotations

import ipaddress
from urllib.parse import parse_qsl, unquote, urlsplit

from openclaw_memory.errors import EmbedderError


def on_this_machine(url: str) -> bool:
    """Whether what is sent to `url` stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public(url: str) -> str:
    """The URL without what may be secret: a user's name and password, the query, and the fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def secrets_in(url: str) -> tuple[str, ...]:
    """The password and the values of the query, as they stand there and as they are sent."""
    parts = urlsplit(url)
    password = parts.password or ""
    return tuple(filter(None, (password, unquote(password), *(value for _, value in parse_qsl(parts.query)))))


def checked_url(url: str, example: str) -> str:
    """The URL without a slash at its end.

    Raises:
        EmbedderError: it is none that a server may have; the message shows `example`.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, a port that is no number
        usable = False
    if not usable:
        raise EmbedderError(f"base_url {url.rpartition('@')[2]!r} is no address of a server; write it like {example}")
    return url.rstrip("/")
