"""Keep the last messages of a session in a file, and resume a session from its transcript or that file."""

from __future__ import annotations

import datetime
import json
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from openclaw_memory import errors
from openclaw_memory._safe import warn
from openclaw_memory.conversation.compaction import SUMMARY, load_conversation
from openclaw_memory.conversation.messages import (
    Message,
    count_chars,
    drop_calls,
    get_answered_call,
    get_call_ids,
    get_text,
    is_result,
    strip_recalled,
)
from openclaw_memory.text.fence import fence_text
from openclaw_memory.text.policies import Policies
from openclaw_memory.text.redaction import redact_session, redact_talk
from openclaw_memory.text.utf16 import truncate_utf16
from openclaw_memory.types.codec import SUFFIX, get_plain_name
from openclaw_memory.types.documents import Snapshot, SnapshotMessage
from openclaw_memory.workspace.atomic import lock_folder, replace_file, to_write_error
from openclaw_memory.workspace.encodings import check_text
from openclaw_memory.workspace.notes import append
from openclaw_memory.workspace.paths import TRANSCRIPT_SUFFIX, TRANSCRIPTS
from openclaw_memory.workspace.session_log import make_log_name
from openclaw_memory.workspace.tombstones import FORGOTTEN
from openclaw_memory.workspace.transcript_records import get_time, parse

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.files import WorkspaceFiles
    from openclaw_memory.workspace.session_log import SessionLog

FOLDER = (".memory", "snapshots")
PREFIX = "/".join((*FOLDER, ""))
_NAME = re.compile(rf"\d{{8}}T\d{{6}}Z-(?:\d+-)?([A-Za-z0-9._-]+)\.json(?:{re.escape(SUFFIX)})?")
TITLE = "Session Snapshot"  # of the entry in the day's note
_SPEAKERS = frozenset({"user", "assistant"})
_END = 3  # messages that identify the end of a conversation: a single one, such as "Thanks!", comes again
MAX_UNITS = 500  # of UTF-16 that are kept of each message
# The first message after a snapshot without a summary: some services want the user to begin.
EARLIER = "The conversation began before this point. Its last messages follow; the end of long ones is cut off."
_OPENINGS = (EARLIER, SUMMARY.partition("{")[0])
# Fields of a message without words, in which nothing is masked.
_UNMASKED = frozenset("id parentId type role name timestamp toolName toolCallId toolUseId tool_call_id".split())


def save(
    workspace: Workspace,
    session_id: str,
    messages: Sequence[Message] | None = None,
    summary: str | None = None,
    *,
    now: datetime.datetime | None = None,
) -> Snapshot | None:
    """Keep the end of a session, and name it in the note of the day; see `Memory.sessions.snapshot`.

    Args:
        workspace: The files.
        session_id: The session.
        messages: The conversation, oldest first; None for that of the session's transcript.
        summary: Its subject.
        now: The moment, by default this one.
    """
    policies = workspace.policies
    workspace.files.check_name(f"{TRANSCRIPTS}/{make_log_name(session_id)}")
    check_text(session_id, "the id of the session")
    if not (count := workspace.sessions.snapshot_messages):
        return None
    if messages is None:
        messages = workspace.open_log(session_id).read_messages()
    ending = tuple(_keep_messages(policies, messages)[-count:])
    if not ending:
        return None
    topic = _clean_summary(policies, summary)
    now = (now or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)  # as the file has it
    snapshot = Snapshot(session_id, now, ending, policies.mask(topic) if topic else None, "")
    with lock_snapshots(workspace.root, PREFIX):
        snapshot = replace(snapshot, path=_find_free_path(workspace, snapshot))
        _write(workspace, snapshot)
    try:
        _add_to_note(workspace, snapshot, topic)
    except (errors.WorkspaceError, errors.WriteError) as error:  # the messages matter more
        warn(f"{snapshot.path} was kept, and the note of the day does not name it: {error}")
    return _mask_snapshot(policies, snapshot)


def list_snapshots(workspace: Workspace, session_id: str | None = None) -> tuple[Snapshot, ...]:
    """Return the snapshots, the latest first; see `Memory.sessions.snapshots`."""
    snapshots = _read_all(workspace, session_id)
    visible = (snapshot for snapshot in snapshots if not is_hidden(workspace.files, snapshot))
    return tuple(_mask_snapshot(workspace.policies, snapshot) for snapshot in visible)


