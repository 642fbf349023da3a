"""Recognise paths that are not memory, and match paths against globs as in a .gitignore, in a time none can stretch."""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import commonprefix
from typing import NamedTuple

from openclaw_memory.errors import ConfigError
from openclaw_memory.types.conditions import FileRange

MAX_RANGES = 20  # of one search; of more paths, the common beginning is the one range

_TOKEN = re.compile(r"\*+|\[[!^]?+\]?+[^]]*\]|\\.|.", re.DOTALL)
_MEMBER = re.compile(r"(.)-(.)|.", re.DOTALL)
_FOLDERS = "(?:[^/]+/)"
_PLAIN_PATH = re.compile(r"[^\s!#/*?\[\]\\][^*?\[\]\\\n]*/[^*?\[\]\\\n]*[^\s/*?\[\]\\]")
_PLAIN_HEAD = re.compile(r"[^*?\[\\]*")
_SLASH = re.compile("/")

# OpenClaw puts these at the top of each workspace for the agent itself. A program that could have them indexed and
# changed as notes could give the agent other rules.
AGENT_FILES = frozenset("AGENTS.md BOOT.md BOOTSTRAP.md DREAMS.md HEARTBEAT.md IDENTITY.md SOUL.md TOOLS.md".split())
_FOLDED = frozenset(name.casefold() for name in AGENT_FILES)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_PROGRAM_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def is_agent_file(name: str) -> bool:
    """Return whether a file of this name at the top of a workspace may be the agent's own, in any case of letters."""
    return name.casefold() in _FOLDED


def is_skipped_folder(name: str) -> bool:
    """Return whether folders of this name below an extra path are skipped; one in `files.extra_paths` itself counts."""
    return name.startswith(".") or name in _PROGRAM_FOLDERS


def is_inside(path: str) -> bool:
    """Return whether a path is inside the workspace by its letters, and passes no skipped folder or agent's file.

    Readers do not follow links.
    """
    parts = path.strip().replace("\\", "/").split("/")
    names = [part for part in parts if part not in {"", "."}]
    if not parts[0] or parts[0][0] == "~" or ":" in parts[0] or _CONTROL.search(path):
        return False
    return not any(map(is_skipped_folder, names)) and not (len(names) == 1 and is_agent_file(names[0]))


class Glob(NamedTuple):
    """A compiled glob: `itself` matches the paths that it names, `inside` those in folders that it names.

    With `brings_back`, a glob that begins with `!`, a path is no longer matched by an earlier one.
    """

    itself: re.Pattern[str] | None
    inside: re.Pattern[str] | None
    brings_back: bool


class PathFilter(NamedTuple):
    """Paths, and globs as in a .gitignore file.

    Attributes:
        paths: Paths without a wildcard: they and the files in folders of that name pass.
        globs: The others.
        ranges: Ranges that hold all files that pass; () if they are unknown.
    """

    paths: frozenset[str]
    globs: tuple[Glob, ...]
    ranges: tuple[FileRange, ...]

    def __bool__(self) -> bool:
        return bool(self.paths or self.globs)

    def match(self, path: str) -> bool:
        """Return whether a path passes."""
        if self.paths and (path in self.paths or any(path[: at.start()] in self.paths for at in _SLASH.finditer(path))):
            return True
        return bool(self.globs) and is_matched(self.globs, path)


@lru_cache(maxsize=16)
def read_globs(setting: str, lines: tuple[str, ...]) -> tuple[Glob, ...]:
    """Compile the globs of a setting; blank lines and comments hold none.

    Raises:
        ConfigError: A glob cannot be read.
    """
    try:
        return tuple(glob for line in lines if (glob := _compile_glob(line)) is not None)
    except ValueError as error:
        raise ConfigError(
            f"{setting} holds a pattern that cannot be read: {error}; patterns are those of a .gitignore: correct it "
            "in the settings, or in .memory/config.toml of the workspace"
        ) from error


def is_matched(globs: tuple[Glob, ...], path: str) -> bool:
    """Return whether globs match a path, and no later one brings it back.

    One that names a folder brings nothing back that is named itself.
    """
    itself = inside = False
    for glob in globs:
        if glob.itself is not None and glob.itself.match(path):
            itself = not glob.brings_back
            inside = inside and itself
        elif glob.inside is not None and glob.inside.match(path):
            inside = not glob.brings_back
    return itself or inside


