"""Markdown that lies in a workspace and is no memory: how much there is, and what would make it memory."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from shlex import quote

from openclaw_memory.config import Files
from openclaw_memory.config.passed_over import is_passed_over
from openclaw_memory.workspace.paths import NOTES_FOLDER, counts, is_memory, is_set_apart

# A few thousand names take some milliseconds to look at. A home folder holds millions.
MOST_NAMES = 20_000


def overlooked(root: Path, rules: Files, most: int | None = None) -> tuple[int, bool]:
    """How many Markdown files below `root` are no memory though all Markdown could be, and whether these are all.

    They are not all where there are more than `most` names, by default `MOST_NAMES`. What hidden folders and those of
    installed programs hold does not count, nor what the globs leave out, nor what is the agent's own.

    Raises:
        ConfigError: a glob of the rules cannot be read.
    """
    most = MOST_NAMES if most is None else most
    count, names, folders = 0, 0, deque([""])
    while folders and names < most:
        folder = folders.popleft()
        try:
            with os.scandir(root / folder) as listing:
                entries = list(listing)
        except OSError:  # a sync would say so, if it were asked to look there
            continue
        names += len(entries)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not is_passed_over(entry.name):
                    folders.append(path)
            elif path.endswith(".md") and entry.is_file(follow_symlinks=False) and not is_set_apart(root, path):
                count += counts(rules, path) and not is_memory(root, rules, path)
    return count, not folders


def advice(root: Path, rules: Files, files: int) -> str:
    """What to do where a workspace has few memory files, `files` of them, in a sentence; "" where nothing is.

    Raises:
        ConfigError: a glob of the rules cannot be read.
    """
    count, is_all = overlooked(root, rules)
    if count <= files:
        return (
            "" if files else f"{root} holds no memory file yet: add a note, or put Markdown into {root / NOTES_FOLDER}"
        )
    where = "a Markdown file lies" if count == 1 else f"{count:,} Markdown files lie"
    where = where if is_all else f"at least {where}"
    if root in {Path.home(), Path(root.anchor)}:
        return f"{root} holds {files or 'no'} memory files: name the folder of your notes as the workspace"
    command = f"openclaw-memory init --all-markdown --workspace {quote(str(root))}"
    return f"{where} in {root} outside of {NOTES_FOLDER}/, and are not searched; to search them too: `{command}`"
