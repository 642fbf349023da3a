"""The examination of a memory: what search needs, checked one by one, each with what to do."""

from __future__ import annotations

import datetime
import glob
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.cli.output import Finding
from openclaw_memory.errors import ConfigError, CorruptIndexError, EmbedderError, IndexLockedError, OpenClawMemoryError
from openclaw_memory.types import MemoryFile
from openclaw_memory.types.results import behind, failure, first_of, in_use, last_sync, size

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import MemoryFile, Status


__all__ = ["Finding", "examine"]

# OpenClaw asks that MEMORY.md be kept below so many words: all of it is read at the start of every session.
LONG_TERM_WORDS = 2000
_DO_AS_IT_SAYS = "Do as the message says, and run the doctor again."


def examine(open_memory: Callable[[], Memory], options: str = "") -> list[Finding]:
    """Every check that can be made. A memory that cannot be opened is a finding, and ends the examination.

    `options` are those that choose this memory (` --workspace notes`): each command that a remedy names gets them.
    """
    try:
        memory = open_memory()
    except OpenClawMemoryError as error:
        return [Finding("open", "problem", str(error), "Mend this first; the other checks need an open memory.")]
    with memory:
        try:
            files = memory.workspace.scan().files
        except OpenClawMemoryError as error:
            return [Finding("workspace", "problem", str(error), _DO_AS_IT_SAYS)]
        findings = [*_workspace(str(memory.workspace.root)), *_session_start(memory), *_transcripts(memory, files)]
        findings += _by_status(memory, files, options)
        return [*findings, *around(memory, files, options)]


def _by_status(memory: Memory, files: Sequence[MemoryFile], options: str) -> Iterator[Finding]:
    """What the status shows; where there is none, the reason is the one finding."""
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
    except OpenClawMemoryError as error:
        yield Finding("status", "problem", str(error), _DO_AS_IT_SAYS)
        return
    advice = memory.workspace.advice(len(files))
    yield from _files(state, _closed(memory.workspace.root, state), options, advice)
    missing = "" if state.vector.get("enabled") else _why_no_embedder(memory)
    yield from _embedder(state, missing)
    yield from _index(state, options, rebuild)
    yield from _syncs(state, files, options)
    told = [words for words in (missing, advice) if words]
    for text in (notice for notice in state.notices if not any(words in notice for words in told)):
        needs_sync = text.endswith("sync the memory")
        yield Finding("notice", "note", text, f"Run `openclaw-memory index{options}`." if needs_sync else "")


def _workspace(folder: str) -> Iterator[Finding]:
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("workspace", "ok", f"{folder} can be read and written")
    elif os.access(folder, os.R_OK | os.X_OK):
        remedy = f"Searching works; to append notes, {_to_write([folder], read_only_mount(folder))}"
        yield Finding("workspace", "note", f"{folder} is read-only", remedy)
    else:
        remedy = f"Give yourself the right to read the folder: chmod u+rx {shlex.quote(folder)}"
        yield Finding("workspace", "problem", f"{folder} cannot be read", remedy)


def _session_start(memory: Memory) -> Iterator[Finding]:
    """What is read at the start of a session, against what may be shown of it."""
    try:
        shown = memory.bootstrap().files
    except ConfigError:  # of the time zone, whose days it takes: that is a finding of its own
        return
    for file in shown:
        words = len(file.text.split())
        if file.note:
            detail = f"{file.path}, at the start of a session: {file.note}"
            cut = file.chars > file.max_chars
            remedy = f"Shorten it, or raise journal.bootstrap_chars ({file.max_chars:,})." if cut else "Mend the file."
            yield Finding("session start", "note", detail, remedy)
        elif words > LONG_TERM_WORDS and file.path.lower() == "memory.md":
            detail = f"{file.path} has {words:,} words, all of which are read at the start of every session"
            remedy = f"Move what is not always needed to notes in memory/; {LONG_TERM_WORDS:,} words are a good size."
            yield Finding("session start", "note", detail, remedy)
        else:
            yield Finding("session start", "ok", f"{file.path}: {file.chars:,} of {file.max_chars:,} characters")


def _transcripts(memory: Memory, files: Sequence[MemoryFile]) -> Iterator[Finding]:
    rules = memory.config.sessions
    folder = memory.workspace.root / Path(rules.folder).expanduser()
    found = [file for file in files if file.source == "sessions"]
    if not rules.index:
        yield Finding("transcripts", "ok", "not indexed, as the settings say (sessions.index)")
    elif not os.path.lexists(folder):
        yield Finding("transcripts", "ok", f"there are none yet: {folder} does not exist")
    elif not folder.is_dir():
        remedy = "Put the transcripts into a folder, and name it in sessions.folder."
        yield Finding("transcripts", "problem", f"{folder} is not a folder", remedy)
    elif not os.access(folder, os.R_OK | os.X_OK):
        remedy = f"Give yourself the right to read it: chmod u+rx {shlex.quote(str(folder))}"
        yield Finding("transcripts", "problem", f"{folder} cannot be read", remedy)
    else:
        total = size(sum(file.size for file in found))
        yield Finding("transcripts", "ok", f"{len(found):,} in {folder}, {total}")


