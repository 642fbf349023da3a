"""Keep an item, a value with a namespace and a key, as a Markdown file: its path, its front matter, and the body.

Front matter: `namespace`, `key`, `value`, `created_at`, `updated_at`, and `text_at` if the body is a text of the value,
with `text_after` for a label above it; else `index`, the fields that the body shows. Fields with a name have a section
each, and so a vector each; of the whole value the body is a list, with one vector. Each item has the one path that
its namespace and key lead to; a copy of its file elsewhere is not an item.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from openclaw_memory.types.codec import get_plain_name

FOLDER = "memory"
WHOLE = "$"  # LangGraph's name for the whole value among the fields to search
MAX_DEPTH = 64  # of values in values: what is nested deeper could not be read again everywhere

_NESTED = (Mapping, list, tuple)

# These folders of `memory/` hold what vector stores add, and the records.
_TAKEN_FOLDERS = ("notes", "records")
# The same file on every disk: those that ignore case, and those that compose or decompose letters, included.
_PLAIN_NAME = re.compile(r"[a-z0-9_-]{1,80}")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: names of devices, with any extension.
_WINDOWS_DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
_MAX_NAME = 40  # letters; at most 4 bytes each, with mark, digest and suffix below the 255 bytes of a file name
# Names of fields that add nothing to what their text says.
_NAMELESS = frozenset({"content", "data", "memory", "text"})


class Text(NamedTuple):
    """A searchable part of a value: the path that was asked for, the keys that lead there, and the part."""

    label: str
    keys: tuple[str, ...]
    leaf: Any


def make_path(namespace: Sequence[str], key: str) -> str:
    """Return the file of an item, `memory/<namespace>/<key>.md`; names that are not safe as file names get a digest."""
    return f"{make_folder(namespace)}/{_make_name(key)}.md"


def make_folder(namespace: Sequence[str]) -> str:
    """Return the folder of all items of a namespace, and of those that begin with it."""
    names = [_make_name(label) for label in namespace]
    if names and names[0] in _TAKEN_FOLDERS:
        names[0] = _mark(names[0])
    return "/".join((FOLDER, *names))


def _make_name(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) and not _WINDOWS_DEVICE.fullmatch(name)
    return name if is_plain else _mark(name)


def _mark(name: str) -> str:
    """Return the readable part of a name, then `~`, which no plain name has, and a digest."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name))
    return f"{'-'.join(words)[:_MAX_NAME]}~{digest}"


def is_place(path: str) -> bool:
    """Return whether a file may be that of an item, by its path."""
    return path.split("/", 2)[1] not in _TAKEN_FOLDERS


def is_item(path: str, fields: Mapping[str, Any]) -> bool:
    """Return whether a file is that of an item, by the names in its front matter: not a note, a record or a copy."""
    try:
        return unicodedata.normalize("NFC", get_plain_name(path)) == make_path(
            tuple(fields["namespace"]), fields["key"]
        )
    except (KeyError, TypeError, AttributeError):
        return False


def read_value(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the value of the item in a file.

    Args:
        fields: Its front matter.
        text: Its body.

    Raises:
        KeyError, TypeError, ValueError: The front matter is damaged.
    """
    value = {**fields["value"]}
    if keys := fields.get("text_at"):
        value = replace_leaf(value, keys, trim_body(text).removeprefix(fields.get("text_after", "")))
    return value


def trim_body(text: str) -> str:
    """Return a body with plain line ends and no blank lines at the end, as editors save it."""
    return "\n".join(text.strip().splitlines())


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than `MAX_DEPTH` levels."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        nested = (part.values() if isinstance(part, Mapping) else part for part in level if isinstance(part, _NESTED))
        level, depth = [inner for values in nested for inner in values], depth + 1
    return bool(level)


def list_texts(value: Mapping[str, Any]) -> list[Text]:
    """Return the searchable parts of a whole value: each that is neither a list nor an object."""
    return [Text(WHOLE, keys, leaf) for keys, leaf in _iterate_leaves(value, ())]


def make_file(
    namespace: Sequence[str],
    key: str,
    value: Mapping[str, Any],
    times: tuple[datetime, datetime],
    texts: Sequence[Text],
    index: Sequence[str],
) -> tuple[dict[str, Any], str]:
    """Return front matter and body of an item.

    Args:
        namespace: Its namespace.
        key: Its key.
        value: Its value, an object of JSON.
        times: When it was created, and when it was last put.
        texts: Its searchable parts.
        index: The paths that lead to these texts.
    """
    created, updated = (time.isoformat() for time in times)
    fields = {"namespace": list(namespace), "key": key, "value": value, "created_at": created, "updated_at": updated}
    if text := _find_only_text(value, texts):
        fields |= {"value": replace_leaf(value, text.keys, None), "text_at": list(text.keys)}
        label = "" if text.label != WHOLE or text.keys[-1] in _NAMELESS else f"{_make_label(text.keys)}: "
        return fields | ({"text_after": label} if label else {}), label + text.leaf
    return fields | {"index": list(index)}, make_body(texts, index)


def make_body(texts: Sequence[Text], index: Sequence[str]) -> str:
    """Return the texts below the names that lead there: as sections, or as a list with "$"."""
    labelled = (
        (_make_label(text.keys) if text.label == WHOLE else " ".join(text.label.split()), str(text.leaf).splitlines())
        for text in texts
    )
    if WHOLE in index:
        parts = [f"- {label}: " + "\n  ".join(lines) for label, lines in labelled]
        return _clean("\n".join(dict.fromkeys(parts)))
    parts = [f"## {label}\n\n" + "\n".join(lines) for label, lines in labelled]
    return _clean("\n\n".join(dict.fromkeys(parts)))


def replace_leaf(value: Mapping[str, Any], keys: Sequence[str], leaf: str | None) -> dict[str, Any]:
    """Return a copy of `value` with `leaf` where `keys` lead; its keys keep their order."""
    first, *inner = keys
    return {**value, first: replace_leaf(value[first], inner, leaf) if inner else leaf}


def _find_only_text(value: Mapping[str, Any], texts: Sequence[Text]) -> Text | None:
    """Return the one searchable string, if there is only one and editors keep it as it is.

    If the whole value is searched, numbers may come with it. A field that was named counts as text.
    """
    strings = {(text.keys, text.leaf): text for text in texts if text.label != WHOLE or isinstance(text.leaf, str)}
    if len(strings) != 1:
        return None
    (text,) = strings.values()
    is_there = isinstance(text.leaf, str) and _get_leaf(value, text.keys) == text.leaf
    return text if is_there and _is_stable(text.leaf) else None


def _iterate_leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the parts that are neither list nor dict, with their keys; list elements go by the list's name."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _iterate_leaves(part, (*keys, str(name)))
    elif isinstance(value, list):
        for part in value:
            yield from _iterate_leaves(part, keys)
    elif value is not None:
        yield keys, value


def _get_leaf(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _is_stable(text: str) -> bool:
    """Return whether a text is the same after an editor, or another program that reads lines, has saved the file."""
    return text.strip() == text != "" and text.splitlines() == text.split("\n") and _clean(text) == text


def _make_label(keys: Sequence[str]) -> str:
    return _clean(" ".join(".".join(keys).split()))


def _clean(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
