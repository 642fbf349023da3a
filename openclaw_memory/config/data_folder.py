"""Locate the user's data folder, which keeps all that is derived or private: index, hook state, logs, keys."""

from __future__ import annotations

import os
import re
from pathlib import Path

from openclaw_memory.errors import ConfigError

DATA_FOLDER_VARIABLE = "OPENCLAW_MEMORY_HOME"
WORKSPACE_PATH = "workspace-path"  # the file in the data folder of a workspace that names the workspace


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
