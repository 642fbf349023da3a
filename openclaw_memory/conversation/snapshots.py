"""Keep the last messages of a session in a file of their own, and return messages by which a conversation goes on."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory._log import warn
from openclaw_memory.config import SnapshotsConfig
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
from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PolicyError,
    UndecodableError,
    WorkspaceError,
    WriteError,
)
from openclaw_memory.text.fence import fence_text
from openclaw_memory.text.policies import Policies
from openclaw_memory.text.redaction import redact_session, redact_talk
from openclaw_memory.text.utf16 import measure_utf16, truncate_utf16
from openclaw_memory.types.codec import SUFFIX, get_plain_name
from openclaw_memory.types.exchange import Snapshot, SnapshotMessage
from openclaw_memory.workspace.atomic import lock_folder, replace_file, to_write_error
from openclaw_memory.workspace.days import get_local_now
from openclaw_memory.workspace.journal import append, check_text, make_day_path
from openclaw_memory.workspace.paths import TRANSCRIPT_SUFFIX, TRANSCRIPTS
from openclaw_memory.workspace.session_log import make_log_name
from openclaw_memory.workspace.tombstones import FORGOTTEN
from openclaw_memory.workspace.transcript_records import get_time, parse

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.files import WorkspaceFiles
    from openclaw_memory.workspace.session_log import SessionLog

FOLDER = (".memory", "snapshots")
_PREFIX = "/".join((*FOLDER, ""))
_NAME = re.compile(rf"\d{{8}}T\d{{6}}Z-(?:\d+-)?([A-Za-z0-9._-]+)\.json(?:{re.escape(SUFFIX)})?")
TITLE = "Session Snapshot"  # of the entry in the day's note
_TICKS = datetime.timedelta(seconds=1)  # within which a later snapshot is not let look like an earlier one
_AHEAD = datetime.timedelta(days=1)  # by which another machine's clock, or its zone, may be wrong
_SPEAKERS = frozenset({"user", "assistant"})
_END = 3  # messages by which the end of a conversation is known: one alone, such as "Thanks!", comes again
MAX_UNITS = 500  # of UTF-16 that are kept of each message
# Of the summary, its mark of the cut included: as many as all that a search shows a model (`recall.max_chars`).
MAX_SUMMARY_UNITS = 4_000
_CUT = " […]"

# The first message of what is resumed from a snapshot that has no summary: some services want the user to begin.
EARLIER = "The conversation began before this point. Its last messages follow; the end of long ones is cut off."

# Of a message nothing is masked in these: they say who speaks, and which answer belongs to which call.
_NOT_SAID = frozenset(
    {"id", "parentId", "type", "role", "name", "timestamp", "toolName", "toolCallId", "toolUseId", "tool_call_id"}
)


def save(
    workspace: Workspace,
    session_id: str,
    messages: Sequence[Message] | None = None,
    summary: str | None = None,
    *,
    rules: SnapshotsConfig | None = None,
    now: datetime.datetime | None = None,
) -> Snapshot | None:
    """Keep the end of a session, and name it in the note of the day; see `Memory.sessions.snapshot`.

    Args:
        workspace: The files.
        session_id: The session.
        messages: The conversation, oldest first; None for that of the session's transcript.
        summary: What it was about; of a longer one than `MAX_SUMMARY_UNITS` the beginning is kept.
        rules: The settings, by default `SnapshotsConfig()`.
        now: The moment, by default this one.
    """
    rules = rules or SnapshotsConfig()
    workspace.files.check_name(_transcript(session_id))
    check_text(session_id, "the id of the session")
    if not rules.enabled:
        return None
    said = workspace.open_log(session_id).read_messages() if messages is None else messages
    # What `resume` put first, of an earlier end, is in that one's file.
    about_before = [SUMMARY.format(summary=one.summary) for one in _read_all(workspace, session_id) if one.summary]
    kept = tuple(kept_of(workspace.policies, said, {EARLIER, *about_before})[-rules.max_messages :])
    if not kept:
        return None
    now = (now or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)  # as JavaScript writes it, and as it is read again
    about = _about(workspace.policies, summary)
    # The note says what the user may have said there; a snapshot holds no more than what is shown.
    made = Snapshot(session_id, now, kept, summary_of(workspace.policies, summary), "")
    with saving(workspace.root, _PREFIX):
        made = _written(workspace, made)
    try:
        _mention(workspace, made, about)
    except (
        WorkspaceError,
        WriteError,
    ) as error:  # what was said is kept, which matters more; the next call tries again
        warn(f"{made.path} was kept, and the note of the day does not name it: {error}")
    return _shown(workspace.policies, made)


def saved(workspace: Workspace, session_id: str | None = None) -> tuple[Snapshot, ...]:
    """Return the snapshots that there are, the latest first; see `Memory.sessions.snapshots`.

    Args:
        workspace: The files.
        session_id: Only those of this session.
    """
    there = (one for one in _read_all(workspace, session_id) if not is_hidden(workspace.files, one))
    return tuple(_shown(workspace.policies, one) for one in there)


def resume(workspace: Workspace, session_id: str) -> list[Message]:
    """Load the messages of a session; see `Memory.sessions.resume`.

    Args:
        workspace: The files.
        session_id: The session.
    """
    log = workspace.open_log(session_id)
    if (rule := workspace.files.find_hiding_rule(log.path)) is not None:
        raise NotFoundError(f"the rule {rule!r} of policies.rules leaves sessions of this name out: change the rule")
    ends = _read_all(workspace, session_id)
    if not ends or _goes_beyond(log, ends[0]):
        messages = load_conversation(log)
    else:  # what an earlier end was about came before this one
        messages = _messages(ends[0], next((one.summary for one in ends if one.summary), None))
    left = [message for message in messages if get_text(message) != FORGOTTEN]
    said = _whole([_masked(message, partial(_masked_text, workspace.policies)) for message in left])
    if not said:
        raise NotFoundError(
            f"nothing was kept of session {session_id!r}: name one that memory.sessions.snapshots() lists, or that "
            f"has a transcript, {log.path}"
        )
    return said


# --- the files ----------------------------------------------------------------------------------------------


@contextmanager
def saving(root: Path, path: str) -> Iterator[None]:
    """Hold the lock under which the snapshots of a workspace are written and removed; their folder is made if missing.

    Args:
        root: The workspace.
        path: What is written, for errors.

    Raises:
        PathNotAllowedError, WriteError: As `workspace.atomic.locked`.
    """
    with lock_folder(root, FOLDER, path):
        ignored = (FOLDER[0], ".gitignore")  # what was said in private is part of no repository
        if not os.path.lexists(root.joinpath(*ignored)):
            replace_file(str(root), ignored, b"*\n", None)
        yield


def is_snapshot(path: str) -> bool:
    """Return whether a path, relative to the workspace, is that of a snapshot, by its letters."""
    return path.startswith(_PREFIX) and _NAME.fullmatch(path.removeprefix(_PREFIX)) is not None


def paths(root: Path) -> list[str]:
    """Return the paths of all snapshots, whatever they hold, the latest first.

    Args:
        root: The workspace.
    """
    try:
        names = os.listdir(root.joinpath(*FOLDER))
    except OSError:
        return []
    return sorted((f"{_PREFIX}{name}" for name in names if _NAME.fullmatch(name)), reverse=True)


def parsed(data: bytes, path: str) -> Snapshot:
    """Return the snapshot in the bytes of its file, as they are.

    Args:
        data: The bytes.
        path: The file.

    Raises:
        UndecodableError: They hold none.
    """
    said = parse(data) or {}
    try:
        when = datetime.datetime.fromisoformat(said["timestamp"])
        messages = tuple(SnapshotMessage(_text(one["role"]), _text(one["content"])) for one in said["messages"])
        summary = None if said.get("summary") is None else _text(said["summary"])
        if when.tzinfo is None or not messages:
            raise ValueError
        return Snapshot(_text(said["id"]), when.astimezone(datetime.UTC), messages, summary, path)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UndecodableError(
            f"{path} holds no snapshot, {{'id': ..., 'timestamp': ..., 'messages': [...]}}: mend it, or delete it"
        ) from error


def summary_of(policies: Policies, summary: str | None) -> str | None:
    """Return what a snapshot keeps of a summary; None for nothing.

    Args:
        policies: Those for the files.
        summary: The summary.

    Raises:
        PolicyError: A rule says never to store it.
    """
    about = _about(policies, summary)
    return policies.mask(about) if about else None


def _about(policies: Policies, summary: str | None) -> str | None:
    """Return what the note of the day says of a summary: at most `MAX_SUMMARY_UNITS` of it, on one line."""
    about = None if summary is None else _line(summary)
    policies.check(None, *filter(None, (summary, about)))
    if about and measure_utf16(about) > MAX_SUMMARY_UNITS:  # what is hidden is so before the cut, as in messages
        about = truncate_utf16(policies.mask(about), MAX_SUMMARY_UNITS - len(_CUT)) + _CUT
    return about


def is_hidden(files: WorkspaceFiles, snapshot: Snapshot) -> bool:
    """Return whether a policy says never to store anything under the name of its session."""
    return not snapshot.session_id.strip() or files.find_hiding_rule(_transcript(snapshot.session_id)) is not None


def _read_all(workspace: Workspace, session_id: str | None) -> list[Snapshot]:
    """Return the snapshots as they are in their files, the latest first; one that cannot be read is reported."""
    name = None if session_id is None else file_name(session_id)
    found = list[Snapshot]()
    for path in paths(workspace.root):
        if name is not None and not get_plain_name(path).endswith(f"-{name}.json"):
            continue
        try:
            data, _ = workspace.files.read(workspace.files.make_place(path))
            found.append(parsed(data, path))
        except NotFoundError:  # forgotten since it was listed
            continue
        except OpenClawMemoryError as error:
            warn(str(error))
    found = [one for one in found if session_id in {None, one.session_id}]
    # One of a clock that was wrong does not hide those that were made since.
    soon = datetime.datetime.now(datetime.UTC) + _AHEAD
    return sorted(found, key=lambda one: (one.timestamp <= soon, one.timestamp, one.path), reverse=True)


def _written(workspace: Workspace, made: Snapshot) -> Snapshot:
    """Write a snapshot; return the one that is there if the session has not gone on since. Call it in `saving`."""
    before = next(iter(_read_all(workspace, made.session_id)), None)
    if before is not None and before.messages == made.messages and made.summary in {None, before.summary}:
        return before
    if before is not None and datetime.timedelta(0) <= before.timestamp - made.timestamp < _TICKS:
        made = replace(made, timestamp=before.timestamp + datetime.timedelta(milliseconds=1))
    made = replace(made, path=free_path(workspace, made))
    write(workspace, made)
    return made


def free_path(workspace: Workspace, made: Snapshot, taken: Collection[str] = ()) -> str:
    """Return the path that a snapshot is written to, of its second and its session, sealed or not.

    Args:
        workspace: The files.
        made: The snapshot.
        taken: Paths that others will have.
    """
    stamp, name = f"{made.timestamp:%Y%m%dT%H%M%SZ}", file_name(made.session_id)
    names = (f"{stamp}-{name}.json", *(f"{stamp}-{number}-{name}.json" for number in range(2, 10_000)))
    ending = SUFFIX if workspace.files.codec.is_sealing("snapshot") else ""
    there = {*taken, *paths(workspace.root)}
    free = (f"{_PREFIX}{one}" for one in names)
    return next(f"{one}{ending}" for one in free if not {one, f"{one}{SUFFIX}"} & there)


def write(workspace: Workspace, made: Snapshot) -> None:
    """Write a snapshot to its path. Call it in `saving`.

    Args:
        workspace: The files.
        made: The snapshot.

    Raises:
        SealedFileError: It is to be sealed, and the index is plain, or the key is not here.
        PathNotAllowedError, WriteError: It could not be written, or a file is there.
    """
    data = json.dumps(made.to_dict(), ensure_ascii=False, indent=2).encode() + b"\n"
    place = workspace.files.make_place(made.path)
    try:
        workspace.files.replace(place, data, None)
    except OSError as error:
        raise to_write_error(error, made.path) from error


def prepare_snapshot(
    workspace: Workspace,
    session_id: str,
    messages: Sequence[Message],
    summary: str | None,
    timestamp: datetime.datetime,
    taken: Collection[str] = (),
) -> Snapshot:
    """Return the snapshot of a conversation that another program had; nothing is written.

    Secrets are masked and long messages cut, as `Memory.sessions.snapshot` does.

    Args:
        workspace: The files.
        session_id: The session.
        messages: The conversation, oldest first.
        summary: What it was about.
        timestamp: When it ended.
        taken: Paths that other snapshots will have.

    Raises:
        InvalidInputError: No message has words that may be stored, or the name of the session may not be stored.
        PolicyError: A rule says never to store the summary.
    """
    policies = workspace.policies
    ending = tuple(kept_of(policies, messages, ()))
    snapshot = Snapshot(session_id, timestamp, ending, summary_of(policies, summary), "")
    if not snapshot.messages:
        raise InvalidInputError("it has no message with words that may be stored")
    if is_hidden(workspace.files, snapshot):
        raise InvalidInputError("a rule says never to store what has the name of its session")
    return replace(snapshot, path=free_path(workspace, snapshot, taken))


def write_snapshot(workspace: Workspace, snapshot: Snapshot) -> None:
    """Write a snapshot that `prepare_snapshot` returned.

    Args:
        workspace: The files.
        snapshot: The snapshot.

    Raises:
        SealedFileError: It is to be sealed, and the index is plain, or the key is not here.
        PathNotAllowedError, WriteError: It could not be written, or a file is there.
    """
    with saving(workspace.root, snapshot.path):
        write(workspace, snapshot)


def _mention(workspace: Workspace, made: Snapshot, about: str | None) -> None:
    """Name a snapshot in the note of its day, once; the subject of a sealed one only in a sealed note."""
    at = get_local_now(workspace.journal.timezone, made.timestamp)
    said = made.to_dict()
    # Notes lie one folder below the workspace.
    many = "message" if len(made.messages) == 1 else f"{len(made.messages)} messages"
    words = f"- [{said['timestamp']}](../{made.path}): the last {many}"
    is_told = about or made.summary
    if made.path.endswith(SUFFIX) and not workspace.files.find(make_day_path(at.date())).endswith(SUFFIX):
        is_told = None
    text = f"{words}. {is_told}" if is_told else words
    append(workspace.files, text, date=at.date(), title=TITLE, now=at, skip_existing=True)


def file_name(session_id: str) -> str:
    """Return what the names of a session's files have of its id.

    Raises:
        InvalidInputError: The id is empty.
    """
    return make_log_name(session_id).removesuffix(TRANSCRIPT_SUFFIX)


def _transcript(session_id: str) -> str:
    return f"{TRANSCRIPTS}/{make_log_name(session_id)}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return _unicode(value)


# --- the messages -------------------------------------------------------------------------------------------


def kept_of(
    policies: Policies, messages: Iterable[Message], left_out: Collection[str] = (EARLIER,)
) -> list[SnapshotMessage]:
    """Return of messages what a snapshot keeps.

    Those without words, those that are never to be stored, and those whose text is in `left_out` are dropped.

    Args:
        policies: Those for the files.
        messages: The messages.
        left_out: Texts.

    Raises:
        InvalidInputError: They are no list, or one is no message.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInputError(f"messages must be a list of messages, not {messages!r:.80}")
    found = list[SnapshotMessage]()
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidInputError(
                f"a message must be a mapping with `role` and `content`, not {message!r:.80}: "
                "those of a framework are for `save_snapshot` of its adapter"
            )
        role, text = _unicode(message["role"]), _unicode(strip_recalled(get_text(message)))
        if not text.strip() or text == FORGOTTEN or text in left_out:
            continue
        # What is hidden is so before the cut: half a token looks like none.
        cut = truncate_utf16(_masked_text(policies, text), MAX_UNITS)
        try:
            policies.check(None, role, text, cut)
        except PolicyError:
            continue
        found.append(SnapshotMessage(role, cut))
    return found


