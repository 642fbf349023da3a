"""Whether an index is damaged, by a fresh look at its file, and what is done then: it is kept under another name."""

from __future__ import annotations

import os
import re
import time
from contextlib import closing, suppress
from pathlib import Path

from openclaw_memory.errors import CorruptIndexError, StoreError
from openclaw_memory.store import SqliteStore
from openclaw_memory.store.location import COMPANIONS

KEPT = 3  # damaged indexes that are kept for whoever looks for the cause: each is as large as the index


def why_damaged(index_path: Path) -> str | None:
    """What is wrong with the file, in words, by a new connection that reads everything; None where it is sound.

    A file that is missing or empty is not damaged: it is filled by the next sync.

    Raises:
        IndexLockedError, StoreError: it cannot be read just now: another process holds it, or rights are missing.
    """
    try:
        if not index_path.exists() or index_path.stat().st_size == 0:
            return None
        with closing(SqliteStore.open(index_path, read_only=True)) as store:
            store.meta()
            store.files()
            return "; ".join(store.problems()) or None
    except CorruptIndexError as error:
        return error.found or str(error)
    except OSError as error:
        raise StoreError(f"{index_path} cannot be read ({error}); check the permissions") from error


def set_aside(index_path: Path) -> Path:
    """Rename a damaged index, with its companions, to `<name>.damaged-<time>`; no connection may be open on it.

    The three newest such files are kept, older ones are deleted.

    Raises:
        StoreError: it cannot be renamed; the folder may be read-only.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S")
    aside = index_path.with_name(f"{index_path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = index_path.with_name(f"{index_path.name}.damaged-{stamp}-{number}")
    try:
        # The companions go first: a crash in between leaves a database without a journal, never a journal alone.
        for companion in COMPANIONS:
            if (beside := Path(f"{index_path}{companion}")).exists():
                os.replace(beside, f"{aside}{companion}")
        os.replace(index_path, aside)
    except OSError as error:
        raise StoreError(
            f"{index_path} is damaged and cannot be renamed ({error}); delete it and sync again"
        ) from error
    with suppress(OSError):  # one that cannot be deleted is tried again when there is another one
        _forget_old(index_path, aside)
    return aside


def _forget_old(index_path: Path, newest: Path) -> None:
    pattern = re.compile(re.escape(index_path.name) + r"\.damaged-(\d{8}T\d{6})(?:-(\d+))?")
    found = [(match, path) for path in index_path.parent.iterdir() if (match := pattern.fullmatch(path.name))]
    by_age = sorted(((match[1], int(match[2] or 1)), path) for match, path in found if path != newest)
    for _, old in by_age[: max(0, len(by_age) + 1 - KEPT)]:
        for suffix in ("", *COMPANIONS):
            Path(f"{old}{suffix}").unlink(missing_ok=True)
