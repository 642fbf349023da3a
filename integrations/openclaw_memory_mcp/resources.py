"""Show the files of a memory as resources: their addresses, lists in pages, and their text."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote, unquote

import mcp_types as types
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.tools import find_audience
from openclaw_memory.types import MemoryFile

SCHEME = "memory"
PAGE = 500  # resources in one answer to a list
MOST_LINES = 5_000  # of one answer to a read: more than that fills a model's context by far

# A client may put anything readable into `path`; `{+path}` keeps its slashes.
TEMPLATES = (
    types.ResourceTemplate(
        uri_template=f"{SCHEME}:///{{+path}}",
        name="note",
        title="A note or a transcript",
        description="A memory file by its path: MEMORY.md, memory/2026-11-21.md.",
    ),
    types.ResourceTemplate(
        uri_template=f"{SCHEME}:///{{+path}}#L{{start}}-L{{end}}",
        name="lines",
        title="Lines of a note or a transcript",
        description="Lines of a memory file, as citations name them: memory/2026-11-21.md#L3-L9.",
    ),
)


def make_uri(path: str) -> str:
    """Return the address of a memory file: `memory:///memory/2026-11-21.md`.

    The host is empty: clients put hosts into lower case, and a name of a file is not to be changed.
    """
    return f"{SCHEME}:///{quote(path)}"


def parse_uri(uri: str) -> str:
    """Return the path or the citation in an address.

    Args:
        uri: The address; `memory://MEMORY.md` is understood too.

    Raises:
        MCPError: It is no address of a memory file.
    """
    scheme, _, path = uri.partition("://")
    if scheme.lower() != SCHEME or not (place := unquote(path.lstrip("/"))):
        raise MCPError(INVALID_PARAMS, f"{uri[:200]!r} is not like {make_uri('MEMORY.md')}, the address of a file")
    return place


def list_resources(memory: Memory, session_key: str | None, cursor: str | None) -> types.ListResourcesResult:
    """Return a page of the files that the readers of a session may be shown, by path.

    Args:
        memory: The memory.
        session_key: The session.
        cursor: The last path of the page before; None for the first page.
    """
    audience = find_audience(memory, session_key)
    files = [file for file in memory.workspace.scan().files if audience.may_see(file.path)]
    files = sorted((file for file in files if file.path > (cursor or "")), key=lambda file: file.path)
    page = files[:PAGE]
    more = page[-1].path if len(files) > PAGE else None
    return types.ListResourcesResult(resources=[_make_resource(file) for file in page], next_cursor=more)


def read(memory: Memory, session_key: str | None, uri: str) -> types.ReadResourceResult:
    """Return the text of a file, or of some of its lines, masked by the policies.

    Raises:
        MCPError: There is no such file, or it is not for these readers.
    """
    place = parse_uri(uri)
    check_shown(memory, session_key, uri)
    try:
        is_part = "#L" in place
        excerpt = memory.get(place) if is_part else memory.get(place, start=1, lines=MOST_LINES)
        check_shown(memory, session_key, make_uri(excerpt.path))  # by the name that it has on disk
    except OpenClawMemoryError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    text = excerpt.text
    if excerpt.next_start is not None and not is_part:
        first, last = excerpt.next_start, excerpt.next_start + MOST_LINES - 1
        text += f"\n\n… goes on at {make_uri(excerpt.path)}#L{first}-L{last}\n"
    contents = types.TextResourceContents(uri=uri, mime_type=_get_mime_type(excerpt.path), text=text)
    return types.ReadResourceResult(contents=[contents])


def check_shown(memory: Memory, session_key: str | None, uri: str) -> None:
    """Check that the readers of a session may see the file of an address.

    Raises:
        MCPError: They may not.
    """
    path = parse_uri(uri).partition("#L")[0]
    if not find_audience(memory, session_key).may_see(path):
        raise MCPError(INVALID_PARAMS, f"{path} is private, and others read along here: shown in direct chats alone")


def _make_resource(file: MemoryFile) -> types.Resource:
    changed = datetime.fromtimestamp(file.mtime_ns / 1e9, UTC)
    return types.Resource(
        uri=make_uri(file.path),
        name=file.path,
        mime_type=_get_mime_type(file.path),
        size=file.size,
        annotations=types.Annotations(last_modified=changed.isoformat(timespec="seconds").replace("+00:00", "Z")),
    )


def _get_mime_type(path: str) -> str:
    # A transcript is shown as what was said, and not as the JSON that it is on disk.
    return "text/markdown" if path.endswith(".md") else "text/plain"
