"""Names that an extra path passes over: what bears one counts only where it is named itself."""

from __future__ import annotations

_OF_PROGRAMS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
# What OpenClaw puts into the top of each workspace for the agent itself to read. Whoever could have these indexed and
# changed as notes could give the agent other rules.
OF_THE_AGENT = frozenset(
    {"AGENTS.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md"}
)
_FOLDED = frozenset(name.casefold() for name in OF_THE_AGENT)


def is_passed_over(folder: str) -> bool:
    """Whether the folders of this name below an extra path are left out: hidden ones, and those of installed programs.

    One that is named in `files.extra_paths` itself counts.
    """
    return folder.startswith(".") or folder in _OF_PROGRAMS


def may_be_of_the_agent(name: str) -> bool:
    """Whether a file of this name at the top of a workspace is the agent's own, on a disk that ignores case."""
    return name.casefold() in _FOLDED
