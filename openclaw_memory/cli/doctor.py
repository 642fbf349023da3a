"""Diagnose a memory: its deep status, its disk and its data folder, each finding with a remedy."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from openclaw_memory.errors import ConfigError, CorruptIndexError, EmbedderError, OpenClawMemoryError
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.results import limit_names
from openclaw_memory.types.status import describe_embedder, describe_failure, describe_sync, format_size, list_behind

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Status

# OpenClaw asks that MEMORY.md be kept below so many words: all of it is read at the start of every session.
LONG_TERM_WORDS = 2000
# An index is built again next to the one that answers, and then copied into its log: twice its size, for a while.
REBUILD_FACTOR = 2
# With less than this even a small note, or the log of a small sync, may not fit any more.
MIN_ROOM = 16 * 1024 * 1024
# The processes that use a database in WAL mode share memory, which they can only do on one machine (sqlite.org/wal).
NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs lustre ncpfs vboxsf davfs fuse.sshfs fuse.s3fs fuse.rclone "
    "fuse.gcsfuse fuse.glusterfs fuse.davfs2 fuse.curlftpfs".split()
)
MOUNTS = Path("/proc/mounts")


class Finding(Struct, frozen=True):
    """The outcome of one check: `note` is worth knowing, `problem` needs the `remedy`."""

    check: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str = ""


def check_memory(open_memory: Callable[[], Memory], options: str = "") -> list[Finding]:
    """Make every check that can be made; a memory that cannot be opened is the only finding.

    Args:
        open_memory: Opens the memory to check.
        options: Those that choose this memory (` --workspace notes`), for the commands that a remedy names.

    Returns:
        The findings, in the order of the checks.
    """
    try:
        with open_memory() as memory:
            return [*_check(memory, options)]
    except OpenClawMemoryError as error:
        return [Finding("open", "problem", str(error), "Fix this first; the other checks need an open memory.")]


def _check(memory: Memory, options: str) -> Iterator[Finding]:
    files = len(memory.workspace.scan().files)
    yield check_workspace(str(memory.workspace.root))
    yield from check_session_start(memory)
    yield from check_status(memory, files, options)
    if (index := memory.index_path) is not None:
        yield check_room(index)
        yield from check_file_system(index, MOUNTS.read_text(errors="replace") if MOUNTS.is_file() else "")
    yield from check_data_folder()


def check_workspace(folder: str) -> Finding:
    """Check that the folder, which has been read, can be written."""
    if not os.access(folder, os.W_OK):
        remedy = "Searching works; to append notes, get the right to write there."
        return Finding("workspace", "note", f"{folder} is read-only", remedy)
    return Finding("workspace", "ok", f"{folder} can be read and written")


def check_session_start(memory: Memory) -> Iterator[Finding]:
    """Check that an agent reads every note whole when a session starts."""
    try:
        files = memory.notes.bootstrap().files
    except ConfigError as error:  # of the zone of its days
        yield Finding("time zone", "problem", str(error), "Set sessions.timezone as the message says.")
        return
    for file in files:
        words = len(file.text.split())
        if file.note:
            remedy = "Fix the file, shorten it, or raise sessions.bootstrap_chars."
            yield Finding("session start", "note", f"{file.path}, at the start of a session: {file.note}", remedy)
        elif words > LONG_TERM_WORDS and get_plain_name(file.path.lower()) == "memory.md":
            detail = f"{file.path} has {words:,} words, all of which are read at the start of every session"
            remedy = f"Move what is not always needed to notes in memory/; {LONG_TERM_WORDS:,} words are a good size."
            yield Finding("session start", "note", detail, remedy)
        else:
            yield Finding("session start", "ok", f"{file.path}: {file.chars:,} of {file.max_chars:,} characters")


def check_status(memory: Memory, files: int, options: str) -> Iterator[Finding]:
    """Check the deep status; if there is none, the reason is the one finding."""
    sync = f"Run `openclaw-memory index{options}`."
    rebuild = f"Run `openclaw-memory index{options} --force`: the index is made from the files, and nothing is lost."
    try:
        state = memory.status(deep=True)
    except OpenClawMemoryError as error:
        remedy = rebuild if isinstance(error, CorruptIndexError) else "Do as the message says."
        yield Finding("index", "problem", str(error), remedy)
        return
    advice, missing = memory.workspace.suggest_setup(files), ""
    try:
        _ = memory.embedder
    except EmbedderError as error:
        missing = str(error)
    yield from check_files(state, options, advice)
    yield check_embedder(state, missing)
    yield from check_index(state, sync, rebuild)
    if state.last_error is not None:
        remedy = f"Do as the message says; then run `openclaw-memory index{options}`."
        yield Finding("last sync", "problem", describe_failure(state.last_error), remedy)
    elif state.last_sync is not None:
        yield Finding("last sync", "ok", describe_sync(state))
    for notice in state.notices:
        if not any(message and message in notice for message in (missing, advice)):
            yield Finding("notice", "note", notice, sync if notice.endswith("sync the memory") else "")


def check_files(state: Status, options: str, advice: str) -> Iterator[Finding]:
    """Check that files are indexed; `advice` is the remedy if there are few."""
    if state.files or state.dirty:
        yield Finding("files", "ok", f"{state.files} files indexed, {state.chunks} chunks")
        if advice:
            yield Finding("files", "note", advice)
    else:
        remedy = f"Run `openclaw-memory init{options}`, or put notes into MEMORY.md and memory/."
        yield Finding("files", "problem", f"no memory file was found: {advice}", "" if "`" in advice else remedy)
    for file in state.skipped:
        remedy = "Fix the file, or name it in files.exclude."
        yield Finding("files", "note", f"{file.path} is left out: {file.reason}", remedy)
    if dirty := list_behind(state):
        paths = [f"{path} ({state.dirty[path]})" if path in state.dirty else path for path in limit_names(dirty)]
        detail = f"{len(dirty):,} not indexed as they are now: {', '.join(paths)}"
        yield Finding("files", "note", detail, f"Run `openclaw-memory index{options}`.")


def check_embedder(state: Status, missing: str) -> Finding:
    """Check the embedder; `missing` is the reason why none could be loaded."""
    if state.vector.answers is False:
        remedy = "Search goes on by keywords. Check that the service is up and the key is right, or choose another one."
        return Finding("embedder", "problem", str(state.vector.error), remedy)
    if state.vector.enabled:
        remedy = f"The next sync asks {state.requested_provider} again." if state.fallback is not None else ""
        return Finding("embedder", "note" if remedy else "ok", f"{describe_embedder(state)}: it answers", remedy)
    if state.requested_provider == "none":
        return Finding("embedder", "ok", "none, as the settings say: search is by keywords")
    remedy = "Search goes on by keywords. Do as the message says; the next sync makes the vectors."
    return Finding("embedder", "problem", missing or f"{state.requested_provider} does not load", remedy)


def check_index(state: Status, sync: str, rebuild: str) -> Iterator[Finding]:
    """Check that the index is sound and private, and that both legs of a search answer."""
    index = Path(state.index_path)
    is_file = index.exists()
    place = index if is_file else next(path for path in index.parents if path.exists())
    if not os.access(place, os.W_OK) or not (is_file or place.is_dir()):
        remedy = f"Move away or make writable {place}, or set OPENCLAW_MEMORY_HOME to a folder of your own."
        yield Finding("index", "problem", f"{index} cannot be written", remedy)
    elif not is_file:
        yield Finding("index", "note", "there is no index yet", f"{sync[:-1]}, or search.")
    if not is_file:
        return
    if os.name == "posix" and index.stat().st_mode & 0o077:
        remedy = f"If that is not meant so: chmod 600 {shlex.quote(str(index))}"
        yield Finding("index", "note", f"other users of this machine may open {index}, which holds the notes", remedy)
    if state.problems:
        yield Finding("index", "problem", f"{index} is damaged: {'; '.join(state.problems)}", rebuild)
    else:
        hook = ", ".join(f"{name} {state.engine[name]}" for name in ("cipher", "key") if name in state.engine)
        yield Finding("index", "ok", f"{index} is sound" + (f" ({hook})" if hook else ""))
    if error := state.fts.error:
        yield Finding("keyword search", "problem", str(error), rebuild)
    else:
        yield Finding("keyword search", "ok", "answers a query")
    if state.vector.answers:  # otherwise the embedder is the problem
        yield check_vectors(state, sync, rebuild)


def check_vectors(state: Status, sync: str, rebuild: str) -> Finding:
    """Check that the vectors of the index fit the embedder, and answer."""
    from openclaw_memory.store.embedding_cache import locate_cache

    vector = state.vector
    if vector.fits is False:
        places = f"{state.index_path} and {locate_cache()}"
        remedy = f"Choose the model that made the index, or delete {places}, which are made from the files. {sync}"
        return Finding("vector search", "problem", str(vector.error), remedy)
    if not vector.available or vector.verified is False:
        detail = str(vector.error or "a query found nothing, though chunks are indexed")
        return Finding("vector search", "problem", detail, rebuild)
    if vector.verified is None:
        remedy = f"{sync[:-1]}; the notes below say more."
        return Finding("vector search", "note", "the index holds no vectors of this embedder yet", remedy)
    if vector.error:
        remedy = "Results are the same, more slowly. If sqlite-vec is missing: pip install --force-reinstall sqlite-vec"
        return Finding("vector search", "note", f"works by {vector.path}: {vector.error}", remedy)
    return Finding("vector search", "ok", f"answers a query by {vector.path}")


def check_room(index: Path) -> Finding:
    """Check whether the index could be built again in the bytes that are free."""
    folder = next(path for path in index.absolute().parents if path.is_dir())
    free, needed = shutil.disk_usage(folder).free, REBUILD_FACTOR * (index.stat().st_size if index.is_file() else 0)
    detail, remedy = f"{format_size(free)} free in {folder}", f"Make room: df -h {shlex.quote(str(folder))}"
    if free < MIN_ROOM:
        return Finding("disk", "problem", f"{detail}: nothing can be written safely", remedy)
    if free < needed:
        return Finding(
            "disk", "note", f"{detail}; a rebuild of the index takes {format_size(needed)} for a while", remedy
        )
    return Finding("disk", "ok", detail)


def check_data_folder() -> Iterator[Finding]:
    """Find data folders of workspaces that are gone."""
    from openclaw_memory.config.environment import list_orphans

    if orphans := list_orphans():
        detail = f"{len(orphans)} of workspaces that are gone, such as {orphans[0][1]}"
        yield Finding("data folder", "note", detail, "Remove them: openclaw-memory doctor --prune")


def check_file_system(index: Path, mounts: str) -> Iterator[Finding]:
    """Check that the index is on a local disk; `mounts` is the text of /proc/mounts, empty on other systems.

    A line is `device folder type options 0 0`, with spaces and the like in octal.
    """
    lines = [line.split() for line in mounts.splitlines()]
    # The last mount on a folder is the visible one.
    kinds = {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), words[1]): words[2] for words in lines if words}
    place = f"{os.path.realpath(index.parent)}/"
    mount = max((folder for folder in kinds if place.startswith(f"{folder.rstrip('/')}/")), key=len, default=None)
    if mount is None:
        return
    if kinds[mount] in NETWORK_FILE_SYSTEMS:
        detail = f"{index} lies on a network file system ({kinds[mount]} at {mount}): two machines may damage it"
        remedy = "Keep the index on a local disk: set OPENCLAW_MEMORY_HOME, or Memory.open(folder, index_path='...')."
        yield Finding("file system", "problem", detail, remedy)
    else:
        yield Finding("file system", "ok", f"the index lies on {kinds[mount]}")