def _to_write(paths: Sequence[str], read_only: bool) -> str:
    """What to do to write these; on a file system that is mounted read-only no rights help."""
    if read_only:
        return f"mount their file system for writing: findmnt -T {shlex.quote(paths[0])} shows which one it is"
    return f"get the right to write there: chmod u+w {shlex.join(paths)}"


def _closed(root: Path, state: Status) -> list[str]:
    """The files and folders, below `root`, that may not be read."""
    closed = []
    for path in dict.fromkeys([*(file.path for file in state.skipped), *state.dirty]):
        place = root / path
        if os.path.lexists(place) and not os.access(place, os.R_OK | (os.X_OK if place.is_dir() else 0)):
            closed.append(path)
    return closed


def _files(state: Status, closed: Sequence[str], options: str, advice: str) -> Iterator[Finding]:
    """The files that are indexed, and those that are not; `closed` may not be read, nor what lies below them.

    `advice` says what to do where there are few.
    """
    if state.files or state.dirty:
        yield Finding("files", "ok", f"{state.files} files indexed, {state.chunks} chunks")
        if advice:
            yield Finding("files", "note", advice)
    else:
        remedy = f"Run `openclaw-memory init{options}`, or put notes into MEMORY.md and memory/."
        yield Finding("files", "problem", f"no memory file was found: {advice}", "" if "`" in advice else remedy)
    for path in closed:
        remedy = f"Give yourself the right to read it: chmod u+rX {shlex.quote(str(Path(state.workspace) / path))}"
        yield Finding("files", "problem", f"{path} cannot be read: its notes are not followed", remedy)
    for file in state.skipped:
        if file.path not in closed:
            remedy = "Mend the file, or name it in files.exclude."
            yield Finding("files", "note", f"{file.path} is left out: {file.reason}", remedy)
    below = tuple(f"{path}/" for path in closed)
    if dirty := [path for path in behind(state) if path not in closed and not path.startswith(below)]:
        named = [f"{path} ({state.dirty[path]})" if path in state.dirty else path for path in first_of(dirty)]
        detail = f"{len(dirty):,} not indexed as they are now: {', '.join(named)}"
        yield Finding("files", "note", detail, f"Run `openclaw-memory index{options}`.")


def _syncs(state: Status, files: Sequence[MemoryFile], options: str) -> Iterator[Finding]:
    """When the index last followed the files, and what has kept it from that since."""
    if state.last_error is not None:
        remedy = f"Do as the message says; then run `openclaw-memory index{options}`."
        yield Finding("last sync", "problem", failure(state.last_error), remedy)
    if state.last_sync is None:
        return
    from openclaw_memory.indexing.history import moment

    newest = max(files, key=lambda file: file.mtime_ns, default=None)
    if newest is not None and newest.path in behind(state) and moment(newest.mtime_ns / 1e9) > state.last_sync["at"]:
        remedy = f"Run `openclaw-memory index{options}`, or keep `openclaw-memory watch{options}` running."
        detail = f"{last_sync(state)}; {newest.path} was written since"
        yield Finding("last sync", "note", detail, remedy)
    elif state.last_error is None:
        yield Finding("last sync", "ok", last_sync(state))


def _index(state: Status, options: str, rebuild: str) -> Iterator[Finding]:
    if not os.path.exists(state.index_path):
        folder = Path(state.index_path).parent
        if os.path.lexists(folder) and not folder.is_dir():
            remedy = f"Move it away: mv {shlex.quote(str(folder))} {shlex.quote(f'{folder}.old')}"
            yield Finding("index", "problem", f"{folder} is a file, where the folder of the index belongs", remedy)
        else:
            yield from _first_index(Path(state.index_path), options)
        return
    yield from _rights(Path(state.index_path))
    if state.problems:
        yield Finding("index", "problem", f"{state.index_path} is damaged: {'; '.join(state.problems)}", rebuild)
    else:
        yield Finding("index", "ok", f"{state.index_path} is sound")
    if error := state.fts.get("error"):
        yield Finding("keyword search", "problem", str(error), rebuild)
    else:
        yield Finding("keyword search", "ok", "answers a query")
    yield from _vectors(state, options, rebuild)


