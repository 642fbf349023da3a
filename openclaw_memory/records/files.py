"""Locate the files of records, and read them again only once they have changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from openclaw_memory.errors import NotFoundError, PathNotAllowedError, RecordError, WorkspaceError
from openclaw_memory.text.policies import NONE, get_about
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.paths import MOVE_NOTE, RECORDS_FOLDER, is_record

if TYPE_CHECKING:
    from openclaw_memory.text.front_matter import FrontMatter
    from openclaw_memory.types.records import Record
    from openclaw_memory.workspace.document_cache import DocumentCache
    from openclaw_memory.workspace.paths import Stamp

_MAX_NAME = 80  # characters of a key that is used as the name of its file


class RecordFiles:
    """The records in files. Safe to use from several threads.

    Attributes:
        damaged: The errors of files that `walk` could not read, by path.
        forged: Why no signature vouches for files, by path, as of the latest `walk`.
    """

    def __init__(self, workspace: Workspace) -> None:
        """Read the records of a workspace."""
        self.damaged: dict[str, str] = {}
        self.forged: dict[str, str] = {}
        self._workspace = workspace
        self._files = msgspec.structs.replace(workspace.files, policies=NONE)  # hidden names are read, and not shown

    @cached_property
    def _cache(self) -> DocumentCache:
        from openclaw_memory.workspace.document_cache import DocumentCache  # most searches find no record

        return DocumentCache(self._files)

    def load(self, path: str, now: datetime, info: Stamp | None = None) -> Record | None:
        """Return the record in a file at a moment, even if it has expired; None if there is no file.

        Args:
            path: The file.
            now: The moment, in UTC.
            info: Its stat, if the caller has just taken it.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
            RecordError: The file is damaged, or is a person's own note.
        """
        if info is None:
            self._workspace.refresh()
        document = self._cache.load(path, info)
        if not document.is_text:
            if (error := self._cache.unread.get(path)) is not None:  # it cannot be unsealed
                raise RecordError(error)
            return None
        try:
            changed_ns = (info or os.lstat(self._workspace.root / path)).st_mtime_ns
        except FileNotFoundError:
            return None
        return self.parse(path, document.content, changed_ns, now)

    def parse(self, path: str, content: FrontMatter | None, changed_ns: int, now: datetime) -> Record:
        """Return the record in the content of a file at a moment.

        Raises:
            RecordError: The file is damaged, or is a person's own note.
        """
        from openclaw_memory.records.file_format import apply_decay, parse_record

        if content is None or "memory_id" not in content.fields:
            raise RecordError(f"{path} is not a record, but a note: {MOVE_NOTE}")
        changed_at = datetime.fromtimestamp(changed_ns // 1_000_000_000, UTC)
        try:
            record, since = parse_record(path, content, changed_at)
        except RecordError as error:  # it quotes the file, of which policies may hide parts
            message = self._workspace.policies.mask(str(error), get_about(content.fields))
            if not message.startswith(path):
                message = f"{path} cannot be read as a record, and policies hide why: correct it by hand"
            raise RecordError(message) from (error if message == str(error) else None)
        record = msgspec.structs.replace(record, problem=_explain_refusal(path, content))
        return apply_decay(record, since, now)

    def walk(self, now: datetime) -> Iterator[tuple[str, Record | RecordError]]:
        """Yield path and record, or the error, of each file, by path.

        Expired records are included, and those whose names policies hide; these are not among the `damaged`.
        """
        from openclaw_memory.workspace.scan import walk_notes

        self._workspace.refresh()
        paths, find_hiding_rule = set[str](), self._workspace.files.find_hiding_rule
        self.damaged, self.forged = {}, {}
        for path, info in walk_notes(self._files, RECORDS_FOLDER):
            paths.add(path)
            try:
                record = self.load(path, now, info)
            except RecordError as error:
                if find_hiding_rule(path) is None:
                    self.damaged[path] = str(error)
                yield path, error
                continue
            if record is not None:
                if record.problem is not None and find_hiding_rule(path) is None:
                    self.forged[path] = record.problem
                yield path, record
        self._cache.forget_all_but(paths, RECORDS_FOLDER)

    def find_hidden(self, paths: Iterable[str], now: datetime | None = None) -> frozenset[str]:
        """Return the paths of records that have expired, or that no signature vouches for.

        Args:
            paths: Files of a memory; an old index may name them.
            now: The moment; this one if None.
        """
        moment = now or datetime.now(UTC)
        return frozenset(path for path in {*paths} if is_record(path) and self._find_reason(path, moment))

    def check_visible(self, path: str) -> None:
        """Check that a file may be shown.

        Raises:
            NotFoundError: It holds a record that has expired.
            RecordError: It holds a record that no signature vouches for.
        """
        if is_record(path) and (error := self._find_reason(path, datetime.now(UTC))):
            raise error

    def _find_reason(self, path: str, now: datetime) -> NotFoundError | RecordError | None:
        """Return the error of a file that must not be shown; a damaged one is shown as a note, unless it was signed."""
        with suppress(NotFoundError, PathNotAllowedError, WorkspaceError, OSError):
            if problem := _explain_refusal(path, self._cache.load(path).content):
                return RecordError(problem)
            record = self.load(path, now)
            if record is not None and is_expired(record, now):
                return NotFoundError(f"{path} held a record that has expired: remember it again")
        return None


def _explain_refusal(path: str, content: FrontMatter | None) -> str | None:
    from openclaw_memory.security.keys import explain_refusal

    return None if content is None else explain_refusal(path, content.fields, content.text)


def is_expired(record: Record, now: datetime) -> bool:
    """Return whether a record has ceased to hold."""
    return record.expires_at is not None and record.expires_at < now


def make_path(type: str, key: str, user_id: str | None) -> str:  # noqa: A002 - the field's name
    """Return the file of a record; a sealed one has another ending.

    Args:
        type: Its type.
        key: Its key.
        user_id: Whose it is; None for everybody's.
    """
    from openclaw_memory.workspace.documents import make_file_name

    folder = f"{RECORDS_FOLDER}/{type}" if user_id is None else f"{RECORDS_FOLDER}/{type}/{make_file_name(user_id)}"
    return f"{folder}/{_make_name(key)}.md"


def _make_name(key: str) -> str:
    from openclaw_memory.workspace.documents import make_file_name

    parts = key.split(".")
    is_readable = len(key) <= _MAX_NAME and all(part.strip() for part in parts)
    return ".".join(map(make_file_name, parts)) if is_readable else make_file_name(key)