def resume(workspace: Workspace, session_id: str) -> list[Message]:
    """Return the messages to resume a session with; see `Memory.sessions.resume`."""
    log = workspace.open_log(session_id)
    if (rule := workspace.files.find_hiding_rule(log.path)) is not None:
        raise errors.NotFoundError(f"the rule {rule!r} of policies leaves sessions of this name out: change the rule")
    ends = _read_all(workspace, session_id)
    if not ends or _is_ahead(log, ends[0]):
        messages = load_conversation(log)
    else:
        messages = _to_messages(ends[0], next((end.summary for end in ends if end.summary), None))
    mask = partial(_mask_text, workspace.policies)
    left = drop_unanswered([_mask(message, mask) for message in messages if get_text(message) != FORGOTTEN])
    if not left:
        raise errors.NotFoundError(
            f"nothing was kept of session {session_id!r}: memory.sessions.snapshots() lists what was, and "
            f"there is no {log.path}"
        )
    return left


# --- the files ----------------------------------------------------------------------------------------------


@contextmanager
def lock_snapshots(root: Path, path: str) -> Iterator[None]:
    """Hold the lock under which snapshots are written and removed; their folder is created if missing.

    Raises:
        PathNotAllowedError, WriteError: As `workspace.atomic.lock_file`.
    """
    with lock_folder(root, FOLDER, path):
        ignored = (FOLDER[0], ".gitignore")  # private words belong in no repository
        if not os.path.lexists(root.joinpath(*ignored)):
            replace_file(str(root), ignored, b"*\n", None)
        yield


def is_snapshot(path: str) -> bool:
    """Return whether a path, relative to the workspace, is that of a snapshot."""
    return path.startswith(PREFIX) and _NAME.fullmatch(path.removeprefix(PREFIX)) is not None


def list_paths(root: Path) -> list[str]:
    """Return the paths of all snapshots, the latest first; the files are not read."""
    try:
        names = os.listdir(root.joinpath(*FOLDER))
    except OSError:
        return []
    return sorted((f"{PREFIX}{name}" for name in names if _NAME.fullmatch(name)), reverse=True)


def parse_snapshot(data: bytes, path: str) -> Snapshot:
    """Return the snapshot in the bytes of its file.

    Raises:
        UndecodableError: They hold none.
    """
    fields = parse(data) or {}
    try:
        time = datetime.datetime.fromisoformat(fields["timestamp"])
        messages = tuple(
            SnapshotMessage(_read_text(message["role"]), _read_text(message["content"]))
            for message in fields["messages"]
        )
        summary = None if fields.get("summary") is None else _read_text(fields["summary"])
        if time.tzinfo is None or not messages:
            raise ValueError
        return Snapshot(_read_text(fields["id"]), time.astimezone(datetime.UTC), messages, summary, path)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise errors.UndecodableError(
            f"{path} holds no snapshot, {{'id': ..., 'timestamp': ..., 'messages': [...]}}: mend it, or delete it"
        ) from error


def is_hidden(files: WorkspaceFiles, snapshot: Snapshot) -> bool:
    """Return whether a policy forbids the name of a snapshot's session."""
    session = snapshot.session_id
    return not session.strip() or files.find_hiding_rule(f"{TRANSCRIPTS}/{make_log_name(session)}") is not None


def prepare_snapshot(
    workspace: Workspace,
    session_id: str,
    messages: Sequence[Message],
    summary: str | None,
    timestamp: datetime.datetime,
    taken: Collection[str] = (),
) -> Snapshot:
    """Return the snapshot of a conversation of another program; nothing is written.

    Secrets are masked and long messages cut, as `Memory.sessions.snapshot` does.

    Args:
        workspace: The files.
        session_id: The session.
        messages: The conversation, oldest first.
        summary: Its subject.
        timestamp: When it ended.
        taken: Paths that other snapshots will have.

    Raises:
        InvalidInputError: No message has words that may be stored, or the name of the session may not be stored.
        PolicyError: A rule says never to store the summary.
    """
    policies = workspace.policies
    topic = _clean_summary(policies, summary)
    ending = tuple(_keep_messages(policies, messages))
    snapshot = Snapshot(session_id, timestamp, ending, policies.mask(topic) if topic else None, "")
    if not ending:
        raise errors.InvalidInputError("it has no message with words that may be stored")
    if is_hidden(workspace.files, snapshot):
        raise errors.InvalidInputError("a rule says never to store the name of its session")
    return replace(snapshot, path=_find_free_path(workspace, snapshot, taken))


