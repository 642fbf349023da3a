"""Write an item of a LangGraph store as a Markdown file: its path, its front matter, and the body that is searched.

Front matter: `namespace`, `key`, `value`, `created_at`, `updated_at`, and `text_at` if the body is a text of the value,
with `text_after` for a label above it; else `index`, the fields that the body shows. Fields with a name have a section
each, and so a vector each; of the whole value the body is a list, with one vector. Each item has the one path that
its namespace and key lead to; a copy of its file elsewhere is not an item.
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langgraph.store.base import Item, get_text_at_path, tokenize_path

_LOG = logging.getLogger(__name__)

FOLDER = "memory"
WHOLE = "$"  # LangGraph's name for the whole value among the fields to search

# What vector stores add is in this folder of `memory/`.
_TAKEN_FOLDER = "notes"
# The same file on every disk: those that ignore case, and those that compose or decompose letters, included.
_PLAIN_NAME = re.compile(r"[a-z0-9_-]{1,80}")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: names of devices, with any extension.
_WINDOWS_DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
_SHOWN_OF_A_NAME = 40  # letters; at most 4 bytes each, with mark, digest and suffix below the 255 bytes of a file name
# Names of fields that add nothing to what their text says.
_NAMELESS = frozenset({"content", "data", "memory", "text"})


def path_of(namespace: Sequence[str], key: str) -> str:
    """Return the file of an item, `memory/<namespace>/<key>.md`; names that are not safe as file names get a digest."""
    return f"{folder_of(namespace)}/{_file_name(key)}.md"


def folder_of(namespace: Sequence[str]) -> str:
    """Return the folder of all items of a namespace, and of those that begin with it."""
    names = [_file_name(label) for label in namespace]
    if names and names[0] == _TAKEN_FOLDER:
        names[0] = _marked(names[0])
    return "/".join((FOLDER, *names))


def _file_name(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) and not _WINDOWS_DEVICE.fullmatch(name)
    return name if is_plain else _marked(name)


def _marked(name: str) -> str:
    """Return the readable part of a name, then `~`, which no plain name has, and 64 bits of its SHA-256 in UTF-8."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name))
    return f"{'-'.join(words)[:_SHOWN_OF_A_NAME]}~{digest}"


def file_of(item: Item, paths: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return front matter and body of an item, whose values at `paths` a search can find."""
    fields: dict[str, Any] = {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
    }
    if text := _only_text(item.value, paths):
        fields |= {"value": _with(item.value, text.keys, None), "text_at": list(text.keys)}
        label = "" if text.label != WHOLE or text.keys[-1] in _NAMELESS else f"{_label(text.keys)}: "
        return fields | ({"text_after": label} if label else {}), label + text.leaf
    return fields | {"index": list(paths)}, _shown_of(item.value, paths)


def is_item(path: str, fields: Mapping[str, Any]) -> bool:
    """Whether a file is that of an item, by the names in its front matter: not a note, a record or a copy."""
    try:
        return unicodedata.normalize("NFC", path) == path_of(tuple(fields["namespace"]), fields["key"])
    except (KeyError, TypeError, AttributeError):
        return False


def item_in(path: str, fields: Mapping[str, Any], text: str) -> Item | None:
    """Return the item in a file; None if the file is something else, or its front matter is damaged."""
    if not is_item(path, fields):
        return None
    namespace, key = tuple(fields["namespace"]), fields["key"]
    try:
        value = {**fields["value"]}
        if keys := fields.get("text_at"):
            value = _with(value, keys, _saved(text).removeprefix(fields.get("text_after", "")))
        elif "index" in fields and _saved(text) != _saved(_shown_of(value, fields["index"])):
            _LOG.warning(
                "%r was edited below its front matter, where searches look, and the item is unchanged: its text is "
                "in several fields, so edit `value` above the text instead",
                path,
            )
        created_at, updated_at = (_moment(fields[name]) for name in ("created_at", "updated_at"))
    except (KeyError, TypeError, ValueError):
        _LOG.warning("%r is skipped: fix its front matter, where `value` must be a JSON object on one line", path)
        return None
    return Item(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)


def _saved(text: str) -> str:
    """Return a body without what editors change: line ends, and blank lines at the end."""
    return "\n".join(text.strip().splitlines())


def _moment(written: str) -> datetime:
    """Parse a point in time, in local time if it was edited to have no zone."""
    return datetime.fromisoformat(written).astimezone(UTC)


class _Text(NamedTuple):
    """What can be found of a value: the path that was asked for, and the keys that lead there where they are keys."""

    label: str
    keys: tuple[str, ...]
    leaf: Any


def _texts(value: dict[str, Any], paths: Sequence[str]) -> Iterator[_Text]:
    for path in paths:
        if path == WHOLE:
            yield from (_Text(WHOLE, keys, leaf) for keys, leaf in _leaves(value, ()))
            continue
        keys = tuple(tokenize_path(path))
        yield from (_Text(path, keys, text) for text in get_text_at_path(value, list(keys)))


def _only_text(value: dict[str, Any], paths: Sequence[str]) -> _Text | None:
    """Return the one string that a search can find, if there is only one and editors keep it as it is.

    If the whole value is searched, numbers may come with it. A field that was named counts as text.
    """
    texts = list(_texts(value, paths))
    strings = {(text.keys, text.leaf): text for text in texts if text.label != WHOLE or isinstance(text.leaf, str)}
    if len(strings) != 1:
        return None
    (text,) = strings.values()
    is_there = isinstance(text.leaf, str) and _at(value, text.keys) == text.leaf
    return text if is_there and _comes_back(text.leaf) else None


def _shown_of(value: dict[str, Any], paths: Sequence[str]) -> str:
    """Return each text that can be found below the name that leads there: as sections, or as a list with "$"."""
    found = (
        (_label(text.keys) if text.label == WHOLE else " ".join(text.label.split()), str(text.leaf).splitlines())
        for text in _texts(value, paths)
    )
    if WHOLE in paths:
        parts = [f"- {label}: " + "\n  ".join(lines) for label, lines in found]
        return _shown("\n".join(dict.fromkeys(parts)))
    parts = [f"## {label}\n\n" + "\n".join(lines) for label, lines in found]
    return _shown("\n\n".join(dict.fromkeys(parts)))


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what is neither list nor dict, with the keys that lead there; list elements go by the list's name."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, (*keys, str(name)))
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, keys)
    elif value is not None:
        yield keys, value


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _with(value: dict[str, Any], keys: Sequence[str], leaf: str | None) -> dict[str, Any]:
    """Return a copy of `value` with `leaf` where `keys` lead; its keys keep their order."""
    first, *rest = keys
    return {**value, first: _with(value[first], rest, leaf) if rest else leaf}


def _comes_back(text: str) -> bool:
    """Whether a text is the same after an editor, or another program that reads lines, has saved the file."""
    return text.strip() == text != "" and text.splitlines() == text.split("\n") and _shown(text) == text


def _label(keys: Sequence[str]) -> str:
    return _shown(" ".join(".".join(keys).split()))


def _shown(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