def _messages(snapshot: Snapshot, summary: str | None) -> list[Message]:
    """Return the messages of a snapshot as a conversation: what it was about before, and what the two have said.

    Services refuse an answer of a tool without its call, which a snapshot does not keep: what tools answered is shown
    first, as data. A system prompt is brought along by the program.
    """
    before = SUMMARY.format(summary=summary) if summary else EARLIER
    if answers := [one.content for one in snapshot.messages if is_result({"role": one.role})]:
        before = f"{before}\n\n{fence_text(chr(10).join(answers), 'answers of tools')}"
    said = [{"role": one.role, "content": one.content} for one in snapshot.messages if one.role in _SPEAKERS]
    return [{"role": "user", "type": "compaction", "content": before}, *said]


def _goes_beyond(log: SessionLog, snapshot: Snapshot) -> bool:
    """Return whether a transcript has the end of a snapshot, or was written to after it."""
    end = [one for one in snapshot.messages if one.role in _SPEAKERS][-_END:]
    said = iter(kept_of(log.files.policies, log.read_messages()))
    if end and all(one in said for one in end):  # in this order, others between them
        return True
    *_, last = (None, *(get_time(entry) for entry in log.read_branch()))
    return last is not None and last.tzinfo is not None and last > snapshot.timestamp


