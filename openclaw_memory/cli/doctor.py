"""Run the checks of `doctor`: the deep status of a memory and its machine, each finding with a remedy."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from openclaw_memory.errors import (
    ConfigError,
    CorruptIndexError,
    EmbedderError,
    EncryptionError,
    IndexLockedError,
    OpenClawMemoryError,
)
from openclaw_memory.types import MemoryFile
from openclaw_memory.types.files import unencrypted
from openclaw_memory.types.results import first_of
from openclaw_memory.types.status import behind, failure, in_use, last_sync, size

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Status
    from openclaw_memory.workspace import Workspace

# OpenClaw asks that MEMORY.md be kept below so many words: all of it is read at the start of every session.
LONG_TERM_WORDS = 2000
# An index is built again next to the one that answers, and then copied into its log: twice its size, for a while.
ROOM_FOR_REBUILD = 2
# With less than this even a small note, or the log of a small sync, may not fit any more.
LEAST_ROOM = 16 * 1024 * 1024
# A file server's clock may be so much ahead of ours without any harm.
CLOCK_SECONDS = 60
# The processes that use a database in WAL mode share memory, which they can only do on one machine (sqlite.org/wal).
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "ncpfs", "vboxsf", "davfs"}
    | {"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.glusterfs", "fuse.davfs2", "fuse.curlftpfs"}
)
MOUNTS = Path("/proc/mounts")
MAX_WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")

# Kana and Chinese characters.
_UNPARTED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")

_DO_AS_IT_SAYS = "Do as the message says, and run the doctor again."


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: `note` is worth knowing, `problem` needs the `remedy`."""

    check: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str = ""


def examine(open_memory: Callable[[], Memory], options: str = "") -> list[Finding]:
    """Make every check that can be made; a memory that cannot be opened is the only finding.

    Args:
        open_memory: Opens the memory to examine.
        options: Those that choose this memory (` --workspace notes`), for the commands that a remedy names.

    Returns:
        What was found, in the order of the checks.
    """
    try:
        memory = open_memory()
    except OpenClawMemoryError as error:
        return [Finding("open", "problem", str(error), "Fix this first; the other checks need an open memory.")]
    with memory:
        try:
            files = memory.workspace.scan().files
        except OpenClawMemoryError as error:
            return [Finding("workspace", "problem", str(error), _DO_AS_IT_SAYS)]
        index = memory.index_path
        return [
            *_workspace(str(memory.workspace.root)),
            *_session_start(memory),
            *_transcripts(memory, files),
            *_by_status(memory, files, options),
            *clock(files, time.time_ns()),
            *time_zone(memory.config.journal.timezone),
            *watch_limit(memory.workspace, MAX_WATCHES),
            *(around_index(index, options) if index is not None else ()),
        ]


def _by_status(memory: Memory, files: Sequence[MemoryFile], options: str) -> Iterator[Finding]:
    """Yield what the deep status shows; if there is no status, the reason is the one finding."""
    rebuild = f"Run `openclaw-memory index{options} --force`: the index is made from the files, and nothing is lost."
    try:
        state = memory.status(deep=True)
    except CorruptIndexError as error:
        yield Finding("index", "problem", str(error), rebuild)
        return
    except IndexLockedError as error:
        remedy = f"Wait for the program that uses {memory.index_path}, or end it; fuser -v shows which one it is."
        yield Finding("index", "problem", str(error), remedy)
        return
    except EncryptionError as error:
        yield Finding("encryption", "problem", str(error), _DO_AS_IT_SAYS)
        return
    except OpenClawMemoryError as error:
        yield Finding("status", "problem", str(error), _DO_AS_IT_SAYS)
        return
    advice, missing = memory.workspace.advice(len(files)), ""
    try:
        _ = memory.embedder
    except EmbedderError as error:
        missing = str(error)
    yield from _files(state, options, advice)
    yield _embedder(state, missing)
    if os.path.exists(state.index_path):
        yield from _index(state, options, rebuild)
    else:
        yield _first_index(Path(state.index_path), options)
    yield from _syncs(state, files, options)
    reported = [message for message in (missing, advice) if message]
    for notice in state.notices:
        if not any(message in notice for message in reported):
            needs_sync = notice.endswith("sync the memory")
            yield Finding("notice", "note", notice, f"Run `openclaw-memory index{options}`." if needs_sync else "")


# --- the workspace -------------------------------------------------------------------------------------------------


