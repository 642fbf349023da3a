"""The workspace folder: open it, list its memory files, and read notes and transcripts safely."""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO, Self

from openclaw_memory.config.sections import FilesConfig, SessionsConfig
from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    UndecodableError,
    WorkspaceError,
    suggest,
)
from openclaw_memory.events import Events
from openclaw_memory.text.front_matter import fold_name, list_names, measure_front_matter, split_link
from openclaw_memory.text.policies import Policies, mask_note
from openclaw_memory.types import Excerpt, MemoryFile
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import parse_citation, suggest_order
from openclaw_memory.workspace import encodings, excerpts, scan
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import LOWER_CASE_NOTE, ROOT_NOTES, Place, is_record, is_transcript
from openclaw_memory.workspace.scan import Scan
from openclaw_memory.workspace.time_zone import get_local_now

if TYPE_CHECKING:
    from openclaw_memory.workspace.session_log import SessionLog
    from openclaw_memory.workspace.transcripts import Part


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder of notes and transcripts, with the settings for both.

    It holds nothing open, and of its files no more than their latest listing: while nothing has changed, `scan` returns
    the same object.

    Attributes:
        files: The files of the folder.
        sessions: Where transcripts are, and the zone of days.
        events: Tells observers about writes.
    """

    files: WorkspaceFiles
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    events: Events = field(default_factory=Events, kw_only=True, repr=False, compare=False)
    _latest: list[tuple[scan.Listing, Scan]] = field(default_factory=list, init=False, repr=False, compare=False)
    _names: list[tuple[Scan, Mapping[str, str], Callable[[], Mapping[str, str]]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], settings: FilesConfig | None = None, sessions: SessionsConfig | None = None
    ) -> Self:
        """Return the workspace at the folder `path`.

        Args:
            path: An existing folder; `~` is expanded.
            settings: Which files count and how large they may be; the defaults where None.
            sessions: Where transcripts are; the defaults where None.

        Raises:
            WorkspaceError: There is no such folder, it is a file, or it cannot be read.
        """
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise WorkspaceError(f"the workspace must be the path of a folder, not {path!r}; '.' is the current one")
        root = Path(os.path.abspath(os.path.expanduser(path)))
        try:
            mode = os.stat(root).st_mode
        except (FileNotFoundError, NotADirectoryError) as error:
            if not os.path.lexists(root):
                raise WorkspaceError(
                    f"workspace {root} does not exist: {_suggest_path(root)}, or "
                    f"create it with `openclaw-memory init --workspace {quote(str(root))}`"
                ) from error
            mode = 0  # a symlink to nothing
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise WorkspaceError(
                f"workspace {root} cannot be reached ({getattr(error, 'strerror', None) or error}): "
                "check the path, and its rights"
            ) from error
        if not stat.S_ISDIR(mode):
            raise WorkspaceError(f"workspace {root} is not a folder: name that of your notes, such as {root.parent}")
        if not os.access(root, os.R_OK | os.X_OK):
            raise WorkspaceError(f"workspace {root} cannot be read: `chmod u+rx {quote(str(root))}`, or name your own")
        return cls(WorkspaceFiles(root, settings or FilesConfig()), sessions or SessionsConfig())

    @property
    def root(self) -> Path:
        """The folder."""
        return self.files.root

    @property
    def policies(self) -> Policies:
        """The policies for its files."""
        return self.files.policies

    @property
    def zone(self) -> datetime.tzinfo | None:
        """The zone of days; None for the machine's, which may change with the season.

        Raises:
            ConfigError: The time zone of the settings is unknown.
        """
        return self.get_time().tzinfo if self.sessions.timezone else None

    def get_time(self, now: datetime.datetime | None = None) -> datetime.datetime:
        """Return a moment in the zone of days.

        Args:
            now: The moment; this one where None.

        Raises:
            ConfigError: The time zone of the settings is unknown.
        """
        return get_local_now(self.sessions.timezone, now)

    @property
    def can_be_written(self) -> bool:
        """True if this process may add notes."""
        notes = self.root / self.files.journal.folder
        return os.access(notes if notes.exists() else self.root, os.W_OK)

    def locate(self, path: str) -> Place:
        """Return the place of a memory file or transcript. See `WorkspaceFiles.locate`.

        Args:
            path: A path relative to the workspace, or absolute.

        Raises:
            PathNotAllowedError, NotFoundError: It names none.
        """
        return self.files.locate(path, self.sessions)

    def resolve(self, path: str) -> str:
        """Return the path of a memory file, also from the name of a note: see `find_note`.

        Args:
            path: The path, or the name.

        Raises:
            PathNotAllowedError, NotFoundError: It names none.
        """
        try:
            return self.locate(path).path
        except PathNotAllowedError:
            if not isinstance(path, str) or (note := self.find_note(path)) is None:
                raise
            return note

    def find_note(self, name: str) -> str | None:
        """Return the path of the note with a name; None without one. Of several, it is the nearest to the top.

        Args:
            name: The name of its file without the ending, its title, an alias, or a wikilink with one of them.

        Raises:
            WorkspaceError: The folder cannot be listed.
        """
        scan = self.scan()
        if not self._names or self._names[0][0] is not scan:
            self._names[:] = [(scan, *self._list_names(scan))]
        _, names, list_titles = self._names[0]
        keys = map(fold_name, split_link(name))
        return next(filter(None, (names.get(key) or list_titles().get(key) for key in keys)), None)

    def _list_names(self, scan: Scan) -> tuple[Mapping[str, str], Callable[[], Mapping[str, str]]]:
        """Return the notes by the names of their files, and by their titles, which are read when needed."""
        notes = (file.path for file in scan.files if file.source == "memory" and not is_record(file.path))
        paths = [path for path in notes if path not in {*ROOT_NOTES, LOWER_CASE_NOTE}]  # which have no other names
        paths.sort(key=lambda path: (path.count("/"), path))
        names: dict[str, str] = {}
        for path in paths:
            whole = fold_name(os.path.splitext(get_plain_name(path))[0])
            name = whole.rpartition("/")[2]
            for own in (whole, name, name.replace("___", "/")):  # as Logseq writes a/b
                names.setdefault(own, path)

        @cache
        def list_titles() -> dict[str, str]:
            titles: dict[str, str] = {}
            for path in paths:
                with suppress(WorkspaceError):
                    for name in list_names(self.policies.mask(self.read(path))):
                        titles.setdefault(fold_name(name), path)
            return titles

        return names, list_titles

    def suggest_setup(self, files: int) -> str:
        """Suggest in a sentence where to put files, if there are few memory files; "" if nothing is needed.

        It looks at a bounded number of names.

        Args:
            files: How many memory files the workspace has.

        Raises:
            ConfigError: A glob of the rules is invalid.
        """
        return scan.suggest_setup(self.files, files)

    def refresh(self) -> None:
        """Bring the folder up to date, if it is a copy of notes in a store.

        Raises:
            StoreError: The store cannot be reached.
        """
        if self.files.shared is not None:
            self.files.shared.refresh()

    def scan(self) -> Scan:
        """List the memory files that are on disk now, and the files that were skipped and why.

        Raises:
            WorkspaceError: The folder cannot be listed.
            ConfigError: A glob of the rules is invalid.
        """
        self.refresh()
        listing = scan.list_files(self.files, self.sessions)
        for earlier, result in self._latest[:]:
            # With sealed files, the scan depends on the key of the index too.
            if earlier == listing and result.key_ids in ((), (self.files.codec.key_id,)):
                return result
        result = scan.scan_listing(self.files, listing)
        self._latest[:] = [(listing, result)]
        return result

    def list_notes_at(self, paths: Iterable[str]) -> list[MemoryFile] | None:
        """List the notes at these paths below `memory/` as `scan` would; None where only that can say.

        Args:
            paths: The paths; those of missing files are left out.

        Raises:
            ConfigError: A glob of the rules is invalid.
        """
        return scan.list_notes_at(self.files, paths)

    def read(self, path: str) -> str:
        """Return the whole text of a memory file.

        A transcript is returned as its spoken words, each turn on the line that it has in the file.

        Args:
            path: A path relative to the workspace, or absolute.

        Raises:
            PathNotAllowedError: The path names no memory file, passes a symlink, or is not a regular file.
            NotFoundError: There is no such file.
            UndecodableError: The file is not text.
            SealedFileError: The file is sealed, and cannot be opened.
            WorkspaceError: The file cannot be read.
        """
        place = self.locate(path)
        if is_transcript(place.path):
            return "".join(part.text for part in self.read_parts(path))
        return encodings.decode(self.files.read(place)[0], path)

    def read_indexed(self, path: str) -> str:
        """Read a memory file as it is indexed, line for line: without secrets and text that policies leave out.

        Args:
            path: As for `read`.

        Raises:
            PathNotAllowedError, NotFoundError, UndecodableError, WorkspaceError: As `read`.
        """
        text = self.read(path)
        if is_transcript(path):
            return text
        above = measure_front_matter(text)  # fields of a document or record, some of which nobody is shown
        return "\n" * text.count("\n", 0, above) + mask_note(text, self.policies)[above:]

    def read_parts(self, path: str, mark: str | None = None) -> Iterator[Part]:
        """Yield a transcript part by part, in bounded memory, from the part that was open at `mark`.

        The first part has `first_line` 1 where reading starts at the beginning: without a mark, or where the file is
        not the one that the mark was made for. Nothing is yielded where nothing was added since the mark.

        Args:
            path: The path of a transcript.
            mark: Where an earlier reading ended; None reads everything.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError: As `read`.
            UndecodableError: It is a JSONL file in another program's format.
        """
        from openclaw_memory.workspace.transcripts import explain_foreign, read_parts

        with self._open_transcript(path) as file:
            if reason := explain_foreign(file):
                raise UndecodableError(f"{path} {reason}")
            yield from read_parts(file, mark, policies=self.policies)

    def render_lines(self, path: str, start: int, end: int) -> list[str]:
        """Return lines `start` to `end` of a transcript as they are indexed; "" for a line without spoken words.

        Args:
            path: The path of a transcript.
            start: The first line, 1-based.
            end: The last line, included.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError: As `read`.
        """
        from openclaw_memory.workspace.transcripts import render_lines

        with self._open_transcript(path) as file:
            return render_lines(file, start, end, self.policies)

    def count_added_lines(self, path: str, mark: str, within: int) -> int | None:
        """Count the lines that were added to a transcript since `mark`; None if that is unknown or the file shrank.

        Args:
            path: The path of a transcript.
            mark: Where an earlier reading ended.
            within: How many bytes after the mark are looked at.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError: As `read`.
        """
        from openclaw_memory.workspace.transcripts import count_added_lines

        with self._open_transcript(path) as file:
            return count_added_lines(file, mark, within)

    @contextmanager
    def _open_transcript(self, path: str) -> Iterator[BinaryIO]:
        place = self.locate(path)
        if not is_transcript(place.path):
            raise PathNotAllowedError(f"{place.path} is not a transcript: read it with `read`")
        with self.files.open(place) as (file, _):
            yield file

    def read_excerpt(self, path: str, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Return whole lines of a memory file.

        Args:
            path: A path, the name of a note, or a citation such as `MEMORY.md#L3-L9` in place of a path and numbers.
                Lines that a citation leaves out, as `MEMORY.md#L3-L5,L9` does, are returned too.
            start: The first line, 1-based; 1 by default.
            lines: How many lines; by default 120 within 12,000 characters.

        Raises:
            InvalidInputError: `start` or `lines` is less than 1, or a citation ends before it begins.
            NotFoundError: There is no such file, or `start` is beyond its end.
            PathNotAllowedError, UndecodableError, WorkspaceError: As `read`.
        """
        if isinstance(path, str) and (corrected := suggest_order(path)):
            raise InvalidInputError(f"{path!r} ends before it begins: write {corrected}")
        if start is None and lines is None and isinstance(path, str) and (citation := parse_citation(path)):
            path, spans = citation
            start, lines = spans[0][0], spans[-1][1] - spans[0][0] + 1
        name = self.resolve(path)
        start = 1 if start is None else start
        lines = excerpts.DEFAULT_LINES if lines is None else lines
        if is_transcript(name):
            from openclaw_memory.workspace.transcripts import read_excerpt

            with self._open_transcript(name) as file:
                excerpt, count = read_excerpt(file, name, start, lines, self.policies)
        else:
            text = self.read(name)
            excerpt = excerpts.show_excerpt(name, text, start, lines, self.policies)
            count = len(excerpts.split_lines(text))
        if excerpt.end_line < start and start > 1:
            raise NotFoundError(f"{name} has {count} lines, none numbered {start}: start at {max(count, 1)} or before")
        return excerpt

    def open_log(self, session_id: str, *, parent_session: str | None = None) -> SessionLog:
        """Return the writable transcript of a session; its file is created with the first entry.

        Args:
            session_id: The id of the session.
            parent_session: The id of the session that this one continues.

        Raises:
            InvalidInputError: The id is empty.
            ConfigError: The time zone of the settings is unknown.
        """
        from openclaw_memory.workspace.paths import locate_transcripts
        from openclaw_memory.workspace.session_log import SessionLog, make_log_name

        make_log_name(session_id)
        folder = locate_transcripts(self.root, self.sessions)
        return SessionLog(self.files, folder, session_id, parent_session, self.zone, events=self.events)


def _suggest_path(root: Path) -> str:
    """Return how to correct the path of a missing folder: the name next to it that is spelled most like it."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(root.parent) if entry.is_dir()]
        if close := suggest(root.name, names):
            return f"correct its path ({close.rstrip()})"
    return "correct its path"
