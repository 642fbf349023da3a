"""Find Markdown in a workspace that does not count as memory, and say how to include it."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from openclaw_memory.config import FilesConfig
from openclaw_memory.config.workspace_file import is_passed_over
from openclaw_memory.workspace.paths import NOTES_FOLDER, counts, is_memory, is_set_apart

# A few thousand names take some milliseconds to look at. A home folder holds millions.
MOST_NAMES = 20_000
# Endings of Markdown that other programs know; here, as in OpenClaw, it is `.md` alone.
_OTHER_ENDINGS = (".md", ".markdown", ".mdown", ".mkd", ".mdx")


class Overlooked(NamedTuple):
    """How many Markdown files do not count as memory but could, and how many cannot because of their extension.

    `is_all` is False where only a part of the folder was looked at.
    """

    markdown: int
    misnamed: int
    is_all: bool


def overlooked(root: Path, rules: FilesConfig, most: int | None = None) -> Overlooked:
    """Count the Markdown files below `root` that do not count as memory, among the first `most` names.

    Hidden folders, folders of installed programs, what the globs exclude and the agent's own files are left out.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    most = MOST_NAMES if most is None else most
    count, misnamed, names, folders = 0, 0, 0, deque([""])
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
            elif path.lower().endswith(_OTHER_ENDINGS) and not path.endswith(".md"):
                misnamed += counts(rules, path)
    return Overlooked(count, misnamed, not folders)


def advice(root: Path, rules: FilesConfig, files: int) -> str:
    """Return what to do where a workspace has few memory files, in a sentence; "" where nothing is needed.

    Raises:
        ConfigError: A glob of the rules is invalid.
    """
    found = overlooked(root, rules)
    words = []
    if found.markdown > files and root in {Path.home(), Path(root.anchor)}:
        return f"{root} holds {files or 'no'} memory files: name the folder of your notes as the workspace"
    if found.markdown > files:
        least = "" if found.is_all else "at least "
        files_lie = "a Markdown file lies" if found.markdown == 1 else f"{found.markdown:,} Markdown files lie"
        is_not = "is not searched; to search it too" if found.markdown == 1 else "are not searched; to search them too"
        command = f"openclaw-memory init --all-markdown --workspace {quote(str(root))}"
        words.append(f"{least}{files_lie} in {root} outside of {NOTES_FOLDER}/ and {is_not}: `{command}`")
    elif not files and not found.misnamed:
        words.append(f"{root} holds no memory file yet: add a note, or put Markdown into {root / NOTES_FOLDER}")
    if found.misnamed:
        named = "1 file ends" if found.misnamed == 1 else f"{found.misnamed:,} files end"
        words.append(f"{named} in .markdown, .MD or the like, which are not read: rename to .md")
    return "; ".join(words)
