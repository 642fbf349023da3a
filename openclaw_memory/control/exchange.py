"""Export everything that is remembered to one file of JSON lines, and import such a file, overwriting nothing."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from openclaw_memory._links import new_file
from openclaw_memory.control.contents import contents, place_of, with_transcripts
from openclaw_memory.control.inspection import zone_of
from openclaw_memory.conversation.snapshots import file_name, is_snapshot, parsed, saving
from openclaw_memory.errors import InvalidInputError, NotFoundError, OpenClawMemoryError, WriteError, remedy
from openclaw_memory.text.policies import about_in, encryption_of
from openclaw_memory.types import Skipped
from openclaw_memory.types.control import ExportReport, ImportReport
from openclaw_memory.types.files import ENCRYPTED, unencrypted
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import locked, make_folders, replace_file, writing
from openclaw_memory.workspace.paths import (
    TRANSCRIPTS,
    Place,
    check_name,
    is_of_the_agent,
    is_record,
    is_transcript,
    shown_path,
)
from openclaw_memory.workspace.safe_read import as_written, is_utf16, opened_file
from openclaw_memory.workspace.session_log import log_name
from openclaw_memory.workspace.transcript_records import parse

FORMAT = "openclaw-memory-export"
VERSION = 1


class _File(NamedTuple):
    path: str
    data: bytes


def export(workspace: Workspace, file: str | os.PathLike[str]) -> ExportReport:
    """Write everything to one file; see `Memory.export`."""
    every, skipped = contents(workspace, zone_of(workspace))
    there = [one for one in every if one.item.problem is None]
    skipped += [Skipped(one.item.path, one.item.problem) for one in every if one.item.problem is not None]
    target = Path(file)
    unfinished = target.with_name(f".{target.name}.part")
    try:
        with open(new_file(unfinished), "w", encoding="utf-8", newline="\n") as stream:
            stream.write(json.dumps({"format": FORMAT, "version": VERSION}) + "\n")
            for content in there:
                is_talk = content.item.kind == "transcript"
                data = b"".join(line.data for line in content.turns()) if is_talk else content.data
                said = {"path": content.item.path, "kind": content.item.kind}
                try:
                    said["text"] = data.decode()
                except UnicodeDecodeError:  # UTF-16, or a transcript that was damaged
                    said["base64"] = base64.b64encode(data).decode("ascii")
                stream.write(json.dumps(said) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise WriteError(
            f"{target} could not be written ({error.strerror}): {remedy(error)}, and export again"
        ) from error
    return ExportReport(tuple(content.item.path for content in there), tuple(skipped))


def import_(workspace: Workspace, file: str | os.PathLike[str]) -> ImportReport:
    """Add what is missing here from a file that `export` has written; see `Memory.import_`."""
    for _ in _files(file):  # all of it is checked before anything is written
        pass
    every = with_transcripts(workspace)
    added, unchanged, refused = list[str](), list[str](), list[Skipped]()
    for one in _files(file):
        try:
            if not is_snapshot(one.path):  # of which the session has a name
                check_name(every.rules, one.path)
            place = _kept_at(every, one)
            (added if _added(every, place, one.data) else unchanged).append(place.path)
        except (OpenClawMemoryError, OSError) as error:
            refused.append(Skipped(shown_path(every.rules, one.path), str(error)))
    return ImportReport(tuple(added), tuple(unchanged), tuple(refused))


def _kept_at(workspace: Workspace, file: _File) -> Place:
    """Return where a file belongs: under its name, or under that of an encrypted one, as if it were written here."""
    place, encryption = place_of(workspace, file.path), encryption_of(workspace.rules)
    if encryption is None or encryption.key_id is None or place.path.endswith(ENCRYPTED):
        return place
    if os.path.lexists(Path(place.base, *place.parts)):
        return place
    if is_transcript(place.path):
        is_wanted = encryption.transcripts
    elif is_snapshot(place.path):
        is_wanted = encryption.snapshots
    else:
        about = about_in(file.data.decode("utf-8", "replace")) if is_record(place.path) else None
        is_wanted = about is not None and about.sensitivity == "high"
    return place_of(workspace, f"{file.path}{ENCRYPTED}") if is_wanted else place


def _added(workspace: Workspace, place: Place, data: bytes) -> bool:
    """Write a file that is missing; return False where it is there already.

    Raises:
        WriteError: Another file is there, or it must not be written.
        PolicyError: A rule says never to store it.
    """
    is_talk = is_transcript(place.path)
    if not is_talk and (place.base != str(workspace.root) or is_of_the_agent(workspace.root, place.path)):
        raise WriteError(f"{place.path} is only read, and was not written: copy it by hand")
    if not is_talk and len(data) > workspace.rules.max_bytes:
        raise WriteError(f"{place.path} has more than files.max_bytes ({workspace.rules.max_bytes:,}): raise it")
    _check_policies(workspace, data, is_talk=is_talk)
    if is_end := is_snapshot(place.path):
        _check_snapshot(workspace, place.path, data)
    make_folders(Path(place.base), place.parts[:-1], place.path)
    folder = Path(place.base, *place.parts[:-1])
    alone = saving(workspace.root, place.path) if is_end else writing(workspace.root, place.path, workspace.rules)
    with locked(folder / ".lock", place.path) if is_talk else alone:
        try:
            with opened_file(place, workspace.rules) as (there, _):
                if there.read() == data:
                    return False
            raise WriteError(f"{place.path} is there and says something else: it was left as it is")
        except NotFoundError:
            replace_file(place.base, place.parts, as_written(data, place, workspace.rules, is_there=False), None)
    return True


def _check_policies(workspace: Workspace, data: bytes, *, is_talk: bool) -> None:
    """Check that policies let a file be stored.

    Raises:
        PolicyError: A rule says never to.
    """
    if not (policies := workspace.policies):
        return
    text = data.decode("utf-16" if is_utf16(data) else "utf-8", "replace")
    policies.check(about_in(text), text)
    for line in data.split(b"\n") if is_talk else ():  # what JSON spells with escapes
        policies.check_value(parse(line))


def _check_snapshot(workspace: Workspace, path: str, data: bytes) -> None:
    """Check that a snapshot can be read again, and that policies let it be stored.

    Raises:
        UndecodableError: It holds no snapshot.
        WriteError: It is one of another session than its name says.
        PolicyError: A rule says never to store what it holds, or a session of its name.
    """
    said = parsed(data, path)
    if not unencrypted(path).endswith(f"-{file_name(said.session_id)}.json"):
        raise WriteError(f"{path} is not the name of a snapshot of session {said.session_id!r}: export again")
    workspace.policies.check_value(said.to_dict())
    check_name(workspace.rules, f"{TRANSCRIPTS}/{log_name(said.session_id)}")


def _files(file: str | os.PathLike[str]) -> Iterator[_File]:
    try:
        with open(file, encoding="utf-8") as stream:
            head = _object(stream.readline(), 1, file)
            if head.get("format") != FORMAT or head.get("version") != VERSION:
                raise InvalidInputError(
                    f"{file} is no export of version {VERSION}: `openclaw-memory export` writes one"
                )
            for number, line in enumerate(stream, 2):
                said = _object(line, number, file)
                path, text, packed = said.get("path"), said.get("text"), said.get("base64")
                if not isinstance(path, str) or not isinstance(packed if text is None else text, str):
                    raise InvalidInputError(f"line {number} of {file} has no path and text: export again")
                data = base64.b64decode(str(packed), validate=True) if text is None else str(text).encode()
                yield _File(path, data)
    except (UnicodeError, binascii.Error) as error:
        raise InvalidInputError(f"{file} is damaged ({error}): export again") from error
    except OSError as error:
        if isinstance(error, OpenClawMemoryError):
            raise
        raise NotFoundError(f"{file} cannot be read ({error.strerror}): name a file that was exported") from error


def _object(line: str, number: int, file: object) -> dict[str, object]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"line {number} of {file} is no JSON ({error}): export again") from error
    if not isinstance(said, dict):
        raise InvalidInputError(f"line {number} of {file} is no object: export again")
    return said
