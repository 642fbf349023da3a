"""The examination of a memory: what search needs, checked one by one, each with what to do."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from openclaw_memory.cli.show import behind, first_of, in_use
from openclaw_memory.errors import CorruptIndexError, OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Status


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `note` is a thing to know, `problem` one to mend; `remedy` says how, empty when all is well."""

    check: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str = ""


def examine(open_memory: Callable[[], Memory], options: str = "") -> list[Finding]:
    """Every check that can be made. A memory that cannot be opened is a finding, and ends the examination.

    `options` are those that choose this memory (` --workspace notes`): each command that a remedy names gets them.
    """
    rebuild = f"Run `openclaw-memory index{options} --force`: the index is made from the files, and nothing is lost."
    try:
        memory = open_memory()
    except OpenClawMemoryError as error:
        return [Finding("open", "problem", str(error), "Mend this first; the other checks need an open memory.")]
    with memory:
        try:
            state = memory.status(deep=True)
        except CorruptIndexError as error:
            return [Finding("index", "problem", str(error), rebuild)]
        except OpenClawMemoryError as error:
            return [Finding("status", "problem", str(error), "Do as the message says, and run the doctor again.")]
        findings = [*_workspace(state), *_files(state, options), *_embedder(state), *_index(state, options, rebuild)]
        return [*findings, *(Finding("notice", "note", text) for text in state.notices)]


def _workspace(state: Status) -> Iterator[Finding]:
    if os.access(state.workspace, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("workspace", "ok", f"{state.workspace} can be read and written")
    elif os.access(state.workspace, os.R_OK | os.X_OK):
        remedy = "Searching works; to append notes, give yourself the right to write there."
        yield Finding("workspace", "note", f"{state.workspace} is read-only", remedy)
    else:
        remedy = "Give yourself the right to read the folder (chmod u+rx)."
        yield Finding("workspace", "problem", f"{state.workspace} cannot be read", remedy)


def _files(state: Status, options: str) -> Iterator[Finding]:
    if state.files or state.dirty:
        yield Finding("files", "ok", f"{state.files} files indexed, {state.chunks} chunks")
    else:
        remedy = f"Run `openclaw-memory init{options}`, or put notes into MEMORY.md and memory/."
        yield Finding("files", "problem", "no memory file was found", remedy)
    for file in state.skipped:
        yield Finding(
            "files", "note", f"{file.path} is left out: {file.reason}", "Mend the file, or name it in files.exclude."
        )
    if dirty := behind(state):
        remedy = f"Run `openclaw-memory index{options}`."
        yield Finding(
            "files", "note", f"{len(dirty)} not indexed as they are now: {', '.join(first_of(dirty))}", remedy
        )


def _index(state: Status, options: str, rebuild: str) -> Iterator[Finding]:
    if not os.path.exists(state.index_path):
        folder = Path(state.index_path).parent
        if os.path.lexists(folder) and not folder.is_dir():
            remedy = f"Move it away: mv {shlex.quote(str(folder))} {shlex.quote(f'{folder}.old')}"
            yield Finding("index", "problem", f"{folder} is a file, where the folder of the index belongs", remedy)
        else:
            yield Finding("index", "note", "there is none yet", f"Run `openclaw-memory index{options}`, or search.")
        return
    if state.problems:
        yield Finding("index", "problem", f"{state.index_path} is damaged: {'; '.join(state.problems)}", rebuild)
    else:
        yield Finding("index", "ok", f"{state.index_path} is sound")
    if error := state.fts.get("error"):
        yield Finding("keyword search", "problem", str(error), rebuild)
    else:
        yield Finding("keyword search", "ok", "answers a query")
    yield from _vectors(state, options, rebuild)


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


def _embedder(state: Status) -> Iterator[Finding]:
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
        remedy = "Search goes on by keywords; the notes below say what is missing."
        yield Finding("embedder", "problem", f"{state.requested_provider} does not load", remedy)
