"""Seal files of a memory one by one, and unseal them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from openclaw_memory.control.contents import locate_any, with_transcripts
from openclaw_memory.conversation import snapshots
from openclaw_memory.errors import OpenClawMemoryError, WriteError
from openclaw_memory.types.codec import SUFFIX
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_file
from openclaw_memory.workspace.paths import Place, is_of_the_agent, is_transcript


def reseal(workspace: Workspace, path: str, *, sealed: bool) -> str:
    """Seal a file with the present key, or unseal it; see `Control.reseal`."""
    every = with_transcripts(workspace)
    place = locate_any(every, path)
    if not is_transcript(place.path) and place.base != str(every.root):
        raise WriteError(f"{place.path} lies outside of the workspace, where files are only read: change it there")
    if is_of_the_agent(every.root, place.path):
        raise WriteError(f"{place.path} is the agent's own, which reads it as it is: leave it plain")
    with _lock(every, place):
        return every.files.reseal(place, sealed=sealed).path


def list_sealed(workspace: Workspace) -> list[str]:
    """List all sealed files, whether they can be unsealed or not."""
    every = with_transcripts(workspace)
    listing = every.scan()
    paths = [file.path for file in listing.files] + [file.path for file in listing.skipped]
    paths += snapshots.list_paths(every.root)
    return sorted({path for path in paths if path.endswith(SUFFIX) or _is_sealed(every, path)})


def _lock(workspace: Workspace, place: Place) -> AbstractContextManager[None]:
    """Return the lock under which a file is written."""
    if snapshots.is_snapshot(place.path):
        return snapshots.lock_snapshots(workspace.root, place.path)
    if is_transcript(place.path):
        return lock_file(Path(place.base, *place.parts[:-1], ".lock"), place.path)
    return workspace.files.lock(place.path)


def _is_sealed(workspace: Workspace, path: str) -> bool:
    try:
        return workspace.files.is_sealed(locate_any(workspace, path))
    except (OpenClawMemoryError, OSError):
        return False
