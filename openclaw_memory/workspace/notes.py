"""Write the notes of a workspace, and read them at the start of a session."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

import msgspec

from openclaw_memory import errors
from openclaw_memory.events import Location, format_lines, locate_excerpt, observed
from openclaw_memory.text.fence import escape_fences, fence_text
from openclaw_memory.text.quotation import quote
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import note_edits
from openclaw_memory.workspace.atomic import make_folders
from openclaw_memory.workspace.encodings import UTF8, check_text, decode, find_encoding
from openclaw_memory.workspace.excerpts import ENTRY, find_block, make_excerpt_of_lines, split_lines
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import NOTES_FOLDER
from openclaw_memory.workspace.time_zone import to_day

if TYPE_CHECKING:
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
            raise errors.StoreError("the memory is closed; open it again")

    def record_write(self) -> None:
        """Do nothing."""

    sync_soon = record_write

    def close(self) -> None:
        """Refuse later calls."""
        self.is_closed = True


class MemoryPart:
    """A part of a memory, which works on its files. Copies are the part itself, as those of a `Memory` are."""

    def __init__(self, workspace: Workspace, index: Index | None = None) -> None:
        """Take the files."""
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
            raise errors.InvalidInputError(f"{path!r} is not below {NOTES_FOLDER}/: name a note there, or a day")
        excerpt = append(files, text, date=day, title=title, now=now, skip_existing=skip_existing, path=path)
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

        if not (new := check_text(text, "the text to write")):
            raise errors.InvalidInputError("the text to write is empty: delete the lines instead")
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
            raise errors.InvalidInputError(f"max_chars must be a whole number of at least 1, not {most!r}")
        today = to_day(now, "now", settings.timezone) or self._workspace.get_time().date()
        files = self._workspace.files
        days = [files.find_day(day) for day in (today - datetime.timedelta(days=1), today)]
        long_term = [files.find_long_term()] if private else []
        paths = [SOUL, *(path for path in (*long_term, *days) if files.is_included(path))]
        parts = (_show_file(files, path, most, is_day=path in days) for path in paths)
        return Bootstrap(tuple(part for part in parts if part is not None))


# --- adding to a note ---------------------------------------------------------------------------------------------


def append(
    files: WorkspaceFiles,
    text: str | Callable[[str], str],
    *,
    date: datetime.date,
    title: str | None = None,
    now: datetime.datetime,
    skip_existing: bool = False,
    path: str | None = None,
) -> Excerpt:
    """Add `text` to the note of a day, sealed or not, and return its lines. See `Notes.append`.

    A new note begins with `# YYYY-MM-DD`; a `title` adds the heading `## H:MM - title` with the time of `now`.

    Args:
        files: The files of the workspace.
        text: The text to add; or a function that returns it, of what the note holds: "" adds nothing.
        date: The day.
        title: The title of the entry.
        now: The moment.
        skip_existing: Add nothing if the note has the same lines, at whatever time; the excerpt has `existed` set.
        path: Another note below `memory/` than that of the day.

    Raises:
        InvalidInputError, PathNotAllowedError, PolicyError, SealedFileError, WriteError: As `Notes.append`.
    """
    entry = [] if callable(text) else _make_entry(text, title, now)
    files.policies.check(None, "\n".join(entry))
    path = path or files.journal.make_path(date)
    if not files.is_included(path):
        raise errors.PathNotAllowedError(f"{path} is left out by files.include or files.exclude: nothing would find it")
    before = data = b""
    first = 0  # the 0-based line of the entry

    def extend(file: BinaryIO, _: int) -> bytes:
        nonlocal before, data, entry, first
        before = file.read()
        if (encoding := find_encoding(before)) != UTF8:
            raise errors.WriteError(f"{path} is {encoding}, to which UTF-8 cannot be added: save it as UTF-8 first")
        if callable(text):
            entry = split_lines(text("\n".join(_split(before))))
            files.policies.check(None, "\n".join(entry))
        if not entry:
            return b""
        if skip_existing and (existing := find_block(_split(before), entry)) is not None:
            first = existing
            return b""
        head, most = _join_gap(before, entry, date), files.settings.max_bytes
        first, data = before.count(b"\n") + head.count("\n"), (head + "\n".join(entry) + "\n").encode()
        if len(before) + len(data) > most:
            raise errors.WriteError(
                f"{path} would grow beyond files.max_bytes ({most:,}) and not be read: append less, or elsewhere"
            )
        return data

    with files.lock(path):
        place = files.make_place(files.find(path))
        make_folders(files.root, place.parts[:-1], place.path)
        files.append(place, extend)
    lines = _split(before + data)
    return make_excerpt_of_lines(place.path, lines, first, len(entry), existed=not data, policies=files.policies)


def _make_entry(text: str, title: str | None, now: datetime.datetime) -> list[str]:
    lines = check_text(text, "the text to append").strip("\n").split("\n")
    if not text.strip():
        raise errors.InvalidInputError("the text to append is empty: give at least one word")
    if title is None or not title.strip():
        return lines
    return [f"{ENTRY}{now.hour}:{now:%M} - {check_text(' '.join(title.split()), 'the title')}", "", *lines]


def _split(note: bytes) -> list[str]:
    # Bytes that are not UTF-8 match no entry, and are no reason to ignore the others.
    return split_lines(note.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))


def _join_gap(before: bytes, entry: list[str], date: datetime.date) -> str:
    """Return the text between the existing note and the entry."""
    if not before:
        return "" if entry[0].startswith("# ") else f"# {date.isoformat()}\n\n"
    gap = "" if before.endswith(b"\n") else "\n"
    # A heading is set apart, and so is a quotation, which would go on with the next line; other lines follow each
    # other, so that a list stays one list.
    last = before.removesuffix(b"\n").rpartition(b"\n")[2]
    is_apart = entry[0].startswith((ENTRY, ">")) or last.startswith(b">")
    return gap + "\n" if is_apart and not before.endswith(b"\n\n") else gap


# --- the start of a session ---------------------------------------------------------------------------------

SOUL = "SOUL.md"  # persona, values and boundaries: for the agent to read, but no memory, and never indexed


class BootstrapFile(msgspec.Struct, frozen=True):
    """A file as it is shown.

    Attributes:
        path: The file.
        text: All of it, or whole lines of it within `max_chars`.
        chars: The length of all of it.
        max_chars: The most characters.
        note: The part that is not shown, why, and the remedy; "" if all is shown.
    """

    path: str
    text: str
    chars: int
    max_chars: int
    note: str = ""


class Bootstrap(msgspec.Struct, frozen=True):
    """The files that a session starts with, in reading order.

    Attributes:
        files: The files.
    """

    files: tuple[BootstrapFile, ...]

    @property
    def text(self) -> str:
        """All files for a system prompt, each followed by its note; "" for no files.

        SOUL.md is shown below its path. The others are memory: each is in a fence with its path, so that nothing in
        a note can be taken for another file.
        """
        parts: list[str] = []
        for file in self.files:
            parts += [f"## {file.path}"] if file.path == SOUL else []
            text = escape_fences(file.text) if file.path == SOUL or not file.text else fence_text(file.text, file.path)
            parts += filter(None, (text, file.note and f"({file.note})"))
        return "\n\n".join(parts)


def _show_file(files: WorkspaceFiles, path: str, max_chars: int, *, is_day: bool) -> BootstrapFile | None:
    """Show a file, or the reason why it cannot be read; of a day the last lines, of others the first; None for none."""
    try:
        data, _ = files.read(files.make_place(path))
        text = redact(files.policies.mask(decode(data, path))).strip("\n")
    except errors.NotFoundError:
        return None
    except errors.WorkspaceError as error:
        return BootstrapFile(path, "", 0, max_chars, f"not shown: {error}")
    if len(text) <= max_chars:
        return BootstrapFile(path, text, len(text), max_chars)
    at = text.find("\n", len(text) - max_chars - 1) + 1 if is_day else text.rfind("\n", 0, max_chars + 1)
    # Whole lines; a part of one that is longer.
    part = text[at or len(text) - max_chars :] if is_day else text[: at if at > 0 else max_chars]
    where, remedy = ("first", "search finds them") if is_day else ("last", "move what matters less to notes in memory/")
    note = f"the {where} {len(text) - len(part):,} of {len(text):,} characters are not shown: {remedy}"
    return BootstrapFile(path, part, len(text), max_chars, note)
