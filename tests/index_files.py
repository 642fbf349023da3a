"""Write the files of a workspace, and know where its index is: in the user's data folder, one of the tests' own."""

import shutil
from pathlib import Path

from openclaw_memory.config.environment import locate_workspace_data


def index_file(workspace: Path, ending: str = "") -> Path:
    """Return the path of a workspace's index, or of a file next to it whose name ends otherwise."""
    return locate_workspace_data(workspace) / f"index.sqlite{ending}"


def index_folder(workspace: Path) -> Path:
    """Return the folder of a workspace's index, made if it is missing."""
    folder = locate_workspace_data(workspace)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write the files of a folder by their paths in it; return the folder."""
    root.mkdir(exist_ok=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def read_days(root: Path) -> str:
    """Return the notes below `memory/`, one after another."""
    return "".join(path.read_text() for path in sorted((root / "memory").glob("*.md")))


def copy_workspace(workspace: Path, target: Path) -> Path:
    """Copy a workspace with its index, as if it had been synced at the other place; return the copy."""
    shutil.copytree(workspace, target)
    shutil.copytree(locate_workspace_data(workspace), locate_workspace_data(target), dirs_exist_ok=True)
    return target
