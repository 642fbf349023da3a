"""Serve the pages of a memory, and apply their forms."""

from __future__ import annotations

import json
import posixpath
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, PolicyError
from openclaw_memory.events import acting_as
from openclaw_memory.records import Record
from openclaw_memory.search import read_query
from openclaw_memory.text import parse_day
from openclaw_memory.types import MemoryFile
from openclaw_memory_web.guard import FORM_TOKEN, Guard
from openclaw_memory_web.rendering import Line, Span, number_lines, number_result, parse_spans, render

if TYPE_CHECKING:
    from starlette.requests import Request

RESULTS, MOST_WEAK = 10, 3
RECENT, LINES = 20, 1_000  # files on the first page, and lines of a note on one
# A list or a status that took so long to make is made again aside, at the earliest after ten times as long.
LONG_SECONDS, LASTS = 0.1, 10
_FOLDERS = {"memory/records/": "record", "memory/documents/": "document", "sessions/": "transcript"}
_Value = TypeVar("_Value")
# Days' files, records, or lines of a plan, on one page; and how many files are read for the days in them.
LISTED, READ = 200, 1_000
# Of a plan, so many steps are shown with what goes, and so many lines of each; the others are named.
SHOWN_STEPS, SHOWN_LINES = 50, 20
_FOLDER = Path(__file__).parent
_STATUS = ((NotFoundError, 404), (ConflictError, 409), (PathNotAllowedError, 403), (PolicyError, 403))

TYPES = ("preference", "fact", "decision", "entity", "reminder", "other")


def create_app(
    memory: Memory, *, token: str, hosts: Collection[str], entered: Callable[[], None] = lambda: None
) -> Guard:
    """Return the page of a memory as an ASGI app.

    Args:
        memory: The memory, all of which it shows, as policies let it be shown.
        token: The `token` in the address to open. It works once.
        hosts: The host names to accept from a browser, each with its port: `127.0.0.1:8000`.
        entered: Called once the token is used.
    """
    pages = _Pages(memory)
    routes = [
        Route("/", pages.make_endpoint(show_home)),
        Route("/note", pages.make_endpoint(show_note)),
        Route("/edit", pages.make_endpoint(show_editor), methods=["GET", "POST"]),
        Route("/days", pages.make_endpoint(show_days)),
        Route("/records", pages.make_endpoint(show_records)),
        Route("/record", pages.make_endpoint(show_record), methods=["GET", "POST"]),
        Route("/forget", pages.make_endpoint(show_forget), methods=["GET", "POST"]),
        Route("/status", pages.make_endpoint(show_status), methods=["GET", "POST"]),
        Route("/access", pages.make_endpoint(show_access)),
        Mount("/static", StaticFiles(directory=_FOLDER / "static")),
        Route("/{path:path}", pages.make_endpoint(refuse_path)),
    ]
    return Guard(Starlette(routes=routes), token=token, hosts=hosts, entered=entered)


class _Request:
    """One request: its fields, the memory, and the templates."""

    def __init__(self, pages: _Pages, request: Request) -> None:
        self.memory, self.pages, self._request = pages.memory, pages, request
        self.form: Mapping[str, str] | None = request.scope.get("form")
        self.given: Mapping[str, str] = request.query_params if self.form is None else self.form
        # Part of a page is for htmx alone; a browser that goes back asks for all of it.
        self.is_part = "hx-request" in request.headers and "hx-history-restore-request" not in request.headers

    def get_text(self, name: str) -> str:
        return self.given.get(name, "").strip()

    def get_number(self, name: str, default: int) -> int:
        text = self.get_text(name) or str(default)
        if not text.isdecimal() or len(text) > 9 or int(text) < 1:
            raise InvalidInputError(f"{name} is {text[:40]!r}, not a whole number above zero")
        return int(text)

    def show(self, page: str, *, code: int = 200, **values: Any) -> Response:
        template = self.pages.templates.get_template(page)
        context = {"form_token": self._request.scope["form_token"], "at": self._request.url.path, **values}
        return HTMLResponse(template.render(context), code)

    def redirect(self, address: str) -> Response:
        return RedirectResponse(address, 303)


