"""Recognise the vaults of note programs, which `vaults.toml` lists, by their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from openclaw_memory.config.config import parse_toml
from openclaw_memory.config.sections import JournalConfig
from openclaw_memory.errors import ConfigError, OpenClawMemoryError
from openclaw_memory.workspace.safe_folder import SafeFolder


class Vault(NamedTuple):
    """A vault of a program: its journal, globs of files that are not memory, and why its journal is not used."""

    program: str
    journal: JournalConfig
    exclude: list[str]
    problem: str = ""


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
            return _make_vault(program, {**table, **dict(reversed(values))}, values)
    return None


def _make_vault(program: str, table: Mapping[str, Any], values: Iterable[tuple[str, str]]) -> Vault:
    # Other programs than Obsidian write the day in small letters.
    day = re.sub(r"(?<![A-Za-z])(yyyy|mm|dd)(?![A-Za-z])", lambda part: part[0].upper(), table["name"])
    endings = {"template": ".md", "templates": "/"}
    exclude = [*table["exclude"], *(f"/{value}{endings[name]}" for name, value in values if name in endings)]
    try:
        (journal := JournalConfig(folder=table["folder"], name=day)).check()
    except ConfigError as error:
        return Vault(program, JournalConfig(), exclude, str(error))
    return Vault(program, journal, exclude)


def _read(folder: SafeFolder, path: str) -> str:
    with suppress(OpenClawMemoryError):
        return folder.read(path).decode("utf-8", "replace")
    return ""
