"""The files of records: where each belongs, which there are, and what they hold, read again only if changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from openclaw_memory import _forks
from openclaw_memory.config import RecordsConfig
from openclaw_memory.errors import NotFoundError, PathNotAllowedError, RecordError, SignatureError, WorkspaceError
from openclaw_memory.text.policies import NONE, get_about
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.paths import MOVE_NOTE, NOTE_ENDINGS, RECORDS_FOLDER, is_record

if TYPE_CHECKING:
    from openclaw_memory.text.front_matter import FrontMatter
    from openclaw_memory.types.records import Record
    from openclaw_memory.workspace.document_cache import DocumentCache
    from openclaw_memory.workspace.paths import Stamp

_LONGEST_NAME = 80  # characters of a key that is the name of its file as it is
_MOST_READ = 10_000  # records that are kept as they were read, about 20 MB: as many as `records.most` of a type
_WILD = re.compile(r"[*?\[]")
_PLAIN = re.compile(r"[A-Za-z0-9]*")  # characters that are in a file's name what they are in a key, whatever follows


class RecordFiles:
    """What the files of records hold. Safe to use from several threads."""

    def __init__(self, workspace: Workspace, rules: RecordsConfig) -> None:
        """Read the records of a workspace.

        Args:
            workspace: The files.
            rules: How fast confidence falls.
        """
        self.damaged: dict[str, str] = {}
        """What is wrong with files that `walk` could not read, by path."""
        self.forged: dict[str, str] = {}
        """Why no signature vouches for files, by path, as `walk` or `look_for_forged` found it."""
        self._plain: dict[str, Stamp] = {}  # files that say they need no signature, as they were then
        self._workspace, self._rules = workspace, rules
        self._files = replace(workspace.files, policies=NONE)  # names that policies hide are known, and not shown
        self._read: dict[str, tuple[FrontMatter, int, Record, datetime]] = {}

    @_forks.cached_property
    def _cache(self) -> DocumentCache:
        from openclaw_memory.workspace.document_cache import DocumentCache  # most searches find no record

        return DocumentCache(self._files)

    def at(self, path: str, now: datetime, info: Stamp | None = None) -> Record | None:
        """Return the record in a file as it is at a moment, also if it has expired; None where there is no file.

        Args:
            path: The file.
            now: The moment, in UTC.
            info: Its stat, if the caller has just taken it.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
            RecordError: The file is damaged, or is a person's own note.
        """
        from openclaw_memory.records.file_format import at_moment

        if info is None:
            self._workspace.refresh()
        seen = self._cache.load(path, info)
        if not seen.is_text:
            if (wrong := self._cache.unread.get(path)) is not None:  # it cannot be unsealed
                raise RecordError(wrong)
            return None
        if info is None:
            try:
                changed = os.lstat(self._workspace.root / path).st_mtime_ns
            except FileNotFoundError:
                return None
        else:
            changed = info.st_mtime_ns
        known = self._read.get(path)
        if known is None or known[0] is not seen.content or known[1] != changed:
            known = self._kept(path, seen.content, changed)
        return at_moment(self._vouched(path, seen.content, known[2]), known[3], now, self._rules)

    def record_of(self, path: str, content: FrontMatter | None, changed_ns: int, now: datetime) -> Record:
        """Return the record that the content of a file is, at a moment.

        Args:
            path: The file.
            content: What it holds.
            changed_ns: When it was last written, for an edit by hand, in ns since 1970.
            now: The moment, in UTC.

        Raises:
            RecordError: The file is damaged, or is a person's own note.
        """
        from openclaw_memory.records.file_format import at_moment

        content, record, since = self._parsed(path, content, changed_ns)
        return at_moment(self._vouched(path, content, record), since, now, self._rules)

    def written_confidence(self, path: str) -> float:
        """Return the confidence that a file of a record has, before it has fallen to that of this moment.

        Args:
            path: The file.
        """
        content = self._cache.load(path).content
        return float(content.fields["confidence"]) if content is not None else 0.0

    def walk(
        self, now: datetime, may_be: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, Record | RecordError]]:
        """Yield path and record, or what is wrong with it, of files, by path.

        Expired ones are there too, and those whose names policies hide; these are not among the `damaged`.

        Args:
            now: The moment, in UTC.
            may_be: Says of the name of a file whether to look at it; all are where None.
        """
        from openclaw_memory.workspace.scan import walk_notes

        self._workspace.refresh()
        seen, hidden_by = set[str](), self._workspace.files.find_hiding_rule
        if may_be is None:
            self.damaged, self.forged = {}, {}
        for path, info in walk_notes(self._files, RECORDS_FOLDER, may_be):
            seen.add(path)
            try:
                record = self.at(path, now, info)
            except RecordError as error:
                if hidden_by(path) is None:
                    self.damaged[path] = str(error)
                yield path, error
            else:
                if record is not None and record.problem is not None and hidden_by(path) is None:
                    self.forged[path] = record.problem
                if record is not None:
                    yield path, record
        if may_be is None:
            self._cache.forget_all_but(seen, RECORDS_FOLDER)
            for path in self._read.keys() - seen:
                self._read.pop(path, None)

    def look_for_forged(self) -> None:
        """Find out what no signature vouches for; of a record that needs none, only the bytes are read.

        Raises:
            WorkspaceError: A folder cannot be listed.
        """
        from openclaw_memory.security import signatures
        from openclaw_memory.workspace.scan import walk_notes

        self._workspace.refresh()
        plain: dict[str, Stamp] = {}
        forged: dict[str, str] = {}
        for path, info in walk_notes(self._files, RECORDS_FOLDER):
            if self._workspace.files.find_hiding_rule(path) is not None:
                continue
            with suppress(NotFoundError, PathNotAllowedError, WorkspaceError):  # what cannot be read is named elsewhere
                if self._plain.get(path) == info or signatures.is_plain(
                    self._files.read_raw(self._files.locate(path))[0]
                ):
                    plain[path] = info
                    if not signatures.is_listed(self._files.root, path):
                        continue
                if (problem := self._problem(path, self._cache.load(path, info).content)) is not None:
                    forged[path] = problem
        self._plain, self.forged = plain, forged

    def hidden(self, paths: Iterable[str], now: datetime | None = None) -> frozenset[str]:
        """Return those of the paths whose records are not to be shown, however old an index is that named them.

        They have expired, or no signature vouches for what they say.

        Args:
            paths: Files of a memory.
            now: The moment; this one where None.
        """
        moment = now or datetime.now(UTC)
        return frozenset(path for path in set(paths) if is_record(path) and self._why_hidden(path, moment) is not None)

    def check_shown(self, path: str) -> None:
        """Check that a file may be shown.

        Args:
            path: A file of a memory.

        Raises:
            NotFoundError: It holds a record that has expired.
            SignatureError: It holds a record that no signature vouches for.
        """
        error = self._why_hidden(path, datetime.now(UTC)) if is_record(path) else None
        if error is not None:
            raise error

    def _why_hidden(self, path: str, now: datetime) -> NotFoundError | SignatureError | None:
        # What is damaged is shown as the note it is, unless it was signed.
        with suppress(NotFoundError, PathNotAllowedError, WorkspaceError, OSError):
            if problem := self._problem(path, self._cache.load(path).content):
                return SignatureError(problem)
            record = self.at(path, now)
            if record is not None and is_expired(record, now):
                return NotFoundError(f"{path} held a record that has expired: remember it again")
        return None

    def _problem(self, path: str, content: FrontMatter | None) -> str | None:
        from openclaw_memory.security import signatures

        fields, text = (None, "") if content is None else (content.fields, content.text)
        return signatures.problem(self._workspace.root, path, fields, text)

    def _vouched(self, path: str, content: FrontMatter | None, record: Record) -> Record:
        """Return a record with what is wrong with its signature. It is looked at each time: keys come and go."""
        problem = self._problem(path, content)
        return record if problem is None else replace(record, problem=problem)

    def _kept(self, path: str, content: FrontMatter | None, changed: int) -> tuple[FrontMatter, int, Record, datetime]:
        content, record, since = self._parsed(path, content, changed)
        while len(self._read) >= _MOST_READ:
            self._read.pop(next(iter(self._read)), None)
        self._read[path] = content, changed, record, since
        return self._read[path]

    def _parsed(self, path: str, content: FrontMatter | None, changed_ns: int) -> tuple[FrontMatter, Record, datetime]:
        from openclaw_memory.records.file_format import record_in

        if content is None or "memory_id" not in content.fields:
            raise RecordError(f"{path} is no record, but a note: {MOVE_NOTE}")
        changed = datetime.fromtimestamp(changed_ns // 1_000_000_000, UTC)
        try:
            return content, *record_in(path, content, changed)
        except RecordError as error:  # quotes what is wrong, which policies may hide
            policies = self._workspace.policies
            words = str(error)
            if (shown := policies.mask(words, get_about(content.fields))) == words:
                raise
            if not shown.startswith(path):
                shown = (
                    f"{path} cannot be read as a record, and policies hide what is wrong with it: correct it by hand"
                )
        raise RecordError(shown)


def is_expired(record: Record, now: datetime) -> bool:
    """Whether a record has ceased to hold.

    Args:
        record: The record.
        now: The moment, in UTC.
    """
    return record.expires_at is not None and record.expires_at < now


def path_of(type: str, key: str, user_id: str | None) -> str:  # noqa: A002 - the field's name
    """Return the file of a record, which follows from its name; a sealed one has another ending.

    Args:
        type: Its type.
        key: Its key.
        user_id: Whose it is; None for everybody's.
    """
    from openclaw_memory.workspace.documents import make_file_name

    folder = f"{RECORDS_FOLDER}/{type}" if user_id is None else f"{RECORDS_FOLDER}/{type}/{make_file_name(user_id)}"
    return f"{folder}/{_name_of(key)}.md"


def may_be_named(glob: str) -> Callable[[str], bool]:
    """Return a function that says of the name of a file whether its record can have a key that matches a glob.

    What precedes the first wildcard says how such names begin; the record in the file says whether its key matches.

    Args:
        glob: A glob of keys, such as `editor.*`.
    """
    from openclaw_memory.workspace.documents import make_file_name

    literal = _WILD.split(glob, maxsplit=1)[0]
    if literal == glob and literal.strip():
        return frozenset(f"{_name_of(glob)}{ending}" for ending in NOTE_ENDINGS).__contains__
    *whole, begun = literal.split(".")
    begins = _plain(begun)
    if all(part.strip() for part in whole):
        begins = ".".join((*map(make_file_name, whole), begins))
    shortest = _plain(literal)

    def may_be(name: str) -> bool:
        # The name of a key that is no name as it is has no dot but that of its ending.
        return name.startswith(begins) or (get_plain_name(name).count(".") == 1 and name.startswith(shortest))

    return may_be


def _plain(text: str) -> str:
    found = _PLAIN.match(text)
    return found[0].lower() if found else ""


def _name_of(key: str) -> str:
    from openclaw_memory.workspace.documents import make_file_name

    parts = key.split(".")
    readable = len(key) <= _LONGEST_NAME and all(part.strip() for part in parts)
    return ".".join(map(make_file_name, parts)) if readable else make_file_name(key)