def write_snapshot(workspace: Workspace, snapshot: Snapshot) -> None:
    """Write a snapshot that `prepare_snapshot` returned.

    Args:
        workspace: The files.
        snapshot: The snapshot.

    Raises:
        SealedFileError: It is to be sealed, and the index is plain, or the key is not here.
        PathNotAllowedError, WriteError: It could not be written, or the file exists.
    """
    with lock_snapshots(workspace.root, snapshot.path):
        _write(workspace, snapshot)


def _read_all(workspace: Workspace, session_id: str | None) -> list[Snapshot]:
    """Return the snapshots in their files, the latest first; one that cannot be read is reported."""
    ending = "" if session_id is None else f"-{_make_name(session_id)}.json"
    snapshots = list[Snapshot]()
    for path in list_paths(workspace.root):
        if not get_plain_name(path).endswith(ending):
            continue
        try:
            data, _ = workspace.files.read(workspace.files.make_place(path))
            snapshots.append(parse_snapshot(data, path))
        except errors.NotFoundError:  # forgotten since it was listed
            continue
        except errors.OpenClawMemoryError as error:
            warn(str(error))
    own = [snapshot for snapshot in snapshots if session_id in {None, snapshot.session_id}]
    return sorted(own, key=lambda snapshot: (snapshot.timestamp, len(snapshot.path), snapshot.path), reverse=True)


def _find_free_path(workspace: Workspace, snapshot: Snapshot, taken: Collection[str] = ()) -> str:
    """Return the path of a snapshot, by its second and its session; `taken` are paths that others will have."""
    stamp, name = f"{snapshot.timestamp:%Y%m%dT%H%M%SZ}", _make_name(snapshot.session_id)
    ending = SUFFIX if workspace.files.codec.is_sealing("snapshot") else ""
    paths = {get_plain_name(path) for path in (*taken, *list_paths(workspace.root))}
    candidates = (f"{PREFIX}{stamp}-{f'{number}-' if number > 1 else ''}{name}.json" for number in range(1, 10_000))
    return next(f"{path}{ending}" for path in candidates if path not in paths)


def _write(workspace: Workspace, snapshot: Snapshot) -> None:
    data = json.dumps(snapshot.to_dict(), ensure_ascii=False, indent=2).encode() + b"\n"
    try:
        workspace.files.replace(workspace.files.make_place(snapshot.path), data, None)
    except OSError as error:
        raise (
            error if isinstance(error, errors.OpenClawMemoryError) else to_write_error(error, snapshot.path)
        ) from error


def _add_to_note(workspace: Workspace, snapshot: Snapshot, topic: str | None) -> None:
    """Name a snapshot in the note of its day; the subject of a sealed one only in a sealed note."""
    now = workspace.get_time(snapshot.timestamp)
    note = workspace.files.find_day(now.date())
    count = len(snapshot.messages)
    end = "message" if count == 1 else f"{count} messages"
    link = posixpath.relpath(snapshot.path, posixpath.dirname(note))
    line = f"- [{snapshot.to_dict()['timestamp']}]({link}): the last {end}"
    if topic and (note.endswith(SUFFIX) or not snapshot.path.endswith(SUFFIX)):
        line = f"{line}. {topic}"
    append(workspace.files, line, date=now.date(), title=TITLE, now=now, skip_existing=True)


def _make_name(session_id: str) -> str:
    return make_log_name(session_id).removesuffix(TRANSCRIPT_SUFFIX)


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return _repair(value)


# --- the messages -------------------------------------------------------------------------------------------


def _clean_summary(policies: Policies, summary: str | None) -> str | None:
    """Return a summary on one line, without secrets and recalled text.

    Raises:
        PolicyError: A rule says never to store it.
    """
    if summary is None:
        return None
    line = redact_session(" ".join(strip_recalled(check_text(summary, "the summary")).split()))
    policies.check(None, *filter(None, (summary, line)))
    return line or None