def _shown(policies: Policies, snapshot: Snapshot) -> Snapshot:
    shown = partial(_masked_text, policies)
    messages = tuple(SnapshotMessage(one.role, shown(one.content)) for one in snapshot.messages)
    return replace(snapshot, messages=messages, summary=None if snapshot.summary is None else shown(snapshot.summary))


def _masked_text(policies: Policies, text: str) -> str:
    return redact_talk(policies.mask(text))


def _masked(value: Any, shown: Callable[[str], str]) -> Any:
    """Return a copy of a message, or of a part of it, with every text that was said as it may be shown."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        if "image" in str(value.get("type")):
            return value
        return {name: inner if name in _NOT_SAID else _masked(inner, shown) for name, inner in value.items()}
    return [_masked(inner, shown) for inner in value] if isinstance(value, list | tuple) else value


def _whole(messages: Sequence[Message]) -> list[Message]:
    """Return messages without calls that nothing answers, and without answers to no call: services refuse both.

    A program that was killed while a tool ran leaves one.
    """
    called, answered, answers = dict[str, int](), set[tuple[int, str]](), set[int]()
    for at, message in enumerate(messages):
        if (of := get_answered_call(message)) is not None and of in called:
            answered.add((called.pop(of), of))
            answers.add(at)
        called |= dict.fromkeys(get_call_ids(message), at)
    found = list[Message]()
    for at, message in enumerate(messages):
        if is_result(message):
            found += [message] if at in answers else []
            continue
        left = drop_calls(message, {one for place, one in answered if place == at})
        if get_call_ids(left) or get_text(left).strip() or (left.get("role") == "user" and count_chars(left)):
            found.append(left)
    return found


def _line(summary: str) -> str:
    """Return a summary on one line, without secrets and what was recalled."""
    return redact_session(" ".join(strip_recalled(check_text(summary, "the summary")).split()))


def _unicode(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