def _workspace(folder: str) -> Iterator[Finding]:
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("workspace", "ok", f"{folder} can be read and written")
    elif os.access(folder, os.R_OK | os.X_OK):
        remedy = f"Searching works; to append notes, {_to_write(folder)}"
        yield Finding("workspace", "note", f"{folder} is read-only", remedy)
    else:
        yield Finding("workspace", "problem", f"{folder} cannot be read", _to_read(folder))


def _to_read(path: str | Path) -> str:
    if owner := _owner(path):
        return f"It belongs to {owner}: ask for the right to read it, or have {owner} copy it to a folder of yours"
    return f"Give yourself the right to read it: chmod u+rX {shlex.quote(str(path))}"


def _to_write(*paths: str | Path) -> str:
    """Return how to get these written; on a file system that is mounted read-only, rights do not help."""
    words = [str(path) for path in paths]
    if hasattr(os, "statvfs") and os.statvfs(words[0]).f_flag & os.ST_RDONLY:
        return f"mount their file system for writing: findmnt -T {shlex.quote(words[0])} shows which one it is"
    if owner := next(filter(None, map(_owner, words)), None):
        return f"ask {owner}, to whom this belongs, or copy the notes: cp -R {shlex.quote(words[0])} ."
    return f"get the right to write there: chmod u+w {shlex.join(words)}"


def _owner(path: str | Path) -> str | None:
    """Return who owns a file that is not this user's, whose rights only its owner may change; None for one that is."""
    try:
        owner = os.lstat(path).st_uid
    except OSError:
        return None
    if not hasattr(os, "geteuid") or owner == os.geteuid():
        return None
    try:
        from pwd import getpwuid

        return getpwuid(owner).pw_name
    except KeyError:  # of another machine, as on a disk that came from there
        return f"user {owner}"


def _dangling(path: Path) -> str | None:
    """Return what to do about a link to nothing; None for anything else."""
    if not path.is_symlink() or path.exists():
        return None
    return f"It leads to {os.readlink(path)}, where nothing is: rm {shlex.quote(str(path))}"


def _session_start(memory: Memory) -> Iterator[Finding]:
    """Check what is read at the start of a session against what may be shown of it."""
    try:
        shown = memory.bootstrap().files
        whole = {file.path: file.text for file in memory.bootstrap(max_chars=memory.config.files.max_bytes).files}
    except ConfigError:  # of the time zone, whose days it takes: that is a finding of its own
        return
    for file in shown:
        is_cut, words = file.chars > file.max_chars, words_in(whole.get(file.path, ""))
        is_long = words > LONG_TERM_WORDS and unencrypted(file.path.lower()) == "memory.md"
        if file.note:
            detail = f"{file.path}, at the start of a session: {file.note}"
            remedy = (
                f"Shorten it, or raise journal.bootstrap_chars ({file.max_chars:,})." if is_cut else "Fix the file."
            )
            yield Finding("session start", "note", detail, remedy)
        if is_long:
            read = "part of which is" if is_cut else "all of which are"
            detail = f"{file.path} has {words:,} words, {read} read at the start of every session"
            remedy = f"Move what is not always needed to notes in memory/; {LONG_TERM_WORDS:,} words are a good size."
            yield Finding("session start", "note", detail, remedy)
        if not file.note and not is_long:
            yield Finding("session start", "ok", f"{file.path}: {file.chars:,} of {file.max_chars:,} characters")


def words_in(text: str) -> int:
    """Count the words of a text; of Chinese and Japanese, which part none by blanks, two characters are one."""
    unparted = sum(map(len, _UNPARTED.findall(text)))
    return len(_UNPARTED.sub(" ", text).split()) + (unparted + 1) // 2


def _transcripts(memory: Memory, files: Sequence[MemoryFile]) -> Iterator[Finding]:
    rules = memory.config.sessions
    folder = memory.workspace.root / Path(rules.folder).expanduser()
    if not rules.index:
        yield Finding("transcripts", "ok", "not indexed, as the settings say (sessions.index)")
    elif not os.path.lexists(folder):
        yield Finding("transcripts", "ok", f"no transcripts yet: {folder} does not exist")
    elif (remedy := _dangling(folder)) is not None:
        yield Finding("transcripts", "problem", f"{folder} is a link to nothing", remedy)
    elif not folder.is_dir():
        remedy = "Put the transcripts into a folder, and name it in sessions.folder."
        yield Finding("transcripts", "problem", f"{folder} is not a folder", remedy)
    elif not os.access(folder, os.R_OK | os.X_OK):
        yield Finding("transcripts", "problem", f"{folder} cannot be read", _to_read(folder))
    else:
        sizes = [file.size for file in files if file.source == "sessions"]
        yield Finding("transcripts", "ok", f"{len(sizes):,} in {folder}, {size(sum(sizes))}")