class Latest(Generic[_Value]):
    """A value that is made anew for each page, or aside where that takes long: a page then shows the one before."""

    def __init__(self, make: Callable[[], _Value]) -> None:
        self._make, self._lock, self._seconds, self._good_until = make, threading.Lock(), 0.0, 0.0

    def get(self) -> _Value:
        """Return the value."""
        if self._seconds <= LONG_SECONDS or not self._good_until:
            self.renew()
        elif time.monotonic() >= self._good_until:
            threading.Thread(target=self.renew_aside, daemon=True).start()
        return self._value

    def renew(self) -> None:
        """Make the value again."""
        started = time.monotonic()
        self._value = self._make()
        self._seconds = time.monotonic() - started
        self._good_until = started + self._seconds * (1 + LASTS)

    def renew_aside(self) -> None:
        """Make the value again, unless another thread does."""
        if self._lock.acquire(blocking=False):
            with suppress(OpenClawMemoryError):  # the last value is shown until it can be made again
                self.renew()
            self._lock.release()


class _Pages:
    """The templates, and a memory to show with them."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.scan, self.status = memory, Latest(memory.workspace.scan), Latest(memory.status)
        self.days = Latest(partial(_list_days, memory))
        if len(self.scan.get().files) > READ:
            threading.Thread(target=self.days.renew_aside, daemon=True).start()
        self.templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals |= {"note_address": make_address, "FORM_TOKEN": FORM_TOKEN, "LINES": LINES}

    def make_endpoint(self, answer: Callable[[_Request], Response]) -> Callable[[Request], Response]:
        """Return the endpoint of a page, run in a thread; an error of the library is a page."""

        def handle_request(request: Request) -> Response:
            page = _Request(self, request)
            try:
                with acting_as("web"):
                    return answer(page)
            except OpenClawMemoryError as error:
                code = next((number for kind, number in _STATUS if isinstance(error, kind)), 400)
                conflict = error if isinstance(error, ConflictError) and error.path else None
                return page.show("error.html", code=code, words=str(error), conflict=conflict)

        return handle_request


def show_home(request: _Request) -> Response:
    """Show the search and its results, or the files changed last."""
    query = request.get_text("q")
    if request.is_part or query:
        page = "found.html" if request.is_part else "home.html"
        return request.show(page, query=query, recent=(), **_search(request.memory, query))
    files = request.pages.scan.get().files
    recent = sorted(files, key=lambda file: file.mtime_ns, reverse=True)[:RECENT]
    return request.show("home.html", query="", recent=recent, files=len(files), found=(), results=None, trouble=None)


def show_note(request: _Request) -> Response:
    """Show a note or a transcript, with the cited lines marked."""
    path, cited = request.get_text("path"), parse_spans(request.get_text("lines"))
    if path.startswith("[["):
        return request.redirect(_follow_wikilink(request.memory, request.pages.scan.get().files, path))
    first = cited[0][0] if cited else 1
    start = request.get_number("from", (first - 1) // LINES * LINES + 1)
    excerpt = request.memory.get(path, start=start, lines=LINES)
    is_source = request.get_text("view") == "lines" or not excerpt.path.endswith(".md")
    return request.show(
        "note.html",
        excerpt=excerpt,
        cited=cited,
        is_source=is_source,
        record=_record_at(request.memory, excerpt.path),
        lines=number_lines(excerpt.text, excerpt.start_line, cited) if is_source else (),
        html="" if is_source else render(excerpt.text, excerpt.start_line, cited, partial(_resolve_link, excerpt.path)),
        edited=(first, max(last for _, last in cited)) if cited else (excerpt.start_line, excerpt.end_line),
        marked=f"{excerpt.path}#{','.join(f'L{start}-L{end}' for start, end in cited)}",
    )


def show_editor(request: _Request) -> Response:
    """Show lines of a note to edit, and save them unless they have changed since."""
    path, start = request.get_text("path"), request.get_number("start", 1)
    end = request.get_number("end", start)
    if end < start:
        raise InvalidInputError(f"the lines go from {start} to {end}: name the first one first")
    if request.form is None:
        return request.show("edit.html", excerpt=request.memory.get(path, start=start, lines=end - start + 1))
    original, text = request.get_text("seen"), request.given.get("text", "").replace("\r\n", "\n")
    if request.get_text("do") == "delete":
        request.memory.delete(path, start, end, expected=original)
        request.memory.notes.sync_soon()
        return request.redirect(make_address(path))
    written = request.memory.edit(path, start, end, text, expected=original)
    request.memory.notes.sync_soon()
    return request.redirect(make_address(written.path, written.citation.rpartition("#")[2]))


def show_days(request: _Request) -> Response:
    """Show the memory by day, the newest first."""
    kind, skipped = request.get_text("kind"), request.get_number("from", 1) - 1
    items = [row for row in request.pages.days.get() if kind in {"", row[1]}]
    by_day = [(str(day), list(some)) for day, some in groupby(items[skipped : skipped + LISTED], itemgetter(0))]
    return request.show("days.html", days=by_day, kind=kind, count=len(items), first=skipped + 1, most=LISTED)


def show_records(request: _Request) -> Response:
    """Show facts: their confidence, source, and expiry."""
    query, of = request.get_text("q"), request.get_text("type")
    if of and of not in TYPES:
        raise InvalidInputError(f"type is {of!r}, not one of {', '.join(TYPES)}")
    matches = request.memory.records.find(query or None, type=of or None, limit=LISTED + 1)  # type: ignore[arg-type]
    values: dict[str, Any] = {"records": matches[:LISTED], "is_more": len(matches) > LISTED, "query": query, "type": of}
    if request.is_part:
        return request.show("records_found.html", types=TYPES, problems=[], **values)
    return request.show("records.html", types=TYPES, problems=request.memory.records.list_problems(), **values)


def show_record(request: _Request) -> Response:
    """Show a record with its history, and confirm it or give it another value."""
    path = request.get_text("path")
    current = request.memory.records.read(path)
    if current is None:
        raise NotFoundError(f"{path} is no record, or has expired")
    if request.form is None:
        return request.show("record.html", record=current, value=_format_value(current))
    value = request.given.get("value", "").replace("\r\n", "\n")
    # What is shown may be masked: a value that was not touched is confirmed as it is, and never written back.
    new: dict[str, Any] = {} if value == _format_value(current) else {"value": _parse_value(value, current)}
    version, confirm = request.get_number("version", 1), request.memory.records.confirm
    confirm(current.type, current.key, user_id=current.user_id, expected_version=version, **new)
    request.memory.notes.sync_soon()
    return request.redirect(f"/record?{urlencode({'path': current.path})}")


def show_forget(request: _Request) -> Response:
    """Show a plan of deletions, and carry it out once it was seen."""
    fields = {name: request.get_text(name) for name in ("query", "key", "session", "since", "last_days", "paths")}
    if not any(fields.values()):
        return request.show("forget.html", wanted=fields, plan=None, receipt=None)
    selection: dict[str, Any] = {name: text for name, text in fields.items() if text}
    if "last_days" in selection:
        selection["last_days"] = request.get_number("last_days", 1)
    if "paths" in selection:
        selection["paths"] = [line.strip() for line in selection["paths"].splitlines() if line.strip()]
    if request.form is None:
        plan = request.memory.control.forget(**selection).plan
        texts = [_read_doomed(request.memory, step.path, step.spans) for step in plan.steps[:SHOWN_STEPS]]
        return request.show("forget.html", wanted=fields, plan=plan, texts=texts, receipt=None, most=LISTED)
    receipt = request.memory.control.forget(**selection, dry_run=False, expected=request.get_text("seen"))
    return request.show("forget.html", wanted=fields, plan=None, receipt=receipt, most=LISTED)


def show_status(request: _Request) -> Response:
    """Show the state of the index, and sync it or run a heartbeat."""
    report = synced = None
    if request.form is not None:
        if request.get_text("do") == "heartbeat":
            report = request.memory.heartbeat()
        else:
            synced = request.memory.sync(wait=1.0)
        request.pages.status.renew()
    page = "status_brief.html" if request.is_part else "status.html"
    return request.show(page, status=request.pages.status.get(), report=report, synced=synced)


def show_access(request: _Request) -> Response:
    """Show the access log, the newest first, and the verdict on its integrity."""
    log: Any = next((log for log in request.memory.events.observers if hasattr(log, "read_entries")), None)
    fields = {name: request.get_text(name) for name in ("op", "path", "actor", "session", "since")}
    skipped = request.get_number("from", 1) - 1
    page = [] if log is None else list(islice(log.read_entries(**fields), skipped, skipped + LISTED + 1))
    verdict = log and log.verify()
    return request.show("access.html", entries=page, wanted=fields, verdict=verdict, first=skipped + 1, most=LISTED)


def _list_days(memory: Memory) -> list[tuple[date, str, str]]:
    """List the files by day, the newest first, each with its kind and path.

    Of many files, which take long to read, the day is the one in the name, or else that of the last change.
    """
    files = memory.workspace.scan().files
    if len(files) <= READ:
        items = memory.control.inspect()
        return sorted(((item.last_date or item.changed.date(), item.kind, item.path) for item in items), reverse=True)
    rows = [(end.timestamp.date(), "snapshot", end.path) for end in memory.sessions.snapshots()]
    for file in files:
        day = parse_day(file.path) if file.source == "memory" else None
        kind = next((_FOLDERS[folder] for folder in _FOLDERS if file.path.startswith(folder)), "day" if day else "note")
        rows.append((day or datetime.fromtimestamp(file.mtime_ns / 1e9, UTC).date(), kind, file.path))
    return sorted(rows, reverse=True)


def refuse_path(_: _Request) -> Response:
    """Say that there is no such page."""
    raise NotFoundError("There is no such page.")


def make_address(path: str, lines: str = "", view: str = "") -> str:
    """Return the address of the page of a note.

    Args:
        path: The path of the file.
        lines: The lines to mark, as a citation names them: `L3-L5,L9`.
        view: "lines" for the lines as they are in the file.
    """
    fields = {name: text for name, text in (("path", path), ("lines", lines), ("view", view)) if text}
    first = parse_spans(lines)
    return f"/note?{urlencode(fields, safe='/', quote_via=quote)}" + (f"#L{first[0][0]}" if first else "")


def _follow_wikilink(memory: Memory, files: Sequence[MemoryFile], link: str) -> str:
    """Return the address of the note that a wikilink names, or of the search for its name.

    Of many files, whose titles take long to read, only names are compared: a search finds a title.
    """
    name = link.strip("[]").partition("|")[0].partition("#")[0]
    with suppress(OpenClawMemoryError):
        return make_address(memory.get(memory.workspace.locate(f"{name}.md").path, start=1, lines=1).path)
    ending = f"/{name}.md".casefold()
    matches = (file.path for file in files if file.path.casefold().endswith(ending))
    note = next(matches, None) if len(files) > READ else memory.workspace.find_note(link)
    return make_address(note) if note else f"/?{urlencode({'q': name})}"


def _resolve_link(path: str, target: str) -> str:
    """Return the address of a link's target: the page of another note, or the link as it is."""
    if target.startswith("[["):
        return make_address(target)
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not parts.path.endswith(".md"):
        return target
    folder = "" if parts.path.startswith("/") else posixpath.dirname(path)
    target_path = posixpath.normpath(posixpath.join(folder, unquote(parts.path).lstrip("/")))
    return make_address(target_path, parts.fragment if parse_spans(parts.fragment) else "")


