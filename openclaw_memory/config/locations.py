"""What the environment decides: where OpenClaw keeps its state, how many threads numpy starts, colours or none."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from openclaw_memory.errors import ConfigError

# The id becomes part of paths: nothing that could name a folder above, a drive or a hidden file.
AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def use_one_thread() -> None:
    """Ask numpy's OpenBLAS for one thread, unless the environment says otherwise; call it before numpy is imported.

    Its threads take 50 ms of processor time to start, which a command of a quarter of a second does not win back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def colours() -> bool | None:
    """Whether to write in colours: None, as the terminal decides, unless NO_COLOR is set (no-color.org)."""
    return False if os.environ.get("NO_COLOR") else None


def state_dir() -> Path:
    """OpenClaw's state folder: `OPENCLAW_STATE_DIR`, or `.openclaw` in `OPENCLAW_HOME`, or in the home folder."""
    if folder := os.environ.get("OPENCLAW_STATE_DIR"):
        return Path(folder).expanduser()
    return Path(os.environ.get("OPENCLAW_HOME", "~")).expanduser() / ".openclaw"


class AgentPlaces(NamedTuple):
    """Where an agent's notes, its index and its transcripts lie."""

    workspace: Path
    index_path: Path
    sessions: Path


def agent_places(agent_id: str) -> AgentPlaces:
    """Where OpenClaw's layout keeps what belongs to an agent; the id counts in lower case.

    Notes are in `<state>/workspace` for `main`, in `<state>/workspace-<id>` for others, the index is
    `<state>/memory/<id>.sqlite`, and transcripts are in `<state>/agents/<id>/sessions`.

    Raises:
        ConfigError: the id holds other characters than letters, digits, `-` and `_`.
    """
    if not isinstance(agent_id, str) or not AGENT_ID.fullmatch(agent_id):
        raise ConfigError(f"agent id {agent_id!r} must be 1 to 64 letters, digits, '-' or '_', and begin with no sign")
    name, state = agent_id.lower(), state_dir()
    return AgentPlaces(
        workspace=state / ("workspace" if name == "main" else f"workspace-{name}"),
        index_path=state / "memory" / f"{name}.sqlite",
        sessions=state / "agents" / name / "sessions",
    )