def _keep_messages(policies: Policies, messages: Iterable[Message]) -> list[SnapshotMessage]:
    """Return the messages of a snapshot: without those that have no words, may not be stored, or begin a resumed one.

    Raises:
        InvalidInputError: They are not a list, or one is not a message.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise errors.InvalidInputError(f"messages must be a list of messages, not {messages!r:.80}")
    ending = list[SnapshotMessage]()
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise errors.InvalidInputError(
                f"a message must be a mapping with `role` and `content`, not {message!r:.80}: "
                "those of a framework are converted first"
            )
        role, text = _repair(message["role"]), _repair(strip_recalled(get_text(message)))
        if not text.strip() or text == FORGOTTEN or text.startswith(_OPENINGS):
            continue
        short = truncate_utf16(_mask_text(policies, text), MAX_UNITS)
        try:
            policies.check(None, role, text, short)
        except errors.PolicyError:
            continue
        ending.append(SnapshotMessage(role, short))
    return ending


def _to_messages(snapshot: Snapshot, summary: str | None) -> list[Message]:
    """Return a snapshot as a conversation: the summary, the answers of tools as data, and the words of both speakers.

    Services refuse an answer of a tool without its call, which a snapshot does not keep.
    """
    opening = SUMMARY.format(summary=summary) if summary else EARLIER
    if answers := [message.content for message in snapshot.messages if is_result({"role": message.role})]:
        opening = f"{opening}\n\n{fence_text(chr(10).join(answers), 'answers of tools')}"
    talk = [{"role": message.role, "content": message.content} for message in snapshot.messages]
    return [
        {"role": "user", "type": "compaction", "content": opening},
        *(message for message in talk if message["role"] in _SPEAKERS),
    ]


def _is_ahead(log: SessionLog, snapshot: Snapshot) -> bool:
    """Return whether a transcript has the end of a snapshot, or was written to after it."""
    end = [message for message in snapshot.messages if message.role in _SPEAKERS][-_END:]
    logged = iter(_keep_messages(log.files.policies, log.read_messages()))
    if end and all(message in logged for message in end):  # in this order, others between them
        return True
    *_, last = (None, *(get_time(entry) for entry in log.read_branch()))
    return last is not None and last.tzinfo is not None and last > snapshot.timestamp


def _mask_snapshot(policies: Policies, snapshot: Snapshot) -> Snapshot:
    messages = tuple(SnapshotMessage(each.role, _mask_text(policies, each.content)) for each in snapshot.messages)
    summary = None if snapshot.summary is None else _mask_text(policies, snapshot.summary)
    return replace(snapshot, messages=messages, summary=summary)


def _mask_text(policies: Policies, text: str) -> str:
    return redact_talk(policies.mask(text))


def _mask(value: Any, mask: Callable[[str], str]) -> Any:
    """Return a copy of a message or of one of its parts, with masked texts."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        if "image" in str(value.get("type")):
            return value
        return {name: item if name in _UNMASKED else _mask(item, mask) for name, item in value.items()}
    return [_mask(item, mask) for item in value] if isinstance(value, list | tuple) else value


def drop_unanswered(messages: Sequence[Message]) -> list[Message]:
    """Drop calls without an answer, and answers without a call: services refuse both.

    A program that was killed while a tool ran leaves one.
    """
    callers, answered, answers = dict[str, int](), set[tuple[int, str]](), set[int]()
    for at, message in enumerate(messages):
        if (call := get_answered_call(message)) is not None and call in callers:
            answered.add((callers.pop(call), call))
            answers.add(at)
        callers |= dict.fromkeys(get_call_ids(message), at)
    left = list[Message]()
    for at, message in enumerate(messages):
        if is_result(message):
            left += [message] if at in answers else []
            continue
        whole = drop_calls(message, {call for place, call in answered if place == at})
        if get_call_ids(whole) or get_text(whole).strip() or (whole.get("role") == "user" and count_chars(whole)):
            left.append(whole)
    return left


def _repair(text: str) -> str:
    """Replace lone surrogates, which no file can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
