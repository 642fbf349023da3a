"""Locate, read and write the files of a workspace: the only way to them.

No caller knows whether a file is sealed. A file that is sealed first gets its sealed content, in one step, and then its
other name; one that is unsealed first its name. At every moment there is one file, which holds all of the text. A
killed process may leave the name of a plain file and the content of a sealed one, which is read as such.
"""

from __future__ import annotations

import datetime
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from openclaw_memory.config.path_rules import is_skipped_folder
from openclaw_memory.config.sections import FilesConfig, JournalConfig, SessionsConfig
from openclaw_memory.errors import NotFoundError, PathNotAllowedError, WriteError
from openclaw_memory.text.policies import MASK, NONE, Policies
from openclaw_memory.types.codec import IS_SEALED, MAGIC, PLAIN_TEXT, SUFFIX, FileCodec, check_key, is_sealed
from openclaw_memory.types.files import SharedFiles
from openclaw_memory.workspace import atomic, paths
from openclaw_memory.workspace.paths import Place


class WorkspaceFiles(Struct, frozen=True):
    """The files of a workspace.

    Attributes:
        root: The folder.
        settings: Which files count, and how large they may be.
        journal: Where the notes of days are.
        policies: The rules for storing and showing them.
        codec: Seals and unseals them.
        shared: The notes that the folder is a copy of; None where its files are the notes.
    """

    root: Path
    settings: FilesConfig = field(default_factory=FilesConfig)
    policies: Policies = NONE
    codec: FileCodec = PLAIN_TEXT
    shared: SharedFiles | None = None
    journal: JournalConfig = field(default_factory=JournalConfig)

    # --- names ----------------------------------------------------------------------------------------------------

    def locate(self, path: str, sessions: SessionsConfig | None = None) -> Place:
        """Return the place of a memory file, from a path as a person or an agent writes it. It need not exist.

        Relative to the workspace, or absolute; blanks around it, `./`, `//` and `..` are resolved lexically first, so
        that `memory/../MEMORY.md` is `MEMORY.md`. `~` is not expanded. A transcript is `sessions/<name>.jsonl`,
        wherever its folder lies; without `sessions` there are none.

        Raises:
            PathNotAllowedError: The path does not name a memory file.
            NotFoundError: It would name one if its backslashes were slashes.
        """
        if not isinstance(path, str):
            raise PathNotAllowedError(f"the path must be a string such as 'MEMORY.md', not {path!r}")
        if not path.strip():
            raise PathNotAllowedError("the path is empty: name a memory file, such as 'memory/2026-11-01.md'")
        relative = paths.resolve_path(self.root, path.strip())
        place = paths.locate_transcript(self.root, sessions, relative) or self.allow(relative)
        if place is None:
            raise self._explain_not_allowed(path, relative, sessions)
        if (rule := self.find_hiding_rule(place.path)) is not None:
            raise PathNotAllowedError(
                f"the rule {rule!r} of policies leaves this name out: rename it, or change the rule"
            )
        if not paths.is_matching(self.settings, place.path):
            raise PathNotAllowedError(f"{path!r} is left out by files.include or files.exclude: change them to read it")
        return place

    def _explain_not_allowed(
        self, path: str, relative: str, sessions: SessionsConfig | None
    ) -> PathNotAllowedError | NotFoundError:
        with_slashes = posixpath.normpath(relative.replace("\\", "/"))
        if "\\" in relative and self.allow(with_slashes) is not None:
            return NotFoundError(f"{path!r} names no file: write it with forward slashes, {with_slashes!r}")
        if paths.is_of_the_agent(self.root, relative):
            return PathNotAllowedError(f"{path!r} is the agent's own file: to read it, name it in files.extra_paths")
        also = f", {paths.TRANSCRIPTS}/*{paths.TRANSCRIPT_SUFFIX}" if sessions and sessions.index else ""
        return PathNotAllowedError(
            f"{path!r} is not a memory file: allowed are MEMORY.md (or memory.md where it is missing), USER.md, "
            f"memory/**/*.md (or another of files.endings){also} and what files.extra_paths names"
        )

    def allow(self, relative: str) -> Place | None:
        """Return the place of a note by the letters of its path, whatever globs say; None where it names none."""
        if not relative.endswith(paths.list_note_endings(self.settings)) or paths.explain_wrong_name(relative):
            return None
        place = self.make_place(relative)
        is_note = place.parts[0] == paths.NOTES_FOLDER and paths.NEVER_ENTERED.isdisjoint(place.parts)
        is_lower = relative == paths.LOWER_CASE_NOTE and paths.ROOT_NOTES[0] not in paths.list_names(self.root)
        if is_note or is_lower or relative.removesuffix(SUFFIX) in paths.ROOT_NOTES:
            return place
        for extra in self.locate_extras():
            below = paths.split_below(relative, extra.path)
            if below is None or paths.is_around_workspace(extra) or any(map(is_skipped_folder, below[:-1])):
                continue
            if extra.path == "." and paths.is_set_apart(self.root, relative):
                continue
            if paths.NEVER_ENTERED.isdisjoint(extra.parts):
                return Place(relative, extra.base, (*extra.parts, *below))
        return None

    def locate_extras(self) -> Iterator[Place]:
        """Yield the places outside of `memory/` that the settings name: extra paths, and the folder of the journal.

        `~` is expanded, relative ones are taken from the root.
        """
        is_apart = self.lock_parts != (paths.NOTES_FOLDER,) and (self.root / self.journal.folder).is_dir()
        extras = (*self.settings.extra_paths, *([self.journal.folder or "."] if is_apart else []))
        return (paths.locate_configured(self.root, path.strip()) for path in extras if path.strip())

    def make_place(self, path: str) -> Place:
        """Return the place of a path below the workspace, whatever it names."""
        return Place(path, str(self.root), tuple(path.split("/")))

    def find(self, path: str) -> str:
        """Return the path of a file that a program names: that of the sealed one if it is there and can be read.

        A note that is not there yet is sealed where the codec seals new ones.
        """
        sealed, is_there = path.removesuffix(SUFFIX) + SUFFIX, os.path.lexists(self.root / path)
        if os.path.lexists(self.root / sealed):
            return path if is_there and self.codec.key_id is None else sealed
        return path if is_there or not self.codec.is_sealing("note") else sealed

    def find_day(self, day: datetime.date) -> str:
        """Return the path of the note of a day, sealed or not, as `find` does."""
        return self.find(self.journal.make_path(day))

    def find_long_term(self) -> str:
        """Return the file of `MEMORY.md`, as `find` does; `memory.md` where only that exists."""
        usual, names = self.find(paths.ROOT_NOTES[0]), paths.list_names(self.root)
        return paths.LOWER_CASE_NOTE if usual not in names and paths.LOWER_CASE_NOTE in names else usual

    def is_included(self, path: str) -> bool:
        """Return whether the globs and the policies let a path count.

        Raises:
            ConfigError: A glob cannot be read.
        """
        return paths.is_matching(self.settings, path) and self.find_hiding_rule(path) is None

    def find_hiding_rule(self, path: str) -> str | None:
        """Return the name of the policy that hides a file of this name, or None."""
        return self.policies.find_name_rule(paths.strip_generated(path)) if self.policies else None

    def check_name(self, path: str) -> None:
        """Check that policies let a file of this name be written.

        Raises:
            PolicyError: A rule says never to store it.
        """
        if self.policies:
            self.policies.check_name(paths.strip_generated(path))

    def mask_path(self, path: str) -> str:
        """Return a path with `***` for the part that policies hide; it then names no file."""
        if self.find_hiding_rule(path) is None:
            return path
        above, name, ending = paths.split_chosen(path)
        masked = f"{above}{self.policies.mask_name(name)}{ending}"
        return masked if self.find_hiding_rule(masked) is None else f"{above}{MASK}{ending}"

    def explain_withheld(self, path: str, text: str) -> str | None:
        """Return why the file of a record is shown nowhere, as no signature vouches for it; None for other files."""
        if not paths.is_record(path):
            return None
        from openclaw_memory.security.keys import explain_refusal
        from openclaw_memory.text.front_matter import parse

        matter = parse(text)
        return None if matter is None else explain_refusal(path, matter.fields, matter.text)

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, place: Place) -> tuple[bytes, os.stat_result]:
        """Return the content of a file, unsealed in memory alone, and its stat before it was read.

        The open file is checked, not its name.

        Raises:
            PathNotAllowedError: The path passes a symlink, or is not a regular file of allowed size.
            NotFoundError: There is no such file.
            WorkspaceError: It cannot be read.
            SealedFileError: It is sealed, and the index is plain, the key is not here, or the file is damaged.
        """
        data, info = self.read_raw(place)
        return self.unseal(data, place.path), info

    def unseal(self, data: bytes, path: str) -> bytes:
        """Return the content of a file, unsealed if its name or its beginning is that of a sealed one.

        A file that was being sealed, or unsealed, when the process was killed may have the other name.

        Raises:
            SealedFileError: The index is plain, the key is not here, or the file is damaged.
        """
        is_plain = not (path.endswith(SUFFIX) or is_sealed(data))
        return data if is_plain else check_key(self.codec, path).unseal(data, path)

    def read_raw(self, place: Place) -> tuple[bytes, os.stat_result]:
        """Return the bytes of a file, sealed or not, and its stat before it was read.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError: As `read`.
        """
        most = self.settings.max_bytes
        with open_place(place, self.settings) as descriptor:
            info = os.fstat(descriptor)
            data = atomic.read_whole(descriptor, most + 1)
        if len(data) > most:
            raise PathNotAllowedError(f"{place.path} grew beyond files.max_bytes ({most:,}) while it was read")
        return data, info

    @contextmanager
    def open(self, place: Place) -> Iterator[tuple[BinaryIO, os.stat_result]]:
        """Yield a file to read and its stat; a sealed one is unsealed in memory.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError, SealedFileError: As `read`.
        """
        with open_place(place, self.settings) as descriptor, open(descriptor, "rb", closefd=False) as file:
            info = os.fstat(descriptor)
            is_plain = not (place.path.endswith(SUFFIX) or is_sealed(file.read(len(MAGIC))))
            file.seek(0)
            if is_plain:
                yield file, info
                return
            most = paths.MAX_SEALED_TRANSCRIPT_BYTES
            if len(data := file.read(most + 1)) > most:
                raise PathNotAllowedError(f"{place.path} {IS_SEALED} and has more than {most:,} bytes: make it plain")
            yield BytesIO(self.unseal(data, place.path)), info

    def is_sealed(self, place: Place) -> bool:
        """Return whether the content of a file is sealed.

        Raises:
            PathNotAllowedError, NotFoundError, WorkspaceError: As `read`.
        """
        with open_place(place, self.settings) as descriptor:
            return is_sealed(os.read(descriptor, len(MAGIC)))

    @property
    def lock_parts(self) -> tuple[str, ...]:
        """The way to the folder of locks: `memory`, or `.memory` where the notes of days are elsewhere."""
        return (paths.NOTES_FOLDER if self.journal.pattern.startswith(f"{paths.NOTES_FOLDER}/") else paths.OWN_FOLDER,)

    # --- writing --------------------------------------------------------------------------------------------------

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """Hold the one lock under which notes are written, and that of the shared files.

        Raises:
            PathNotAllowedError, WriteError: As `lock_file`.
            StoreError: As `SharedFiles.lock`.
        """
        changing = nullcontext() if self.shared is None else self.shared.lock()
        with atomic.lock_folder(self.root, self.lock_parts, path), changing:
            yield

    def append(self, place: Place, extend: Callable[[BinaryIO, int], bytes], *, atomically: bool = True) -> None:
        """Append to a file, which is made if it is missing. Call it with the lock of its folder.

        A killed process leaves all of it or nothing, but for the instant between two pages of one write(2).

        Args:
            place: The file.
            extend: Makes the bytes to append of the content and its size.
            atomically: Put a long text there with a file that takes the place of the old one; else it is one write(2).

        Raises:
            PathNotAllowedError: It is not a regular file of allowed size.
            SealedFileError: It is sealed, and cannot be unsealed.
            WriteError: The disk took only a part. The file is as it was.
            OSError: It cannot be written. The file is as it was.
        """
        self._check_single(place)
        if not place.path.endswith(SUFFIX):
            with (
                atomic.open_to_append(place.base, place.parts) as descriptor,
                open(descriptor, "rb", closefd=False) as file,
            ):
                info = os.fstat(descriptor)
                if reason := paths.explain_left_out(info, self.settings, place.path):
                    raise PathNotAllowedError(f"{place.path} {reason}; nothing was written")
                if not is_sealed(file.read(len(MAGIC))):
                    file.seek(0)
                    data = extend(file, info.st_size)
                    if data and atomically:
                        atomic.append_whole(descriptor, place.base, place.parts, data)
                    elif data:
                        atomic.append_in_one_write(descriptor, data, info.st_size, place.path)
                    return
        before, expected = b"", None
        with suppress(NotFoundError), self.open(place) as (file, info):
            before, expected = file.read(), info
        if data := extend(BytesIO(before), len(before)):
            self.replace(place, before + data, expected)

    def replace(self, place: Place, data: bytes, expected: os.stat_result | None) -> None:
        """Put a file in the place of another; sealed if its name, or the existing file, is. Call it with the lock.

        Args:
            place: The file.
            data: The content.
            expected: The stat of the file that was read; None where there was none.

        Raises:
            SealedFileError: It is to be sealed, and the index is plain, or the key is not here.
            WriteError: It would be too large, or the file is no longer the one that was read.
            OSError: It cannot be written. The old file is as it was.
        """
        atomic.replace_file(place.base, place.parts, self.seal(data, place, expected), expected)

    def remove(self, place: Place, expected: os.stat_result) -> None:
        """Remove a file. Call it with the lock of its folder.

        Raises:
            WriteError: The file has changed.
            OSError: It cannot be removed.
        """
        with atomic.open_folder(place.base, place.parts[:-1]) as folder:
            folder.remove_all([(place.parts[-1], expected)])

    def seal(self, data: bytes, place: Place, info: os.stat_result | None) -> bytes:
        """Return the bytes to write for a file: sealed if its name, or the existing file, is.

        Args:
            data: The content.
            place: The file.
            info: The stat of the existing file; None if there is none.

        Raises:
            SealedFileError: It is to be sealed, and the index is plain, or the key is not here.
            WriteError: It would be too large, or is there twice, sealed and plain.
        """
        self._check_single(place)
        if place.path.endswith(SUFFIX) or (info is not None and self.is_sealed(place)):
            data = check_key(self.codec, place.path).seal(data, place.path)
        return self._check_size(data, place.path)

    def _check_single(self, place: Place) -> None:
        """Check that a file is not there twice, sealed and plain."""
        name = place.parts[-1]
        twin = name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else name + SUFFIX
        with suppress(FileNotFoundError), atomic.open_folder(place.base, place.parts[:-1]) as folder:
            folder.check_free(twin, name)

    def _check_size(self, data: bytes, path: str) -> bytes:
        most = paths.MAX_SEALED_TRANSCRIPT_BYTES if paths.is_transcript(path) else self.settings.max_bytes
        if len(data) > most:
            raise WriteError(
                f"{path} would have {len(data):,} bytes, more than files.max_bytes ({most:,}), and never be read "
                "again: part it, or raise files.max_bytes"
            )
        return data

    def reseal(self, place: Place, *, sealed: bool) -> Place:
        """Seal a file with the present key, or unseal it; return its new place. Call it with the lock of its folder.

        Raises:
            NotFoundError, PathNotAllowedError, WorkspaceError: It cannot be read.
            SealedFileError: The index is plain, the key is not here, or the file is damaged.
            WriteError: It would be too large, or there is a file with the other name.
            OSError: It cannot be written. It is as it was, under either name.
        """
        data, info = self.read_raw(place)
        target = paths.with_ending(place, sealed=sealed)
        name, new_name = place.parts[-1], target.parts[-1]
        is_current = is_sealed(data) == sealed and (
            not sealed or check_key(self.codec, place.path).is_current(data, place.path)
        )
        plain = data if is_current and sealed else self.unseal(data, place.path)
        with atomic.open_folder(place.base, place.parts[:-1]) as folder:
            if name != new_name:
                folder.check_free(new_name, name)
                if not sealed:
                    folder.rename(name, new_name)
            if not is_current:
                content = check_key(self.codec, target.path).seal(plain, target.path) if sealed else plain
                self._check_size(content, target.path)
                folder.replace_all([(name if sealed else new_name, content, info)])
            if name != new_name and sealed:
                folder.rename(name, new_name)
        return target


@contextmanager
def open_place(place: Place, settings: FilesConfig) -> Iterator[int]:
    """Yield a descriptor of the regular file of allowed size at a place; it is closed at the end.

    Raises:
        PathNotAllowedError, NotFoundError, WorkspaceError: As `WorkspaceFiles.read`.
    """
    try:
        descriptor = atomic.open_at(place.base, place.parts, os.O_RDONLY)
        try:
            if reason := paths.explain_left_out(os.fstat(descriptor), settings, place.path):
                raise PathNotAllowedError(f"{place.path} {reason}")
            yield descriptor
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        if os.path.lexists(f"{os.path.join(place.base, *place.parts)}{SUFFIX}"):
            # To write it under the plain name would put it in the open, next to the sealed one.
            raise NotFoundError(f"{place.path} {IS_SEALED}: its name is {place.path}{SUFFIX}") from error
        raise atomic.to_read_error(error, place.path) from error
    except OSError as error:
        raise atomic.to_read_error(error, place.path) from error