def _first_index(index: Path, options: str) -> Iterator[Finding]:
    folder = next(place for place in index.parents if place.exists())
    if os.access(folder, os.W_OK):
        yield Finding("index", "note", "there is none yet", f"Run `openclaw-memory index{options}`, or search.")
    else:
        remedy = _to_write([str(folder)], read_only_mount(folder))
        elsewhere = "or set XDG_CACHE_HOME to a folder of your own, or Memory.open(..., index_path=...)."
        detail = f"{index} cannot be made: {folder} is read-only"
        yield Finding("index", "problem", detail, f"{remedy[0].upper()}{remedy[1:]}; {elsewhere}")


def _rights(index: Path) -> Iterator[Finding]:
    if not os.access(index, os.W_OK) or not os.access(index.parent, os.W_OK):
        remedy = _to_write([str(index.parent), str(index)], read_only_mount(index.parent))
        detail = f"{index} cannot be written: it cannot follow the files"
        yield Finding("index", "problem", detail, f"{remedy[0].upper()}{remedy[1:]}")
    if os.name == "posix" and index.stat().st_mode & 0o077:
        remedy = f"If that is not meant so: chmod 600 {shlex.quote(str(index))}"
        yield Finding("index", "note", f"other users of this machine may open {index}, which holds the notes", remedy)


def _vectors(state: Status, options: str, rebuild: str) -> Iterator[Finding]:
    vector = state.vector
    if not vector.get("answers"):  # said of the embedder
        return
    if vector.get("fits") is False:
        remedy = (
            f"Choose the model that made the index, or delete {state.index_path} and run "
            f"`openclaw-memory index{options}`: the index is made from the files, and nothing is lost."
        )
        yield Finding("vector search", "problem", str(vector.get("error")), remedy)
    elif not vector.get("available") or vector.get("verified") is False:
        detail = str(vector.get("error") or "a query found nothing, though chunks are indexed")
        yield Finding("vector search", "problem", detail, rebuild)
    elif "verified" not in vector:
        remedy = f"Run `openclaw-memory index{options}`; the notes below say more."
        yield Finding("vector search", "note", "the index holds no vectors of this embedder yet", remedy)
    elif error := vector.get("error"):
        remedy = "Results are the same, more slowly. If sqlite-vec is missing: pip install --force-reinstall sqlite-vec"
        yield Finding("vector search", "note", f"works by {vector.get('path')}: {error}", remedy)
    else:
        yield Finding("vector search", "ok", f"answers a query by {vector.get('path')}")


def _why_no_embedder(memory: Memory) -> str:
    try:
        _ = memory.embedder
    except EmbedderError as error:
        return str(error)
    return ""


def _embedder(state: Status, missing: str) -> Iterator[Finding]:
    """What makes the vectors; `missing` says why there is none, where one is wanted."""
    if state.vector.get("answers") is False:
        remedy = (
            "Search goes on by keywords. See whether the service is up and the key is right, or choose another one."
        )
        yield Finding("embedder", "problem", str(state.vector.get("error")), remedy)
    elif state.vector.get("enabled") and state.requested_provider not in {state.provider, "auto"}:
        remedy = f"The next sync asks {state.requested_provider} again."
        yield Finding("embedder", "note", f"{in_use(state)}: it answers", remedy)
    elif state.vector.get("enabled"):
        yield Finding("embedder", "ok", f"{in_use(state)}: it answers")
    elif state.requested_provider == "none":
        yield Finding("embedder", "ok", "none, as the settings say: search is by keywords")
    else:
        remedy = "Search goes on by keywords. Do as the message says; the next sync makes the vectors."
        yield Finding("embedder", "problem", missing or f"{state.requested_provider} does not load", remedy)


# An index is built again beside the one that answers, and then copied into its log: twice its size, for a while.
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


def around(memory: Memory, files: Sequence[MemoryFile], options: str) -> Iterator[Finding]:
    """What there is to find outside the notes and the index; `files` are those that the workspace holds."""
    yield from clock(files, time.time_ns())
    yield from time_zone(memory.config.journal.timezone)
    yield from watch_limit(_folders(memory), _number_in(MAX_WATCHES))
    if (index := memory.index_path) is not None:
        yield from room(index)
        yield from file_system(index, MOUNTS.read_text(errors="replace") if MOUNTS.is_file() else "")
        yield from leftovers(index, options)


def read_only_mount(path: str | Path) -> bool:
    """Whether a file or folder lies on a file system that is mounted read-only; False where that cannot be known."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def clock(files: Iterable[MemoryFile], now_ns: int) -> Iterator[Finding]:
    """Files written in the future: by a clock that was wrong then, or is now."""
    late = [file.path for file in files if file.mtime_ns - now_ns > CLOCK_SECONDS * 1_000_000_000]
    now = datetime.datetime.fromtimestamp(now_ns / 1e9).astimezone()
    if late:
        detail = f"it is {now:%Y-%m-%d %H:%M %Z}, but these were written later: {', '.join(first_of(late))}"
        yield Finding("clock", "note", detail, "Set the clock right; or, if it is, give the files its time with touch.")
    else:
        yield Finding("clock", "ok", f"it is {now:%Y-%m-%d %H:%M %Z}; no file is from the future")


def time_zone(name: str | None) -> Iterator[Finding]:
    """The zone whose days the notes are of; `name` is None for the machine's own."""
    from openclaw_memory.workspace.journal import local_now

    try:
        now = local_now(name)
    except ConfigError as error:
        yield Finding("time zone", "problem", str(error), "Set journal.timezone as the message says.")
    else:
        yield Finding("time zone", "ok", f"{name or now.tzname()}: today is {now:%Y-%m-%d}")