def _files(state: Status, options: str, advice: str) -> Iterator[Finding]:
    """Check which files are indexed and which are not; `advice` says what to do if there are few."""
    if state.files or state.dirty:
        yield Finding("files", "ok", f"{state.files} files indexed, {state.chunks} chunks")
        if advice:
            yield Finding("files", "note", advice)
    else:
        remedy = f"Run `openclaw-memory init{options}`, or put notes into MEMORY.md and memory/."
        yield Finding("files", "problem", f"no memory file was found: {advice}", "" if "`" in advice else remedy)
    closed = []
    for path in dict.fromkeys([*(file.path for file in state.skipped), *state.dirty]):
        place = Path(state.workspace, path)
        if place.is_symlink():  # it is left out, and says so below
            continue
        if os.path.lexists(place) and not os.access(place, os.R_OK | (os.X_OK if place.is_dir() else 0)):
            closed.append(path)
            yield Finding("files", "problem", f"{path} cannot be read: its notes are not followed", _to_read(place))
    for file in state.skipped:
        if file.path not in closed:
            dangling = _dangling(Path(state.workspace, file.path))
            remedy = dangling or "Fix the file, or name it in files.exclude."
            yield Finding("files", "note", f"{file.path} is left out: {file.reason}", remedy)
    below = tuple(f"{path}/" for path in closed)
    if dirty := [path for path in behind(state) if path not in closed and not path.startswith(below)]:
        named = [f"{path} ({state.dirty[path]})" if path in state.dirty else path for path in first_of(dirty)]
        detail = f"{len(dirty):,} not indexed as they are now: {', '.join(named)}"
        yield Finding("files", "note", detail, f"Run `openclaw-memory index{options}`.")


def _syncs(state: Status, files: Sequence[MemoryFile], options: str) -> Iterator[Finding]:
    """Check when the index last followed the files, and what has kept it from doing so since."""
    if state.last_error is not None:
        remedy = f"Do as the message says; then run `openclaw-memory index{options}`."
        yield Finding("last sync", "problem", failure(state.last_error), remedy)
    if state.last_sync is None:
        return
    from openclaw_memory.indexing.history import moment

    newest = max(files, key=lambda file: file.mtime_ns, default=None)
    if newest is not None and newest.path in behind(state) and moment(newest.mtime_ns / 1e9) > state.last_sync.at:
        remedy = f"Run `openclaw-memory index{options}`, or keep `openclaw-memory watch{options}` running."
        yield Finding("last sync", "note", f"{last_sync(state)}; {newest.path} was written since", remedy)
    elif state.last_error is None:
        yield Finding("last sync", "ok", last_sync(state))


# --- the index -----------------------------------------------------------------------------------------------------


def _embedder(state: Status, missing: str) -> Finding:
    """Check what makes the vectors; `missing` says why no embedder could be loaded."""
    if state.vector.answers is False:
        remedy = "Search goes on by keywords. Check that the service is up and the key is right, or choose another one."
        return Finding("embedder", "problem", str(state.vector.error), remedy)
    if state.vector.enabled:
        if state.requested_provider in {state.provider, "auto"}:
            return Finding("embedder", "ok", f"{in_use(state)}: it answers")
        remedy = f"The next sync asks {state.requested_provider} again."
        return Finding("embedder", "note", f"{in_use(state)}: it answers", remedy)
    if state.requested_provider == "none":
        return Finding("embedder", "ok", "none, as the settings say: search is by keywords")
    remedy = "Search goes on by keywords. Do as the message says; the next sync makes the vectors."
    return Finding("embedder", "problem", missing or f"{state.requested_provider} does not load", remedy)


