"""Load plug-ins: packages that add stores, embedders, models, backends, codecs, observers, detectors and commands.

Packages of our own wheel are in a table, so that opening a memory scans nothing. Others are found by entry points of
the group `openclaw_memory.<kind>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, get_args

from openclaw_memory._system import read_lines
from openclaw_memory.errors import ConfigError, MissingExtraError, suggest

__all__ = ["load_plugin"]

PluginKind = Literal["stores", "embedders", "models", "backends", "codecs", "observers", "detectors", "commands"]

_ROWS = list(map(str.split, read_lines(__file__, "plugins.txt")))
SHIPPED = {kind: {name: target for own, name, target in _ROWS if own == kind} for kind in get_args(PluginKind)}


def has_plugin(kind: PluginKind, name: str) -> bool:
    """Return whether an installed package adds something under a name.

    Args:
        kind: The kind of plug-in: the entry point group without `openclaw_memory.`.
        name: The name of the entry point.
    """
    return _find_target(kind, name) is not None


def select_plugins(kind: PluginKind, names: Iterable[str]) -> list[str]:
    """Select the names of plug-ins of a kind: installed ones, and ours even where the package is missing.

    Args:
        kind: The kind of plug-in: the entry point group without `openclaw_memory.`.
        names: The names, such as those of the tables `[plugins.<name>]`.
    """
    return [name for name in names if name in SHIPPED[kind] or has_plugin(kind, name)]


def load_plugin(kind: PluginKind, name: str) -> Any:
    """Import the object that a plug-in adds.

    Args:
        kind: The kind of plug-in: the entry point group without `openclaw_memory.`.
        name: The name of the entry point.

    Raises:
        ConfigError: No installed package adds it, or it cannot be loaded.
    """
    if (target := _find_target(kind, name)) is None:
        names = list_plugins(kind)
        raise ConfigError(
            f"no installed package adds {name!r} to openclaw_memory.{kind}: {suggest(name, names)}"
            f"there are {', '.join(names) or 'none'}"
        )
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except MissingExtraError:
        raise
    except Exception as error:  # whatever a module of somebody else's raises: `--help` lists all other commands
        raise ConfigError(f"the plug-in {name!r} ({target}) cannot be loaded: {error}; install it again") from error


def list_plugins(kind: PluginKind) -> list[str]:
    """List the names that plug-ins add.

    Args:
        kind: The kind of plug-ins: the entry point group without `openclaw_memory.`.
    """
    shipped = (name for name, target in SHIPPED[kind].items() if _is_installed(target))
    return sorted({*shipped, *_read_entry_points(kind)})


def is_known_plugin(name: str) -> bool:
    """Return whether there is a plug-in for a table of settings `[plugins.<name>]`.

    Args:
        name: The name of a plug-in, or its package without `openclaw_memory_`.
    """
    shipped = [item for table in SHIPPED.values() for item in table.items()]
    if any(name == key or target.startswith(f"openclaw_memory_{name}") for key, target in shipped):
        return True
    return any(name in _read_entry_points(kind) for kind in SHIPPED)


def _find_target(kind: PluginKind, name: str) -> str | None:
    if (target := SHIPPED[kind].get(name)) is not None and _is_installed(target):
        return target
    if name not in SHIPPED[kind] and any(name in table for table in SHIPPED.values()):
        return None  # ours, and something else: nothing to scan the installed packages for
    return _read_entry_points(kind).get(name)


def _is_installed(target: str) -> bool:
    """Return whether the package of `package.module:attribute` is there; a copy of the sources may lack some."""
    return find_spec(re.split("[.:]", target)[0]) is not None


def _read_entry_points(kind: PluginKind) -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=f"openclaw_memory.{kind}")}
