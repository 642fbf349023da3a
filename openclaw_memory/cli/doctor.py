"""The examination of a memory: what search needs, checked one by one, each with what to do."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.cli.show import Finding
from openclaw_memory.cli.surroundings import around, read_only_mount
from openclaw_memory.errors import ConfigError, CorruptIndexError, EmbedderError, IndexLockedError, OpenClawMemoryError
from openclaw_memory.telling import behind, failure, first_of, in_use, last_sync, size

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
    from openclaw_memory.sync.records import moment

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
