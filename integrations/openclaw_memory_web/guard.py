"""Let in the one browser that was opened, and no other program, page or machine: an ASGI app around the page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl

MOST_BYTES = 4_000_000  # of a form: more than the longest note that is read (files.max_bytes) has room for
MOST_FIELDS = 50
TOKEN = "token"  # noqa: S105 - the name of the parameter
FORM_TOKEN = "form_token"  # noqa: S105 - the name of the field
_READING = ("GET", "HEAD")
# Nothing but what this server sends: no script, style or picture in a page, none of another place, no frame around it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # With `no-referrer` a browser would name no origin of a form either.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_STATIC = "/static/"
_HTML = ((b"content-type", b"text/html; charset=utf-8"),)
# No redirect: where a link in another page was followed (a terminal in a browser), it would carry no cookie.
_ENTERED = (
    b'<!doctype html><html lang="en"><meta http-equiv="refresh" content="0; url=/"><title>Memory</title>'
    b'<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'  # else it asks for /favicon.ico
    b'<p><a href="/">To the memory</a></p></html>'
)


class Guard:
    """An ASGI app that lets only the opened browser through, with the fields of a form in `scope["form"]`.

    The address that is opened holds a token, which works once: the browser gets a cookie for it, which no script reads
    and which is sent with no request from another site. A form has to hold a second token, which only these pages know.
    """

    def __init__(self, app: Any, *, token: str, hosts: Collection[str], entered: Callable[[], None]) -> None:
        """Guard an app.

        Args:
            app: The ASGI app.
            token: The `token` in the address to open.
            hosts: The host names to accept, each with its port.
            entered: Called once the token is used.
        """
        self._entered = entered
        self._app, self._token, self._hosts = app, token, frozenset(hosts)
        self._session = secrets.token_urlsafe(32)
        self._form_token = hmac.new(self._session.encode(), b"form", hashlib.sha256).hexdigest()
        # Cookies of all ports of a machine are one jar: each server has a name of its own.
        self._cookie = f"openclaw_memory_{hashlib.sha256(self._session.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                caching = b"max-age=3600" if scope["path"].startswith(_STATIC) else b"no-store"
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS, (b"cache-control", caching)]}
            await send(message)

        if headers.get("host", "").lower() not in self._hosts:
            await _send_text(send_guarded, 421, "This server answers to its own address alone.")
        elif scope["method"] == "GET" and (token := _read_query(scope).get(TOKEN)) is not None:
            await self._enter(token, headers, send_guarded)
        elif not self._is_known(headers):
            await _send_text(
                send_guarded,
                403,
                "Open the address that `openclaw-memory web` printed. It works once; start that again for another.",
            )
        elif headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            await _send_text(send_guarded, 403, "This request comes from another page: open the address yourself.")
        elif scope["method"] in _READING:
            await self._app({**scope, "form_token": self._form_token}, receive, send_guarded)
        elif scope["method"] == "POST":
            await self._take_form(scope, headers, receive, send_guarded)
        else:
            await _send_text(send_guarded, 405, "This page is read with GET, and its forms are sent with POST.")

    async def _enter(self, token: str, headers: dict[str, str], send: Any) -> None:
        start = [*_HTML]
        if not self._is_known(headers):  # else the address was opened once more, by the same browser
            if not (self._token and hmac.compare_digest(token.encode(), self._token.encode())):
                await _send_text(send, 403, "This address was used already, or is not the one that was printed.")
                return
            self._token = ""
            self._entered()
            start.append((b"set-cookie", f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict".encode()))
        await send({"type": "http.response.start", "status": 200, "headers": start})
        await send({"type": "http.response.body", "body": _ENTERED})

    def _is_known(self, headers: dict[str, str]) -> bool:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return morsel is not None and hmac.compare_digest(morsel.value.encode(), self._session.encode())

    async def _take_form(self, scope: Any, headers: dict[str, str], receive: Any, send: Any) -> None:
        """Pass a form on that one of these pages has sent."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if headers.get("origin", "") not in {f"http://{host}" for host in self._hosts}:
            await _send_text(send, 403, "This form comes from another page, and nothing was changed.")
            return
        if kind != "application/x-www-form-urlencoded":
            await _send_text(send, 415, "Forms are sent as application/x-www-form-urlencoded.")
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > MOST_BYTES:
                await _send_text(send, 413, f"This is more than {MOST_BYTES:,} bytes, and nothing was changed.")
                return
            if not message.get("more_body"):
                break
        try:
            form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
        except ValueError:  # not text in UTF-8, or too many fields
            await _send_text(send, 400, "This form cannot be read, and nothing was changed.")
            return
        if not hmac.compare_digest(form.pop(FORM_TOKEN, "").encode(), self._form_token.encode()):
            await _send_text(send, 403, "This form is not one of this page, and nothing was changed: reload the page.")
            return
        await self._app({**scope, "form_token": self._form_token, "form": form}, receive, send)


def _read_query(scope: Any) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


async def _send_text(send: Any, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{words}\n".encode()})
