"""Whether an index was made by this user for this place: its schema, and a signature that a secret outside makes.

Nothing of a file is executed before: tables are looked at in `sqlite_schema`, and two rows of them are read.
"""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import apsw

from openclaw_memory import _forks
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.security.user_secret import secret, tag
from openclaw_memory.store import index_key
from openclaw_memory.store.connection import APPLICATION_ID, connect, damaged, fetch
from openclaw_memory.store.schema import SCHEMA_VERSION, statements

ROW = "signature"  # the name of its row in meta
META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID"
SIGNATURE = re.compile("[0-9a-f]{32}(:[0-9a-f]{32}){3}")
# What SQLite and its extensions make themselves for our virtual tables: no statement of ours reads other names.
OF_SQLITE = re.compile(r"chunk_(terms|vectors)_\w+|sqlite_autoindex_\w+|sqlite_sequence")
CODES = re.compile(r"CREATE VIRTUAL TABLE chunk_vectors USING vec0 \([\w\s,\[\]=]*\)\s*")

Maker = Literal["us", "us elsewhere", "unsigned", "another"]


class Origin(NamedTuple):
    """Who made an index, and in words why it is not answered from; "" where it is ours.

    "us elsewhere": for an index in another folder; "unsigned"; "another": with another key.
    """

    maker: Maker
    why: str = ""


def origin(db: apsw.Connection) -> Origin | None:
    """Return who made an index; None for an empty file, and for the database of another program.

    Raises:
        CorruptIndexError: It is ours, but for a trigger, a view, or another table than we make.
        StoreError: There is no secret to compare with.
    """
    entries = fetch(db, "SELECT type, name, sql FROM sqlite_schema")
    if not entries:
        return None
    names = {name for kind, name, _ in entries if kind == "table"}
    if fetch(db, "PRAGMA application_id") != [(APPLICATION_ID,)]:
        return None if names else Origin("unsigned", "it was made elsewhere")
    if ("table", "meta", META) not in entries:
        return Origin("unsigned", "it was made elsewhere")
    found = _signed(db)
    if found.maker in {"us", "us elsewhere"}:
        is_known = fetch(db, "PRAGMA user_version") == [(SCHEMA_VERSION,)]  # other versions have other tables
        for kind, name, sql in entries:
            if kind not in {"table", "index"} or (is_known and not _is_ours(kind, name, sql)):
                raise damaged(db.filename, f"its {kind} {name!r} is not ours")
    return found


def sign(db: apsw.Connection) -> None:
    """Sign a new index, within a transaction; one in memory needs no signature."""
    if db.filename:
        name = os.urandom(16).hex()
        value = ":".join([name, *_tags(name, db.filename)])
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (ROW, value))


def look(path: Path, trusted: Path) -> Origin | None:
    """Return who made the index at a path, which nothing is written to; None where that cannot be found out.

    No link is followed below the folder `trusted`.
    """
    with suppress(OSError, apsw.Error, OpenClawMemoryError, UnicodeDecodeError):
        if path.is_file() and path.stat().st_size:
            with _forks.no_fork():
                db, _ = index_key.opened(
                    path, lambda key: connect(path, read_only=True, extension=None, trusted=trusted, key=key)
                )
                with closing(db):
                    return origin(db)
    return None


def _signed(db: apsw.Connection) -> Origin:
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (ROW,))
    if not rows or not isinstance(rows[0][0], str) or not SIGNATURE.fullmatch(rows[0][0]):
        return Origin("unsigned", "it was made elsewhere, or by an older version")
    name, *tags = rows[0][0].split(":")
    by_key, *by_place = _tags(name, db.filename)
    if tags[0] != by_key:
        return Origin("another", "it was made elsewhere, by another user or with another home folder")
    if not any(found == wanted for found, wanted in zip(tags[1:], by_place, strict=True)):
        return Origin("us elsewhere", "it was made for another folder")
    return Origin("us")


def _tags(name: str, index: str) -> list[str]:
    """Return the tags of an index by this name: of its key, and of its folder's path and inode.

    One of the last two is enough: a workspace may be moved, or its disk be mounted anew.
    """
    key, folder = secret().key, os.path.dirname(os.path.realpath(index))
    places = os.fsencode(folder), str(os.stat(folder).st_ino).encode()
    return [
        tag(key, "index", name.encode()),
        *(tag(key, about, name.encode(), place) for about, place in zip(("path", "inode"), places, strict=True)),
    ]


def _is_ours(kind: str, name: str, sql: str | None) -> bool:
    """Return whether a table or an index of the schema is one that this version makes."""
    if OF_SQLITE.fullmatch(name):
        return kind == "table" or sql is None
    return sql is not None and (sql in statements() or CODES.fullmatch(sql) is not None)
