"""What the machine around a memory is like: room, clock, time zone, file system, limits, and files left lying about."""

from __future__ import annotations

import datetime
import glob
import os
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.cli.show import Finding
from openclaw_memory.errors import ConfigError
from openclaw_memory.telling import first_of, size
from openclaw_memory.types import MemoryFile

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory

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
    from openclaw_memory.store.beside import leftovers as cut_short

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
    from openclaw_memory.sync import somebody_is_at_work

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