def _first_index(index: Path, options: str) -> Finding:
    if os.path.lexists(index.parent) and not index.parent.is_dir():
        remedy = f"Move it away: mv {shlex.quote(str(index.parent))} {shlex.quote(f'{index.parent}.old')}"
        return Finding("index", "problem", f"{index.parent} is a file, where the folder of the index belongs", remedy)
    folder = next(place for place in index.parents if place.exists())
    if os.access(folder, os.W_OK):
        return Finding("index", "note", "there is no index yet", f"Run `openclaw-memory index{options}`, or search.")
    elsewhere = "or set XDG_CACHE_HOME to a folder of your own, or Memory.open(..., index_path=...)."
    remedy = f"To make it, {_to_write(folder)}; {elsewhere}"
    return Finding("index", "problem", f"{index} cannot be made: {folder} is read-only", remedy)


def _index(state: Status, options: str, rebuild: str) -> Iterator[Finding]:
    index = Path(state.index_path)
    if not os.access(index, os.W_OK) or not os.access(index.parent, os.W_OK):
        detail = f"{index} cannot be written: it cannot follow the files"
        yield Finding("index", "problem", detail, f"To write it, {_to_write(index.parent, index)}")
    if os.name == "posix" and index.stat().st_mode & 0o077:
        remedy = f"If that is not meant so: chmod 600 {shlex.quote(str(index))}"
        yield Finding("index", "note", f"other users of this machine may open {index}, which holds the notes", remedy)
    if state.problems:
        yield Finding("index", "problem", f"{index} is damaged: {'; '.join(state.problems)}", rebuild)
    else:
        yield Finding("index", "ok", f"{index} is sound")
    yield from _encryption(state)
    if error := state.fts.error:
        yield Finding("keyword search", "problem", str(error), rebuild)
    else:
        yield Finding("keyword search", "ok", "answers a query")
    if state.vector.answers:  # otherwise the embedder is the problem
        yield _vectors(state, options, rebuild)


def _encryption(state: Status) -> Iterator[Finding]:
    """Check what an encrypted index is worth, and whether SQLite could encrypt."""
    from openclaw_memory.store.connection import encrypts

    if key := state.engine.get("key"):
        detail = f"the index is encrypted ({state.engine.get('cipher')}, key {key})"
        yield Finding("encryption", "ok", detail, "")
        if any(state.sources.values()):
            detail = f"whoever has the disk of {state.workspace} reads the notes themselves, of which the index is made"
            yield Finding("encryption", "note", detail, "Encrypt the disk, or the notes that nobody else may read.")
    elif state.store == "sqlite" and not encrypts():
        detail = "apsw was installed over apsw-sqlite3mc: no index can be encrypted, and no encrypted one opens"
        remedy = "Run `pip install --force-reinstall --no-deps apsw-sqlite3mc`."
        yield Finding("encryption", "note", detail, remedy)


def _vectors(state: Status, options: str, rebuild: str) -> Finding:
    vector = state.vector
    error, path = vector.error, vector.path
    if vector.fits is False:
        remedy = (
            f"Choose the model that made the index, or delete {state.index_path} and run "
            f"`openclaw-memory index{options}`: the index is made from the files, and nothing is lost."
        )
        return Finding("vector search", "problem", str(error), remedy)
    if not vector.available or vector.verified is False:
        detail = str(error or "a query found nothing, though chunks are indexed")
        return Finding("vector search", "problem", detail, rebuild)
    if vector.verified is None:
        remedy = f"Run `openclaw-memory index{options}`; the notes below say more."
        return Finding("vector search", "note", "the index holds no vectors of this embedder yet", remedy)
    if error:
        remedy = "Results are the same, more slowly. If sqlite-vec is missing: pip install --force-reinstall sqlite-vec"
        return Finding("vector search", "note", f"works by {path}: {error}", remedy)
    return Finding("vector search", "ok", f"answers a query by {path}")


# --- the machine ---------------------------------------------------------------------------------------------------


def clock(files: Iterable[MemoryFile], now_ns: int) -> Iterator[Finding]:
    """Find files written in the future: by a clock that was wrong then, or is now."""
    late = [file.path for file in files if file.mtime_ns - now_ns > CLOCK_SECONDS * 1_000_000_000]
    now = datetime.datetime.fromtimestamp(now_ns / 1e9).astimezone()
    if late:
        detail = f"it is {now:%Y-%m-%d %H:%M %Z}, but these were written later: {', '.join(first_of(late))}"
        yield Finding("clock", "note", detail, "Set the clock right; or, if it is, give the files its time with touch.")
    else:
        yield Finding("clock", "ok", f"it is {now:%Y-%m-%d %H:%M %Z}; no file is from the future")


