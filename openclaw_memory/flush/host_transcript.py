"""Keep what the transcript of another program says in the log of a session, secrets masked."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from openclaw_memory.conversation.messages import get_text
from openclaw_memory.errors import InvalidInputError, NotFoundError, PolicyError, WorkspaceError
from openclaw_memory.flush.verbatim import keep_named
from openclaw_memory.workspace.transcript_records import get_message, render_record
from openclaw_memory.workspace.transcripts import explain_foreign, iterate_records

if TYPE_CHECKING:
    from openclaw_memory.workspace.session_log import SessionLog

# O_NONBLOCK: opening a FIFO must not wait for a writer.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def keep_transcript(log: SessionLog, file: str | os.PathLike[str], start: int = 0) -> int:
    """Add to a log what the transcript of a known program says and the log does not have; return where it was read to.

    Added are the words of the user and the assistant, under the ids of their messages: what is there already is not
    added again, wherever reading begins. Left out are calls of tools, their results, and what policies say never to
    store.

    Args:
        log: The log of the session.
        file: The transcript, such as Claude Code's. It is read, and never changed.
        start: The byte to begin at, as an earlier call returned it; where no line begins there, the beginning.

    Raises:
        NotFoundError: There is no such file.
        InvalidInputError: It is no file, of no known format, or in the folder of the log.
        WorkspaceError, WriteError: As `SessionLog.append_entry`.
    """
    try:
        descriptor = os.open(file, _READ)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no transcript {os.fspath(file)}") from error
    except OSError as error:
        raise WorkspaceError(f"{os.fspath(file)} cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as opened:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise InvalidInputError(f"{os.fspath(file)} is no ordinary file: name a transcript")
        if _is_in(log, file):
            raise InvalidInputError(f"{os.fspath(file)} is in the folder of the log, where it is indexed as it is")
        if reason := explain_foreign(opened):
            raise InvalidInputError(f"{os.fspath(file)} {reason}")
        end = start if _begins_line(opened, start, info.st_size) else 0
        messages, policies = [], log.files.policies
        for record, record_end in iterate_records(opened, end):
            begin, end = end, record_end
            if record is None or not render_record(record, muted=False)[0]:
                continue
            # The place of a record names it where it has no id: transcripts grow at their end alone.
            known = {key: value for key, value in get_message(record).items() if value is not None}
            message = {"id": f"byte-{begin}", **known}
            text = get_text(message)
            with suppress(PolicyError):  # what is never to be stored is left out
                policies.check(None, text)
                messages.append({**message, "content": [{"type": "text", "text": text}]})
    keep_named(messages, log)
    return end


def _begins_line(file: BinaryIO, start: int, size: int) -> bool:
    if not 0 < start <= size:
        return False
    file.seek(start - 1)
    return file.read(1) == b"\n"


def _is_in(log: SessionLog, file: str | os.PathLike[str]) -> bool:
    """Whether a transcript lies in the folder of the logs: to write to the log would be to write to it."""
    folder = os.path.join(log.folder.base, *log.folder.parts)
    return os.path.realpath(os.path.dirname(os.fspath(file))) == os.path.realpath(folder)