def watch_limit(folders: int, limit: int | None) -> Iterator[Finding]:
    """Whether a watcher could be told of changes in so many folders; `limit` is None where there is none."""
    if limit is None:
        return
    if folders > limit:
        remedy = f"Raise it: sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}"
        detail = f"{folders:,} folders are to be watched, the system allows {limit:,}: a watcher looks at them in turn"
        yield Finding("watching", "note", detail, remedy)
    else:
        yield Finding("watching", "ok", f"{folders:,} folders, of {limit:,} that the system allows")


def room(index: Path, free: int | None = None) -> Iterator[Finding]:
    """Whether the index could be built again where it lies; `free` is measured where it is not given, in bytes."""
    folder = next(path for path in index.absolute().parents if path.is_dir())
    if free is None:
        free = shutil.disk_usage(folder).free
    needed = ROOM_FOR_REBUILD * index.stat().st_size if index.is_file() else 0
    detail = f"{size(free)} free in {folder}"
    remedy = f"Make room: df -h {shlex.quote(str(folder))}"
    if free < LEAST_ROOM:
        yield Finding("disk", "problem", f"{detail}: nothing can be written safely", remedy)
    elif free < needed:
        detail = f"{detail}; to build the index again takes {size(needed)} for a while"
        yield Finding("disk", "note", detail, remedy)
    else:
        yield Finding("disk", "ok", detail)


def file_system(index: Path, mounts: str) -> Iterator[Finding]:
    """Whether the index lies on a network file system; `mounts` is what /proc/mounts says, empty where there is none.

    A line of it is `device folder type options 0 0`, with spaces and the like in octal.
    """
    place = os.path.realpath(index.parent)
    kinds: dict[str, str] = {}
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) >= 3:
            kinds[_unescaped(fields[1])] = fields[2]  # what was mounted last lies on top
    over = [folder for folder in kinds if place == folder or place.startswith(f"{folder.rstrip('/')}/")]
    if not over:
        return
    mount = max(over, key=len)
    if kinds[mount] in NETWORK_FILE_SYSTEMS:
        detail = f"{index} lies on a network file system ({kinds[mount]} at {mount}): two machines may damage it"
        remedy = "Keep the index on a local disk: Memory.open(folder, index_path='...'), or OPENCLAW_STATE_DIR."
        yield Finding("file system", "problem", detail, remedy)
    else:
        yield Finding("file system", "ok", f"the index lies on {kinds[mount]}")


def leftovers(index: Path, options: str) -> Iterator[Finding]:
    """Damaged indexes that were kept, and what builds that were cut short have left beside the index."""
    from openclaw_memory.store.shadow import leftovers as cut_short

    if kept := sorted(index.parent.glob(f"{glob.escape(index.name)}.damaged-*")):
        detail = f"{', '.join(first_of([path.name for path in kept]))} ({size(_bytes_of(kept))}): kept when damaged"
        yield Finding("leftovers", "note", detail, f"Nothing needs them: rm {shlex.quote(str(index))}.damaged-*")
    if cut := cut_short(index):
        if _is_being_built(index):
            yield Finding("leftovers", "ok", "none: the index is being built again just now")
        else:
            detail = (
                f"{', '.join(first_of([path.name for path in cut]))} ({size(_bytes_of(cut))}): of a build cut short"
            )
            yield Finding("leftovers", "note", detail, f"The next sync removes them: `openclaw-memory index{options}`.")


def _is_being_built(index: Path) -> bool:
    from openclaw_memory.indexing import somebody_is_at_work

    return somebody_is_at_work(index)


def _bytes_of(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # swept meanwhile
    return total


def _folders(memory: Memory) -> int:
    """How many folders a watcher follows: the workspace's own, and all below those that hold notes or transcripts."""
    rules = memory.config
    names = ("memory", *rules.files.extra_paths, *([rules.sessions.folder] if rules.sessions.index else []))
    places = [os.path.join(memory.workspace.root, os.path.expanduser(name)) for name in names]
    return 1 + sum(1 for place in places for _ in os.walk(place))


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _unescaped(folder: str) -> str:
    return folder.replace(r"\040", " ").replace(r"\011", "\t").replace(r"\012", "\n").replace(r"\134", "\\")
