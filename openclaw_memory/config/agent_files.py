"""Recognise files and folders of a workspace that are not memory: the agent's rules, installed programs."""

# OpenClaw puts these at the top of each workspace for the agent itself. A program that could have them indexed and
# changed as notes could give the agent other rules.
AGENT_FILES = frozenset(
    {"AGENTS.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md"}
)
_FOLDED = frozenset(name.casefold() for name in AGENT_FILES)
_PROGRAM_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def is_agent_file(name: str) -> bool:
    """Return whether a file of this name at the top of a workspace may be the agent's own, in any case of letters."""
    return name.casefold() in _FOLDED


def is_skipped_folder(name: str) -> bool:
    """Return whether folders of this name below an extra path are skipped; one in `files.extra_paths` itself counts."""
    return name.startswith(".") or name in _PROGRAM_FOLDERS
