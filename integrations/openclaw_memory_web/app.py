"""The pages: what each address shows of a memory, and what its forms change."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.control import Item
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, PolicyError
from openclaw_memory.events import acting_as
from openclaw_memory.records import Record
from openclaw_memory.search import read_query
from openclaw_memory.types import Excerpt, SearchResult
from openclaw_memory_web.guard import FORM_TOKEN, Guard
from openclaw_memory_web.rendering import Line, Span, found_lines, numbered, rendered, spans_of

if TYPE_CHECKING:
    from starlette.requests import Request

RESULTS = 10
RECENT = 20  # files on the first page
LINES = 1_000  # of a note on one page
LISTED = 200  # days' files, or records, on one page
# Of a plan, so many steps are shown with what goes, and so many lines of each; the others are named.
SHOWN_STEPS, SHOWN_LINES = 50, 20
_FOLDER = Path(__file__).parent
_STATUS = ((NotFoundError, 404), (ConflictError, 409), (PathNotAllowedError, 403), (PolicyError, 403))
# How `SearchResult.parts` names what speaks for a place, and what a person calls it.
_REASONS = {
    "keyword": "keywords",
    "text_score": "keywords",
    "overlap": "words that it shares with the question",
    "words": "words like those of the question",
    "meaning": "likeness of meaning",
    "vector_score": "likeness of meaning",
    "pairs": "words side by side",
    "exact": "exact names",
    "date": "the day asked for",
    "name": "the name asked for",
    "tokens": "likeness word by word",
}
_LEAST_REASON = 0.05  # a share of less says nothing

KINDS = ("day", "note", "record", "document", "transcript", "snapshot")
TYPES = ("preference", "fact", "decision", "entity", "reminder", "other")


class Found(NamedTuple):
    """A result as it is shown: its lines, the address of its note, and what speaks for it, the strongest first."""

    result: SearchResult
    lines: Sequence[Any]
    address: str
    reasons: Sequence[tuple[str, float]]


def create_app(memory: Memory, *, token: str, hosts: Collection[str]) -> Guard:
    """Return the page of a memory as an ASGI app.

    Args:
        memory: The memory, all of which it shows, as policies let it be shown.
        token: What the address that is opened holds as `token`. It works once.
        hosts: What a browser may name as the host, with its port: `127.0.0.1:8000`.
    """
    pages = _Pages(memory)
    routes = [
        Route("/", pages.of(home)),
        Route("/note", pages.of(note)),
        Route("/edit", pages.of(edit), methods=["GET", "POST"]),
        Route("/days", pages.of(days)),
        Route("/records", pages.of(records)),
        Route("/record", pages.of(record), methods=["GET", "POST"]),
        Route("/forget", pages.of(forget), methods=["GET", "POST"]),
        Route("/status", pages.of(status), methods=["GET", "POST"]),
        Route("/access", pages.of(access)),
        Mount("/static", StaticFiles(directory=_FOLDER / "static")),
        Route("/{path:path}", pages.of(nowhere)),
    ]
    return Guard(Starlette(routes=routes), token=token, hosts=hosts)


class _Asked:
    """One request: what it asks for, the memory, and how the answer is shown."""

    def __init__(self, memory: Memory, pages: Environment, request: Request) -> None:
        self.memory, self._pages, self._request = memory, pages, request
        self.form: Mapping[str, str] | None = request.scope.get("form")
        self.given: Mapping[str, str] = request.query_params if self.form is None else self.form
        # Part of a page is for htmx alone; a browser that goes back asks for all of it.
        self.is_part = "hx-request" in request.headers and "hx-history-restore-request" not in request.headers

    def text(self, name: str) -> str:
        return self.given.get(name, "").strip()

    def number(self, name: str, default: int) -> int:
        given = self.text(name) or str(default)
        if not given.isdecimal() or len(given) > 9 or int(given) < 1:
            raise InvalidInputError(f"{name} is {given[:40]!r}, not a whole number above zero")
        return int(given)

    def show(self, page: str, *, code: int = 200, **values: Any) -> Response:
        template = self._pages.get_template(page)
        shown = {"form_token": self._request.scope["form_token"], "at": self._request.url.path, **values}
        return HTMLResponse(template.render(shown), code)

    def go(self, address: str) -> Response:
        return RedirectResponse(address, 303)


class _Pages:
    """The templates, and a memory to show with them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters |= {"size": _size, "moment": _moment}
        self._pages.globals |= {"note_address": note_address, "FORM_TOKEN": FORM_TOKEN}

    def of(self, answer: Callable[[_Asked], Response]) -> Callable[[Request], Response]:
        """Return the endpoint that answers by a function, in a thread; an error of the library is a page."""

        def endpoint(request: Request) -> Response:
            asked = _Asked(self._memory, self._pages, request)
            try:
                with acting_as("web"):
                    return answer(asked)
            except OpenClawMemoryError as error:
                code = next((number for kind, number in _STATUS if isinstance(error, kind)), 400)
                return asked.show("error.html", code=code, words=str(error), conflict=_conflict(error))

        return endpoint


