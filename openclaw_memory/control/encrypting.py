"""Encrypt files of a memory one by one, decrypt them, and give all of them the present key of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from openclaw_memory.config import FilesConfig
from openclaw_memory.control.contents import place_of, with_transcripts
from openclaw_memory.conversation import snapshots
from openclaw_memory.errors import OpenClawMemoryError, WriteError
from openclaw_memory.text.policies import encryption_of
from openclaw_memory.types import Skipped
from openclaw_memory.types.files import ENCRYPTED
from openclaw_memory.types.records import Record
from openclaw_memory.workspace import Workspace, scan
from openclaw_memory.workspace.atomic import locked, refused, writing
from openclaw_memory.workspace.encrypted import decrypt_at, encrypt_again, encrypt_at
from openclaw_memory.workspace.paths import Place, is_of_the_agent, is_transcript
from openclaw_memory.workspace.safe_read import holds_encrypted, read_as_it_is


class Moved(NamedTuple):
    """A file that was encrypted or decrypted: its path before and after."""

    before: str
    after: str


def encrypt_files(workspace: Workspace, paths: Iterable[str]) -> list[Moved]:
    """Encrypt files with the key of the index, each in steps that leave one whole file wherever they are cut short.

    Args:
        workspace: The files, as a memory with an encrypted index has them.
        paths: Notes, records, documents, transcripts and snapshots. Those that are encrypted stay as they are.

    Raises:
        NotFoundError, PathNotAllowedError, WorkspaceError: One cannot be read.
        EncryptionError: The index is plain, or the key is not here.
        WriteError: One cannot be written. Those before it are encrypted.
    """
    return [_moved(workspace, path, encrypt_at) for path in paths]


def decrypt_files(workspace: Workspace, paths: Iterable[str]) -> list[Moved]:
    """Decrypt files, as `encrypt_files` encrypts them.

    Args:
        workspace: The files, as a memory with an encrypted index has them.
        paths: Encrypted files. Those that are not stay as they are.

    Raises:
        NotFoundError, PathNotAllowedError, WorkspaceError: One cannot be read.
        UndecryptableError: The index is plain, a key is not here, or a file is damaged.
        WriteError: One cannot be written. Those before it are decrypted.
    """
    return [_moved(workspace, path, decrypt_at) for path in paths]


def encrypted_files(workspace: Workspace) -> list[str]:
    """Return the paths of all encrypted files, whether they can be decrypted or not.

    Args:
        workspace: The files.
    """
    every = with_transcripts(workspace)
    found = scan.scan(every.root, every.rules, every.sessions)
    paths = [file.path for file in found.files] + [file.path for file in found.skipped] + snapshots.paths(every.root)
    return sorted({path for path in paths if path.endswith(ENCRYPTED) or _holds_encrypted(every, path)})


def encrypt_again_all(workspace: Workspace) -> tuple[list[str], list[Skipped]]:
    """Encrypt each encrypted file with the present key of the index; return those that had another, and those left.

    Cut short, it is done again: each file has the old key or the new one.

    Args:
        workspace: The files, as a memory with an encrypted index has them.
    """
    changed, left = list[str](), list[Skipped]()
    every = with_transcripts(workspace)
    for path in encrypted_files(workspace):
        try:
            place = place_of(every, path)
            with _alone(every, place):
                changed += [path] if encrypt_again(place, every.rules) else []
        except (OpenClawMemoryError, OSError) as error:
            left.append(Skipped(path, str(error)))
    return changed, left


def of_another_key(workspace: Workspace) -> list[str]:
    """Return the encrypted files that the present key of the index does not open: of a change that was cut short.

    Args:
        workspace: The files, as a memory with an encrypted index has them.
    """
    every, encryption = with_transcripts(workspace), encryption_of(workspace.rules)
    found = list[str]()
    for path in encrypted_files(workspace):
        try:
            data, _ = read_as_it_is(place_of(every, path), every.rules)
            if encryption is not None and not encryption.is_sealed_now(data, path):
                found.append(path)
        except (OpenClawMemoryError, OSError):  # it is no better with any key
            continue
    return found


def wanted_by_settings(workspace: Workspace, records: Iterable[Record]) -> list[str]:
    """Return the plain files that are to be encrypted: records of high sensitivity, and what the settings say.

    Args:
        workspace: The files, as a memory with an encrypted index has them.
        records: All records.
    """
    every, encryption = with_transcripts(workspace), encryption_of(workspace.rules)
    wanted = [record.path for record in records if record.sensitivity == "high"]
    if encryption is not None and encryption.transcripts:
        listed = scan.scan(every.root, every.rules, every.sessions)
        wanted += [file.path for file in listed.files if is_transcript(file.path)]
    if encryption is not None and encryption.snapshots:
        wanted += snapshots.paths(every.root)
    return sorted(path for path in wanted if not path.endswith(ENCRYPTED))


def _moved(workspace: Workspace, path: str, change: Callable[[Place, FilesConfig], Place]) -> Moved:
    every = with_transcripts(workspace)
    place = place_of(every, path)
    if not is_transcript(place.path) and place.base != str(every.root):
        raise WriteError(f"{place.path} lies outside of the workspace, where files are only read: encrypt it there")
    if is_of_the_agent(every.root, place.path):
        raise WriteError(f"{place.path} is the agent's own, which reads it as it is: leave it plain")
    with _alone(every, place):
        try:
            return Moved(place.path, change(place, every.rules).path)
        except OSError as error:
            if isinstance(error, OpenClawMemoryError):
                raise
            raise refused(error, place.path) from error


def _alone(workspace: Workspace, place: Place) -> AbstractContextManager[None]:
    """Return the lock under which a file is written."""
    if snapshots.is_snapshot(place.path):
        return snapshots.saving(workspace.root, place.path)
    if is_transcript(place.path):
        return locked(Path(place.base, *place.parts[:-1], ".lock"), place.path)
    return writing(workspace.root, place.path, workspace.rules)


def _holds_encrypted(workspace: Workspace, path: str) -> bool:
    try:
        return holds_encrypted(place_of(workspace, path), workspace.rules)
    except (OpenClawMemoryError, OSError):
        return False
