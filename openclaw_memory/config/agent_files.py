"""Recognise files and folders of a workspace that are not memory: the agent's rules, installed programs."""

import re

# OpenClaw puts these at the top of each workspace for the agent itself. A program that could have them indexed and
# changed as notes could give the agent other rules.
AGENT_FILES = frozenset(
    {"AGENTS.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md"}
)
_FOLDED = frozenset(name.casefold() for name in AGENT_FILES)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_PROGRAM_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def is_agent_file(name: str) -> bool:
    """Return whether a file of this name at the top of a workspace may be the agent's own, in any case of letters."""
    return name.casefold() in _FOLDED


def is_skipped_folder(name: str) -> bool:
    """Return whether folders of this name below an extra path are skipped; one in `files.extra_paths` itself counts."""
    return name.startswith(".") or name in _PROGRAM_FOLDERS


def is_inside(path: str) -> bool:
    """Return whether a path is inside the workspace by its letters, and passes no skipped folder or agent's file.

    Readers do not follow links.
    """
    parts = path.strip().replace("\\", "/").split("/")
    names = [part for part in parts if part not in {"", "."}]
    if not parts[0] or parts[0][0] == "~" or ":" in parts[0] or _CONTROL.search(path):
        return False
    return not any(map(is_skipped_folder, names)) and not (len(names) == 1 and is_agent_file(names[0]))