def home(asked: _Asked) -> Response:
    """Show the search, and below it what it finds, or the files that were changed last."""
    query = asked.text("q")
    if asked.is_part:
        return asked.show("found.html", query=query, **_found(asked.memory, query))
    if query:
        return asked.show("home.html", query=query, recent=(), **_found(asked.memory, query))
    files = asked.memory.workspace.scan().files
    recent = sorted(files, key=lambda file: file.mtime_ns, reverse=True)[:RECENT]
    return asked.show("home.html", query="", recent=recent, files=len(files), found=(), results=None, trouble=None)


def note(asked: _Asked) -> Response:
    """Show a note or a transcript, with the lines marked that a citation names."""
    path, cited = asked.text("path"), spans_of(asked.text("lines"))
    first = cited[0][0] if cited else 1
    start = asked.number("from", (first - 1) // LINES * LINES + 1)
    excerpt = asked.memory.get(path, start=start, lines=LINES)
    is_source = asked.text("view") == "lines" or not excerpt.path.endswith(".md")
    return asked.show(
        "note.html",
        excerpt=excerpt,
        cited=cited,
        is_source=is_source,
        can_edit=excerpt.path.endswith(".md"),
        record=_record_at(asked.memory, excerpt.path),
        lines=numbered(excerpt.text, excerpt.start_line, cited) if is_source else (),
        html="" if is_source else rendered(excerpt.text, excerpt.start_line, cited, partial(_link, excerpt.path)),
        before=max(1, start - LINES) if start > 1 else None,
        edited=(first, max(last for _, last in cited)) if cited else (excerpt.start_line, excerpt.end_line),
        marked=f"{excerpt.path}#{','.join(f'L{start}-L{end}' for start, end in cited)}",
    )


def edit(asked: _Asked) -> Response:
    """Show lines of a note to change, and change them if they still are what was shown."""
    path, start = asked.text("path"), asked.number("start", 1)
    end = asked.number("end", start)
    if end < start:
        raise InvalidInputError(f"the lines go from {start} to {end}: name the first one first")
    if asked.form is None:
        excerpt = asked.memory.get(path, start=start, lines=end - start + 1)
        return asked.show("edit.html", excerpt=excerpt)
    seen, text = asked.text("seen"), asked.given.get("text", "").replace("\r\n", "\n")
    if asked.text("do") == "delete":
        asked.memory.delete(path, start, end, seen=seen)
        asked.memory.sync_soon()
        return asked.go(note_address(path))
    written = asked.memory.edit(path, start, end, text, seen=seen)
    asked.memory.sync_soon()
    return asked.go(_address_of(written))


def days(asked: _Asked) -> Response:
    """Show what is remembered, by day, the newest first."""
    kind, skipped = asked.text("kind"), asked.number("from", 1) - 1
    if kind and kind not in KINDS:
        raise InvalidInputError(f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    items = asked.memory.control.inspect(kind=kind or None, sort="date")  # type: ignore[arg-type]
    page = items[skipped : skipped + LISTED]
    by_day = [(day, list(some)) for day, some in groupby(page, _day_of)]
    after = skipped + LISTED + 1 if len(items) > skipped + LISTED else None
    before = max(1, skipped - LISTED + 1) if skipped else None
    return asked.show(
        "days.html",
        days=by_day,
        kind=kind,
        kinds=KINDS,
        count=len(items),
        after=after,
        before=before,
        first=skipped + 1,
    )


def records(asked: _Asked) -> Response:
    """Show facts: how sure they are, who says so, and until when they hold."""
    query, of = asked.text("q"), asked.text("type")
    if of and of not in TYPES:
        raise InvalidInputError(f"type is {of!r}, not one of {', '.join(TYPES)}")
    found = asked.memory.records.find(query or None, type=of or None, limit=LISTED + 1)  # type: ignore[arg-type]
    values: dict[str, Any] = {"records": found[:LISTED], "is_more": len(found) > LISTED, "query": query, "type": of}
    page = "records_found.html" if asked.is_part else "records.html"
    return asked.show(page, types=TYPES, problems=[] if asked.is_part else asked.memory.records.problems(), **values)


def record(asked: _Asked) -> Response:
    """Show a record with its history, and confirm it or give it another value."""
    path = asked.text("path")
    known = asked.memory.records.read(path)
    if known is None:
        raise NotFoundError(f"{path} is no record, or has expired")
    if asked.form is None:
        return asked.show("record.html", record=known, value=_value_text(known))
    confirm = partial(
        asked.memory.records.confirm,
        known.type,
        known.key,
        user_id=known.user_id,
        expected_version=asked.number("version", 1),
    )
    given = asked.given.get("value", "").replace("\r\n", "\n")
    # What is shown may be masked: a value that was not touched is confirmed as it is, and never written back.
    if given == _value_text(known):
        confirm()
    else:
        confirm(value=_value_of(given, known))
    asked.memory.sync_soon()
    return asked.go(f"/record?{urlencode({'path': known.path})}")


def forget(asked: _Asked) -> Response:
    """Show what would be forgotten, and forget it once that was looked at."""
    wanted = {name: asked.text(name) for name in ("query", "key", "session", "since", "last_days", "paths")}
    if not any(wanted.values()):
        return asked.show("forget.html", wanted=wanted, plan=None, receipt=None)
    named: dict[str, Any] = {name: text for name, text in wanted.items() if text}
    if "last_days" in named:
        named["last_days"] = asked.number("last_days", 1)
    if "paths" in named:
        named["paths"] = [line.strip() for line in named["paths"].splitlines() if line.strip()]
    if asked.form is None:
        plan = asked.memory.control.forget(**named).plan
        texts = [_going(asked.memory, step.path, step.spans) for step in plan.steps[:SHOWN_STEPS]]
        return asked.show("forget.html", wanted=wanted, plan=plan, texts=texts, receipt=None)
    receipt = asked.memory.control.forget(**named, dry_run=False, seen=asked.text("seen"))
    return asked.show("forget.html", wanted=wanted, plan=None, receipt=receipt)


def status(asked: _Asked) -> Response:
    """Show the state of the index, and sync it or run a heartbeat."""
    report = synced = None
    if asked.form is not None:
        if asked.text("do") == "heartbeat":
            report = asked.memory.heartbeat()
        else:
            synced = asked.memory.sync(wait=1.0)
    page = "status_brief.html" if asked.is_part else "status.html"
    return asked.show(page, status=asked.memory.status(), report=report, synced=synced)


def access(asked: _Asked) -> Response:
    """Show who has read and written what, the newest first, and whether the log is as it was written."""
    log: Any = next((one for one in asked.memory.events.observers if hasattr(one, "read_entries")), None)
    wanted = {name: asked.text(name) for name in ("op", "path", "actor", "session", "since")}
    skipped = asked.number("from", 1) - 1
    page = [] if log is None else list(islice(log.read_entries(**wanted), skipped, skipped + LISTED + 1))
    return asked.show(
        "access.html",
        entries=page[:LISTED],
        wanted=wanted,
        verdict=log and log.verify(),
        after=_page_of(wanted, skipped + LISTED + 1) if len(page) > LISTED else None,
        before=_page_of(wanted, max(1, skipped - LISTED + 1)) if skipped else None,
    )


def _page_of(wanted: Mapping[str, str], first: int) -> str:
    return f"/access?{urlencode({**{name: text for name, text in wanted.items() if text}, 'from': first})}"


def nowhere(_: _Asked) -> Response:
    """Say that there is no such page."""
    raise NotFoundError("There is no such page.")


def note_address(path: str, lines: str = "", view: str = "") -> str:
    """Return the address of the page of a note.

    Args:
        path: The path of the file.
        lines: The lines to mark, as a citation names them: `L3-L5,L9`.
        view: "lines" for the lines as they are in the file.
    """
    given = {name: text for name, text in (("path", path), ("lines", lines), ("view", view)) if text}
    first = spans_of(lines)
    return f"/note?{urlencode(given, safe='/', quote_via=quote)}" + (f"#L{first[0][0]}" if first else "")


def _link(path: str, target: str) -> str:
    """Return the address of what a note links to: the page of another note, or the link as it is."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not parts.path.endswith(".md"):
        return target
    folder = "" if parts.path.startswith("/") else posixpath.dirname(path)
    named = posixpath.normpath(posixpath.join(folder, unquote(parts.path).lstrip("/")))
    return note_address(named, parts.fragment if spans_of(parts.fragment) else "")


def _address_of(excerpt: Excerpt) -> str:
    return note_address(excerpt.path, excerpt.citation.rpartition("#")[2])


def _found(memory: Memory, query: str) -> dict[str, Any]:
    """Return what a search finds, as the pages show it."""
    if not query:
        return {"found": (), "results": None, "trouble": None}
    asked = read_query(query)
    if not asked.text.strip():
        return {"found": (), "results": None, "trouble": "These words are only left out: name what to look for, too."}
    try:
        results = memory.search(asked.text, max_results=RESULTS, filter=asked.filter, options={"explain": True})
    except OpenClawMemoryError as error:  # while somebody types, an error stands where the results would
        return {"found": (), "results": None, "trouble": str(error)}
    found = [
        Found(
            one,
            found_lines(one, asked.text, asked.phrases),
            note_address(one.path, one.citation.rpartition("#")[2]),
            sorted(
                (
                    (words, min(1.0, one.parts[name]))
                    for name, words in _REASONS.items()
                    if one.parts.get(name, 0) > _LEAST_REASON
                ),
                key=lambda reason: -reason[1],
            ),
        )
        for one in results
    ]
    return {"found": found, "results": results, "trouble": None}


def _going(memory: Memory, path: str, spans: Sequence[Span]) -> list[Line]:
    """Return the first of the lines that a plan takes out of a file, as policies let them be shown."""
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
        lines += numbered(text, first, ())
        if last - first + 1 > room:
            lines.append(Line(None, ""))
    return lines


def _record_at(memory: Memory, path: str) -> Record | None:
    try:
        return memory.records.read(path)
    except (
        OpenClawMemoryError
    ):  # a damaged record is shown as the note that it is; the list of records says what is wrong
        return None


def _conflict(error: OpenClawMemoryError) -> ConflictError | None:
    return error if isinstance(error, ConflictError) and error.path else None


def _value_text(known: Record) -> str:
    return known.value if isinstance(known.value, str) else json.dumps(known.value, ensure_ascii=False)


def _value_of(given: str, known: Record) -> Any:
    """Return what was typed as a value of the kind that the record has."""
    if isinstance(known.value, str):
        return given
    try:
        return json.loads(given)
    except ValueError as error:
        raise InvalidInputError(f"{given[:80]!r} is no value in JSON, as this record has one: {error}") from error


def _day_of(item: Item) -> str:
    return (item.last_date or item.changed.date()).isoformat()


def _size(count: int) -> str:
    return f"{count} B" if count < 1_000 else f"{count / 1_000:,.1f} kB"


def _moment(moment: Any) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC") if moment else "never"