@lru_cache(maxsize=64)
def read_paths(lines: tuple[str, ...]) -> PathFilter:
    """Compile the paths and globs that confine a search.

    Raises:
        ConfigError: A glob cannot be read.
    """
    takes_back = any(line.startswith("!") for line in lines)  # then their order counts
    paths = frozenset() if takes_back else frozenset(line for line in lines if _PLAIN_PATH.fullmatch(line))
    globs = tuple(line for line in lines if line not in paths)
    heads = {*paths, *(_find_head(line) for line in globs if line.strip() and line[0] not in "!#")}
    if len(heads) > MAX_RANGES:
        heads = {commonprefix(sorted(heads))}
    ranges = () if "" in heads else tuple(FileRange("path", head, is_prefix=True) for head in sorted(heads))
    return PathFilter(paths, read_globs("path", globs), ranges)


def _find_head(line: str) -> str:
    """Return the common beginning of the paths that a glob matches, or ""."""
    text = line.rstrip()
    folder = text.rstrip("/")
    is_anywhere = "/" not in folder.removeprefix("/") and not text.startswith("/")
    return "" if is_anywhere else _PLAIN_HEAD.match(folder.removeprefix("/"))[0]  # type: ignore[index]  # may be empty


def _compile_glob(line: str) -> Glob | None:
    text = line if line.endswith("\\ ") else line.rstrip()
    if text in {"", "/", "!/"} or text.startswith("#"):
        return None
    brings_back = text.startswith("!")
    parts = text[brings_back:].split("/")
    names_folders = not parts[-1]
    parts = parts[: len(parts) - names_folders]
    if len(parts) == 1 and parts[0]:  # a name alone is meant anywhere
        parts.insert(0, "**")
    if parts and not parts[0]:
        del parts[0]
    if not parts:
        raise ValueError(f"{line!r} names nothing")
    runs: list[list[str]] = [[]]  # between two `**`
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_translate_part(part, line))
    # The first run begins at the workspace, the others in any folder below the match of the one before.
    anchored = [("" if at == 0 else _FOLDERS, "/".join(run)) for at, run in enumerate(runs) if run]
    # Groups are atomic: the first place where a run matches is as good as any later one, and none is tried again. With
    # plain groups, as libraries for such files write them, `*a*a*a*a*a*b` takes a path of 60 characters minutes.
    steps = [f"(?>{folders and folders + '*?'}{run}/)" for folders, run in anchored]
    below = re.compile("".join(steps) or (_FOLDERS if names_folders else ""))
    if names_folders:
        return Glob(None, below, brings_back)
    if not runs[-1]:
        return Glob(below, None, brings_back)
    folders, run = anchored[-1]
    itself = re.compile(f"{''.join(steps[:-1])}{folders and folders + '*'}{run}\\Z")
    return Glob(itself, below, brings_back)


def _translate_part(part: str, line: str) -> str:
    """Return the regular expression of one part between slashes."""
    if part == "*":
        return "[^/]+"
    texts = [""]  # between two stars
    for token in _TOKEN.findall(part):
        if token.startswith("*"):
            texts.append("")
        elif token in {"[", "\\"}:
            raise ValueError(f"{line!r} has a {token!r} without an end")
        elif token.startswith("["):
            texts[-1] += _translate_set(token[1:-1], line)
        else:
            is_any = token == "?"  # noqa: S105 - not a password
            texts[-1] += "[^/]" if is_any else re.escape(token.removeprefix("\\"))
    first, *later = texts
    return first + "".join(f"(?>[^/]*?{text})" for text in later[:-1]) + "".join(f"[^/]*{text}" for text in later[-1:])


def _translate_set(members: str, line: str) -> str:
    negation = "^" if members[0] in "!^" else ""
    escaped = ""
    for member in _MEMBER.finditer(members[len(negation) :]):
        low, high = member.groups()
        if low is None:
            escaped += re.escape(member[0])
        elif low > high:
            raise ValueError(f"{line!r} has a range {member[0]!r} that goes backwards")
        else:
            escaped += f"{re.escape(low)}-{re.escape(high)}"
    return f"(?!/)[{negation}{escaped}]"
