"""Write transcripts: an append-only log of one session, in OpenClaw's JSON lines."""

from __future__ import annotations

import datetime
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from openclaw_memory.errors import InvalidInputError, NotFoundError, PolicyError
from openclaw_memory.events import Events, observed
from openclaw_memory.text.redaction import mask_value, redact_talk
from openclaw_memory.types.codec import SUFFIX
from openclaw_memory.workspace.atomic import lock_folder
from openclaw_memory.workspace.files import WorkspaceFiles, open_place
from openclaw_memory.workspace.paths import TRANSCRIPT_SUFFIX, TRANSCRIPTS, Place
from openclaw_memory.workspace.safe_folder import SafeFolder
from openclaw_memory.workspace.transcript_formats import get_message
from openclaw_memory.workspace.transcript_records import (
    MAX_LINE_BYTES,
    encode_message,
    fit_entry,
    get_message_id,
    get_text,
    is_spoken,
    make_entry,
    mask_message,
    parse,
    render_record,
)
from openclaw_memory.workspace.transcripts import explain_foreign, iterate_records, read_records

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")
_NAME_CHARS = 80
_TAIL_BYTES = 65_536
_HEAD_BYTES = 4096  # in which the header of a sealed transcript ends: it names one recipient, in 200 bytes
_LOG_FIELDS = frozenset({"id", "parentId", "timestamp"})  # of an entry: they hold no spoken words


def make_log_name(session_id: str) -> str:
    """Return the name of a session's file: its id, or if that cannot be one, its readable part and a digest.

    Raises:
        InvalidInputError: The id is empty.
    """
    if not isinstance(session_id, str) or not session_id.strip():
        raise InvalidInputError(f"a session needs an id of at least one character, not {session_id!r}")
    safe = _UNSAFE.sub("-", session_id).strip(".-")[:_NAME_CHARS]
    if safe != session_id:
        safe = f"{safe}-{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}".lstrip("-")
    return f"{safe}{TRANSCRIPT_SUFFIX}"


