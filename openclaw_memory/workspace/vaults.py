"""Recognise the vaults of note programs, which `vaults.toml` lists, by their files."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from openclaw_memory.config.config import parse_toml
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.workspace.safe_folder import SafeFolder

_ENDINGS = {"template": ".md", "templates": "/"}


class Vault(NamedTuple):
    """A vault: its program, the folder and the name of its notes of days, and globs of files that are not memory."""

    program: str
    folder: str
    name: str
    exclude: list[str]


def find_vault(root: Path) -> Vault | None:
    """Return the vault that a folder is; None for any other folder.

    Args:
        root: The folder.
    """
    folder, programs = SafeFolder(root), Path(__file__).with_suffix(".toml")
    for program, table in parse_toml(programs.read_text("utf-8"), programs.name).items():
        if any((root / mark).exists() for mark in table["marks"]):
            values = [
                (name, match[1].strip("/").removesuffix(".md"))
                for path, patterns in table["settings"].items()
                for name, pattern in patterns.items()
                if (match := re.search(pattern, _read(folder, path), re.MULTILINE))
            ]
            own = {**table, **dict(reversed(values))}
            # Other programs than Obsidian write the day in small letters.
            day = re.sub(r"(?<![A-Za-z])(yyyy|mm|dd)(?![A-Za-z])", lambda part: part[0].upper(), own["name"])
            templates = (f"/{value}{_ENDINGS[name]}" for name, value in values if name in _ENDINGS)
            return Vault(program, own["folder"], day, [*table["exclude"], *templates])
    return None


def _read(folder: SafeFolder, path: str) -> str:
    with suppress(OpenClawMemoryError):
        return folder.read(path).decode("utf-8", "replace")
    return ""