def time_zone(name: str | None) -> Iterator[Finding]:
    """Check the time zone of the notes; None is the machine's own."""
    from openclaw_memory.workspace.days import local_now

    try:
        now = local_now(name)
    except ConfigError as error:
        yield Finding("time zone", "problem", str(error), "Set journal.timezone as the message says.")
    else:
        yield Finding("time zone", "ok", f"{name or now.tzname()}: today is {now:%Y-%m-%d}")


def watch_limit(workspace: Workspace, max_watches: Path) -> Iterator[Finding]:
    """Check whether a watcher could follow all folders; `max_watches` is the file with the system's limit."""
    from openclaw_memory.indexing.watcher import folders_of

    try:
        limit = int(max_watches.read_text())
    except (OSError, ValueError):
        return
    folders = sum(sum(1 for _ in os.walk(path)) if deep else 1 for path, deep in folders_of(workspace).items())
    if folders > limit:
        remedy = f"Raise it: sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}"
        detail = f"{folders:,} folders are to be watched, the system allows {limit:,}: a watcher scans them in turn"
        yield Finding("watching", "note", detail, remedy)
    else:
        yield Finding("watching", "ok", f"{folders:,} folders, of {limit:,} that the system allows")


def around_index(index: Path, options: str) -> Iterator[Finding]:
    """Check the place of the index: the room there, the file system, and what was left behind."""
    folder = next(path for path in index.absolute().parents if path.is_dir())
    yield room(folder, shutil.disk_usage(folder).free, index.stat().st_size if index.is_file() else 0)
    yield from file_system(index, MOUNTS.read_text(errors="replace") if MOUNTS.is_file() else "")
    yield from leftovers(index, options)


def room(folder: Path, free: int, index_bytes: int) -> Finding:
    """Check whether the index could be built again in the bytes that are free."""
    detail, needed = f"{size(free)} free in {folder}", ROOM_FOR_REBUILD * index_bytes
    remedy = f"Make room: df -h {shlex.quote(str(folder))}"
    if free < LEAST_ROOM:
        return Finding("disk", "problem", f"{detail}: nothing can be written safely", remedy)
    if free < needed:
        detail = f"{detail}; to build the index again takes {size(needed)} for a while"
        return Finding("disk", "note", detail, remedy)
    return Finding("disk", "ok", detail)


def file_system(index: Path, mounts: str) -> Iterator[Finding]:
    """Check that the index is on a local disk; `mounts` is the text of /proc/mounts, empty on other systems.

    A line of it is `device folder type options 0 0`, with spaces and the like in octal.
    """
    lines = [line.split() for line in mounts.splitlines()]
    # What was mounted last on a folder is what is seen there.
    kinds = {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), words[1]): words[2] for words in lines if words}
    place = f"{os.path.realpath(index.parent)}/"
    mount = max((folder for folder in kinds if place.startswith(f"{folder.rstrip('/')}/")), key=len, default=None)
    if mount is None:
        return
    if kinds[mount] in NETWORK_FILE_SYSTEMS:
        detail = f"{index} lies on a network file system ({kinds[mount]} at {mount}): two machines may damage it"
        remedy = "Keep the index on a local disk: Memory.open(folder, index_path='...'), or OPENCLAW_STATE_DIR."
        yield Finding("file system", "problem", detail, remedy)
    else:
        yield Finding("file system", "ok", f"the index lies on {kinds[mount]}")


def leftovers(index: Path, options: str) -> Iterator[Finding]:
    """Find damaged indexes that were kept, and what interrupted builds have left."""
    from openclaw_memory.store import SqliteStore

    info = SqliteStore(index).describe(counts=False)
    if info.damaged:
        remedy = f"Nothing needs them: rm {shlex.quote(str(index))}.damaged-*"
        yield Finding("leftovers", "note", f"{_named(info.damaged)}: kept when damaged", remedy)
    if info.unfinished and "sync" in info.locked:
        yield Finding("leftovers", "ok", "none: the index is being built again just now")
    elif info.unfinished:
        remedy = f"The next sync removes them: `openclaw-memory index{options}`."
        yield Finding("leftovers", "note", f"{_named(info.unfinished)}: of a build cut short", remedy)


def _named(files: Sequence[str]) -> str:
    total = 0
    for file in files:
        with suppress(FileNotFoundError):  # swept meanwhile
            total += os.stat(file).st_size
    return f"{', '.join(first_of([os.path.basename(file) for file in files]))} ({size(total)})"
