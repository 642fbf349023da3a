"""Read the environment: variables of this library, the user's data folder, and the folders of OpenClaw's agents."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from openclaw_memory.errors import ConfigError

DATA_FOLDER_VARIABLE = "OPENCLAW_MEMORY_HOME"
KEYS_VARIABLE = "OPENCLAW_MEMORY_KEY"
WORKSPACE_PATH = "workspace-path"  # the file in the data folder of a workspace that names the workspace
# The id becomes part of paths: nothing that could name a folder above, a drive or a hidden file.
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class AgentFolders(NamedTuple):
    """The notes, index and transcripts of one of OpenClaw's agents, and the folder of everything else it has."""

    workspace: Path
    index_path: Path
    sessions: Path
    state: Path


def use_one_thread() -> None:
    """Limit numpy's OpenBLAS to one thread, unless the environment sets a number; call it before numpy is imported.

    Its threads take 50 ms of processor time to start, which a command of a quarter of a second does not win back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def use_colours() -> bool | None:
    """Return False if NO_COLOR is set (no-color.org), else None: the terminal decides."""
    return False if os.environ.get("NO_COLOR") else None


def has_vscode_terminal() -> bool:
    """Return whether this is the terminal of VS Code, which opens `vscode://file` links itself."""
    return os.environ.get("TERM_PROGRAM") == "vscode"


def read_editor() -> str:
    """Read the command of the user's editor, VISUAL or EDITOR; "" if neither is set."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def read_default_workspace() -> str | None:
    """Read OPENCLAW_MEMORY_WORKSPACE, a folder or the name of one; None if it is unset."""
    return os.environ.get("OPENCLAW_MEMORY_WORKSPACE", "").strip() or None


def should_mask_listed_secrets() -> bool:
    """Return whether to mask tokens of publicly listed formats: not with OPENCLAW_MEMORY_LISTED_SECRETS=off.

    A variable, since masking is the same in all of a process, and no file in a workspace may turn it off.
    """
    return os.environ.get("OPENCLAW_MEMORY_LISTED_SECRETS", "").strip().lower() not in {"off", "0", "false", "no"}


def read_keys() -> tuple[str, ...]:
    """Read the keys in OPENCLAW_MEMORY_KEY, separated by commas: new data gets the first."""
    keys = (key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(","))
    return tuple(key for key in keys if key)


# --- the user's data folder: index, hook state, logs, keys ------------------------------------------------------------


def locate_user_data() -> Path:
    """Locate the folder of this user, `OPENCLAW_MEMORY_HOME` or the platform's; nothing is made.

    Raises:
        ConfigError: The user has no home folder.
    """
    if folder := os.environ.get(DATA_FOLDER_VARIABLE, "").strip():
        return Path(folder).expanduser().absolute()
    from platformdirs import user_data_path

    try:
        return user_data_path("openclaw_memory", appauthor=False)
    except RuntimeError as error:
        raise ConfigError(f"there is no home folder ({error}): set {DATA_FOLDER_VARIABLE} to a folder") from error


def locate_workspace_data(root: Path) -> Path:
    """Locate the folder of one workspace in the user's data folder: `workspaces/<name>-<hash of the real path>`.

    Args:
        root: The folder of the workspace. Links to it are resolved, so that all names of one folder share its index.

    Raises:
        ConfigError: The user has no home folder.
    """
    from hashlib import sha256  # most commands need no folder of a workspace

    real = os.path.realpath(root)
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(real))[:40].strip("-.") or "workspace"
    return locate_user_data() / "workspaces" / f"{name}-{sha256(os.fsencode(real)).hexdigest()[:16]}"


def list_orphans() -> list[tuple[Path, str]]:
    """List the data folders of workspaces that are gone, each with its workspace; none for a user without a home."""
    try:
        files = sorted(locate_user_data().glob(f"workspaces/*/{WORKSPACE_PATH}"))
    except ConfigError:
        return []
    return [(file.parent, root) for file in files if not os.path.isdir(root := os.fsdecode(file.read_bytes()))]


# --- OpenClaw's agents ------------------------------------------------------------


def locate_state() -> Path:
    """Locate OpenClaw's state folder: `OPENCLAW_STATE_DIR`, or `.openclaw` in `OPENCLAW_HOME` or the home folder."""
    if folder := os.environ.get("OPENCLAW_STATE_DIR"):
        return Path(folder).expanduser()
    return Path(os.environ.get("OPENCLAW_HOME", "~")).expanduser() / ".openclaw"


def locate_agent(agent_id: str) -> AgentFolders:
    """Locate the folders of an agent in OpenClaw's layout; the id is taken in lower case.

    Notes are in `<state>/workspace` for `main`, in `<state>/workspace-<id>` for others, the index is
    `<state>/memory/<id>.sqlite`, transcripts are in `<state>/agents/<id>/sessions`.

    Raises:
        ConfigError: The id holds other characters than letters, digits, `-` and `_`.
    """
    if not isinstance(agent_id, str) or not _AGENT_ID.fullmatch(agent_id):
        raise ConfigError(f"agent id {agent_id!r} must be 1 to 64 letters, digits, '-' or '_', and begin with no sign")
    name, state = agent_id.lower(), locate_state()
    return AgentFolders(
        workspace=state / ("workspace" if name == "main" else f"workspace-{name}"),
        index_path=state / "memory" / f"{name}.sqlite",
        sessions=state / "agents" / name / "sessions",
        state=state / "agents" / name,
    )