@dataclass(slots=True)
class SessionLog:
    """The transcript of one session: entries are added, never changed. Safe to use from several threads and processes.

    `folder` is where transcripts are stored. The file is made with the first entry, below a header that names the
    session, `cwd`, and `parent_session` if given. Timestamps are in `zone`, None for the machine's. Entries are written
    as given: secrets are masked when a transcript is indexed or shown.
    """

    files: WorkspaceFiles
    folder: Place
    session_id: str
    parent_session: str | None = None
    zone: datetime.tzinfo | None = None
    events: Events = field(default_factory=Events, kw_only=True, repr=False, compare=False)

    fit_entry = staticmethod(fit_entry)

    @property
    def path(self) -> str:
        """The path of the transcript for searches and excerpts."""
        return self._locate().path

    @property
    def size(self) -> int:
        """The size of the transcript in bytes, of a sealed one unsealed; 0 if it does not exist."""
        place = self._locate()
        file = os.path.join(place.base, *place.parts)
        try:
            size = os.stat(file).st_size
            if not place.path.endswith(SUFFIX):
                return size
            with open_place(place, self.files.settings) as descriptor:
                return self.files.codec.measure(os.read(descriptor, _HEAD_BYTES), size)
        except OSError:
            return 0

    def append(self, role: str, content: str | list[Any], **extra: Any) -> str:
        """Add a message and return the id of its entry once it is on disk.

        Args:
            role: `user`, `assistant` or another role of OpenClaw's.
            content: A text or a list of blocks such as `{"type": "text", "text": …}`.
            **extra: More fields of the message.

        Raises:
            InvalidInputError, PathNotAllowedError, WriteError: As `append_entry`.
        """
        return self.append_entry("message", message={"role": role, "content": content, **extra})

    def append_entry(self, kind: str, **fields: Any) -> str:
        """Add an entry of any type and return its id once it is on disk.

        It gets an `id`, the `parentId` of the entry before it and a `timestamp`, unless `fields` have them: with a
        `parentId` of its own it begins a branch.

        Args:
            kind: The type, such as `compaction` or `custom_message`.
            **fields: The fields of the entry, as JSON.

        Raises:
            InvalidInputError: The fields are not JSON, or too long to be read again.
            PathNotAllowedError: A symlink, or something that is not a file or folder, is in the way.
            WriteError: It could not be written. The transcript is unchanged.
        """
        return self.append_entries([{"type": kind, **fields}])[0]

    @observed("write transcript", lambda ids, log, *_, **__: [(log.path, "")] if ids else [], writes=True)
    def append_entries(self, entries: Sequence[Mapping[str, Any]], *, once: bool = False) -> list[str]:
        """Add entries in one write, and return their ids once they are on disk.

        See `append_entry` for the fields that each gets; the first follows the last entry of the log, each other the
        one before it. A process that is killed meanwhile may leave the first entries and half a line.

        Args:
            entries: The entries, each with its `type`.
            once: Leave out those whose id is in the log already, also if another process adds it at the same time. The
                whole log is read for it.

        Raises:
            InvalidInputError: An entry has no type, or as `append_entry`. None of them was written.
            PolicyError: A rule says never to store a text in them. None of them was written.
            PathNotAllowedError, WriteError: As `append_entry`. None of them was written.
        """
        if not entries:
            return []
        for session in filter(None, (self.session_id, self.parent_session)):  # the header names both
            self.files.check_name(f"{TRANSCRIPTS}/{make_log_name(session)}")
        for entry in entries:
            self.files.policies.check_value({name: entry[name] for name in entry.keys() - _LOG_FIELDS})
        place = self._locate()
        with lock_folder(Path(place.base), self.folder.parts, place.path):
            place = self._locate()  # it may have been sealed, or begun, meanwhile
            ids: list[str] = []

            def extend(file: BinaryIO, size: int) -> bytes:
                lines, new = self._make_lines(entries, file, size, once=once)
                ids.extend(new)
                return b"".join(lines) if new else b""

            self.files.append(place, extend, atomically=False)
            return ids

    def read_entries(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """Yield every readable entry, the header first; nothing if nothing was written yet.

        Args:
            start: The byte to begin at, such as an earlier `size`.

        Raises:
            PathNotAllowedError, WorkspaceError: The file is a symlink or not an ordinary file, or cannot be read.
        """
        try:
            with self.files.open(self._locate()) as (file, _):
                yield from read_records(file, start)
        except NotFoundError:
            return

    def read_messages(self, leaf: str | None = None) -> list[Mapping[str, Any]]:
        """Return the messages of a branch, the oldest first.

        Args:
            leaf: The id of the entry in which the branch ends, by default the last one.

        Raises:
            NotFoundError, PathNotAllowedError, WorkspaceError: As `branch`.
        """
        return [message for entry in self.read_branch(leaf) if (message := get_message(entry))]

    def read_branch(self, leaf: str | None = None) -> list[dict[str, Any]]:
        """Return the entries of a branch, the oldest first.

        Args:
            leaf: The id of the entry in which the branch ends, by default the last one.

        Raises:
            NotFoundError: No entry has that id.
            PathNotAllowedError, WorkspaceError: As `entries`.
        """
        entries = [entry for entry in self.read_entries() if entry.get("type") != "session"]
        places = {entry["id"]: at for at, entry in enumerate(entries) if isinstance(entry.get("id"), str)}
        if leaf is not None and leaf not in places:
            raise NotFoundError(f"{self.path} has no entry {leaf!r}: name the id of one of its entries")
        at: int | None = places[leaf] if leaf is not None else len(entries) - 1
        branch: list[dict[str, Any]] = []
        while at is not None and at >= 0:
            entry = entries[at]
            branch.append(entry)
            # An entry without a parent follows the one before it; a parent always comes before its child.
            above = places.get(entry["parentId"]) if "parentId" in entry else at - 1
            at = above if above is not None and above < at else None
        return branch[::-1]

    def append_message(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add a message, and return it with the id of its entry once it is on disk.

        Args:
            message: The message to add.

        Raises:
            InvalidInputError, PathNotAllowedError, WriteError: As `append_entry`.
        """
        fields = {key: value for key, value in message.items() if key != "id"}
        return {**fields, "id": self.append_entry("message", message=fields)}

    def read_messages_since(self, start: int) -> list[Mapping[str, Any]]:
        """Return the messages from a byte on, with their ids.

        Args:
            start: The offset in bytes; if the log is shorter, all messages are returned.

        Raises:
            PathNotAllowedError, WorkspaceError: As `read_entries`.
        """
        entries = self.read_entries(start if start <= self.size else 0)
        return [{**message, "id": entry.get("id")} for entry in entries if (message := get_message(entry))]

    def write_messages(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Add messages in one write, and return them as written, with new ids.

        Args:
            messages: The messages, oldest first.

        Raises:
            PathNotAllowedError, WriteError: As `append_entry`. None of them was written.
        """
        entries = [fit_entry({"type": "message", "message": mask_message(message)})[0] for message in messages]
        ids = self.append_entries(entries)
        return [{**entry["message"], "id": entry_id} for entry, entry_id in zip(entries, ids, strict=True)]

    def keep_named(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Add, in one write, the messages with ids that the log lacks.

        Several processes may do so at the same time.

        Args:
            messages: Messages with ids, oldest first.

        Raises:
            PathNotAllowedError, PolicyError, WorkspaceError, WriteError: As `append_entries`. None was written.
        """
        by_id = {message_id: message for message in messages if (message_id := get_message_id(message))}
        if by_id:
            self.append_entries([fit_entry(make_entry(message))[0] for message in by_id.values()], once=True)

    def keep(self, messages: Iterable[Mapping[str, Any]]) -> tuple[int, list[str]]:
        """Add the messages that the log lacks.

        A message with an id is recognised by it, others by their content, as often as they are equal. One that no log
        can hold is shortened.

        Args:
            messages: The messages, oldest first.

        Returns:
            How many were added, and for each of those that are not there as a whole, the reason.

        Raises:
            InvalidInputError: Some are not objects, or are never to be stored. The others were added.
            PathNotAllowedError, WorkspaceError, WriteError: The log cannot be read or written; added messages stay.
        """
        messages = list(messages)
        own_ids = {get_message_id(message) for message in messages} - {None}
        ids, known_texts = set[str](), Counter[str]()
        for entry in self.read_entries():
            ids.add(str(entry.get("id")))
            if entry.get("id") not in own_ids and (message := get_message(entry)):
                known_texts[encode_message(mask_value(message, redact_talk))] += 1
        count, cuts, errors = 0, list[str](), list[Exception]()
        for message in messages:
            try:
                if not is_spoken(message) or get_message_id(message) in ids:
                    continue
                entry, reason = fit_entry(make_entry(message))
                cuts += [reason] if reason else []
                text = encode_message(entry["message"])
                if known_texts[text] > 0:
                    known_texts[text] -= 1
                    continue
                ids.update(self.append_entries([entry]))
                count += 1
            except (InvalidInputError, PolicyError, TypeError, ValueError, RecursionError) as error:
                errors.append(error)
        if errors:
            raise InvalidInputError(f"{len(errors)} of the messages could not be kept: {errors[0]}")
        return count, cuts

    def keep_transcript(self, file: str | os.PathLike[str], start: int = 0) -> int:
        """Add the words of the user and the assistant from the transcript of another program.

        They have the ids of their messages: those that the log has are not added again, wherever reading begins. Tool
        calls, their results, and messages that policies never let be stored are left out.

        Args:
            file: The transcript, such as Claude Code's. It is only read.
            start: The byte to begin at, as an earlier call returned it; if no line begins there, the beginning.

        Returns:
            The byte up to which the transcript was read.

        Raises:
            NotFoundError: There is no such file.
            PathNotAllowedError: It is a link, or not a file.
            InvalidInputError: It has no known format, or is in the folder of the log.
            WorkspaceError, WriteError: The file cannot be read, or as `SessionLog.append_entry`.
        """
        path = Path(file)
        if path.parent.resolve() == Path(self.folder.base, *self.folder.parts).resolve():
            raise InvalidInputError(f"{path} is in the folder of the log, where it is indexed as it is")
        with SafeFolder(path.parent).open(path.name) as descriptor, open(descriptor, "rb", closefd=False) as transcript:
            if reason := explain_foreign(transcript):
                raise InvalidInputError(f"{path} {reason}")
            transcript.seek(max(0, start - 1))
            end = start if start > 0 and transcript.read(1) == b"\n" else 0
            messages: list[Mapping[str, Any]] = []
            for record, record_end in iterate_records(transcript, end):
                begin, end = end, record_end
                if record is None or not render_record(record, muted=False)[0]:
                    continue
                message = {key: value for key, value in get_message(record).items() if value is not None}
                text = get_text(message)
                with suppress(PolicyError):
                    self.files.policies.check(None, text)
                    # Without an id, a message is recognised by its place: transcripts only grow at their end.
                    messages.append({"id": f"byte-{begin}", **message, "content": [{"type": "text", "text": text}]})
        self.keep_named(messages)
        return end

    def _locate(self) -> Place:
        """Return the place of the file: of the one that is there, else as the settings want a new one."""
        name, folder = make_log_name(self.session_id), Path(self.folder.base, *self.folder.parts)
        is_new = not os.path.lexists(folder / name)
        if os.path.lexists(folder / f"{name}{SUFFIX}") or (is_new and self.files.codec.is_sealing("transcript")):
            name = f"{name}{SUFFIX}"
        return Place(f"{TRANSCRIPTS}/{name}", self.folder.base, (*self.folder.parts, name))

    def _make_lines(
        self, entries: Sequence[Mapping[str, Any]], file: BinaryIO, size: int, *, once: bool
    ) -> tuple[list[bytes], list[str]]:
        """Return the lines to append to an open file for entries, and the ids of these."""
        if once:
            there = {entry.get("id") for entry in read_records(file, 0)}
            entries = [entry for entry in entries if entry.get("id") not in there]
        now = datetime.datetime.now(datetime.UTC).astimezone(self.zone).isoformat(timespec="milliseconds")
        tail = _read_tail(file, size)
        lines: list[bytes] = []
        ids: list[str] = []
        before = _find_last_id(file, size, tail)
        if not size:
            lines.append(_encode_line(self._make_header(now), self.path))
        elif not tail.endswith(b"\n"):  # half a line of a writer that was killed: the new lines stay apart from it
            lines.append(b"\n")
        for fields in entries:
            if not fields.get("type"):
                raise InvalidInputError(f"an entry for {self.path} has no type: give {{'type': 'message', ...}}")
            entry = {"type": "", "id": secrets.token_hex(8), "parentId": before, "timestamp": now, **fields}
            lines.append(_encode_line(entry, self.path))
            before = str(entry["id"])
            ids.append(before)
        return lines, ids

    def _make_header(self, now: str) -> dict[str, Any]:
        header = {"type": "session", "id": self.session_id, "timestamp": now, "cwd": str(self.files.root)}
        return header | ({"parentSession": self.parent_session} if self.parent_session else {})


def _encode_line(entry: Mapping[str, Any], path: str) -> bytes:
    try:
        data = _to_json(entry) + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the entry for {path} is not JSON ({error}): give text, numbers, lists") from error
    if len(data) > MAX_LINE_BYTES:
        raise InvalidInputError(f"the entry for {path} has {len(data):,} bytes, more than {MAX_LINE_BYTES:,}: part it")
    return data


def _to_json(entry: Mapping[str, Any]) -> bytes:
    """Encode an entry readably; lone surrogates, and line ends of other programs, are escaped."""
    text = json.dumps(entry, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    try:
        return _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
    except UnicodeEncodeError:
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode("ascii")


def _read_tail(file: BinaryIO, size: int, length: int = _TAIL_BYTES) -> bytes:
    file.seek(max(0, size - length))
    return file.read(min(size, length))


def _find_last_id(file: BinaryIO, size: int, tail: bytes) -> str | None:
    """Return the id of the last readable entry, from as little of the end of the file as it takes."""
    while True:
        whole_lines = tail.split(b"\n") if len(tail) == size else tail.split(b"\n")[1:]
        for line in reversed(whole_lines):
            record = parse(line) if line.strip() else None
            if record is not None and record.get("type") != "session" and isinstance(record.get("id"), str):
                return str(record["id"])
        if len(tail) >= size:
            return None
        tail = _read_tail(file, size, 4 * len(tail))
