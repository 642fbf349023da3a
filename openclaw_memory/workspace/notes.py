"""Write the notes of a workspace, and read them at the start of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from openclaw_memory.errors import InvalidInputError, StoreError
from openclaw_memory.events import Location, format_lines, locate_excerpt, observed
from openclaw_memory.text.quotation import quote
from openclaw_memory.workspace import journal, note_edits
from openclaw_memory.workspace.paths import NOTES_FOLDER
from openclaw_memory.workspace.time_zone import to_day

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.types import Excerpt
    from openclaw_memory.workspace.journal import Bootstrap
    from openclaw_memory.workspace.workspace import Workspace


def _locate_promoted(copy: Excerpt, _: object, path: str, start: int, end: int, **__: object) -> list[Location]:
    return [(path, format_lines((start, end))), *locate_excerpt(copy)]


class Index(Protocol):
    """Follow the files of a memory: the calls of its index that its parts make."""

    def check_open(self) -> None:
        """Raise StoreError where the memory is closed."""

    def record_write(self) -> None:
        """Note that files were changed, which the index does not know yet."""

    def sync_soon(self) -> None:
        """Note the same, and begin a sync in the background."""


class NoIndex:
    """Stand in for the index where a plug-in has it, or nothing."""

    is_closed = False

    def check_open(self) -> None:
        """Raise StoreError where the memory is closed."""
        if self.is_closed:
            raise StoreError("the memory is closed; open it again")

    def record_write(self) -> None:
        """Do nothing."""

    sync_soon = record_write

    def close(self) -> None:
        """Refuse later calls."""
        self.is_closed = True


class MemoryPart:
    """A part of a memory, which works on its files. Copies are the part itself, as those of a `Memory` are."""

    def __init__(self, workspace: Workspace, index: Index | None = None) -> None:
        """Take the files.

        Args:
            workspace: The files.
            index: The index that follows them; None for none.
        """
        self._workspace, self._index, self.events = workspace, index or NoIndex(), workspace.events

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class Notes(MemoryPart):
    """The notes of a memory: written, copied to `MEMORY.md`, and read at the start of a session."""

    def _record(self, excerpt: Excerpt) -> Excerpt:
        if not excerpt.existed:
            self._index.record_write()
        return excerpt

    def sync_soon(self) -> None:
        """Start a sync in the background, as a search does that notices changed files, where there is an index.

        Writes through tools or a flush do this by themselves. `config.sync.on_search` turns it off. With another
        backend this does nothing: it decides itself when it syncs.
        """
        self._index.check_open()
        self._index.sync_soon()

    @observed("append", locate_excerpt, writes=True)
    def append(
        self,
        text: str,
        date: datetime.date | str | None = None,
        title: str | None = None,
        *,
        skip_existing: bool = False,
        quoted_from: str | None = None,
        path: str | None = None,
    ) -> Excerpt:
        """Add `text` to the note of a day, completely or not at all, and return its lines.

        Up to 4,096 bytes are one write(2), which a kill can only part in the instant between two pages of the file. A
        longer text comes with a file that takes the place of the note, if that can be replaced: its
        folder can be written, and there is room for a copy.

        Args:
            text: The text to add; Markdown.
            date: A day, or its ISO form `2026-11-21`; today by default. A moment is its day, in `sessions.timezone`
                if it has a time zone.
            title: Gives the text a heading of its own, with the time.
            skip_existing: Do not add lines that the note already has, at whatever time. The excerpt returned then shows
                the existing lines and has `existed` set.
            quoted_from: Where the text comes from, such as an address, if neither the user nor the agent has written
                it: it is stored as a quotation, title and all, above its source, and `promote` refuses its lines.
            path: Another note below `memory/` than that of the day.

        Raises:
            InvalidInputError: The text is empty, `date` is not a day, or the source has no name.
            PathNotAllowedError: The note is a symlink, not a regular file, or excluded by the globs.
            PolicyError: A rule says never to store the text. Nothing was written.
            SealedFileError: The note is sealed, and cannot be opened.
            WriteError: It could not be written. The note is unchanged.
            ConfigError: The time zone of the settings is unknown.
        """
        self._index.check_open()

        now = self._workspace.get_time()
        day = to_day(date, "date", self._workspace.sessions.timezone) or now.date()
        if quoted_from is not None:
            text, title = quote(f"{title}\n\n{text}" if title and title.strip() else text, quoted_from), None
        files = self._workspace.files
        if path is not None and not (path := files.locate(path).path).startswith(f"{NOTES_FOLDER}/"):
            raise InvalidInputError(f"{path!r} is not below {NOTES_FOLDER}/: name a note there, or a day")
        excerpt = journal.append(files, text, date=day, title=title, now=now, skip_existing=skip_existing, path=path)
        return self._record(excerpt)

    @observed("edit", locate_excerpt, writes=True)
    def edit(self, path: str, start: int, end: int, text: str, *, expected: str | Excerpt) -> Excerpt:
        """Replace lines `start` to `end` of a note if they are still as the caller read them; return the new lines.

        The byte order mark, the kind of newlines and a missing newline at the end are preserved. A newline at the end
        of `text` ends its last line and starts no other.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            text: The new lines.
            expected: The excerpt that the caller read, all of whose lines must be unchanged; or the `hash` of the lines
                to replace, at least its first 12 digits.

        Raises:
            ConflictError: The lines have changed. Nothing was written.
            PolicyError: A rule says never to store the text. Nothing was written.
            InvalidInputError: The range, the text or `expected` is invalid; or a secret, which is shown masked, would
                be lost or revealed.
            NotFoundError: There is no such file, or no such line.
            PathNotAllowedError: The path is not a memory file, is a transcript, or is outside the workspace.
            WorkspaceError: The file is not text.
            SealedFileError: The file is sealed, and cannot be opened.
            WriteError: It could not be written, or is text in another encoding than UTF-8. The file is unchanged.
        """
        self._index.check_open()

        if not (new := journal.check_text(text, "the text to write")):
            raise InvalidInputError("the text to write is empty: delete the lines instead")
        return self._record(note_edits.edit(self._workspace.files, path, start, end, new, expected=expected))

    @observed("delete", lambda _, __, path, start, end, **___: [(path, format_lines((start, end)))], writes=True)
    def delete(self, path: str, start: int, end: int, *, expected: str | Excerpt) -> None:
        """Remove lines `start` to `end` of a note if they are still as the caller read them.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            expected: The excerpt that the caller read, or the hash of the lines, as for `edit`.

        Raises:
            ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, WorkspaceError, WriteError:
                As `edit`.
        """
        self._index.check_open()

        note_edits.edit(self._workspace.files, path, start, end, "", expected=expected)
        self._index.record_write()

    @observed("promote", _locate_promoted, writes=True)
    def promote(
        self, path: str, start: int, end: int, *, section: str | None = None, expected: str | Excerpt | None = None
    ) -> Excerpt:
        """Copy lines `start` to `end` of a note to `MEMORY.md` and return the lines there.

        They are added at the end of the section, which is created if need be. Lines that are there already, one after
        the other, are not added again: the excerpt then has `existed` set.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            section: The heading of MEMORY.md to add them below; the end of the file where None.
            expected: The excerpt that the caller read, or its hash; not compared where None.

        Raises:
            InvalidInputError: The range, the section or `expected` is invalid, the lines hold a secret, they are front
                matter of a document, they are sealed and `MEMORY.md` is not, or they come from outside: a quotation
                with its source, or a document whose `origin` is "external".
            RecordError: They belong to a record that no signature vouches for.
            PolicyError: A rule says never to store them. Nothing was written.
            ConflictError, NotFoundError, PathNotAllowedError, WorkspaceError, WriteError: As `edit`.
        """
        self._index.check_open()

        files = self._workspace.files
        return self._record(note_edits.promote(files, path, start, end, section, expected))

    @observed("bootstrap", lambda started, *_, **__: [(file.path, "") for file in started.files if file.text])
    def bootstrap(
        self, *, private: bool = True, max_chars: int | None = None, now: datetime.date | str | None = None
    ) -> Bootstrap:
        """Return the files that an agent reads when a session starts: SOUL.md, MEMORY.md, and two days of notes.

        Each is shown within `max_chars`, with secrets masked; a file that cannot be read is named with the reason.

        Args:
            private: Include MEMORY.md; False for a group chat.
            max_chars: The most characters of one file; `sessions.bootstrap_chars` where None.
            now: The moment, or the day itself, that decides which day it is; this moment by default.

        Raises:
            InvalidInputError: `max_chars` is not a whole number of at least 1, or `now` is not a day.
            ConfigError: The time zone of the settings is unknown.
        """
        self._index.check_open()

        settings = self._workspace.sessions
        most = settings.bootstrap_chars if max_chars is None else max_chars
        if not isinstance(most, int) or most < 1:
            raise InvalidInputError(f"max_chars must be a whole number of at least 1, not {most!r}")
        today = to_day(now, "now", settings.timezone) or self._workspace.get_time().date()
        files = self._workspace.files
        return journal.bootstrap(files, private=private, max_chars=most, today=today)
