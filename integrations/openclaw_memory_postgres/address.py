"""Read the address of a store in PostgreSQL: our options, and the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from openclaw_memory.errors import ConfigError
from openclaw_memory_postgres.connections import SCHEMA
from openclaw_memory_postgres.store import PostgresStore

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ("tenant", "schema", "files")  # of an address, that are ours and not the server's


def open_store(url: str, root: Path) -> PostgresStore:
    """Return the store of a URL: `postgresql://user@host/database?tenant=ID`, for the workspace in `root`.

    The tenant is by default the path of the workspace, which other machines share only if it is the same there.
    `schema` is that of `PostgresStore`; all else is the server's.

    Raises:
        ConfigError: As `PostgresStore`, or `files` is neither 'folder' nor 'column'.
    """
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in options if name in OPTIONS}
    query = urlencode([option for option in options if option[0] not in OPTIONS], safe="/", quote_via=quote)
    bare = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
    if own.get("files", "folder") not in {"folder", "column"}:
        raise ConfigError(f"files={own['files']} in the address of a store must be 'folder' or 'column'")
    return PostgresStore(
        bare,
        tenant=own.get("tenant", f"workspace:{root.resolve()}"),
        schema=own.get("schema", SCHEMA),
        keeps_files=own.get("files") == "column",
    )
