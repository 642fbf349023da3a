"""Define the command that adds the memory to the settings of another program."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from openclaw_memory.cli.hosts import HOSTS, Host
from openclaw_memory.cli.options import Place, placed
from openclaw_memory.cli.output import note, say, say_json
from openclaw_memory.cli.units import program

NAME = "openclaw-memory"
_WHERE = ("--workspace", "--agent", "--config")  # the options that say which memory, each with a value


@click.command()
@click.argument("host", metavar="HOST", type=click.Choice([*HOSTS]))
@click.option("--print", "only_print", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--project", metavar="FOLDER", help="Write the settings of that project, not yours.")
@click.option("--name", metavar="NAME", default=NAME, show_default=True, help="The name of the server there.")
@click.option("--plugin", is_flag=True, help="opencode, claude-code: the plugin, not the server.")
@placed
def connect(place: Place, host: str, only_print: bool, project: str | None, name: str, plugin: bool) -> int:
    """Have a program start the memory: write its settings.

    HOST is claude-desktop, claude-code, cursor, vscode, zed or opencode. The memory is named by its full path, as is
    this program. Everything else in the settings stays as it is, comments too; a server of that name that is not ours
    is left alone. Twice is the same as once.

    Example: openclaw-memory connect cursor --print --workspace notes
    """
    target = HOSTS[host]
    if project is not None and target.project is None:
        raise click.UsageError(f"{target.title} has no settings of a project: leave --project out")
    if not place.folder.is_dir():
        begin = f"openclaw-memory init --workspace {shlex.quote(str(place.folder))}"
        raise click.UsageError(f"there is no folder {place.folder}: begin with `{begin}`")
    if plugin and host == "claude-code":
        return _say_commands(place)
    if plugin and host != "opencode":
        raise click.UsageError(f"there is no plugin for {target.title}: leave --plugin out")
    file = target.file(Path(project).expanduser() if project is not None else None)
    path, value = _plugin(place) if plugin else ((target.servers, name), target.entry([*program(), *_called(place)]))
    if only_print:
        _show(place, file, path, value)
        return 0
    _require_sdk(plugin)
    outcome = _written(target, file, path, value)
    if place.as_json:
        say_json({"host": host, "file": str(file), "outcome": outcome, "memory": str(place.folder.resolve())})
    else:
        memory = place.folder.resolve()
        if outcome == "unchanged":
            say(f"{file} names the memory {memory} already.")
        else:
            say(f"{outcome.capitalize()} the memory {memory} in {file}.\n{target.next_step}.")
    return 0


def _called(place: Place) -> list[str]:
    called = ["mcp"]
    if place.workspace is None and place.agent is not None:
        called += ["--agent", place.agent]
    else:
        called += ["--workspace", str(place.folder.resolve())]
        called += ["--agent", place.agent] if place.agent is not None else []
    return [*called, *(["--config", str(Path(place.settings).resolve())] if place.settings else [])]


def _plugin(place: Place) -> tuple[tuple[str | int, ...], list[Any]]:
    from openclaw_memory_hooks.opencode import PLUGIN

    settings: dict[str, Any] = {"workspace": str(place.folder.resolve()), "command": program()}
    if place.settings:
        settings["config"] = str(Path(place.settings).resolve())
    return ("plugin",), [str(PLUGIN), settings]


def _say_commands(place: Place) -> int:
    """Print what installs the plugin of Claude Code, which keeps it in places of its own."""
    from openclaw_memory_hooks.claude_code import PLUGIN

    commands = [
        f"claude plugin marketplace add {shlex.quote(str(PLUGIN))}",
        "claude plugin install openclaw-memory@openclaw-memory",
    ]
    if place.workspace is not None:
        commands[1] += f" --config workspace={shlex.quote(str(place.folder.resolve()))}"
    if place.as_json:
        say_json({"host": "claude-code", "commands": commands})
    else:
        say("\n".join(commands))
    return 0


def _show(place: Place, file: Path, path: Sequence[str | int], value: Any) -> None:
    whole: Any = [value] if path == ("plugin",) else value
    for key in reversed(path):
        whole = {key: whole}
    if place.as_json:
        say_json({"file": str(file), "settings": whole})
    else:
        note(f"{file} would hold, beside what it has:")
        say(json.dumps(whole, indent=2))


def _require_sdk(plugin: bool) -> None:
    if not plugin:
        import openclaw_memory_mcp  # noqa: F401 - says what to install, before a host fails to start it


def _written(host: Host, file: Path, path: tuple[str | int, ...], value: Any) -> str:
    """Write a value to a settings file; return "added", "updated" or "unchanged".

    Raises:
        ConfigError: The file cannot be understood, or has something else of that name. It is as it was.
        WriteError: It cannot be written. It is as it was.
    """
    from openclaw_memory.cli.jsonc import read, with_value
    from openclaw_memory.errors import ConfigError, WriteError
    from openclaw_memory.workspace.atomic import replace_file

    real = Path(os.path.realpath(file))  # many keep their settings elsewhere, and link to them
    try:
        seen = real.stat() if real.exists() else None
        text = real.read_bytes().decode("utf-8") if seen else ""
        old = _at(read(text.removeprefix("\ufeff")).value if text.strip("\ufeff \t\r\n") else {}, path)
        path, value = _merged(path, old, value)
        if old is not None and _at(read(text.removeprefix("\ufeff")).value, path) == value:
            return "unchanged"
        new = text
        if isinstance(old, dict) and isinstance(value, dict):  # our own entry: by key, so that its comments stay
            for key in [key for key in value if key not in old or old[key] != value[key]]:
                new = with_value(new, (*path, key), value[key])
        else:
            new = with_value(text, path, value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{file} was left as it is: {error}. `--print` shows what to write there for {host.title} by hand"
        ) from error
    except OSError as error:
        raise WriteError(f"{file} cannot be read: {error.strerror}; `--print` shows what to write by hand") from error
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        replace_file(str(real.parent), (real.name,), new.encode(), seen)
    except OSError as error:
        raise WriteError(f"{file} cannot be written: {error}; `--print` shows what to write by hand") from error
    return "added" if old is None or path[-1] == (len(old) if isinstance(old, list) else None) else "updated"


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        if isinstance(key, int) and isinstance(value, list):
            value = value[key] if key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _merged(path: tuple[str | int, ...], old: Any, new: Any) -> tuple[tuple[str | int, ...], Any]:
    """Return where to write, and what: our own entry as it is there, with what is new of it.

    Raises:
        ValueError: There is an entry of that name which is not ours.
    """
    if path == ("plugin",):
        there = old if isinstance(old, list) else []
        for number, one in enumerate(there):
            named, options = (one, {}) if isinstance(one, str) else (one[0], one[1]) if _is_pair(one) else ("", {})
            if str(named).replace("\\", "/").endswith("opencode_memory/plugin.js"):
                return (*path, number), [new[0], {**options, **new[1]}]
        return (*path, len(there)), new
    if old is None:
        return path, new
    if not isinstance(old, dict) or not _is_ours(old):
        raise ValueError(f"it has another server {path[-1]!r}; give ours another name with --name")
    words = "command" if isinstance(new["command"], list) else "args"
    return path, {**old, **new, words: [*new[words], *_added(old.get(words))]}


def _added(words: Any) -> list[Any]:
    """Return the arguments that a user has added to a call of `mcp`, such as `--read-only`."""
    if not isinstance(words, list) or "mcp" not in words:
        return []
    added = [*words[words.index("mcp") + 1 :]]
    for option in _WHERE:
        while option in added:
            at = added.index(option)
            del added[at : at + 2]
    return added


def _is_pair(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and isinstance(one[1], dict)


def _is_ours(entry: dict[str, Any]) -> bool:
    command, given = entry.get("command"), entry.get("args")
    words = command if isinstance(command, list) else [command, *(given if isinstance(given, list) else [])]
    program = Path(str(words[0]).replace("\\", "/")).name if words else ""
    return "mcp" in words and (program.removesuffix(".exe") == "openclaw-memory" or "openclaw_memory" in words)