def _search(memory: Memory, query: str) -> dict[str, Any]:
    """Search, and return the values for the template."""
    if not query:
        return {"found": (), "results": None, "trouble": None}
    question = read_query(query)
    if not question.text.strip():
        return {"found": (), "results": None, "trouble": "These words are only left out: name what to look for, too."}
    try:
        results = memory.search(question.text, max_results=RESULTS, filter=question.filter, options={"explain": True})
    except OpenClawMemoryError as error:  # while somebody types, an error stands where the results would
        return {"found": (), "results": None, "trouble": str(error)}
    matches = [
        {
            "result": result,
            "lines": number_result(result, question.text),
            "address": make_address(result.path, result.citation.rpartition("#")[2]),
        }
        for result in sorted(results, key=lambda result: result.confidence)  # strong, then weak
    ]
    strong = sum(result.confidence == "strong" for result in results)
    return {"found": matches, "first": strong or MOST_WEAK, "results": results, "trouble": None}


def _read_doomed(memory: Memory, path: str, spans: Sequence[Span]) -> list[Line]:
    """Return the first lines that a plan would delete from a file, as policies let them be shown."""
    lines: list[Line] = []
    for first, last in spans:
        if lines:
            lines.append(Line(None, ""))
        room = SHOWN_LINES - len(lines)
        if room <= 0:
            break
        try:
            text = memory.get(path, start=first, lines=min(last - first + 1, room)).text
        except OpenClawMemoryError:  # it is hidden, or has just changed: the plan says so once it is to be done
            return []
        lines += number_lines(text, first, ())
        if last - first + 1 > room:
            lines.append(Line(None, ""))
    return lines


def _record_at(memory: Memory, path: str) -> Record | None:
    with suppress(OpenClawMemoryError):  # a damaged record is shown as a note; the list of records reports the damage
        return memory.records.read(path)
    return None


def _format_value(record: Record) -> str:
    return record.value if isinstance(record.value, str) else json.dumps(record.value, ensure_ascii=False)


def _parse_value(text: str, record: Record) -> Any:
    """Parse a typed value as the kind that the record has."""
    if isinstance(record.value, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"{text[:80]!r} is no value in JSON, as this record has one: {error}") from error
